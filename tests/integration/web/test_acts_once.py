"""Acts that are repeated, come at once, come too early, or name what is not there."""

from __future__ import annotations

import re
import threading
from decimal import Decimal

import pytest

from oomrl.adapters.kill_switch import KillSwitch
from oomrl.domain.people import RIGHTS, Person, Right, Role
from oomrl.domain.records import Act, CapitalKind, Deployment, DeploymentKind
from oomrl.errors import Mistake, OomrlError, Partly, Refused
from oomrl.settings import AccountOf, BrokerSettings, Settings
from tests.integration.web.conftest import PASSWORD, ROOT, Browser, Page
from tests.states import AT, RUN, made_up

OLGA = Person("olga", RIGHTS[Role.OPERATOR])


def form_of(browser: Browser, path: str, action: str) -> dict[str, str]:
    """Return the hidden fields of a form as a browser would send them."""
    form = browser.get(path).text.partition(f'action="{action}"')[2].partition("</form>")[0]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def endowed(page: Page) -> Decimal:
    with page.made.store.read() as view:
        return view.capital.state(RUN).endowed


def test_a_double_click_endows_once(page: Page) -> None:
    olga = page.as_("olga")
    form = form_of(olga, "/account", "/endow") | {"amount": "1,000.50", "reason": "more"}
    clicks = [threading.Thread(target=olga.http.post, args=("/endow",), kwargs={"data": form}) for _ in range(4)]
    for click in clicks:
        click.start()
    for click in clicks:
        click.join()
    assert endowed(page) == Decimal("1000.50")
    page.site.sent.give_back("")  # a restart forgets what was sent; the record does not
    page.site.sent._ids.clear()
    answer = olga.http.post("/endow", data=form)
    assert answer.status_code == 409 and "recorded" in answer.text and endowed(page) == Decimal("1000.50")
    assert olga.act("/endow", amount="5", reason="without an id").status_code == 422
    again = form_of(olga, "/account", "/endow") | {"amount": "1,000.50", "reason": "more"}
    assert olga.http.post("/endow", data=again).status_code == 303 and endowed(page) == Decimal("2001.00")


def test_a_program_that_asks_again_endows_once(page: Page) -> None:
    http, token = page.browser().http, page.token("olga")
    body = {"amount": "10.00", "reason": "more", "once": "transfer 7"}
    codes = [http.post("/api/v1/endow", json=body, headers=token).status_code for _ in range(2)]
    assert codes == [200, 409] and endowed(page) == Decimal(10)
    assert http.post("/api/v1/endow", json={"amount": "10.00", "reason": "more"}, headers=token).status_code == 422


def test_a_form_that_was_refused_may_be_sent_again(page: Page) -> None:
    olga = page.as_("olga")
    form = form_of(olga, "/account", "/freezes") | {"first": "2020-02-02", "last": "2020-02-01", "reason": "year end"}
    assert olga.http.post("/freezes", data=form).status_code == 422
    form |= {"last": "2020-02-03"}
    assert olga.http.post("/freezes", data=form).status_code == 303
    assert olga.http.post("/freezes", data=form).status_code == 409
    with page.made.store.read() as view:
        assert len(view.remarks.freezes(RUN)) == 1


def test_of_two_rollbacks_at_once_one_is_made_and_the_other_hears_why_not(page: Page) -> None:
    made, desk = page.made, page.site.desk
    new = made.repository.commit(made.revision, {"src/strategy/ranks.py": b"# another\n"}, "another", AT)
    with desk.store.begin() as work:
        work.deployments.save(Deployment(RUN, 2, new, made.revision, DeploymentKind.DEPLOY, AT.date(), AT))
    said: list[Exception] = []
    begin = threading.Barrier(2)

    def roll_back() -> None:
        begin.wait()
        try:
            desk.rollback(OLGA, "it lost", made.revision)
        except OomrlError as error:
            said.append(error)

    threads = [threading.Thread(target=roll_back) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (error,) = said
    assert isinstance(error, Refused) and "trades now" in str(error)
    with desk.store.read() as view:
        assert [one.kind for one in view.deployments.all(RUN)][2:] == [DeploymentKind.ROLLBACK]
    olga = page.as_("olga")
    answer = olga.act("/rollback", reason="again", revision=made.revision)
    assert answer.status_code == 409 and "trades now" in answer.text
    token = page.token("olga")
    body = {"reason": "again", "seen": new}
    assert page.browser().http.post("/api/v1/rollback", json=body, headers=token).status_code == 409


# -- halting


def test_a_halt_before_the_first_session_is_a_halt(tmp_path, page: Page) -> None:  # type: ignore[no-untyped-def]
    from oomrl.web.app import create_app

    made = made_up(tmp_path / "young", sessions=0)
    app = create_app(made.state, made.store, page.site.settings, RUN, page.clock)
    accounts, olga = app.state.site.accounts, Browser(app)
    assert olga.welcome(accounts.invite(ROOT, "olga", Role.OPERATOR)).status_code == 303
    assert olga.act("/halt", reason="not yet").status_code == 303
    assert KillSwitch(made.state).words() == "by olga: not yet"
    assert "halted by file" in olga.get("/account").text
    assert olga.act("/resume", reason="now").status_code == 303
    assert KillSwitch(made.state).words() == ""
    with made.store.read() as view:
        assert [done.act for done in view.people.acts(most=2)] == ["resume", "halt"]
    answer = olga.http.post("/endow", data=form_of(olga, "/account", "/endow") | {"amount": "1", "reason": "x"})
    assert answer.status_code == 422
    made.store.close()


def test_a_halt_whose_broker_does_not_answer_holds_and_says_what_was_not_done(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OOMRL_NO_KEY", raising=False)
    terms = AccountOf(tape="none", broker="alpaca")
    broker = BrokerSettings(key_env="OOMRL_NO_KEY", secret_env="OOMRL_NO_KEY", base_url="http://127.0.0.1:9")
    settings = Settings(accounts={"main": terms}, broker=broker)
    halted = page.site.desk.halt(OLGA, "odd fills", settings)
    assert list(halted.failed) == ["the broker"]
    with pytest.raises(Partly, match=r"Halted, but .*the broker: .*OOMRL_NO_KEY"):
        halted.complete()
    assert KillSwitch(page.made.state).words() == "by olga: odd fills"
    with page.made.store.read() as view:
        assert view.capital.state(RUN).halted
    page.site.settings = settings
    answer = page.as_("olga").act("/halt", reason="odd fills")
    assert answer.status_code == 503 and "Halted, but" in answer.text and "Nothing was changed" not in answer.text
    token = page.token("olga")
    said = page.browser().http.post("/api/v1/halt", json={"reason": "odd fills"}, headers=token)
    assert said.status_code == 503 and "Halted, but" in said.json()["error"]


# -- comments on lines


def test_a_comment_stands_on_a_line_that_there_is_old_or_new(page: Page) -> None:
    made, desk, ann = page.made, page.site.desk, page.as_("ann")
    source = made.tree["src/strategy/ranks.py"].decode()
    lines = source.splitlines()
    changed = "\n".join(["# first", *lines[1:]]) + "\n# last\n"
    proposal = made.proposal(changes={"src/strategy/ranks.py": changed.encode(), "src/strategy/new.py": b"X = 1\n"})
    path = f"/proposals/{proposal.id}/comments"
    count = len(lines)
    for where, line, side, code in (
        ("src/strategy/ranks.py", count, "old", 303),
        ("src/strategy/ranks.py", count + 1, "old", 422),
        ("src/strategy/ranks.py", count + 1, "new", 303),
        ("src/strategy/ranks.py", count + 2, "new", 422),
        ("src/strategy/new.py", 1, "old", 422),
        ("src/strategy/new.py", 1, "new", 303),
        ("", 3, "new", 422),
        ("src/strategy/none.py", 1, "new", 422),
        ("src/strategy/ranks.py", 1, "both", 422),
    ):
        data = {"csrf": ann.csrf(), "text": f"{side} {line}", "path": where, "line": str(line), "side": side}
        answer = ann.http.post(path, data=data)
        assert answer.status_code == code, (where, line, side, answer.text)
    data = {"csrf": ann.csrf(), "text": "this line was fine", "path": "src/strategy/ranks.py", "line": "1"}
    ann.http.post(path, data=data | {"side": "old"})
    ann.act(f"/proposals/{proposal.id}/look")
    for view in ("split", "unified"):
        text = ann.get(f"/proposals/{proposal.id}?view={view}").text
        diff = text.partition('id="diff"')[2].partition('id="compared"')[0]
        assert "this line was fine" in diff and "ranks.py:1 as it was" in diff
        assert re.search(
            r'side=old" hx-target[^>]*aria-label="Comment on line 1 of src/strategy/ranks.py as it was"', diff
        )
    assert 'name="side" value="old"' in ann.get(f"/proposals/{proposal.id}/say?path=a&line=1&side=old").text
    desk.decide(Person("bob", RIGHTS[Role.REVIEWER]), proposal.id, Act.REQUEST_CHANGES, "see line 1")
    with made.store.read() as view_:
        asked = [one.as_asked() for one in view_.remarks.of(RUN, proposal.id)]
    assert "src/strategy/ranks.py:1 (as it was): this line was fine" in asked


# -- one's own password


def test_a_person_changes_their_password_and_their_other_sessions_end(page: Page) -> None:
    ann, other, token = page.as_("ann"), page.browser(), page.token("ann")
    other.log_in("ann")
    fresh = "another battery staple"
    wrong = ann.act("/me/password", old="not it at all", password=fresh, again=fresh)
    assert wrong.status_code == 409
    assert ann.act("/me/password", old=PASSWORD, password=fresh, again="else").status_code == 422
    assert ann.act("/me/password", old=PASSWORD, password="short", again="short").status_code == 422
    kept = ann.act("/me/password", old=PASSWORD, password=fresh, again=fresh)
    assert kept.status_code == 200 and "is changed" in kept.text
    assert ann.get("/").status_code == 200 and other.get("/").status_code == 303
    http = page.browser().http
    assert http.get("/api/v1/me", headers=token).status_code == 200
    ann.act("/me/password", old=fresh, password=PASSWORD, again=PASSWORD, tokens="true")
    assert http.get("/api/v1/me", headers=token).status_code == 401
    assert page.browser().log_in("ann", fresh).status_code == 403
    assert page.browser().log_in("ann", PASSWORD).status_code == 303


def test_guessing_the_old_password_on_a_screen_left_open_locks_the_account(page: Page) -> None:
    ann = page.as_("ann")
    codes = []
    for _ in range(5):
        word = ann.get("/me")
        if word.status_code != 200:
            break
        codes.append(ann.act("/me/password", old="a wrong guess", password=PASSWORD, again=PASSWORD).status_code)
    assert codes == [409] * 5 and ann.get("/").status_code == 303
    assert page.browser().log_in("ann").status_code == 403


# -- files


def test_a_file_holds_no_character_that_hides_or_reorders(page: Page) -> None:
    page.as_("olga").act("/halt", reason="rev\u202eersed\u200b and =1+1")
    vic = page.as_("vic")
    for name in ("audit", "ledger", "losses"):
        text = vic.get(f"/export/{name}.csv").text
        assert "\u202e" not in text and "\u200b" not in text
    assert "rev\\u202eersed\\u200b" in vic.get("/export/audit.csv").text
    assert "rev\u202eersed" in vic.get("/export/audit.json").json()[0]["detail"] or any(
        "rev\u202eersed" in row["detail"] for row in vic.get("/export/audit.json").json()
    )


# -- revisions of a proposal


def test_a_new_revision_begins_with_what_changed_since_the_one_sent_back(page: Page) -> None:
    made, desk, ann = page.made, page.site.desk, page.as_("ann")
    source = made.tree["src/strategy/ranks.py"]
    first = made.proposal()
    desk.decide(Person("ann", RIGHTS[Role.REVIEWER]), first.id, Act.REQUEST_CHANGES, "say why")
    second = made.proposal(attempt=2, changes={"src/strategy/ranks.py": source + b"\n# attempt 1\n# because\n"})
    third = made.proposal(attempt=3, changes={"src/strategy/ranks.py": source + b"\n# attempt 1\n"})
    for proposal in (second, third):
        ann.act(f"/proposals/{proposal.id}/look")
    since = ann.get(f"/proposals/{second.id}?view=unified").text.partition('id="diff"')[2].partition('id="compared"')[0]
    assert since.count('class="new"') == 1 and "From attempt 1 to attempt 2" in since
    whole = ann.get(f"/proposals/{second.id}?view=unified&against=base").text
    assert whole.partition('id="diff"')[2].partition('id="compared"')[0].count('class="new"') == 3
    same = ann.get(f"/proposals/{third.id}").text
    assert "Nothing differs from" in same and "# attempt 1" in same.replace('<span class="c1">', "")


def test_what_a_change_does_to_numbers_in_code_is_told_in_words(page: Page) -> None:
    source = page.made.tree["src/strategy/features.py"].decode()
    number = re.search(r"^([A-Z_]+) = (0\.\d+)", source, re.M)
    assert number, "the strategy has no constant to change by now: choose another file"
    changed = source.replace(number[0], f"{number[1]} = {float(number[2]) * 2}")
    proposal = page.made.proposal(changes={"src/strategy/features.py": changed.encode()})
    sentence = f"{number[1]} rises from {number[2]} to {float(number[2]) * 2}, 2 times as much (src/strategy/feat"
    assert sentence in page.as_("ann").get(f"/proposals/{proposal.id}").text
    case = page.browser().http.get(f"/api/v1/proposals/{proposal.id}", headers=page.token("ann")).json()
    assert case["parameters"][0].startswith(sentence)


def test_tests_are_compared_with_the_revision_before_or_with_what_the_policy_asks(page: Page) -> None:
    first = page.made.proposal()
    text = page.as_("ann").get(f"/proposals/{first.id}").text.partition('id="measured"')[2]
    assert "not measured" in text and "95.0%" in text and "60.0%" in text and "began the run" in text
    refused = page.made.proposal(attempt=2, verdict="refuse")
    gate = page.as_("ann").get(f"/proposals/{refused.id}").text.partition('id="gate"')[2].partition("</section>")[0]
    assert "proved itself" not in gate and "proved itself by net" in page.as_("ann").get(f"/proposals/{first.id}").text


def test_the_chosen_address_leads_everywhere() -> None:
    from oomrl.settings import WebSettings

    assert WebSettings(public_url="https://review.example:8443/").url(80) == "https://review.example:8443"
    assert WebSettings(tls_certificate="c", tls_key="k", host="review.example").url() == "https://review.example:8420"
    for wrong in ("review.example", "ftp://review.example", "https://review.example/oomrl", "https://a b"):
        with pytest.raises(ValueError, match="address"):
            WebSettings(public_url=wrong)


def test_an_endowment_of_the_same_words_by_somebody_else_is_another(page: Page) -> None:
    desk = page.site.desk
    for name in ("olga", "otto"):
        person = Person(name, frozenset({Right.OPERATE}))
        desk.capital(person, CapitalKind.ENDOW, "more", Decimal(10), once="1")
    assert endowed(page) == Decimal(20)
    with pytest.raises(Mistake, match="one-time"):
        desk.capital(OLGA, CapitalKind.ENDOW, "more", Decimal(10), once="x" * 81)

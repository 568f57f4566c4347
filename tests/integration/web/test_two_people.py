"""Two accounts are two people only where one person cannot be behind both, as far as the service can know."""

from __future__ import annotations

import re

import pytest

from oomrl.adapters.accounts import Accounts
from oomrl.adapters.desk import Desk
from oomrl.adapters.reviewer import StoredReviews
from oomrl.domain.people import RIGHTS, Forbidden, Person, Right, Role
from oomrl.domain.records import Act, Proposal, ProposalStatus, Review
from oomrl.errors import Mistake, Refused
from oomrl.stages import Waiting
from tests.integration.web.conftest import PASSWORD, ROOT, Browser, Page
from tests.integration.web.test_review import loop_says, risky
from tests.states import RUN, MadeUp

HOST = Person("root", frozenset(Right), "host")


@pytest.fixture
def desk(page: Page) -> Desk:
    return page.site.desk


@pytest.fixture
def made(page: Page) -> MadeUp:
    return page.made


@pytest.fixture
def accounts(page: Page) -> Accounts:
    return page.site.accounts


def let_in(page: Page, by: Browser, name: str, role: str = "reviewer") -> Browser:
    """Invite somebody on the page, and use the link, whoever does."""
    text = by.act("/people", name=name, role=role).text
    browser = page.browser()
    assert browser.welcome(re.search(r"/welcome/([\w-]+)", text)[1]).status_code == 303  # type: ignore[index]
    page.browsers[name] = browser
    return browser


def approve(page: Page, name: str, proposal: Proposal, reason: str = "reads well") -> int:
    browser, seen = page.as_(name), page.site.desk.case(ROOT, proposal.id).now
    browser.act(f"/proposals/{proposal.id}/look")
    form = {"base_tree": seen.base_tree, "result_tree": seen.result_tree, "verdict": seen.verdict}
    return browser.act(f"/proposals/{proposal.id}/decide", act="approve", reason=reason, **form).status_code


def test_an_administrator_and_a_second_self_are_one_person(page: Page, desk: Desk, made: MadeUp) -> None:
    proposal = risky(made)
    adam = page.as_("adam")
    let_in(page, adam, "second self")
    let_in(page, adam, "third", role="admin")
    let_in(page, page.browsers["third"], "fourth")
    for name in ("adam", "second self", "third", "fourth"):
        assert approve(page, name, proposal) == 303
        assert loop_says(desk, proposal) == Waiting("review", proposal.id)
    text = adam.get(f"/proposals/{proposal.id}").text
    assert "1 of 2 approvals" in text and "let in by adam" in text
    assert "counted as one with that of fourth (fourth was let in by third" in text
    assert desk.case(ROOT, proposal.id).status is ProposalStatus.PASSED


def test_what_the_host_confirms_is_a_person_of_their_own(
    page: Page, desk: Desk, made: MadeUp, accounts: Accounts
) -> None:
    proposal = risky(made)
    let_in(page, page.as_("adam"), "bea")
    for name in ("adam", "bea"):
        assert approve(page, name, proposal) == 303
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)
    assert "counts as one with that of bea" in page.as_("adam").get(f"/proposals/{proposal.id}").text
    accounts.confirm(HOST, "bea")
    assert isinstance(loop_says(desk, proposal), Review)
    assert "confirmed by root (host)" in page.as_("adam").get(f"/proposals/{proposal.id}").text
    told = [(link.facts["act"], link.facts["who"], link.facts["how"]) for link in page.site.chain.about("bea")]
    assert told == [("invite", "adam", "page"), ("set password", "bea", "page"), ("confirm", "root", "host")]


def test_whom_the_host_let_in_are_two_from_the_start(page: Page, desk: Desk, made: MadeUp) -> None:
    proposal = risky(made)
    for name in ("ann", "bob"):
        assert approve(page, name, proposal) == 303
    assert isinstance(loop_says(desk, proposal), Review)


def test_nobody_confirms_their_own_but_another_administrator_may(page: Page, accounts: Accounts, made: MadeUp) -> None:
    adam = page.as_("adam")
    let_in(page, adam, "bea")
    let_in(page, adam, "cy", role="admin")
    assert adam.act("/people/bea/confirm").status_code == 409
    assert page.as_("cy").act("/people/bea/confirm").status_code == 409
    assert page.as_("cy").act("/people/cy/confirm").status_code == 409
    zoe = page.browser()
    zoe.welcome(accounts.invite(ROOT, "zoe", Role.ADMIN))
    assert "of their own" in zoe.get("/people").text and "of their own" not in adam.get("/people").text
    assert zoe.act("/people/bea/confirm").status_code == 303
    with made.store.read() as view:
        roll = view.people.roll()
    assert not roll.one_party("bea", "adam") and roll.one_party("cy", "adam")


def test_an_account_taken_over_by_a_new_link_is_the_link_maker_s(page: Page, desk: Desk, made: MadeUp) -> None:
    """The maker of a link may use it: of a real reviewer's account too, whatever was confirmed before."""
    page.site.accounts.invite(ROOT, "bea", Role.REVIEWER)
    page.site.accounts.accept(page.site.accounts.invite_again(ROOT, "bea"), "", PASSWORD, "")
    page.site.accounts.confirm(HOST, "bea")
    adam = page.as_("adam")
    text = adam.act("/people/bea/invite").text
    page.browsers["bea"] = thief = page.browser()
    assert thief.welcome(re.search(r"/welcome/([\w-]+)", text)[1]).status_code == 303  # type: ignore[index]
    proposal = risky(made)
    for name in ("adam", "bea"):
        assert approve(page, name, proposal) == 303
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)


def test_the_only_administrator_who_lost_the_password_comes_back_by_the_host(page: Page, made: MadeUp) -> None:
    accounts = page.site.accounts
    page.as_("adam")
    link = accounts.recover("root", "adam")
    assert page.browsers["adam"].get("/").status_code == 303
    page.browsers["adam"] = back = page.browser()
    assert back.welcome(link).status_code == 303 and back.get("/people").status_code == 200
    with made.store.read() as view:
        roll, acts = view.people.roll(), [(done.who, done.how, done.act) for done in view.people.acts()]
    assert ("root", "host", "recover") in acts
    assert roll.one_party("adam", "root") and not roll.one_party("adam", "ann")


def test_the_host_recovers_nobody_whom_an_administrator_can_let_in(page: Page) -> None:
    accounts = page.site.accounts
    for name in ("adam", "ann"):
        page.as_(name)
    with pytest.raises(Refused, match="Expected an administrator, was ann"):
        accounts.recover("root", "ann")
    accounts.accept(accounts.invite(ROOT, "zoe", Role.ADMIN), "", PASSWORD, "")
    with pytest.raises(Refused, match="zoe can make a new link"):
        accounts.recover("root", "adam")
    accounts.set_active(ROOT, "zoe", active=False)
    with pytest.raises(Refused, match="Expected an administrator, was zoe"):
        accounts.recover("root", "zoe")
    assert accounts.recover("root", "adam")


def test_who_proposed_does_not_approve_through_whom_they_let_in(page: Page, made: MadeUp) -> None:
    let_in(page, page.as_("adam"), "bea")
    mine, hers = made.proposal(author="manual <adam>"), made.proposal(author="manual <bea>", attempt=2)
    text = page.browsers["bea"].get(f"/proposals/{mine.id}").text
    assert "somebody else approves it" in text and 'value="approve" disabled' in text
    assert approve(page, "bea", mine) == 409
    assert approve(page, "adam", hers) == 409
    assert approve(page, "ann", mine) == 303


def test_a_second_self_does_not_settle_what_somebody_else_asked(page: Page, desk: Desk, made: MadeUp) -> None:
    let_in(page, page.as_("adam"), "bea")
    proposal = made.proposal(author="manual <adam>")
    page.as_("ann").act(f"/proposals/{proposal.id}/comments", text="why?", blocking="true")
    (remark,) = desk.case(ROOT, proposal.id).remarks
    path = f"/proposals/{proposal.id}/remarks/{remark.id}"
    assert page.as_("bea").act(path, resolution="resolved").status_code == 409
    assert page.as_("bob").act(path, resolution="resolved").status_code == 303


@pytest.mark.parametrize("ends", ["close", "role", "close by token"])
def test_the_vote_of_who_may_not_vote_any_more_does_not_count(page: Page, desk: Desk, made: MadeUp, ends: str) -> None:
    proposal = risky(made)
    for name in ("ann", "bob"):
        assert approve(page, name, proposal) == 303
    assert isinstance(loop_says(desk, proposal), Review)
    if ends == "close":
        page.as_("adam").act("/people/bob/active", active="false")
    elif ends == "role":
        page.as_("adam").act("/people/bob/role", role="operator")
    else:
        page.browser().http.post("/api/v1/people/bob/close", headers=page.token("adam"))
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)
    text = page.as_("ann").get(f"/proposals/{proposal.id}").text
    assert "1 of 2 approvals" in text and "does not count: the account is" in text
    assert "1 of 2" in page.as_("ann").get("/").text


def test_before_there_is_an_administrator_the_host_invites_and_then_needs_a_token(
    page: Page, accounts: Accounts
) -> None:
    for name in ("ann", "bob"):
        host = accounts.commander("root", "", inviting=True)
        accounts.accept(accounts.invite(host, name, Role.REVIEWER), "", PASSWORD, "")
    assert accounts.first_link() is not None
    with pytest.raises(Forbidden):
        accounts.commander("ann", "")
    page.as_("adam")
    assert accounts.first_link() is None
    with pytest.raises(Forbidden):
        accounts.commander("root", "", inviting=True)


def test_a_link_for_the_first_administrator_ends_with_the_first(page: Page, accounts: Accounts) -> None:
    secret = accounts.first_link() or ""
    page.as_("adam")
    with pytest.raises(Refused, match="administrator"):
        accounts.accept(secret, "Eve", PASSWORD, "")


# -- tokens administer nobody in


def test_a_token_takes_rights_away_and_lets_nobody_in(page: Page, accounts: Accounts) -> None:
    token, http = page.token("adam"), page.browser().http
    page.as_("ann")
    page.as_("vic")
    person = Person("adam", frozenset(Right), "token")
    for act in (
        lambda: accounts.invite(person, "eve", Role.VIEWER),
        lambda: accounts.invite_again(person, "ann"),
        lambda: accounts.set_active(person, "ann", True),
        lambda: accounts.unlock(person, "ann"),
        lambda: accounts.confirm(person, "ann"),
        lambda: accounts.set_role(person, "vic", Role.REVIEWER),
        lambda: accounts.set_role(person, "ann", Role.OPERATOR),
        lambda: accounts.set_role(person, "ann", Role.ADMIN),
    ):
        with pytest.raises(Forbidden, match="token"):
            act()
    assert http.post("/api/v1/people", json={"name": "eve", "role": "viewer"}, headers=token).status_code == 405
    assert http.post("/api/v1/people/vic/role", json={"role": "admin"}, headers=token).status_code == 403
    assert http.post("/api/v1/people/ann/role", json={"role": "viewer"}, headers=token).status_code == 200
    assert http.post("/api/v1/people/ann/close", headers=token).status_code == 200
    assert page.as_("ann").get("/").status_code == 303
    rows = {row["name"]: row for row in http.get("/api/v1/people", headers=token).json()["rows"]}
    assert (rows["ann"]["role"], rows["ann"]["active"], rows["ann"]["let_in_by"]) == ("viewer", False, "")


def test_tokens_are_listed_and_ended_by_the_api_and_made_by_none(page: Page) -> None:
    ann, adam, http = page.token("ann"), page.token("adam"), page.browser().http
    (row,) = http.get("/api/v1/tokens", headers=ann).json()["rows"]
    assert "digest" not in row and row["revoked_at"] is None
    assert http.post("/api/v1/tokens", json={}, headers=ann).status_code == 405
    (other,) = http.get("/api/v1/tokens", headers=adam).json()["rows"]
    assert http.post(f"/api/v1/tokens/{other['id']}/revoke", headers=ann).status_code == 404
    assert http.post("/api/v1/people/ann/tokens/revoke", headers=adam).status_code == 200
    assert http.get("/api/v1/me", headers=ann).status_code == 401


def test_a_token_that_only_stops_needs_to_see_nothing(page: Page) -> None:
    http, panic = page.browser().http, page.token("olga", Right.OPERATE)
    assert http.get("/api/v1/me", headers=panic).json()["rights"] == ["operate"]
    assert http.get("/api/v1/status", headers=panic).status_code == 403
    assert http.post("/api/v1/halt", json={"reason": "now"}, headers=panic).status_code == 200
    form = {"label": "blind", "scopes": ["review"], "days": "1"}
    answer = page.as_("ann").act("/me/tokens", **form)
    assert answer.status_code == 422 and "scope see" in answer.text


# -- taking an approval back


def test_an_approval_is_withdrawn_by_its_author_and_given_again(page: Page, desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    assert approve(page, "ann", proposal) == 303
    assert isinstance(loop_says(desk, proposal), Review)
    path = f"/proposals/{proposal.id}/decide"
    assert page.as_("bob").act(path, act="withdraw", reason="not mine").status_code == 409
    assert page.as_("ann").act(path, act="withdraw", reason=" ").status_code == 422
    assert page.as_("ann").act(path, act="withdraw", reason="I misread line 3").status_code == 303
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)
    assert desk.case(ROOT, proposal.id).proposal.status is ProposalStatus.PASSED
    text = page.as_("ann").get(f"/proposals/{proposal.id}").text
    assert "does not count: withdrawn" in text and "0 of 1 approval" in text
    assert approve(page, "ann", proposal) == 303
    assert isinstance(loop_says(desk, proposal), Review)
    desk.audit.catch_up(desk.store, RUN)
    assert desk.audit.differences(desk.store, RUN) == []


def test_one_of_two_approvals_withdrawn_leaves_the_other(page: Page, desk: Desk, made: MadeUp) -> None:
    proposal = made.proposal()
    for name in ("ann", "bob"):
        assert approve(page, name, proposal) == 303
    page.as_("bob").act(f"/proposals/{proposal.id}/decide", act="withdraw", reason="let me think")
    said = loop_says(desk, proposal)
    assert isinstance(said, Review) and said.reviewer == "ann"


def test_what_was_deployed_keeps_its_approvals(page: Page, desk: Desk, made: MadeUp) -> None:
    proposal = risky(made)
    for name in ("ann", "bob"):
        assert approve(page, name, proposal) == 303
    toml = made.tree["strategy.toml"].replace(b"exposure = 0.98", b"exposure = 0.9")
    made.repository.commit(made.revision, {"strategy.toml": toml}, "deployed", page.clock())
    with desk.store.begin() as work:
        work.proposals.set_status(RUN, proposal.id, ProposalStatus.DEPLOYED)
    text = page.as_("ann").get(f"/proposals/{proposal.id}").text
    assert "2 of 2 approvals" in text and "does not count" not in text and "It is deployed" in text
    with pytest.raises(Refused, match="deployed"):
        desk.decide(Person("ann", RIGHTS[Role.REVIEWER]), proposal.id, Act.WITHDRAW, "too late")


def test_the_automatic_reviewer_counts_beside_accounts_in_simulation_alone(page: Page, desk: Desk) -> None:
    page.as_("ann")
    proposal = page.made.proposal()
    with desk.store.read() as view:
        verdict = view.proposals.verdict(RUN, proposal.id)
    assert verdict is not None
    automatic = StoredReviews(RUN, desk.store, desk.repository, desk.now, automatic=True, rules=desk.rules)
    given = automatic.review(proposal, verdict, desk.repository.head())
    assert isinstance(given, Review) and given.reviewer == "auto"
    with desk.store.begin() as work:
        work.proposals.save_review(given)
    assert automatic.review(proposal, verdict, desk.repository.head()) == given
    assert loop_says(desk, proposal) == Waiting("review", proposal.id)


@pytest.mark.parametrize("name", ["Ann.", "ann@evil.example", "A n n", "ANN", "a-nn", "аnn"])
def test_nobody_is_invited_under_a_name_that_looks_like_another(page: Page, name: str) -> None:
    page.as_("ann")
    with pytest.raises(Mistake):
        page.site.accounts.invite(ROOT, name, Role.REVIEWER)

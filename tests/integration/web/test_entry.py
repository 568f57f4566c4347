"""Who gets in: the first link, log-in, sessions, tokens, and what another site's page can do (nothing)."""

from __future__ import annotations

import threading

import pytest
from argon2 import PasswordHasher

from oomrl.adapters import accounts as module
from oomrl.adapters.accounts import Accounts
from oomrl.domain.people import RIGHTS, Forbidden, Person, Right, Role
from oomrl.errors import Mistake, Refused
from oomrl.settings import Settings, WebSettings
from oomrl.web.app import create_app
from oomrl.web.guard import HEADERS
from oomrl.web.serving import check_exposure
from tests.integration.web.conftest import HOST, PASSWORD, ROOT, Browser, Page
from tests.states import RUN


def test_the_first_link_makes_one_administrator_once(page: Page) -> None:
    secret = page.site.accounts.first_link()
    assert secret is not None
    browser = page.browser()
    assert browser.welcome(secret, "Ada").headers["location"] == "/"
    assert browser.get("/people").status_code == 200
    assert page.browser().get(f"/welcome/{secret}").status_code == 409
    assert page.site.accounts.first_link() is None


def test_a_new_first_link_ends_the_one_before_and_time_ends_any(page: Page) -> None:
    old, new = page.site.accounts.first_link(), page.site.accounts.first_link()
    assert page.browser().get(f"/welcome/{old}").status_code == 409
    assert page.browser().get(f"/welcome/{new}").status_code == 200
    page.clock.on(hours=49)
    assert page.browser().get(f"/welcome/{new}").status_code == 409


@pytest.mark.parametrize("path", ["/", "/proposals", "/account", "/events", "/people", "/export/ledger.csv", "/me"])
def test_nobody_sees_anything_before_logging_in(page: Page, path: str) -> None:
    answer = page.browser().get(path)
    assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/login")


def test_wrong_name_wrong_password_and_locked_sound_alike(page: Page) -> None:
    page.as_("ann")
    answers = {page.browser().log_in("nobody").text, page.browser().log_in("ann", "wrong password").text}
    for _ in range(4):
        page.browser().log_in("ann", "wrong password")
    answers.add(page.browser().log_in("ann", PASSWORD).text)
    without = {text.partition('name="form"')[0] for text in answers}
    assert len(without) == 1 and "was another" in without.pop()


def test_five_failures_lock_an_account_for_a_while(page: Page) -> None:
    page.as_("ann")
    for _ in range(5):
        assert page.browser().log_in("ann", "wrong password").status_code == 403
    assert page.browser().log_in("ann").status_code == 403
    page.clock.on(minutes=16)
    assert page.browser().log_in("ann").status_code == 303


def test_guesses_at_once_all_count_and_none_is_written_down(page: Page) -> None:
    page.as_("ann")
    guesses = [threading.Thread(target=page.browser().log_in, args=("ann", "wrong password")) for _ in range(5)]
    for guess in guesses:
        guess.start()
    for guess in guesses:
        guess.join()
    assert page.browser().log_in("ann").status_code == 403
    page.browser().log_in(PASSWORD)
    assert PASSWORD not in page.as_("adam").get("/account/audit").text


def test_an_administrator_ends_a_lock(page: Page) -> None:
    page.as_("ann")
    for _ in range(5):
        page.browser().log_in("ann", "wrong password")
    assert page.as_("adam").act("/people/ann/unlock").status_code == 303
    assert page.browser().log_in("ann").status_code == 303


def test_attempts_from_one_address_are_limited(page: Page) -> None:
    settings = Settings(web=WebSettings(public_url=HOST, logins_a_minute=6))
    browser = Browser(create_app(page.made.state, page.made.store, settings, RUN, page.clock))
    codes = [browser.log_in("nobody", "wrong password").status_code for _ in range(4)]
    assert codes == [403, 403, 429, 429]


def test_a_session_begins_under_a_new_secret_whatever_the_browser_brought(page: Page) -> None:
    page.as_("ann")
    browser = page.browser()
    browser.http.cookies.set("oomrl", "planted-by-somebody")
    browser.log_in("ann")
    mine = [cookie.value for cookie in browser.http.cookies.jar if cookie.name == "oomrl"]
    assert "planted-by-somebody" not in mine[-1:]
    planted = page.browser()
    planted.http.cookies.set("oomrl", "planted-by-somebody")
    assert planted.get("/").status_code == 303
    again = page.browser()
    again.log_in("ann")
    assert again.http.cookies["oomrl"] != mine[-1]


def test_the_session_cookie_is_out_of_reach_for_scripts_and_other_sites(page: Page) -> None:
    page.as_("ann")
    cookie = page.browser().log_in("ann").headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie


def test_sessions_end_by_logging_out_by_rest_and_by_age(page: Page) -> None:
    browser = page.as_("ann")
    kept = browser.http.cookies["oomrl"]
    browser.act("/logout")
    browser.http.cookies.set("oomrl", kept)
    assert browser.get("/").status_code == 303
    resting = page.browser()
    resting.log_in("ann")
    page.clock.on(minutes=61)
    assert resting.get("/").status_code == 303
    busy = page.browser()
    busy.log_in("ann")
    for _ in range(13):
        page.clock.on(minutes=55)
        code = busy.get("/").status_code
    assert code == 200
    page.clock.on(minutes=55)
    assert busy.get("/").status_code == 303


def test_a_new_role_a_closed_account_and_a_new_link_end_all_sessions(page: Page) -> None:
    admin = page.as_("adam")
    for act, data in (("role", {"role": "viewer"}), ("invite", {}), ("active", {"active": "false"})):
        browser = page.as_("ann")
        browser.log_in("ann")
        assert browser.get("/").status_code == 200
        admin.act(f"/people/ann/{act}", **data)
        assert browser.get("/").status_code == 303
    assert page.browser().log_in("ann").status_code == 403


def test_a_password_set_anew_ends_tokens_too(page: Page) -> None:
    token, http = page.token("ann"), page.browser().http
    assert http.get("/api/v1/proposals", headers=token).status_code == 200
    link = page.site.accounts.invite_again(ROOT, "ann")
    assert http.get("/api/v1/proposals", headers=token).status_code == 200
    page.site.accounts.accept(link, "", "another battery staple", "")
    assert http.get("/api/v1/proposals", headers=token).status_code == 401


def test_the_last_administrator_stays_one(page: Page) -> None:
    admin = page.as_("adam")
    assert admin.act("/people/adam/role", role="viewer").status_code == 409
    assert admin.act("/people/adam/active", active="false").status_code == 409


def test_a_change_needs_the_sessions_own_word(page: Page) -> None:
    browser, other = page.as_("olga"), page.as_("adam")
    for word in ("", "x", other.csrf()):
        answer = browser.http.post("/halt", data={"csrf": word, "reason": "a drill"})
        assert answer.status_code == 403
    assert browser.act("/halt", reason="a drill").status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_sites_form_is_refused_even_with_the_word(page: Page, headers: dict[str, str]) -> None:
    browser = page.as_("olga")
    answer = browser.http.post("/halt", data={"csrf": browser.csrf(), "reason": "a drill"}, headers=headers)
    assert answer.status_code == 403
    login = page.browser()
    form = login.form_word()
    data = {"name": "olga", "password": PASSWORD, "form": form}
    assert login.http.post("/login", data=data, headers=headers).status_code == 403


def test_a_log_in_needs_the_form_that_this_browser_was_shown(page: Page) -> None:
    page.as_("ann")
    shown = page.browser().form_word()
    answer = page.browser().http.post("/login", data={"name": "ann", "password": PASSWORD, "form": shown})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", "javascript:1"]
)
def test_logging_in_leads_nowhere_else(page: Page, target: str) -> None:
    page.as_("ann")
    browser = page.browser()
    data = {"name": "ann", "password": PASSWORD, "form": browser.form_word(), "next": target}
    assert browser.http.post("/login", data=data).headers["location"] == "/"


def test_every_answer_has_the_security_headers(page: Page) -> None:
    browser = page.as_("ann")
    for path in ("/", "/login", "/nowhere", "/static/app.css", "/api/v1/me", "/export/ledger.csv"):
        answer = browser.get(path)
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, path
        if not path.startswith("/static"):
            assert answer.headers["cache-control"] == "no-store"
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def test_strange_hosts_and_large_bodies_are_refused(page: Page) -> None:
    browser = page.as_("ann")
    assert browser.get("/", headers={"host": "rebound.example"}).status_code == 400
    answer = browser.http.post("/login", content=b"x" * 1_000_001)
    assert answer.status_code == 413


# -- tokens


def test_a_token_has_what_role_and_scopes_share(page: Page) -> None:
    see = page.token("ann", Right.SEE)
    http = page.browser().http
    assert http.get("/api/v1/me", headers=see).json() == {"name": "ann", "rights": ["see"]}
    made = page.made.proposal()
    path = f"/api/v1/proposals/{made.id}/comments"
    assert http.post(path, json={"text": "x"}, headers=see).status_code == 403
    assert http.post(path, json={"text": "x"}, headers=page.token("ann", Right.SEE, Right.COMMENT)).status_code == 201
    both = page.token("ann", Right.SEE, Right.REVIEW)
    page.site.accounts.set_role(ROOT, "ann", Role.VIEWER)
    assert http.get("/api/v1/me", headers=both).json()["rights"] == ["see"]


def test_nobody_gives_a_token_more_than_they_have(page: Page) -> None:
    accounts = page.site.accounts
    with pytest.raises(Forbidden):
        accounts.make_token(Person("ann", RIGHTS[Role.REVIEWER]), "x", frozenset({Right.ADMINISTER}))
    with pytest.raises(Forbidden):
        accounts.make_token(Person("ann", frozenset(Right), "token"), "x", frozenset({Right.SEE}))


def test_tokens_end_by_revoking_by_age_and_with_the_account(page: Page) -> None:
    http = page.browser().http
    browser = page.as_("ann")
    header = page.token("ann", Right.SEE)
    id_ = header["Authorization"].split("_")[1]
    browser.act(f"/me/tokens/{id_}/revoke")
    assert http.get("/api/v1/me", headers=header).status_code == 401
    old = page.token("ann", Right.SEE)
    page.clock.on(days=91)
    assert http.get("/api/v1/me", headers=old).status_code == 401
    closed = page.token("bob", Right.SEE)
    page.site.accounts.set_active(ROOT, "bob", active=False)
    assert http.get("/api/v1/me", headers=closed).status_code == 401


def test_a_cookie_opens_no_api_and_a_token_no_page(page: Page) -> None:
    assert page.as_("ann").get("/api/v1/me").status_code == 401
    assert page.browser().get("/", headers=page.token("ann")).status_code == 303


@pytest.mark.parametrize(
    "text", ["", "Bearer", "Bearer x", "Bearer oomrl_x_y", "Basic YTpi", "Bearer oomrl__", "oomrl_a_b"]
)
def test_what_is_no_token_opens_nothing(page: Page, text: str) -> None:
    answer = page.browser().get("/api/v1/me", headers={"Authorization": text})
    assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"


def test_commands_need_a_token_once_there_are_accounts(page: Page) -> None:
    accounts: Accounts = page.site.accounts
    assert accounts.commander("root", "").may(Right.ADMINISTER)
    page.as_("ann")
    with pytest.raises(Forbidden, match="OOMRL_TOKEN"):
        accounts.commander("ann", "")
    text = page.token("ann", Right.SEE)["Authorization"].removeprefix("Bearer ")
    person = accounts.commander("somebody else", text)
    assert (person.name, person.how, person.rights) == ("ann", "command", {Right.SEE})


# -- how it is kept


def test_nothing_secret_is_in_the_database(page: Page) -> None:
    page.as_("ann")
    cookie = page.as_("ann").http.cookies["oomrl"]
    token = page.token("ann")["Authorization"].split("_", 2)[2]
    with page.made.store.read() as view:
        rows = [str(row) for table in ("users", "logins", "tokens", "invitations", "acts")
                for row in view.connection.exec_driver_sql(f"SELECT * FROM {table}")]  # fmt: skip
        assert view.people.user("ann").password.startswith("$argon2id$")  # type: ignore[union-attr]
    text = "\n".join(rows)
    assert PASSWORD not in text and cookie not in text and token not in text


def test_the_default_hash_costs_what_is_recommended() -> None:
    parameters = PasswordHasher()
    assert (parameters.type.name, parameters.memory_cost >= 19_456, parameters.time_cost >= 2) == ("ID", True, True)
    assert module._NOBODY.startswith(
        f"$argon2id$v=19$m={parameters.memory_cost},t={parameters.time_cost},p={parameters.parallelism}$"
    )


@pytest.mark.parametrize("password", ["short", "a" * 201, "aaaaaaaaaaaaaaaa"])
def test_weak_passwords_are_refused(page: Page, password: str) -> None:
    with pytest.raises(Mistake, match="password"):
        page.site.accounts.accept(page.site.accounts.first_link() or "", "Ada", password, "")


@pytest.mark.parametrize("name", ["", " ", "a\u202eb", "<b>", "auto", "Service", "x" * 81, "-x"])
def test_names_that_mislead_are_refused(page: Page, name: str) -> None:
    with pytest.raises(Mistake):
        page.site.accounts.invite(ROOT, name, Role.VIEWER)


def test_names_differ_by_more_than_case(page: Page) -> None:
    page.as_("ann")
    with pytest.raises(Mistake, match="taken"):
        page.site.accounts.invite(ROOT, "Ann", Role.ADMIN)


def test_an_invitation_is_used_once_even_by_two_at_once(page: Page) -> None:
    secret = page.site.accounts.invite(ROOT, "eve", Role.VIEWER)
    page.site.accounts.accept(secret, "", PASSWORD, "")
    with pytest.raises(Refused):
        page.site.accounts.accept(secret, "", PASSWORD, "")


def test_the_page_is_not_served_in_the_clear_beyond_this_machine() -> None:
    check_exposure(WebSettings())
    check_exposure(WebSettings(host="0.0.0.0", trusted_proxies=("10.0.0.1",), public_url="https://review.example"))
    for settings in (
        WebSettings(trusted_proxies=("10.0.0.1",)),
        WebSettings(host="0.0.0.0"),
        WebSettings(host="example.org"),
        WebSettings(tls_key="x"),
    ):
        with pytest.raises(Mistake):
            check_exposure(settings)


def test_links_lead_where_the_settings_say_and_never_where_a_request_says(page: Page) -> None:
    adam = page.as_("adam")
    page.site.url = "https://review.example"
    data = {"csrf": adam.csrf(), "name": "eve", "role": "viewer"}
    answer = adam.http.post(
        "http://localhost:666/people",
        data=data,
        headers={"cookie": "; ".join(f"{c.name}={c.value}" for c in adam.http.cookies.jar)},
    )
    assert "https://review.example/welcome/" in answer.text and "666" not in answer.text


@pytest.mark.parametrize(
    ("web", "url"),
    [
        (WebSettings(), "http://127.0.0.1:80"),
        (WebSettings(host="::1"), "http://[::1]:80"),
        (WebSettings(public_url="https://review.example/"), "https://review.example"),
    ],
)
def test_the_url_of_the_page(web: WebSettings, url: str) -> None:
    assert web.url(80) == url


def test_the_host_of_the_tests_is_no_host_of_a_served_page(page: Page) -> None:
    app = create_app(page.made.state, page.made.store, Settings(), RUN, page.clock)
    assert Browser(app).get("/login").status_code == 400
    assert Browser(app).get("/login", headers={"host": "127.0.0.1:8420"}).status_code == 200

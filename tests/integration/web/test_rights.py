"""Every route and every command against every role. A route that is not in the table fails the test."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute

from oomrl.domain.people import RIGHTS, Forbidden, Person, Right, Role
from oomrl.domain.records import Act, CapitalKind
from oomrl.errors import Mistake, OomrlError, Refused
from tests.integration.web.conftest import ROLES, Page

OPEN, ANY = "open", "any token"
SEE, COMMENT, REVIEW, OPERATE, ADMINISTER = Right.SEE, Right.COMMENT, Right.REVIEW, Right.OPERATE, Right.ADMINISTER

#: What each route asks for.
TABLE: dict[tuple[str, str], Right | str] = {
    ("GET", "/login"): OPEN,
    ("POST", "/login"): OPEN,
    ("GET", "/welcome/{secret}"): OPEN,
    ("POST", "/welcome/{secret}"): OPEN,
    ("GET", "/healthz"): OPEN,
    ("POST", "/logout"): SEE,
    ("POST", "/theme"): SEE,
    ("GET", "/"): SEE,
    ("GET", "/proposals"): SEE,
    ("GET", "/proposals/{proposal}"): SEE,
    ("GET", "/proposals/{proposal}/patch"): SEE,
    ("GET", "/proposals/{proposal}/say"): SEE,
    ("GET", "/diagnostics/{diagnostic}"): SEE,
    ("POST", "/proposals/{proposal}/look"): SEE,
    ("POST", "/proposals/{proposal}/comments"): COMMENT,
    ("POST", "/proposals/{proposal}/remarks/{remark}"): COMMENT,
    ("POST", "/proposals/{proposal}/decide"): REVIEW,
    ("POST", "/diagnostics/{diagnostic}/mandate"): REVIEW,
    ("GET", "/prompts/{prompt}"): SEE,
    ("POST", "/prompts/{prompt}/reply"): COMMENT,
    ("GET", "/account"): SEE,
    ("GET", "/account/{name}"): SEE,
    ("GET", "/orders/{client_order_id:path}"): SEE,
    ("GET", "/revisions"): SEE,
    ("GET", "/revisions/{revision}"): SEE,
    ("POST", "/halt"): OPERATE,
    ("POST", "/resume"): OPERATE,
    ("POST", "/endow"): OPERATE,
    ("POST", "/rollback"): OPERATE,
    ("POST", "/freezes"): OPERATE,
    ("POST", "/freezes/{freeze}/lift"): OPERATE,
    ("GET", "/me"): SEE,
    ("POST", "/me/tokens"): SEE,
    ("POST", "/me/tokens/{token}/revoke"): SEE,
    ("POST", "/me/password"): SEE,
    ("GET", "/people"): ADMINISTER,
    ("POST", "/people"): ADMINISTER,
    ("POST", "/people/{name}/invite"): ADMINISTER,
    ("POST", "/people/{name}/role"): ADMINISTER,
    ("POST", "/people/{name}/active"): ADMINISTER,
    ("POST", "/people/{name}/unlock"): ADMINISTER,
    ("POST", "/people/{name}/confirm"): ADMINISTER,
    ("GET", "/export/{name}.{form}"): SEE,
    ("GET", "/events"): SEE,
    ("GET", "/api/v1/me"): ANY,
    ("GET", "/api/v1/tokens"): SEE,
    ("POST", "/api/v1/tokens/{token}/revoke"): SEE,
    ("GET", "/api/v1/proposals"): SEE,
    ("GET", "/api/v1/proposals/{proposal}"): SEE,
    ("POST", "/api/v1/proposals/{proposal}/look"): SEE,
    ("POST", "/api/v1/proposals/{proposal}/comments"): COMMENT,
    ("POST", "/api/v1/proposals/{proposal}/remarks/{remark}"): COMMENT,
    ("POST", "/api/v1/proposals/{proposal}/decide"): REVIEW,
    ("POST", "/api/v1/diagnostics/{diagnostic}/mandate"): REVIEW,
    ("GET", "/api/v1/diagnostics/{diagnostic}"): SEE,
    ("GET", "/api/v1/status"): SEE,
    ("GET", "/api/v1/tables/{name}"): SEE,
    ("GET", "/api/v1/orders/{client_order_id}"): SEE,
    ("POST", "/api/v1/halt"): OPERATE,
    ("POST", "/api/v1/resume"): OPERATE,
    ("POST", "/api/v1/endow"): OPERATE,
    ("POST", "/api/v1/rollback"): OPERATE,
    ("POST", "/api/v1/freezes"): OPERATE,
    ("GET", "/api/v1/freezes"): SEE,
    ("POST", "/api/v1/freezes/{freeze}/lift"): OPERATE,
    ("GET", "/api/v1/people"): ADMINISTER,
    ("POST", "/api/v1/people/{name}/role"): ADMINISTER,
    ("POST", "/api/v1/people/{name}/close"): ADMINISTER,
    ("POST", "/api/v1/people/{name}/tokens/revoke"): ADMINISTER,
}
PEOPLE = {"vic": Role.VIEWER, "ann": Role.REVIEWER, "olga": Role.OPERATOR, "adam": Role.ADMIN}


def routes(page: Page) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()

    def walk(items: list[object]) -> None:
        for route in items:
            if isinstance(route, APIRoute):
                found.update((method, route.path) for method in route.methods)
            elif hasattr(route, "original_router"):
                walk(list(route.original_router.routes))
            elif hasattr(route, "routes"):
                walk(list(route.routes or ()))

    walk(list(page.app.routes))
    return found


def test_the_table_names_every_route(page: Page) -> None:
    assert routes(page) == set(TABLE)


def path_of(page: Page, route: str) -> str:
    """Fill a route's places with things that exist, or with names of things that do not."""
    named = {"proposal": page.proposal_id, "diagnostic": "diag-1", "revision": page.made.revision, "name": "positions"}  # type: ignore[attr-defined]
    if route.startswith(("/people", "/api/v1/people")):
        named["name"] = "nobody"
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda m: named.get(m[1], "csv" if m[1] == "form" else "none"), route)


@pytest.fixture
def filled(page: Page) -> Iterator[Page]:
    page.proposal_id = page.made.proposal().id  # type: ignore[attr-defined]
    yield page


def test_every_route_lets_in_whom_the_table_says_and_nobody_else(filled: Page) -> None:
    wrong = []
    tokens = {name: filled.token(name) for name in PEOPLE}
    words = {name: filled.as_(name).csrf() for name in PEOPLE}
    for (method, route), asks in sorted(TABLE.items(), key=str):
        if asks == OPEN or route in ("/logout", "/events"):
            continue
        for name, role in PEOPLE.items():
            path, allowed = path_of(filled, route), asks == ANY or asks in RIGHTS[role]
            if route.startswith("/api/"):
                more = {"headers": tokens[name]} | ({"json": {}} if method == "POST" else {})
            else:
                more = {"data": {"csrf": words[name], "act": "reject", "role": "viewer"}} if method == "POST" else {}
            code = filled.as_(name).http.request(method, path, **more).status_code  # type: ignore[arg-type]
            if (code == 403) is allowed or code >= 500:
                wrong.append((method, route, name, code))
    assert wrong == []


def test_nobody_is_let_in_without_a_session_or_token(filled: Page) -> None:
    browser = filled.browser()
    for (method, route), asks in TABLE.items():
        if asks == OPEN:
            continue
        answer = browser.http.request(method, path_of(filled, route))
        expected = 401 if route.startswith("/api/") else 303
        assert answer.status_code == expected, (method, route)
        if expected == 303:
            assert answer.headers["location"].startswith("/login")


def test_every_act_at_the_desk_asks_for_its_right(filled: Page) -> None:
    """Commands reach the desk without any route: the desk asks by itself."""
    desk, accounts, proposal = filled.site.desk, filled.site.accounts, filled.proposal_id  # type: ignore[attr-defined]
    acts = {
        "look": (SEE, lambda p: desk.look(p, proposal)),
        "comment": (COMMENT, lambda p: desk.comment(p, proposal, "x", blocking=False)),
        "resolve": (COMMENT, lambda p: desk.resolve(p, proposal, "none", "resolved")),
        "reply": (COMMENT, lambda p: desk.reply(p, "none", "x")),
        "decide": (REVIEW, lambda p: desk.decide(p, "none", Act.APPROVE, "x")),
        "mandate": (REVIEW, lambda p: desk.set_mandate(p, "none", "x")),
        "rollback": (OPERATE, lambda p: desk.rollback(p, "x", "f" * 64)),
        "halt": (OPERATE, lambda p: desk.capital(p, CapitalKind.HALT, "x")),
        "freeze": (OPERATE, lambda p: desk.freeze(p, filled.clock().date(), filled.clock().date(), "x")),
        "lift": (OPERATE, lambda p: desk.lift(p, "none")),
        "invite": (ADMINISTER, lambda p: accounts.invite(p, "-", Role.VIEWER)),
        "again": (ADMINISTER, lambda p: accounts.invite_again(p, "nobody")),
        "role": (ADMINISTER, lambda p: accounts.set_role(p, "nobody", Role.VIEWER)),
        "close": (ADMINISTER, lambda p: accounts.set_active(p, "nobody", False)),
        "unlock": (ADMINISTER, lambda p: accounts.unlock(p, "nobody")),
        "confirm": (ADMINISTER, lambda p: accounts.confirm(p, "nobody")),
        "tokens": (ADMINISTER, lambda p: accounts.revoke_tokens_of(p, "nobody")),
        "halt, cancelled": (OPERATE, lambda p: desk.halt(p, "x", filled.site.settings)),
        "users": (ADMINISTER, lambda p: accounts.users(p)),
    }
    for name, (asks, act) in acts.items():
        for role, rights in RIGHTS.items():
            forbidden = False
            try:
                act(Person("somebody", rights, "command"))
            except Forbidden:
                forbidden = True
            except (Mistake, Refused, OomrlError):
                pass
            assert forbidden is (asks not in rights), (name, role)


def test_what_people_do_is_in_the_log_and_in_the_chain(filled: Page) -> None:
    filled.as_("olga").act("/halt", reason="a drill")
    filled.as_("ann").act(f"/proposals/{filled.proposal_id}/comments", text="why?")  # type: ignore[attr-defined]
    with filled.made.store.read() as view:
        log = [(done.who, done.act) for done in view.people.acts()]
    assert ("olga", "halt") in log and ("ann", "comment") in log and ("ann", "set password") in log
    chain = [link.facts.get("act") for link in filled.site.chain.about("simulation", filled.proposal_id)]  # type: ignore[attr-defined]
    assert "halt" in chain and "comment" in chain
    assert filled.site.desk.audit.log.verify().text() == filled.site.chain.head()


def test_roles_are_what_the_issue_names() -> None:
    assert {role.value for role in Role} == {"viewer", "reviewer", "operator", "admin"}
    assert set(ROLES.values()) == set(Role)

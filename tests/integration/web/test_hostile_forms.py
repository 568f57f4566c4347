"""No page or form answers with an error of the server, whatever is asked of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from httpx import Response

from oomrl.settings import Settings, WebSettings
from oomrl.web import account, doors, exports, people, prompts, proposals
from oomrl.web.app import create_app
from oomrl.web.guard import HEADERS
from tests.integration.web.conftest import HOST, Browser, Clock, Page
from tests.states import RUN, MadeUp

DIGITS = "9" * 5_000
VALUES = (
    "1e30", "-1e400", "NaN", DIGITS, f"x:{DIGITS}", f"x:{'²' * 3}", "\0", "a\0b", "zzz", "", "\u202e\U000e0100",
    "9999-12-31", "0000-00-00", "0001-01-01T00:00:00+23:59|x", "%", "../../etc/passwd", "-1", str(2**63), "x" * 20_000,
)  # fmt: skip

REST = {"reason": "why", "text": "words", "amount": "1", "first": "2030-01-01", "last": "2030-01-02"}


def _routes(method: str) -> list[APIRoute]:
    found = [
        route
        for part in (doors, proposals, prompts, account, people, exports)
        for route in part.router.routes
        if isinstance(route, APIRoute) and method in route.methods
    ]
    return [route for route in found if route.path not in ("/logout", "/login")]


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, copied: Callable[[Path], MadeUp]
) -> Iterator[tuple[Browser, str, str]]:
    """Give an administrator's browser that is shown errors as a server sends them, a proposal, and the form's word."""
    made = copied(tmp_path_factory.mktemp("hostile") / "state")
    settings = Settings(web=WebSettings(public_url=HOST, logins_a_minute=1_000_000, requests_a_minute=1_000_000))
    page = Page(made, create_app(made.state, made.store, settings, RUN, Clock()), Clock())
    browser = page.as_("adam")
    proposal = made.proposal().id
    browser.act(f"/proposals/{proposal}/look")
    browser.http = TestClient(
        page.app, follow_redirects=False, raise_server_exceptions=False, cookies=browser.http.cookies
    )
    yield browser, proposal, browser.csrf()
    made.store.close()


def _paths(route: APIRoute, proposal: str, value: str) -> set[str]:
    """Return the route with the proposal in its place, and with the hostile value in it."""
    real = re.sub(r"\{proposal\}", proposal, route.path)
    real = re.sub(r"\{name\}\.\{form\}", "ledger.csv", real).replace("/account/{name}", "/account/ledger")
    hostile = re.sub(r"\{[^}]*\}", quote(value[:2_000], safe=""), route.path)
    return {re.sub(r"\{[^}]*\}", "x", real), hostile}


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_no_value_makes_a_page_or_a_form_fail(served: tuple[Browser, str, str], value: str) -> None:
    browser, proposal, csrf = served
    failed = []
    for route in _routes("GET"):
        names = [field.alias for field in route.dependant.query_params]
        for path in _paths(route, proposal, value):
            answer = browser.get(path, params=dict.fromkeys(names, ""))
            answers = {"": answer} | {name: browser.get(path, params={name: value}) for name in names}
            failed += [(path[:60], name, found.status_code) for name, found in answers.items() if _fell(found)]
    for route in _routes("POST"):
        for path in _paths(route, proposal, value):
            for name in [field.alias for field in route.dependant.body_params]:
                answer = browser.http.post(path, data=REST | {"csrf": csrf, name: value})
                if _fell(answer):
                    failed.append((path[:60], name, answer.status_code))
    assert failed == []


def _fell(answer: Response) -> bool:
    return answer.status_code >= 500 or bool(_lacking(answer))


def test_a_wrong_question_is_refused_before_a_file_begins(page: Page) -> None:
    for query in ("kind=zzz", "since=never"):
        assert page.as_("ann").get(f"/export/ledger.csv?{query}").status_code == 422
    assert page.as_("ann").get("/export/zzz.csv").status_code == 404


def test_a_nul_in_a_form_or_a_body_is_refused(page: Page) -> None:
    assert page.as_("adam").act("/people", name="a\0b", role="viewer").status_code == 422
    answer = page.browser().http.post("/api/v1/halt", json={"reason": "a\0b"}, headers=page.token("adam"))
    assert answer.status_code == 422 and "NUL" in answer.json()["error"]


def test_a_failure_and_a_wrong_host_are_told_with_every_header(page: Page) -> None:
    refused = page.browser().get("/login", headers={"host": "evil.example"})
    assert refused.status_code == 400 and not _lacking(refused)

    @page.app.get("/broken")
    def broken() -> None:
        raise RuntimeError("a secret of the process")

    failed = TestClient(page.app, raise_server_exceptions=False).get("/broken")
    assert failed.status_code == 500 and not _lacking(failed) and "a secret" not in failed.text


def _lacking(answer: Response) -> list[str]:
    return [name for name in (*HEADERS, "Cache-Control") if name not in answer.headers]

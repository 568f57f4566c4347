"""The JSON API: what it says of itself is true, and nothing makes it fall over."""

from __future__ import annotations

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from oomrl.domain.people import Person, Right, Role
from tests.integration.web.conftest import HOST, ROOT, Page
from tests.states import made_up

EXAMPLES = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """Give the schema of a served application, and a token with every right."""
    from oomrl.settings import Settings, WebSettings
    from oomrl.web.app import create_app

    made = made_up(tmp_path_factory.mktemp("api") / "state")
    made.loss()
    made.proposal()
    app = create_app(
        made.state, made.store, Settings(web=WebSettings(public_url=HOST, requests_a_minute=1_000_000)), "simulation"
    )
    accounts = app.state.site.accounts
    accounts.accept(accounts.invite(ROOT, "ada", Role.ADMIN), "", "correct horse battery", "")
    token = accounts.make_token(Person("ada", frozenset(Right)), "fuzz", frozenset(Right))
    yield schemathesis.openapi.from_asgi("/api/v1/openapi.json", app), {"Authorization": f"Bearer {token}"}
    made.store.close()


def test_no_request_makes_a_server_error(api) -> None:  # type: ignore[no-untyped-def]
    schema, headers = api
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) >= 22
    for operation in operations:

        @given(case=operation.as_strategy())
        @EXAMPLES
        def asked(case: schemathesis.Case) -> None:
            answer = case.call(headers=headers)
            assert answer.status_code < 500, (case.method, case.path, answer.text)

        asked()


def test_the_document_names_every_refusal_and_needs_no_other_host(page: Page) -> None:
    document = page.browser().get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.")
    assert set(document["paths"]) and all(path.startswith("/api/v1/") for path in document["paths"])
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert {"401", "403", "409"} <= set(operation["responses"]), path
            assert operation["security"] == [{"token": []}], path
    scheme = document["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert "http" not in json.dumps(document.get("servers", []))


def test_a_reviewer_decides_by_token_as_on_the_page(page: Page) -> None:
    proposal = page.made.proposal()
    http, token = page.browser().http, page.token("ann")
    path = f"/api/v1/proposals/{proposal.id}"
    case = http.get(path, headers=token).json()
    body = {"act": "approve", "reason": "ok", "seen": case["seen"]}
    blind = http.post(f"{path}/decide", json=body, headers=token)
    assert blind.status_code == 409 and "opened" in blind.json()["error"]
    assert proposal.logic_patch == http.post(f"{path}/look", headers=token).json()["logic_patch"]
    assert http.post(f"{path}/decide", json=body, headers=token).status_code == 409
    page.as_("ann").act(f"/proposals/{proposal.id}/look")
    given = http.post(f"{path}/decide", json=body, headers=token)
    assert given.status_code == 200 and given.json()["reviewer"] == "ann"
    assert http.post(f"{path}/decide", json=body, headers=token).status_code == 409


def test_tables_page_to_their_end_and_repeat_nothing(page: Page) -> None:
    http, token = page.browser().http, page.token("vic")
    for name in ("ledger", "equity"):
        found, after = [], ""
        while True:
            answer = http.get(f"/api/v1/tables/{name}", params={"most": 5, "after": after}, headers=token).json()
            found += answer["rows"]
            after = answer["next"]
            if not after:
                break
        keys = [row.get("key", row["day"]) for row in found]
        assert len(keys) == len(set(keys)) == {"ledger": 24, "equity": 12}[name]
    exported = page.as_("vic").get("/export/ledger.json").json()
    assert len(exported) == 24 and page.as_("vic").get("/export/ledger.csv").text.count("\n") == 25


def test_the_ledger_is_searched_by_symbol_kind_words_and_days(page: Page) -> None:
    http, token = page.browser().http, page.token("vic")

    def rows(**query: object) -> list[dict[str, object]]:
        return http.get("/api/v1/tables/ledger", params=query, headers=token).json()["rows"]

    assert len(rows(symbol="S0")) == 12 and rows(symbol="S1") == []
    assert len(rows(kind="model_bill")) == 12 and len(rows(words="offline")) == 12 and rows(words="%") == []
    assert [row["day"] for row in rows(since="2020-01-05", until="2020-01-05")] == ["2020-01-05"] * 2
    assert http.get("/api/v1/tables/ledger", params={"kind": "x"}, headers=token).status_code == 422


def test_losses_page_newest_first_and_lead_to_their_diagnostics(page: Page) -> None:
    for number in range(2, 8):
        page.made.loss(number)
    http, token = page.browser().http, page.token("vic")
    found, after = [], ""
    while True:
        answer = http.get("/api/v1/tables/losses", params={"most": 3, "after": after}, headers=token).json()
        found += [(row["id"], row["diagnostic"]) for row in answer["rows"]]
        after = answer["next"]
        if not after:
            break
    assert found == [(f"loss-{number}", f"diag-{number}") for number in range(7, 0, -1)]
    assert page.as_("vic").get("/account").text.count('href="/diagnostics/diag-7"') >= 2

"""A person drives the loop: answers prompts by command, asks for changes, approves, and rolls back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Ran

DRAFT = """```json
{"root_cause": "orders ask for more than trades", "mandate": "Trade less than trades.", "confidence": "high"}
```"""
CRITIQUE = """{"summary": "Slower than before.", "objections":
 [{"severity": "minor", "path": "strategy.toml", "line": 3, "text": "It waits too long."}]}"""

Command = Callable[..., Ran]

SPAN = ["--start", "phase1", "--seed", "7", "--from", "2006-08-01", "--to", "2006-11-20"]
RUN = ["simulate", *SPAN, "--settings", str(ROOT / "docs" / "examples" / "demo.toml"), "--json"]


def waits(command: Command, state: Path, *options: str) -> dict[str, str]:
    ran = command(*RUN, *options, "--state", state)
    assert ran.code == 0, ran.err
    found: dict[str, str] = json.loads(ran.out)
    assert set(found) == {"waiting", "subject"}, ran.out[:300]
    return found


@pytest.fixture(scope="module")
def repair(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a logic patch that passes the gate for the second loss: what the offline repairer had approved."""
    from .conftest import command

    state = tmp_path_factory.mktemp("offline") / "state"
    ran = command(*RUN, "--state", state)
    assert ran.code == 0, ran.err
    listed = json.loads(command("review", "list", "--state", state, "--json").out)
    passed = next(row["id"] for row in listed if row["status"] == "deployed")
    shown = json.loads(command("review", "show", passed, "--state", state, "--json").out)
    patch: str = shown["proposal"]["logic_patch"]
    return patch


@pytest.mark.timeout(900)  # several whole verdicts
def test_a_person_answers_prompts_asks_for_changes_and_approves(repair: str, tmp_path: Path, command: Command) -> None:
    state = tmp_path / "state"
    options = ("--model", "manual", "--reviewer", "person")

    def answer(waiting: dict[str, str], text: str, role: str = "") -> None:
        assert waiting["waiting"] == "prompt" and waiting["subject"].startswith(role)
        listed = json.loads(command("prompts", "--state", state, "--json").out)
        assert [row["id"] for row in listed] == [waiting["subject"]]
        reply = tmp_path / "reply.txt"
        reply.write_text(text, "utf-8")
        ran = command("reply", waiting["subject"], reply, "--state", state)
        assert ran.code == 0, ran.err

    # An analyst may say of the first loss, for which nothing passes, that no change of code mends it.
    answer(waits(command, state, *options), "ESCALATE: no change of code mends this one", "analyst")
    answer(waits(command, state, *options), DRAFT, "analyst")
    # A test author may decline; the coder's reply is prose around a diff.
    answer(waits(command, state, *options), "NO NEW TESTS: test_an_order_is_capped", "test-author")
    answer(waits(command, state, *options), f"Here it is.\n\n```diff\n{repair}```\n", "coder")
    told = command("diagnose", "--state", state)
    assert "orders ask for more than trades" in told.out and "mandate by analyst (manual <" in told.out
    answer(waits(command, state, *options), CRITIQUE, "critic")
    waiting = waits(command, state, *options)
    assert waiting["waiting"] == "review"
    assert waits(command, state, *options) == waiting, "running again changes nothing"
    first = waiting["subject"]
    shown = command("review", "show", first, "--as", "ann", "--state", state)
    assert "It waits too long." in shown.out and "Slower than before." in shown.out
    assert "Lock: locked, logic genesis, accepted" in shown.out

    itself = command("review", "approve", first, "--as", "manual", "--reason", "mine", "--state", state)
    assert itself.code == 1 and "proposer" in itself.err
    asked = command("review", "request-changes", first, "--as", "ann", "--reason", "say why", "--state", state)
    assert asked.code == 0, asked.err

    waiting = waits(command, state, *options)
    listed = json.loads(command("prompts", "--state", state, "--json").out)
    assert "say why" in Path(listed[0]["file"]).read_text("utf-8")
    answer(waiting, "NO NEW TESTS: test_an_order_is_capped")
    answer(waits(command, state, *options), repair)
    answer(waits(command, state, *options), '{"summary": "Nothing found.", "objections": []}', "critic")
    second = waits(command, state, *options)["subject"]
    assert second != first
    blind = command("review", "approve", second, "--as", "ann", "--reason", "cuts costs", "--state", state)
    assert blind.code == 1 and "opened" in blind.err
    for who in ("ann", "bob"):  # it touches execution, which takes two people
        assert waits(command, state, *options)["subject"] == second
        assert command("review", "show", second, "--as", who, "--state", state).code == 0
        approved = command("review", "approve", second, "--as", who, "--reason", "cuts costs", "--state", state)
        assert approved.code == 0, approved.err

    ran = command(*RUN, *options, "--state", state)
    assert ran.code == 0, ran.err
    result = json.loads(ran.out)
    while "waiting" in result and result["waiting"] == "prompt":  # a later loss has an analyst too
        answer(result, "ESCALATE: nothing more to do")
        result = json.loads(command(*RUN, *options, "--state", state).out)
    assert result["deployments"] == 1
    back = command("rollback", "--as", "ann", "--reason", "a drill", "--state", state)
    assert back.code == 0, back.err
    assert command("audit", "verify", "--state", state).code == 0


def test_a_mandate_waits_for_a_person(tmp_path: Path, command: Command) -> None:
    settings = tmp_path / "settings.toml"
    demo = (ROOT / "docs" / "examples" / "demo.toml").read_text("utf-8")
    settings.write_text(demo + "\n[loop]\nconfirm_mandate = true\n", "utf-8")
    state = tmp_path / "state"
    run = ["simulate", *SPAN, "--settings", settings, "--model", "manual", "--json", "--state", state]
    asked = json.loads(command(*run).out)
    draft = tmp_path / "draft.txt"
    draft.write_text(DRAFT, "utf-8")
    assert command("reply", asked["subject"], draft, "--state", state).code == 0
    waiting = json.loads(command(*run).out)
    assert waiting["waiting"] == "mandate"
    shown = command("diagnose", "--state", state)
    assert waiting["subject"] in shown.out and "not confirmed" in shown.out
    words = tmp_path / "mandate.txt"
    words.write_text("Cut turnover to a tenth.", "utf-8")
    refused = command("mandate", "nothing", "--reason", "x", "--as", "ann", "--state", state)
    assert refused.code == 2 and "Traceback" not in refused.err
    assert command("mandate", waiting["subject"], "--file", words, "--reason", "x", "--state", state).code == 0
    assert json.loads(command(*run).out)["waiting"] == "prompt"
    listed = json.loads(command("prompts", "--state", state, "--json").out)
    assert "Cut turnover to a tenth." in Path(listed[0]["file"]).read_text("utf-8")

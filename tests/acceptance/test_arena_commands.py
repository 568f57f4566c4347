"""`oomrl arena` and `oomrl qualify`, as a person runs them, and what the loop makes of a certificate."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Ran
from .player import playing

Command = Callable[..., Ran]


def test_the_list_names_arenas_tasks_probes_and_limits(command: Command) -> None:
    ran = command("arena", "list", "--json")
    assert ran.code == 0, ran.err
    listed = {one["name"]: one for one in json.loads(ran.out)}
    assert {"committee", "committee_v1", "organization", "organization_six", "research"} <= set(listed)
    assert all(len(listed[name]["probes"]) >= 8 for name in ("committee", "organization", "research"))
    assert "Investment committee" in command("arena", "list").out


def test_a_run_leaves_logs_that_replay_pages_and_a_leaderboard(tmp_path: Path, command: Command) -> None:
    for agent in ("heuristic", "random"):
        out = tmp_path / agent
        ran = command("arena", "run", "committee", "--agent", agent, "--seeds", "3,4", "--out", out, "--json")
        assert ran.code == 0, ran.err
        told = json.loads(ran.out)
        assert len(told["episodes"]) == 8 and told == json.loads((out / "run.json").read_text())
    log = tmp_path / "heuristic" / "committee-heuristic-mandate_drift-3.jsonl"
    page = tmp_path / "page.html"
    ran = command("arena", "replay", log, "--page", page, "--json")
    assert ran.code == 0, ran.err
    expected = next(one for one in told["episodes"] if one["task"] == "mandate_drift") | {}
    assert json.loads(ran.out)[0]["steps"] == expected["steps"]
    assert page.read_text() == log.with_suffix(".html").read_text()
    changed = tmp_path / "changed.jsonl"
    changed.write_text(log.read_text().replace('"hold"', '"move_to_cash"', 1))
    ran = command("arena", "replay", changed)
    assert ran.code == 1 and ran.err.startswith("Refused: Expected line")
    board = tmp_path / "board.html"
    assert command("arena", "leaderboard", tmp_path, "--out", board).code == 0
    text = board.read_text()
    assert text.index("<td>heuristic") < text.index("<td>random")


def test_the_transcript_has_start_step_and_end_lines(command: Command) -> None:
    ran = command(
        "arena", "run", "organization", "--seeds", "42", "--task", "full_episode", "--transcript", "--threshold", "0.4"
    )
    lines = ran.out.splitlines()
    assert lines[0].startswith("[START] task=full_episode env=organization model=heuristic")
    assert len(lines) == 46 and lines[-1].startswith("[END] success=True steps=44")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("arena", "run", "chess"), "Expected an arena of committee"),
        (("arena", "run", "committee", "--agent", "genius"), "Expected a policy of committee"),
        (("arena", "run", "committee", "--seeds", "x"), "Expected seeds like"),
        (("arena", "run", "committee", "--task", "x"), "Expected tasks of"),
        (("arena", "run", "committee", "--agent", "openai"), "give --model"),
        (("arena", "run", "committee", "--agent", "openai", "--model", "m"), "OPENAI_API_KEY"),
        (("arena", "run", "committee", "--tape", "builtin"), "Expected --tape with the research arena"),
        (("arena", "run", "research_tape"), "Expected --tape"),
        (("arena", "leaderboard", "."), "run.json"),
        (("qualify",), "give --model"),
        (("qualify", "--model", "m", "--task", "x", "--base-url", "http://127.0.0.1:1"), "one --arena"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], said: str, tmp_path: Path, command: Command
) -> None:
    unset = {"OPENAI_API_KEY": "", "HF_TOKEN": "", "MODEL_NAME": "", "API_BASE_URL": ""}
    options = ("--state", str(tmp_path)) if arguments[0] == "qualify" else ()
    ran = command(*arguments, *options, env=unset)
    assert ran.code == 2
    assert said in ran.err and "Traceback" not in ran.err
    assert len([line for line in ran.err.splitlines() if line.startswith("Error: ")]) == 1


def test_a_model_that_does_not_answer_is_a_failure_in_the_record(tmp_path: Path, command: Command) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
        command_line = ("arena", "run", "committee", "--agent", "openai", "--model", "m", "--base-url", nobody)
        one = ("--task", "guided_allocation", "--seeds", "1", "--out", tmp_path, "--json")
        ran = command(*command_line, *one, env={"OPENAI_API_KEY": "sk-verysecret123"})
    assert ran.code == 2
    told = json.loads(ran.out)
    assert told["failures"] == 1 and told["score"]["mean"] == 0.0
    assert "APIConnectionError" in told["episodes"][0]["failure"]
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert "verysecret" not in written + ran.out + ran.err


def test_a_person_plays_through_the_terminal_and_the_end_of_input_is_a_failure() -> None:
    arguments = ("arena", "run", "organization_six", "--agent", "manual", "--seeds", "1", "--task", "org_simulation")
    done = subprocess.run(
        [sys.executable, "-m", "oomrl", *arguments, "--json"],
        input='{"action": "no_op", "payload": {}}\n' * 6 + "no idea\n",
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    told = json.loads(done.stdout)["episodes"][0]
    assert told["steps"] == 1 and told["failure"] == "Expected a reply, was the end of input"
    assert done.stderr.count("You are the ") == 6, "each of six seats is told its own rules"


@pytest.mark.slow
def test_only_a_certified_model_may_propose_where_that_is_required(
    tmp_path: Path, small_tape: Path, command: Command
) -> None:
    """A model that plays all arenas by the oracle over a real socket qualifies; another, or none, is refused."""
    state, settings = tmp_path / "state", tmp_path / "settings.toml"
    with playing("oracle") as address:
        settings.write_text(
            "[loop]\nrequire_qualification = true\n"
            f'[model]\nprovider = "openai"\nname = "clever"\nbase_url = "{address}"\n'
        )
        tape = ("--tape", small_tape, "--from", "2010-06-01")
        simulate = ("simulate", *tape, "--model", "openai", "--settings", settings, "--state", state)
        refused = command(*simulate, env={"OPENAI_API_KEY": "k"})
        assert refused.code == 1
        assert refused.err.strip() == (
            f"Refused: Expected a certificate of openai/clever at {address}, was none: run `oomrl qualify`"
        )
        ran = command("qualify", "--settings", settings, "--state", state, "--json", env={"OPENAI_API_KEY": "k"})
        assert ran.code == 0, ran.err
        body = json.loads(ran.out)["body"]
        assert body["qualified"] and [one["arena"] for one in body["arenas"]] == [
            "committee",
            "organization",
            "research",
        ]
        assert all(one["difference"]["mean"] > 0 and one["failures"] == 0 for one in body["arenas"])
        allowed = command(*simulate, "--json", env={"OPENAI_API_KEY": "k"})
        assert allowed.code == 0, allowed.err
        shown = json.loads(command("status", "--state", state, "--json").out)["qualification"]
        assert shown["required"] and shown["qualified"] and shown["expires"] == body["expires"]
        changed = settings.read_text().replace('"clever"', '"other"')
        settings.write_text(changed)
        again = command(*simulate, env={"OPENAI_API_KEY": "k"})
        assert again.code == 1 and "openai/other" in again.err


@pytest.mark.slow
def test_a_model_below_the_heuristic_gets_a_certificate_that_says_so(tmp_path: Path, command: Command) -> None:
    with playing("random") as address:
        trial = ("--arena", "committee", "--task", "guided_allocation")
        options = ("--model", "poor", "--base-url", address, "--state", tmp_path, *trial)
        ran = command("qualify", *options, env={"OPENAI_API_KEY": ""})
    assert ran.code == 1, ran.err
    assert f"openai/poor at {address}: not qualified" in ran.out
    assert ran.err.splitlines()[-1].endswith("Expected a qualified model, was below the heuristic in committee")

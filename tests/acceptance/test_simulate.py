"""The whole loop on small and real tapes: results, repeatability, kills, scrambled futures, failing strategies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from guardrails.attestation import TRANSITION_PREDICATE
from guardrails.tree import Tree
from oomrl.adapters.audit import Audit
from oomrl.adapters.database.tables import deployments, marks, verdicts
from oomrl.adapters.repository import Repository
from tests import databases

from .conftest import ROOT, Ran, start_patch

Command = Callable[..., Ran]

FIELDS = {
    "sessions", "revisions", "losses", "proposals", "verdicts", "deployments", "initial_equity", "final_equity",
    "annualised_return", "sharpe", "sharpe_ci", "max_drawdown", "information_ratio", "beta", "alpha", "turnover",
    "friction_bps", "orders", "fills", "model_cost", "wall_seconds", "sessions_per_second", "incumbent",
    "uplift_sharpe", "uplift_ci", "controls",
}  # fmt: skip
TIMES = {"wall_seconds", "sessions_per_second"}
SETTINGS = str(ROOT / "docs" / "examples" / "demo.toml")
SPAN = ["--from", "2006-08-01", "--to", "2007-03-30"]
DEMO = ["--start", "phase1", "--seed", "7", *SPAN, "--settings", SETTINGS, "--json"]


def figures(ran: Ran) -> dict[str, object]:
    assert ran.code == 0, ran.err
    return {name: value for name, value in json.loads(ran.out).items() if name not in TIMES}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    from .conftest import command

    state = tmp_path_factory.mktemp("demo") / "state"
    return figures(command("simulate", *DEMO, "--state", state)), state


def test_a_bad_start_loses_is_diagnosed_repaired_and_deployed(demo: tuple[dict[str, object], Path]) -> None:
    result, state = demo
    assert set(result) | TIMES >= FIELDS
    assert result["losses"] >= 1
    assert result["proposals"] >= 2
    assert result["deployments"] >= 1
    outcomes = {row[0] for row in databases.rows(state, select(verdicts.c.outcome))}
    assert outcomes >= {"pass", "refuse"}
    assert {"placebo", "cadence", "inverse"} <= set(result["controls"])
    assert (state / "reports" / "equity.png").stat().st_size > 10_000


def test_the_chain_holds_each_step_of_the_lock_to_the_tree_that_trades(demo: tuple[dict[str, object], Path]) -> None:
    _, state = demo
    cycles: dict[str, list[dict[str, Any]]] = {}
    for body in Audit(state).log.statements():
        if body["predicateType"] == TRANSITION_PREDICATE:
            cycles.setdefault(body["predicate"]["cycle"], []).append(body["predicate"])
    outcomes = dict(databases.rows(state, select(verdicts.c.proposal, verdicts.c.outcome)))
    deployed = dict(databases.rows(state, select(deployments.c.proposal, deployments.c.revision)))
    assert set(cycles) == set(outcomes)
    for proposal, steps in cycles.items():
        assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
        ends = {"refuse": "abandoned", "pass": "committed" if proposal in deployed else "accepted"}
        assert steps[-1]["event"] == ends[outcomes[proposal]]
        if proposal in deployed:
            tree = Tree(Repository(state / "strategy.git").tree(deployed[proposal]))
            assert steps[-1]["tree"] == tree.digest()


@pytest.mark.slow
def test_over_http_each_close_is_the_same_to_the_cent_with_the_same_repairs(
    demo: tuple[dict[str, object], Path], tmp_path: Path, command: Command
) -> None:
    last = date(2006, 11, 10)  # the first deployment is of 7 November
    figures(command("simulate", *DEMO, "--to", f"{last}", "--broker", "http", "--state", tmp_path / "http"))
    day, sequence = marks.c.day, deployments.c.sequence
    closes = select(day, marks.c.equity, marks.c.cash, marks.c.broker_cash, marks.c.digest).order_by(day)
    made = select(sequence, deployments.c.kind, deployments.c.revision, deployments.c.day).order_by(sequence)
    asked = (closes.where(day <= last), made.where(deployments.c.day <= last))
    found = [[databases.rows(state, query) for query in asked] for state in (demo[1], tmp_path / "http")]
    assert found[0] == found[1]
    assert len(found[0][0]) > 25 and len(found[0][1]) > 1


def test_the_report_compares_the_revisions_that_traded(
    demo: tuple[dict[str, object], Path], tmp_path: Path, command: Command
) -> None:
    result, state = demo
    ran = command("report", "--state", state, "--tape", "builtin", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["sessions"] == result["sessions"]
    named = len(told["phases"]) + len(told["phases_left_out"])
    assert named == result["revisions"]
    assert told["total"]["sharpe"]["value"] == pytest.approx(result["sharpe"], abs=1e-4)
    for phase in told["phases"]:
        assert phase["sharpe"]["low"] <= phase["sharpe"]["value"] <= phase["sharpe"]["high"]
    assert told["reward"]["sessions"] == result["sessions"]
    assert (state / "reports" / "phases.png").stat().st_size > 10_000
    assert command("report", "--state", tmp_path / "nothing").code == 2


def test_the_same_seed_gives_the_same_figures_also_after_kills(
    demo: tuple[dict[str, object], Path], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    arguments = [sys.executable, "-m", "oomrl", "simulate", *DEMO, "--state", str(state)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **databases.environment(state)}
    for wait in (3.0, 7.0, 12.0):
        process = subprocess.Popen(arguments, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(arguments, env=env, capture_output=True, text=True, check=False)
    assert figures(Ran(done.returncode, done.stdout, done.stderr)) == demo[0]


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    state = tmp_path / "state"
    arguments = [sys.executable, "-m", "oomrl", "simulate", *DEMO, "--state", str(state)]
    process = subprocess.Popen(
        arguments,
        env={**os.environ, "PYTHONPATH": str(ROOT), **databases.of_command(arguments)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell may have started this whole run in the background, with SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (state / "strategy.git").is_dir() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "Traceback" not in err
    assert "goes on" in err


def test_start_patch_helper_makes_an_applicable_patch(tmp_path: Path) -> None:
    patch = start_patch("strategy.toml", lambda text: text.replace("weekly", "daily"), tmp_path / "p.patch")
    assert patch.read_text("utf-8").startswith("--- a/strategy.toml")


def test_a_run_with_real_names_and_one_on_a_twin_say_so(tmp_path: Path, command: Command) -> None:
    span = ["--from", "2006-08-01", "--to", "2006-08-04", "--unmasked", "--tape", "twin:7:builtin"]
    ran = command("simulate", *span, "--state", tmp_path / "state", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["unmasked"] is True and told["twin"] is True
    words = command("simulate", *span, "--state", tmp_path / "state").err
    assert "UNMASKED" in words and "TWIN" in words
    wrong = command("simulate", "--tape", "twin:builtin", "--state", tmp_path / "other")
    assert wrong.code == 2 and "twin:7:builtin" in wrong.err and "Traceback" not in wrong.err

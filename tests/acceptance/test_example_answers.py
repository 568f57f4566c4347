"""The documented example: a script answers every prompt of a manual run, and an escalation costs no attempt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import databases

from .conftest import ROOT, Ran

SPAN = ["--start", "phase1", "--seed", "7", "--from", "2006-08-01", "--to", "2006-08-14"]


@pytest.mark.timeout(600)
def test_a_script_answers_a_manual_run_to_its_end(tmp_path: Path, command: Callable[..., Ran]) -> None:
    state, settings = tmp_path / "state", ROOT / "docs" / "examples" / "demo.toml"
    run = ["oomrl", "simulate", *SPAN, "--model", "manual", "--settings", str(settings), "--state", str(state)]
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "examples" / "answer.py"), str(state), "--", *run],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **databases.environment(state)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    roles = [
        line.removeprefix("answered ").split("-")[0] for line in done.stderr.split("\n") if line.startswith("answered ")
    ]
    assert roles == ["analyst", "test", "coder"]
    assert result["losses"] == result["escalations"] == 1 and result["model_cost"] == 0
    assert result["proposals"] == 0
    assert result["verdicts"] == {"pass": 0, "refuse": 0}, "an escalation is judged by nobody and counts as no try"
    assert "escalated" in command("diagnose", "--state", state).out

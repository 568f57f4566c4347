"""Jobs in processes of their own: what they say, and what becomes of those that hang, flood or die."""

from __future__ import annotations

import sys
import threading
from datetime import date
from pathlib import Path

import pytest

from oomrl.daemon import children
from oomrl.daemon.children import Children
from oomrl.daemon.service import Outcome

DAY = date(2024, 7, 2)


def run(script: str, tmp_path: Path, **more: object) -> Outcome:
    return Children(tmp_path, command=(sys.executable, "-c", script), **more)("main", "judge", DAY)  # type: ignore[arg-type]


def test_the_last_line_is_the_outcome_and_the_others_are_passed_on(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []
    script = 'print(\'working\'); print(\'{"done": true, "note": "3 orders"}\')'
    outcome = run(script, tmp_path, said=lambda account, line: heard.append((account, line)))
    assert outcome == Outcome(True, "3 orders")
    assert heard == [("main", "working")]


def test_a_job_is_told_its_account_session_and_settings(tmp_path: Path) -> None:
    script = "import sys, json; print(json.dumps({'done': False, 'note': ' '.join(sys.argv[1:])}))"
    outcome = run(script, tmp_path, settings=Path("own.toml"))
    assert outcome.note == f"judge --state {tmp_path} --account main --session 2024-07-02 --settings own.toml"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; print('Error: no bars', file=sys.stderr); sys.exit(2)", "Error: no bars"),
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL"),
        ("print('done, I think')", "Expected an outcome"),
        ("print('[1]')", "Expected an outcome"),
        ("", "Expected an outcome"),
    ],
)
def test_anything_but_an_outcome_is_a_failed_attempt(tmp_path: Path, script: str, said: str) -> None:
    outcome = run(script, tmp_path)
    assert not outcome.done
    assert outcome.note.startswith(said)


def test_a_flood_is_cut_and_its_end_kept(tmp_path: Path) -> None:
    heard: list[str] = []
    script = "print('x' * 70 + '\\n') ; print('noise\\n' * 500_000); print('{\"done\": true, \"note\": \"ok\"}')"
    outcome = run(script, tmp_path, said=lambda _, line: heard.append(line))
    assert outcome == Outcome(True, "ok")
    assert len(heard) <= 100


def test_a_job_that_hangs_is_ended_at_its_limit_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(children.LIMITS, "judge", 1.0)
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    outcome = run(script, tmp_path)
    assert not outcome.done
    assert "ended by SIGTERM" in outcome.note


def test_ending_all_ends_what_is_under_way(tmp_path: Path) -> None:
    begun = threading.Event()
    script = "import sys, time; print('begun', flush=True); time.sleep(600)"
    working = Children(tmp_path, command=(sys.executable, "-c", script))
    found: list[Outcome] = []

    def work() -> None:
        begun.set()
        found.append(working("main", "judge", DAY))

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(10)
    while not working.running():
        begun.wait(0.01)
    working.end_all()
    thread.join(20)
    assert not thread.is_alive()
    assert not found[0].done
    assert working.running() == 0

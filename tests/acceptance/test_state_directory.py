"""A state directory is one run's: nothing of a person's is deleted, a second process waits outside, tampering shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from tests import databases

from .conftest import Ran, start_patch

Command = Callable[..., Ran]
SPAN = ("--from", "2010-06-01", "--to", "2010-06-21")


def simulate(command: Command, tape: Path, state: Path, *more: str | Path) -> Ran:
    return command("simulate", "--tape", tape, *SPAN, "--state", state, *more)


def test_a_folder_of_somebody_else_is_left_alone(small_tape: Path, tmp_path: Path, command: Command) -> None:
    mine = tmp_path / "mine"
    (mine / "photos").mkdir(parents=True)
    (mine / "thesis.txt").write_text("years of work", "utf-8")
    for more in ((), ("--fresh",)):
        ran = simulate(command, small_tape, mine, *more)
        assert ran.code == 2 and "Traceback" not in ran.err
        assert "thesis.txt" in ran.err or ("--fresh" in more and "forgets files" in ran.err)
    assert sorted(path.name for path in mine.iterdir()) == ["photos", "thesis.txt"]
    a_file = tmp_path / "a-file"
    a_file.write_text("", "utf-8")
    ran = simulate(command, small_tape, a_file)
    assert ran.code == 2 and "was a file" in ran.err


@pytest.mark.sqlite("--fresh forgets files, never a server's database")
def test_fresh_forgets_a_run_only_for_a_command_that_can_run(
    small_tape: Path, tmp_path: Path, command: Command
) -> None:
    state = tmp_path / "a state with spaces and ümlauts"
    assert simulate(command, small_tape, state).code == 0
    before = sorted(path.name for path in state.iterdir())
    assert simulate(command, tmp_path / "no-tape", state, "--fresh").code == 2
    assert sorted(path.name for path in state.iterdir()) == before
    (state / "notes.txt").write_text("a person's", "utf-8")
    ran = simulate(command, small_tape, state, "--fresh")
    assert ran.code == 2 and "notes.txt" in ran.err
    assert (state / "notes.txt").exists() and (state / "oomrl.db").exists()
    (state / "notes.txt").unlink()
    assert simulate(command, small_tape, state, "--fresh").code == 0


def test_a_second_simulation_waits_outside(small_tape: Path, tmp_path: Path, command: Command) -> None:
    state = tmp_path / "state"
    state.mkdir()
    holder = (
        "import fcntl, sys, time\n"
        f"lock = open({str(state / 'lock')!r}, 'w')\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        ran = simulate(command, small_tape, state)
        assert ran.code == 2 and "Another simulation runs" in ran.err
        process.communicate("")
    assert simulate(command, small_tape, state).code == 0


@pytest.mark.parametrize("value", ["nan", "inf", "2010-01-01", "[1.0]"])
def test_a_parameter_that_no_worker_can_be_told_is_a_mistake(
    value: str, small_tape: Path, tmp_path: Path, command: Command
) -> None:
    patch = start_patch(
        "strategy.toml", lambda text: text.replace("exposure = 0.98", f"exposure = {value}"), tmp_path / "p.patch"
    )
    state = tmp_path / "state"
    ran = simulate(command, small_tape, state, "--start", patch)
    assert ran.code == 2 and "parameters.exposure" in ran.err and "program itself" not in ran.err
    assert not state.exists()


@pytest.mark.parametrize(
    "tamper",
    ["update deployments set reason = 'x'", "chain"],
)
def test_audit_compares_the_chain_with_the_store(
    tamper: str, small_tape: Path, tmp_path: Path, command: Command
) -> None:
    state = tmp_path / "state"
    assert simulate(command, small_tape, state).code == 0
    assert command("audit", "verify", "--state", state).code == 0
    if tamper == "chain":
        (state / "audit.jsonl").unlink()
    else:
        databases.rows(state, text(tamper))
    ran = command("audit", "verify", "--state", state)
    assert ran.code == 1 and "deployment/" in ran.err
    assert command("audit", "verify", "--head", "garbage", "--state", state).code == 2


def test_mistakes_of_a_person_are_one_line(small_tape: Path, tmp_path: Path, command: Command) -> None:
    state = tmp_path / "state"
    assert simulate(command, small_tape, state).code == 0
    for arguments in (
        ("endow", "NaN", "--reason", "x", "--state", state),
        ("endow", "100", "--reason", " ", "--state", state),
        ("halt", "--as", "", "--reason", "x", "--state", state),
        ("simulate", "--seed", "9" * 30, "--state", tmp_path / "other"),
        ("simulate", "--settings", tmp_path, "--state", tmp_path / "other"),
        ("simulate", "--state", "/proc/nothing"),
    ):
        ran = command(*arguments)
        assert ran.code == 2, (arguments, ran.err)
        assert "program itself" not in ran.err and "Traceback" not in ran.err

"""Run the command line as a person would, in a process of its own."""

from __future__ import annotations

import csv
import difflib
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests import databases

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def command(
    *arguments: str | Path, timeout: float = 600, env: dict[str, str] | None = None, cwd: Path | None = None
) -> Ran:
    """Run `python -m oomrl ...` from outside the checkout's folder, on the database of its --state."""
    given = list(map(str, arguments))
    done = subprocess.run(
        [sys.executable, "-m", "oomrl", *given],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": str(ROOT), **databases.of_command(given), **(env or {})},
        check=False,
        cwd=cwd,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture(name="command")
def command_fixture() -> Callable[..., Ran]:
    return command


def write_tape(folder: Path, sessions: int = 160, names: int = 5, seed: int = 3) -> Path:
    """Write a small made-up tape: a folder of CSVs, one a symbol."""
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    days = []
    day = date(2010, 1, 4)
    while len(days) < sessions:
        if day.weekday() < 5:
            days.append(day)
        day += timedelta(days=1)
    for number in range(names):
        price = 40.0 + 10 * number
        with (folder / f"NAME{number}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["symbol", "date", "open", "high", "low", "close", "volume", "dividend", "split"])
            for day in days:
                start = price * (1 + chance.gauss(0, 0.004))
                price = start * (1 + chance.gauss(0.0003, 0.012))
                low, high = min(start, price) * 0.995, max(start, price) * 1.005
                bar = [f"{value:.4f}" for value in (start, high, low, price)]
                rows.writerow([f"NAME{number}", day.isoformat(), *bar, 2_000_000, 0, 1])
    return folder


@pytest.fixture
def small_tape(tmp_path: Path) -> Path:
    return write_tape(tmp_path / "tape")


def start_patch(path: str, change: Callable[[str], str], target: Path) -> Path:
    """Write a patch that changes one file of the shipped strategy, to start a simulation from."""
    before = (ROOT / "strategy_repo" / path).read_text("utf-8")
    after = change(before)
    assert after != before, "the change must change something"
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    target.write_text("".join(lines), "utf-8")
    return target

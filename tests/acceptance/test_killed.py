"""The short version of `make crash`: the daemon and its jobs are killed under random faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.crash import campaign


@pytest.mark.slow
def test_a_killed_daemon_sends_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    assert campaign(6, 3, tmp_path) == 0
    found = json.loads((tmp_path / "crash.json").read_text("utf-8"))
    assert found["kills"] >= 6 and found["fills"] > 0
    assert (found["duplicate_orders"], found["lost_fills"], found["cash_difference"]) == (0, 0, "0.00")
    assert found["positions_wrong"] == found["lost_jobs"] == found["halts"] == 0

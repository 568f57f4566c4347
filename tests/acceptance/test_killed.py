"""The short version of `make crash`: the daemon and its jobs are killed under random faults."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.crash import campaign

from .conftest import ROOT

#: What the campaign gives each case.
files = pytest.mark.sqlite("each case gets a copy of a file; `make failover` kills daemons on PostgreSQL")

#: The service with a fault: an intent is written with its outcome, once the broker has heard of it.
LATE_INTENTS = """
import queue
from bench import crash
from oomrl.adapters.journal import StoredJournal

waiting, intend, hear = {}, StoredJournal.intend, StoredJournal.hear

def later(journal, placements):
    waiting.update({placement.client_order_id: placement for placement in placements})

def with_outcome(journal, placements, fills=()):
    if late := [waiting.pop(p.client_order_id) for p in placements if p.client_order_id in waiting]:
        intend(journal, late)
    hear(journal, placements, fills)

StoredJournal.intend, StoredJournal.hear = later, with_outcome
results = queue.Queue()
crash.work(1, 5, 1, 0, 0, "after POST /v2/orders", results)
facts = results.get()[2]["facts"]
print(len(facts["kills"]), crash.faults_of(facts))
"""


@files
@pytest.mark.slow
def test_a_killed_daemon_sends_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    assert campaign(6, 3, tmp_path) == 0
    found = json.loads((tmp_path / "crash.json").read_text("utf-8"))
    assert found["kills"] >= 6 and found["fills"] > 0
    assert (found["duplicate_orders"], found["lost_fills"], found["cash_difference"]) == (0, 0, "0.00")
    assert found["positions_wrong"] == found["lost_jobs"] == found["halts"] == 0


@files
@pytest.mark.slow
def test_the_campaign_notices_a_daemon_that_writes_intents_too_late() -> None:
    ran = subprocess.run([sys.executable, "-c", LATE_INTENTS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2_000:]
    kills, faults = map(int, ran.stdout.split()[-2:])
    assert kills == 1 and faults > 0

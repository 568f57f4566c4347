"""A writer that is killed at any moment loses at most the session that it had not committed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from oomrl.adapters.database import Store
from tests import databases
from tests.integration.database import builders as build
from tests.integration.database.builders import RUN

SESSIONS = 90
WRITER = """
import sys
from oomrl.adapters.database import Store
from tests import databases
from tests.integration.database import builders as build
with Store.open(sys.argv[1], durable=False) as store:
    with store.begin() as work:
        work.runs.start(build.run())
        last = work.sessions.last_mark(build.RUN)
    start = 0 if last is None else (last.day - build.FIRST).days + 1
    for number in range(start, int(sys.argv[2])):
        sys.stdin.readline()
        with store.begin() as work:
            work.sessions.save(build.RUN, build.record(number))
        print(number, flush=True)
"""


def writer(place: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, place, str(SESSIONS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )


def let(process: subprocess.Popen[bytes], sessions: int) -> None:
    """Let the writer begin some more sessions."""
    assert process.stdin is not None
    process.stdin.write(b"\n" * sessions)
    process.stdin.flush()


def check_whole(store: Store) -> int:
    """Return how many sessions are there, each of them whole."""
    with store.read() as view:
        marks = view.sessions.marks(RUN)
        n = len(marks)
        assert [mark.day for mark in marks] == [build.day(number) for number in range(n)]
        assert len(view.sessions.decisions(RUN)) == n
        assert sum(1 for _ in view.sessions.bars(RUN)) == n
        assert view.orders.counts(RUN) == (4 * n, 6 * max(n - 1, 0))
        assert len(view.ledger.entries(RUN)) == 2 * n
        assert view.sessions.checkpoint(RUN) == ((build.day(n - 1), {"number": n - 1, "cash": "10.50"}) if n else None)
        assert [order.decided_on for order in view.orders.open(RUN)] == [build.day(n - 1)] * (4 if n else 0)
    return n


def test_a_killed_writer_leaves_whole_sessions_and_another_goes_on(tmp_path: Path) -> None:
    place = databases.place(tmp_path)
    moments = random.Random(7)
    seen = 0
    for _ in range(6):
        process = writer(place)
        assert process.stdin is not None and process.stdout is not None
        whole = moments.randrange(1, 12)
        let(process, whole)
        for _ in range(whole):
            process.stdout.readline()
        # The writer is somewhere in its next session, or has just written it.
        let(process, 1)
        time.sleep(moments.uniform(0.0, 0.02))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        with Store.open(place) as store:
            store.check()
            now = check_whole(store)
        assert now > seen or now == SESSIONS
        seen = now
    process = writer(place)
    process.communicate(b"\n" * SESSIONS)
    with Store.open(place) as store:
        assert check_whole(store) == SESSIONS
        with store.read() as view:
            digest = view.sessions.digest(RUN)
    (tmp_path / "undisturbed").mkdir()
    with Store.open(databases.place(tmp_path / "undisturbed"), durable=False) as store:
        with store.begin() as work:
            work.runs.start(build.run())
        for number in range(SESSIONS):
            with store.begin() as work:
                work.sessions.save(RUN, build.record(number))
        with store.read() as view:
            assert view.sessions.digest(RUN) == digest

"""`make soak N=252`: a virtual year of N sessions with three accounts, and everything that goes wrong in a year.

The service's core (table of jobs, policies, store) runs on a clock that is set; the jobs are the real ones, each in a
process of its own, on an embedded paper exchange and a made-up market on the real calendar's days. Jobs are killed in
the middle, the daemon dies between any two instructions of its own, PostgreSQL is stopped without warning, the market
data stays away for hours, the clock jumps.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import func, select

from bench.campaign import Campaign, arguments
from bench.idle import rss_mb
from oomrl.adapters.database import Store
from oomrl.adapters.database.place import RUN, place
from oomrl.adapters.database.tables import fills, orders
from oomrl.calendar import Calendar
from oomrl.daemon.schedule import TASKS, planned
from oomrl.daemon.service import Outcome, Service, run_of
from oomrl.domain.records import Job, JobState
from oomrl.errors import Halt
from oomrl.exchange.tape import Tape
from oomrl.settings import Settings, load
from oomrl.testing import calendar_tapes, postgres
from oomrl.testing.virtual import VirtualClock, wake_ups

ACCOUNTS = ("main", "second", "third")
BEGIN = date(2024, 1, 2)
WARMUP = 260
MOST_GROWTH = 0.05


def work(channel: Connection, state: Path, settings: Settings, account: str, job: str, session: date) -> None:
    """Do one job, as `oomrl once` does, and say how it ended."""
    from oomrl.daemon import jobs
    from oomrl.errors import OomrlError

    try:
        outcome = jobs.perform(jobs.Desk(state, settings, account), job, session)
        channel.send((outcome.done, outcome.note))
    except OomrlError as error:
        channel.send((False, str(error)))


@dataclass
class Forked:
    """Run jobs in processes of their own and kill some of them in the middle. Implements `service.Worker`."""

    state: Path
    settings: Settings
    chance: random.Random
    killing: float
    killed: int = 0
    context: Any = field(default_factory=lambda: multiprocessing.get_context("forkserver"))

    def __call__(self, account: str, job: str, session: date) -> Outcome:
        ours, theirs = self.context.Pipe(duplex=False)
        asked = (theirs, self.state, self.settings, account, job, session)
        process = self.context.Process(target=work, args=asked)
        process.start()
        theirs.close()
        killer = threading.Timer(self.chance.uniform(0.01, 1.0), process.kill)
        if self.chance.random() < self.killing:
            killer.start()
        try:
            done, note = ours.recv()
        except EOFError:
            done, note = False, "killed"
            self.killed += 1
        killer.cancel()
        if killer.is_alive():
            killer.join()
        process.join()
        process.close()
        ours.close()
        return Outcome(done, note)


class Silent:
    """Count how jobs ended."""

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()

    def began(self, job: Job) -> None:
        return

    def ended(self, job: Job, state: JobState, note: str, seconds: float) -> None:
        self.notes[f"{job.job} {state.value}"] += 1
        if state is JobState.FAILED:
            self.notes[f"{job.job}: {note[:80]}"] += 1


def make(folder: Path, days: list[date], url: str | None) -> tuple[Settings, Tape, Path]:
    """Return settings with three accounts: two strategies as shipped, and the one of phase 1."""
    file = folder / "market.parquet"
    accounts = {
        "main": {"tape": str(file)},
        "second": {"tape": str(file), "start": "phase1", "endowment": "2000000"},
        "third": {"tape": str(file), "endowment": "50000"},
    }
    values: dict[str, Any] = {"accounts": accounts, "loop": {"reviewer": "auto"}, "model": {"provider": "offline"}}
    if url is not None:
        values["database"] = {"url": url}
    return load(None, values), calendar_tapes.market(days), file


@dataclass
class Year:
    """The campaign's year: the clock, the service, and the troubles so far."""

    state: Path
    settings: Settings
    tape: Tape
    file: Path
    calendar: Calendar
    server: postgres.Server | None
    chance: random.Random
    worker: Forked
    clock: VirtualClock
    troubles: Counter[str] = field(default_factory=Counter)
    told: Silent = field(default_factory=Silent)
    data_from: datetime | None = None

    def __post_init__(self) -> None:
        self.service = self.born()

    def born(self) -> Service:
        """Start a daemon, as after a crash: nothing is kept but what is stored."""
        store = Store.open(place(self.state, self.settings))
        return Service(store, self.calendar, ACCOUNTS, self.worker, self.told, self.clock.now)

    def show(self) -> None:
        """Add to the tape what has closed, unless the data stays away."""
        if self.data_from is not None and self.clock.instant < self.data_from:
            return
        self.data_from = None
        closed = self.calendar.last_closed(self.clock.instant, timedelta(minutes=20))
        if closed is not None:
            calendar_tapes.write(self.tape, self.file, closed.day)

    def trouble(self) -> None:
        """Let something go wrong, now and then."""
        dice = self.chance.random()
        if dice < 0.004:
            self.troubles["daemon crashes"] += 1
            self.service.store.close()
            self.service = self.born()
        elif dice < 0.008:
            self.troubles["data cuts"] += 1
            self.data_from = self.clock.instant + timedelta(hours=self.chance.uniform(1, 20))
        elif dice < 0.012:
            self.troubles["clock jumps"] += 1
            now = self.clock.instant
            self.clock.instant = now + timedelta(hours=self.chance.uniform(-30, 3))
            self.look()
            self.clock.instant = now
        elif dice < 0.016 and self.server is not None:
            self.troubles["database restarts"] += 1
            stop = threading.Timer(self.chance.uniform(0.0, 0.5), self.server.stop)
            stop.start()
            self.look()
            stop.join()
            self.server.start()

    def look(self) -> None:
        """See to all accounts at once; a database that is gone ends that for now."""
        with ThreadPoolExecutor(len(ACCOUNTS)) as pool:
            list(pool.map(self._see_to, ACCOUNTS))

    def _see_to(self, account: str) -> None:
        with contextlib.suppress(Halt):
            self.service.work_off(account)


@contextlib.contextmanager
def database() -> Iterator[postgres.Server | None]:
    """Run a PostgreSQL where there is one, else use files."""
    if postgres.missing():
        yield None
        return
    with postgres.server() as server:
        yield server


def measure(size: int, seed: int, out: Path) -> int:
    """Live through `size` sessions, then count what was due, done, skipped, doubled and lost."""
    campaign = Campaign("soak", size, seed, out)
    chance = random.Random(seed)
    multiprocessing.set_forkserver_preload(["oomrl.daemon.jobs"])
    # Unscheduled: a day of mourning that the calendar does not know.
    calendar = Calendar("XNYS", date(2022, 6, 1), date(2026, 6, 30), closures=[date(2024, 10, 9)])
    days = [hours.day for hours in calendar.hours]
    first = days.index(BEGIN)
    span = days[first : first + size]
    with database() as server, tempfile.TemporaryDirectory(prefix="oomrl-soak-") as temporary:
        folder = Path(temporary)
        settings, tape, file = make(folder, days[first - WARMUP : first + size + 3], server and server.url)
        begin = datetime.combine(span[0], datetime.min.time(), UTC) - timedelta(hours=4)
        clock = VirtualClock(begin)
        worker = Forked(folder / "state", settings, chance, killing=0.01)
        for account in ACCOUNTS[1:]:
            (folder / "state" / "accounts" / account).mkdir(parents=True)
        year = Year(folder / "state", settings, tape, file, calendar, server, chance, worker, clock)
        until = calendar.session(span[-1])
        assert until is not None
        end = until.closes + timedelta(hours=4)
        year.look()
        expected = {
            (task.name, hours.day): due
            for task in TASKS
            for hours, due in planned(task, calendar, span[0] - timedelta(days=1), end)
        }
        memory: dict[int, list[float]] = {}
        last = None
        for moment in wake_ups(sorted(set(expected.values())), chance, outage=0.004, longest=timedelta(days=3)):
            clock.instant = max(moment, clock.instant)
            year.show()
            year.trouble()
            year.look()
            if clock.instant.date() != last:
                last = clock.instant.date()
                memory.setdefault(last.month, []).append(rss_mb(multiprocessing.process.current_process().pid or 0))
                if last.weekday() == 0:
                    print(f"{last}: {dict(year.troubles)}", file=sys.stderr, flush=True)
        year.data_from = None
        for _ in range(40):
            clock.instant += timedelta(minutes=20)
            year.show()
            year.look()
        return count(campaign, year, expected, memory)


def count(
    campaign: Campaign, year: Year, expected: dict[tuple[str, date], datetime], memory: dict[int, list[float]]
) -> int:
    """Compare the tables with what was due."""
    done = skipped = lost = doubled = 0
    for account in ACCOUNTS:
        with year.service.store.read() as view:
            table = {(job.job, job.session): job for job in view.jobs.all(run_of(account))}
        missing = [key for key in expected if key not in table]
        states = Counter(table[key].state.value for key in expected if key in table)
        with Store.open(place(year.state, year.settings, account)) as store, store.read() as view:
            key = view.runs.key(RUN)
            marked = [mark.day for mark in view.sessions.marks(RUN)]
            sums = (
                select(fills.c.client_order_id, func.sum(fills.c.shares).label("filled"))
                .where(fills.c.run_id == key)
                .group_by(fills.c.client_order_id)
                .subquery()
            )
            rows = view.connection.execute(
                select(orders.c.shares, sums.c.filled).where(
                    orders.c.run_id == key, orders.c.client_order_id == sums.c.client_order_id
                )
            ).all()
            over = sum(abs(filled) > abs(shares) for shares, filled in rows)
            store_orders, store_fills = view.orders.counts(RUN)
        judged = sorted({day for job, day in expected if job == "judge"})
        gone = len(missing) + len(set(judged) - set(marked)) + states["due"] + states["running"] + states["failed"]
        done, skipped = done + states["done"], skipped + states["skipped"]
        lost, doubled = lost + gone, doubled + over + len(marked) - len(set(marked))
        campaign.add(account, campaign.seed, **states, lost=gone, orders=store_orders, fills=store_fills)
        for key_, job in sorted(table.items(), key=lambda item: item[1].due_at):
            if key_ in expected and job.state not in (JobState.DONE, JobState.SKIPPED):
                print(f"{account} {key_}: {job.state.value} {job.note[:120]}", file=sys.stderr)
    months = sorted(memory)
    growth = None
    if len(months) >= 12:
        growth = float(np.mean(memory[months[-1]]) / np.mean(memory[months[1]]) - 1)
    shutil.rmtree(year.state, ignore_errors=True)
    return campaign.finish(
        passed=lost == 0 and doubled == 0 and (growth is None or growth < MOST_GROWTH),
        due=len(ACCOUNTS) * len(expected),
        ran=done,
        skipped_by_policy=skipped,
        doubled=doubled,
        lost=lost,
        memory_growth_month_2_to_12=None if growth is None else round(growth, 4),
        rss_mb={month: round(float(np.mean(values)), 1) for month, values in memory.items()},
        jobs_killed=year.worker.killed,
        **{name.replace(" ", "_"): number for name, number in year.troubles.items()},
        notes=dict(year.told.notes.most_common(40)),
    )


if __name__ == "__main__":
    asked = arguments("soak", 252, "sessions").parse_args()
    sys.exit(measure(asked.size, asked.seed, asked.out))

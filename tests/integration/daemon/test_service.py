"""The service on real databases: each due job once or skipped by its policy, whatever dies, fails or sleeps."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy.exc import DBAPIError

from oomrl.adapters.database import Store
from oomrl.adapters.database.jobs import Leases
from oomrl.adapters.database.notices import Notice
from oomrl.adapters.lead import Lead
from oomrl.calendar import Calendar
from oomrl.daemon.schedule import TASKS, Late, planned
from oomrl.daemon.service import Outcome, Service, run_of
from oomrl.domain.records import Job, JobState
from oomrl.errors import Halt
from oomrl.testing.virtual import Deeds, Killed, VirtualClock, wake_ups

BEGIN = datetime(2024, 1, 1, 12, tzinfo=UTC)
END = datetime(2024, 12, 31, 23, 59, tzinfo=UTC)


@pytest.fixture(scope="module")
def nyse() -> Calendar:
    return Calendar("XNYS", date(2023, 12, 1), date(2025, 3, 31), closures=[date(2024, 10, 9)])


class Quiet:
    """Hear of jobs and remember how they ended."""

    def __init__(self) -> None:
        self.heard: list[tuple[Job, JobState, str]] = []

    def began(self, job: Job) -> None:
        return

    def ended(self, job: Job, state: JobState, note: str, seconds: float) -> None:
        self.heard.append((job, state, note))


def service(store: Store, nyse: Calendar, worker: object, clock: VirtualClock, *accounts: str) -> Service:
    return Service(store, nyse, accounts or ("main",), worker, Quiet(), clock.now)  # type: ignore[arg-type]


def dues(nyse: Calendar) -> dict[tuple[str, date], datetime]:
    return {
        (task.name, hours.day): due
        for task in TASKS
        for hours, due in planned(task, nyse, date(2023, 12, 31), END)
        if due >= BEGIN
    }


def test_an_undisturbed_year_does_each_job_once_and_on_time(store: Store, nyse: Calendar) -> None:
    clock = VirtualClock(BEGIN)
    deeds = Deeds(random.Random(1), clock.now, Outcome)
    daemon = service(store, nyse, deeds, clock)
    daemon.work_off("main")
    expected = dues(nyse)
    assert len(expected) > 2_000
    for due in sorted(set(expected.values())):
        clock.instant = due
        daemon.work_off("main")
    assert {key[1:]: at for key, at in deeds.at.items()} == expected
    assert set(deeds.done.values()) == {1}


def test_a_year_of_crashes_failures_and_outages_loses_and_doubles_nothing(store: Store, nyse: Calendar) -> None:
    chance = random.Random(7)
    clock = VirtualClock(BEGIN)
    deeds = Deeds(chance, clock.now, Outcome, failing=0.05, dying=0.02)
    daemon = service(store, nyse, deeds, clock)
    daemon.work_off("main")
    expected = dues(nyse)
    kills = 0
    moments = wake_ups(sorted(set(expected.values())), chance, outage=0.02, longest=timedelta(days=4))
    for moment in [*moments, *(END + timedelta(minutes=30 * n) for n in range(60))]:
        clock.instant = moment
        try:
            daemon.work_off("main")
        except Killed:
            kills += 1
            daemon = service(store, nyse, deeds, clock)
    with store.read() as view:
        jobs = {(job.job, job.session): job for job in view.jobs.all(run_of("main"))}
    late = {task.name: task for task in TASKS}
    assert kills > 20
    assert set(jobs) >= set(expected)
    skipped = 0
    for key, due in expected.items():
        job = jobs[key]
        assert job.state in (JobState.DONE, JobState.SKIPPED), job
        times = deeds.done["main", *key]
        if job.state is JobState.DONE:
            # A worker that died after its work and before the table heard of it is asked again: work is idempotent.
            assert 1 <= times <= job.attempts
            hours = nyse.session(key[1])
            assert hours is not None
            deadline = late[key[0]].deadline(hours)
            assert due <= deeds.at["main", *key] and (deadline is None or deeds.at["main", *key] < deadline)
        else:
            skipped += 1
            assert late[key[0]].late is not Late.RUN
            assert job.note
    assert skipped > 20
    assert sum(times > 1 for times in deeds.done.values()) < kills


def test_a_job_that_ended_is_never_taken_on_again_whatever_the_clock_does(store: Store, nyse: Calendar) -> None:
    clock = VirtualClock(BEGIN)
    deeds = Deeds(random.Random(1), clock.now, Outcome)
    daemon = service(store, nyse, deeds, clock)
    daemon.work_off("main")
    clock.instant = datetime(2024, 3, 12, 23, tzinfo=UTC)
    daemon.work_off("main")
    before = dict(deeds.done)
    for hours in (-40, 1, -1_000, 0):
        clock.instant = datetime(2024, 3, 12, 23, tzinfo=UTC) + timedelta(hours=hours)
        daemon.work_off("main")
    assert deeds.done == before


def test_a_session_that_did_not_happen_is_skipped_once_it_is_known(store: Store, nyse: Calendar) -> None:
    unaware = Calendar("XNYS", date(2023, 12, 1), date(2025, 3, 31))
    clock = VirtualClock(datetime(2024, 10, 8, 23, tzinfo=UTC))
    deeds = Deeds(random.Random(1), clock.now, Outcome, failing=1.0)
    service(store, unaware, deeds, clock).work_off("main")
    clock.instant = datetime(2024, 10, 9, 23, tzinfo=UTC)
    service(store, unaware, deeds, clock).work_off("main")
    deeds.failing = 0.0
    service(store, nyse, deeds, clock).work_off("main")
    with store.read() as view:
        jobs = [job for job in view.jobs.all(run_of("main")) if job.session == date(2024, 10, 9)]
    assert {job.state for job in jobs} == {JobState.SKIPPED}
    assert any("exchange was closed" in job.note for job in jobs)


def test_an_account_that_hangs_or_raises_delays_no_other(store: Store, nyse: Calendar) -> None:
    clock = VirtualClock(BEGIN)
    release, done = threading.Event(), threading.Event()
    seen: list[tuple[str, str]] = []

    def worker(account: str, job: str, session: date) -> Outcome:
        if account == "hangs":
            release.wait(30)
        if account == "raises":
            raise RuntimeError("a fault of its own")
        seen.append((account, job))
        if account == "works" and job == "backup":
            done.set()
        return Outcome(True)

    daemon = service(store, nyse, worker, clock, "hangs", "raises", "works")
    for account in daemon.accounts:
        daemon.take(account)
    clock.instant = datetime(2024, 1, 2, 23, tzinfo=UTC)
    daemon.wake()
    assert done.wait(20)
    assert "hangs" in daemon.busy()
    daemon.stopping.set()
    release.set()
    daemon.close()
    assert ("works", "judge") in seen
    with store.read() as view:
        failed = [job for job in view.jobs.all(run_of("raises")) if job.state is JobState.FAILED]
    assert failed and "a fault of its own" in failed[0].note


def test_a_standby_takes_nothing_on_and_a_released_lead_passes_at_once(store: Store, nyse: Calendar) -> None:
    clock = VirtualClock(BEGIN)
    life, margin = timedelta(seconds=30), timedelta(seconds=5)
    one, two = Lead(store, life, margin), Lead(store, life, margin)
    assert one.renew() and not two.renew()
    deeds = Deeds(random.Random(1), clock.now, Outcome)
    standby = Service(store, nyse, ("main",), deeds, Quiet(), clock.now, lead=two)
    with pytest.raises(Halt, match="standing by"):
        standby.take("main")
    one.demand()
    with pytest.raises(Halt, match="standing by"):
        two.demand()
    stale = one.lease
    one.release()
    assert two.renew()
    two.demand()
    one.lease = stale
    with pytest.raises(Halt, match="took over"):
        one.demand()
    assert standby.take("main") is None


def test_a_lease_that_ends_before_a_request_would_allows_no_order(store: Store) -> None:
    lead = Lead(store, timedelta(seconds=5), margin=timedelta(seconds=6))
    assert lead.renew()
    with pytest.raises(Halt, match="took over"):
        lead.demand()


def test_what_a_writer_has_read_is_still_so_when_it_writes(store: Store) -> None:
    """Each of several writers at once numbers its notice by those that are there: no number is given twice."""
    at = datetime(2024, 3, 1, tzinfo=UTC)

    def number_one(_: int) -> int:
        with store.begin() as work:
            there = len(work.notices.unsent())
            assert work.notices.add(Notice(f"{there}", "test", "", at))
            return there

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(number_one, range(24))) == list(range(24))


def test_a_lease_is_renewed_beside_a_writer_that_takes_its_time(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        pytest.skip("one host: a lock on a file leads there")
    lead = Lead(store, timedelta(seconds=30), timedelta(seconds=0))
    with store.begin():
        assert lead.renew()
    lead.release()


def test_a_leader_that_stands_still_in_mid_transaction_holds_nobody_up(store: Store) -> None:
    """As by SIGSTOP, or a network that went away: its connection stays, and so would its locks."""
    if store.engine.dialect.name == "sqlite":
        pytest.skip("one host: a lock on a file ends with its process, and a paused leader still leads")
    one = Lead(store, timedelta(seconds=1), timedelta(seconds=0))
    assert one.renew() and one.lease is not None
    still = store.engine.connect()
    transaction = still.begin()
    Leases(still).take("lead", one.holder, datetime.now(UTC), timedelta(seconds=1))
    two = Lead(store, timedelta(seconds=30), timedelta(seconds=0))
    begun = time.monotonic()
    while not two.renew():
        assert time.monotonic() - begun < 30
    two.demand()
    with pytest.raises(DBAPIError):
        transaction.commit()
    still.invalidate()
    still.close()
    with pytest.raises(Halt, match="took over"):
        one.demand()

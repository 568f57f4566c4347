"""Do what is due, for each account, once: the table of jobs decides, never the scheduler.

A wake-up that comes late, twice or not at all changes when the work is done, not what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from threading import Event, Lock
from typing import Protocol

from oomrl.adapters.database import Store
from oomrl.adapters.database.store import Work
from oomrl.adapters.lead import HostLead, Lead
from oomrl.calendar import Calendar
from oomrl.daemon.schedule import TASKS, Standing, Step, Task, patience, planned, step
from oomrl.domain.records import Job, JobState, Run
from oomrl.errors import Halt, OomrlError

#: Accounts in one daemon. Threads are made as they are needed; they only wait for processes.
MOST_ACCOUNTS = 256


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: `done`, or to be tried again; and what is worth knowing of it."""

    done: bool
    note: str = ""


class Worker(Protocol):
    """Do one job of one account for one session; doing it again does nothing new."""

    def __call__(self, account: str, job: str, session: date) -> Outcome: ...


class Told(Protocol):
    """Hear of jobs as they begin and end."""

    def began(self, job: Job) -> None: ...

    def ended(self, job: Job, state: JobState, note: str, seconds: float) -> None: ...


def run_of(account: str) -> str:
    """Return the name under which an account's jobs stand in the daemon's table."""
    return f"daemon/{account}"


@dataclass
class Service:
    """The daemon's core. One account's jobs run one after the other, different accounts' beside each other."""

    store: Store
    calendar: Calendar
    accounts: Sequence[str]
    worker: Worker
    told: Told
    now: Callable[[], datetime]
    lead: Lead | HostLead | None = None
    tasks: Sequence[Task] = TASKS
    stopping: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self._task = {task.name: task for task in self.tasks}
        self._pool: ThreadPoolExecutor | None = None
        self._busy: dict[str, Future[None]] = {}
        self._again: set[str] = set()
        self._lock = Lock()
        self._since: dict[str, datetime] = {}

    # -- one account

    def work_off(self, account: str) -> None:
        """Do everything of one account that can be done now."""
        while not self.stopping.is_set():
            job = self.take(account)
            if job is None:
                return
            self.do(job)

    def take(self, account: str) -> Job | None:
        """Write down what has come due, skip what is too late, and take on the first job that can run."""
        now = self.now()
        skipped: list[tuple[Job, str]] = []
        taken: Job | None = None
        with self.store.begin() as work:
            if self.lead is not None:
                self.lead.check(work)
            self._plan(work, account, now)
            unfinished = work.jobs.unfinished(run_of(account))
            standing = {(s.task.name, s.hours.day): s for job in unfinished if (s := self._standing(job)) is not None}
            for job in unfinished:
                own = standing.get((job.job, job.session))
                if own is None:
                    skipped.append((job, "the exchange was closed, or the job is no longer known"))
                    work.jobs.end(job, JobState.SKIPPED, now, skipped[-1][1])
                    continue
                ended = {
                    name: state is JobState.DONE
                    for name, state in work.jobs.states(job.run, job.session).items()
                    if state in (JobState.DONE, JobState.SKIPPED)
                }
                what, why = step(own, now, ended, list(standing.values()))
                if what is Step.SKIP:
                    skipped.append((job, why if not job.note else f"{why}; last: {job.note}"))
                    work.jobs.end(job, JobState.SKIPPED, now, skipped[-1][1])
                    del standing[job.job, job.session]
                elif what is Step.RUN:
                    work.jobs.start(job, now)
                    taken = job
                    break
        for job, why in skipped:
            self.told.ended(job, JobState.SKIPPED, why, 0.0)
        return taken

    def do(self, job: Job) -> None:
        """Run a job that was taken on, and write down how it ended. An error of any kind is a failed attempt."""
        begun = self.now()
        self.told.began(job)
        try:
            outcome = self.worker(job.run.removeprefix("daemon/"), job.job, job.session)
        except OomrlError as error:
            outcome = Outcome(False, str(error))
        except Exception as error:  # noqa: BLE001 - the stage boundary: one account's fault must not end the service
            outcome = Outcome(False, f"{type(error).__name__}: {error}")
        state = JobState.DONE if outcome.done else JobState.FAILED
        ended = self.now()
        with self.store.begin() as work:
            work.jobs.end(job, state, ended, outcome.note)
        self.told.ended(job, state, outcome.note, (ended - begun).total_seconds())

    def _plan(self, work: Work, account: str, now: datetime) -> None:
        run = run_of(account)
        since = self._started(work, run, now)
        latest = work.jobs.latest(run)
        # A job that a newer version has brought begins about now, not when the account did.
        begin = max([since.date(), *latest.values()]) - timedelta(days=7)
        for task in self.tasks:
            for hours, due in planned(task, self.calendar, latest.get(task.name, begin), now):
                if due >= since:
                    work.jobs.plan(Job(run, task.name, hours.day, due))

    def _started(self, work: Work, run: str, now: datetime) -> datetime:
        """Return since when the daemon serves an account: nothing that came due earlier is its business."""
        if run not in self._since:
            known = work.runs.get(run)
            if known is None:
                work.runs.start(Run(run, "daemon", {}, 0, "", now))
            self._since[run] = now if known is None else known.started_at
        return self._since[run]

    def _standing(self, job: Job) -> Standing | None:
        hours, task = self.calendar.session(job.session), self._task.get(job.job)
        if hours is None or task is None:
            return None
        waits = job.state is JobState.FAILED and job.ended_at is not None
        return Standing(task, hours, job.ended_at + patience(job.attempts) if waits and job.ended_at else None)

    # -- all accounts

    def wake(self) -> list[Future[None]]:
        """See to every account, each in a thread of its own; return at once with what is under way."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(MOST_ACCOUNTS, thread_name_prefix="account")
            for account in self.accounts:
                if account in self._busy and not self._busy[account].done():
                    self._again.add(account)
                else:
                    self._busy[account] = self._pool.submit(self._see_to, account)
            return list(self._busy.values())

    def _see_to(self, account: str) -> None:
        while True:
            with self._lock:
                self._again.discard(account)
            try:
                self.work_off(account)
            except Halt as error:
                self.told.ended(Job(run_of(account), "service", date.min, self.now()), JobState.FAILED, str(error), 0.0)
                return
            with self._lock:
                if account not in self._again:
                    return

    def busy(self) -> list[str]:
        """Return the accounts with a job under way."""
        return [account for account, future in self._busy.items() if not future.done()]

    def close(self) -> None:
        """Take on nothing more, and wait until what is under way has ended."""
        self.stopping.set()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)


def wall_clock() -> datetime:
    """Return this host's clock, aware UTC."""
    return datetime.now(UTC)

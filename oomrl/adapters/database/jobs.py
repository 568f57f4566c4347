"""What the daemon has done for which session, and who leads."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, or_, select, text, update

from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import jobs, leases
from oomrl.domain.records import Job, JobState, Lease
from oomrl.errors import Halt

#: States that a job does not leave.
ENDED = (JobState.DONE, JobState.SKIPPED)
_MOVING = ("holder", "term", "until")


class Jobs:
    """The shelf of jobs, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def plan(self, job: Job) -> bool:
        """Write that a job is due; return False where it is known already, in whatever state."""
        row = {
            "run_id": self._runs.key(job.run),
            "job": job.job,
            "session": job.session,
            "state": job.state.value,
            "attempts": job.attempts,
            "due_at": job.due_at,
            "started_at": job.started_at,
            "ended_at": job.ended_at,
            "note": job.note,
        }
        return put(self._connection, jobs, row, may_differ=list(row))

    def start(self, job: Job, at: datetime) -> bool:
        """Take a job on; return False where it has ended. One that was running when its worker died starts again."""
        values = {"state": JobState.RUNNING.value, "started_at": at, "attempts": jobs.c.attempts + 1}
        open_ = jobs.c.state.not_in([state.value for state in ENDED])
        return self._connection.execute(update(jobs).where(self._is(job), open_).values(**values)).rowcount == 1

    def end(self, job: Job, state: JobState, at: datetime, note: str = "") -> None:
        """Say how a job ended. One that is done or skipped stays so."""
        values = {"state": state.value, "ended_at": at, "note": note}
        open_ = jobs.c.state.not_in([state.value for state in ENDED])
        self._connection.execute(update(jobs).where(self._is(job), open_).values(**values))

    def unfinished(self, run: str) -> list[Job]:
        """Return the jobs that are neither done nor skipped, by due time."""
        query = select(jobs).where(
            jobs.c.run_id == self._runs.key(run), jobs.c.state.not_in([state.value for state in ENDED])
        )
        return [_job(run, row) for row in self._connection.execute(query.order_by(jobs.c.due_at, jobs.c.job))]

    def all(self, run: str) -> list[Job]:
        """Return every job of a run, by due time."""
        query = select(jobs).where(jobs.c.run_id == self._runs.key(run)).order_by(jobs.c.due_at, jobs.c.job)
        return [_job(run, row) for row in self._connection.execute(query)]

    def latest(self, run: str) -> dict[str, date]:
        """Return the newest session for which each job is known."""
        query = select(jobs.c.job, func.max(jobs.c.session)).where(jobs.c.run_id == self._runs.key(run))
        return {name: value for name, value in self._connection.execute(query.group_by(jobs.c.job))}

    def states(self, run: str, session: date) -> dict[str, JobState]:
        """Return how far each job of a session has come."""
        query = select(jobs.c.job, jobs.c.state).where(jobs.c.run_id == self._runs.key(run), jobs.c.session == session)
        return {name: JobState(state) for name, state in self._connection.execute(query)}

    def last_success(self, run: str) -> dict[str, datetime]:
        """Return when each job was last done."""
        query = select(jobs.c.job, func.max(jobs.c.ended_at)).where(
            jobs.c.run_id == self._runs.key(run), jobs.c.state == JobState.DONE.value
        )
        return {name: value for name, value in self._connection.execute(query.group_by(jobs.c.job))}

    def _is(self, job: Job) -> ColumnElement[bool]:
        return and_(jobs.c.run_id == self._runs.key(job.run), jobs.c.job == job.job, jobs.c.session == job.session)


class Leases:
    """Who may write orders: one holder at a time, until the lease runs out."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def now(self) -> datetime:
        """Return the database's own clock, which daemons on several hosts share (a file's is this host's)."""
        if self._connection.dialect.name == "sqlite":
            return datetime.now(UTC)
        now: datetime = self._connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        return now

    def take(self, name: str, holder: str, now: datetime, life: timedelta) -> Lease | None:
        """Take or renew a lease; None where another holder's still runs.

        The one statement decides: of two that try at once, one changes the row and the other sees it changed.
        """
        until = now + life
        mine = leases.c.holder == holder
        put(self._connection, leases, {"name": name, "holder": holder, "term": 1, "until": until}, _MOVING)
        changed = self._connection.execute(
            update(leases)
            .where(leases.c.name == name, or_(mine, leases.c.until < now))
            .values(holder=holder, until=until, term=case((mine, leases.c.term), else_=leases.c.term + 1))
        )
        return self.get(name) if changed.rowcount == 1 else None

    def demand(self, lease: Lease, now: datetime, left: timedelta = timedelta(0)) -> None:
        """Raise `Halt` unless a lease holds for longer than `left`: before each order, with the time a request may
        take.
        """
        there = self.get(lease.name)
        if there is None or (there.holder, there.term) != (lease.holder, lease.term) or there.until <= now + left:
            raise Halt(f"Expected to lead {lease.name} in term {lease.term}, was {there}: another daemon took over")

    def release(self, lease: Lease, now: datetime) -> None:
        """Give a lease up, so that a standby need not wait for its end."""
        where = and_(leases.c.name == lease.name, leases.c.holder == lease.holder, leases.c.term == lease.term)
        self._connection.execute(update(leases).where(where).values(until=now))

    def get(self, name: str) -> Lease | None:
        """Return a lease, None before the first."""
        row = self._connection.execute(select(leases).where(leases.c.name == name)).one_or_none()
        return None if row is None else Lease(row.name, row.holder, row.term, row.until)


def _job(run: str, row: Row[tuple[object, ...]]) -> Job:
    return Job(
        run=run,
        job=row.job,
        session=row.session,
        due_at=row.due_at,
        state=JobState(row.state),
        attempts=row.attempts,
        started_at=row.started_at,
        ended_at=row.ended_at,
        note=row.note,
    )

"""What the daemon does for each session, when, and what happens to what it missed: values, no clock, no effects.

Every instant is relative to a session's own open or close, as the exchange calendar knows them, so that holidays, half
days and changes of the clocks need no rule of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from oomrl.calendar import Calendar, Hours


class Anchor(StrEnum):
    OPEN = "open"
    CLOSE = "close"


class Late(StrEnum):
    """What becomes of a job that could not run on time."""

    #: However late it is: nothing after it makes sense without it.
    RUN = "run"
    #: Only until its window ends; later it is skipped and reported.
    WINDOW = "window"
    #: Only the newest one; the ones before it would do the same work.
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Task:
    """One kind of job: when it is due, and its policy when late.

    It runs only once the jobs of the same session named in `needs` are done, and no job named in `after` is unfinished
    for an earlier session. After `limit` it is ended and counts as failed.
    """

    name: str
    anchor: Anchor
    offset: timedelta
    late: Late
    window: timedelta = timedelta(0)
    limit: timedelta = timedelta(hours=1)
    weekly: bool = False
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def due(self, hours: Hours) -> datetime:
        """Return when the job of a session is due, aware UTC."""
        return (hours.opens if self.anchor is Anchor.OPEN else hours.closes) + self.offset

    def deadline(self, hours: Hours) -> datetime | None:
        """Return from when on the job is too late; None where it never is. What is due in a session ends with it."""
        if self.late is not Late.WINDOW:
            return None
        due = self.due(hours)
        return min(due + self.window, hours.closes) if due < hours.closes else due + self.window


def _minutes(count: int) -> timedelta:
    return timedelta(minutes=count)


#: Every job of an account, in the order in which a session meets them.
TASKS: tuple[Task, ...] = (
    Task("deployment", Anchor.OPEN, _minutes(-90), Late.WINDOW, _minutes(60), after=("judge",)),
    Task("pre_open_check", Anchor.OPEN, _minutes(-30), Late.WINDOW, _minutes(210)),
    Task("rebalance", Anchor.OPEN, _minutes(30), Late.WINDOW, _minutes(180), timedelta(hours=7),
         needs=("pre_open_check",), after=("judge",)),
    Task("judge", Anchor.CLOSE, _minutes(20), Late.RUN),
    Task("reconcile", Anchor.CLOSE, _minutes(25), Late.NEWEST, needs=("judge",)),
    Task("propose", Anchor.CLOSE, _minutes(30), Late.NEWEST, needs=("judge",)),
    Task("gate", Anchor.CLOSE, _minutes(35), Late.NEWEST, limit=timedelta(hours=6), needs=("propose",)),
    Task("digest", Anchor.CLOSE, _minutes(60), Late.NEWEST),
    Task("backup", Anchor.CLOSE, _minutes(90), Late.NEWEST),
    Task("housekeeping", Anchor.CLOSE, _minutes(120), Late.NEWEST, weekly=True),
)  # fmt: skip


def planned(task: Task, calendar: Calendar, after: date, until: datetime) -> Iterator[tuple[Hours, datetime]]:
    """Yield the sessions later than `after` for which a task has come due, with the instants, oldest first."""
    for hours in calendar.between(after, (until + timedelta(days=2)).date()):
        if task.weekly and not calendar.first_of_week(hours.day):
            continue
        due = task.due(hours)
        if due <= until:
            yield hours, due


def next_due(task: Task, calendar: Calendar, after: datetime) -> datetime | None:
    """Return the first instant later than `after` at which a task comes due."""
    start = (after - timedelta(days=2)).date()
    for hours in calendar.between(start, start + timedelta(days=30)):
        if task.due(hours) > after and not (task.weekly and not calendar.first_of_week(hours.day)):
            return task.due(hours)
    return None


class Step(StrEnum):
    """What to do with a job that has not ended."""

    RUN = "run"
    WAIT = "wait"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Standing:
    """One unfinished job, as the rules see it."""

    task: Task
    hours: Hours
    not_before: datetime | None = None


def step(
    job: Standing,
    now: datetime,
    ended: Mapping[str, bool],
    unfinished: Sequence[Standing],
) -> tuple[Step, str]:
    """Decide about one unfinished job, and say why where it is not run.

    `ended` maps the jobs of the same session to True (done) or False (skipped); `unfinished` are all unfinished jobs
    of the account, this one among them. `not_before` is set while a failure is left to pass.
    """
    task, day = job.task, job.hours.day
    deadline = task.deadline(job.hours)
    if deadline is not None and now >= deadline:
        return Step.SKIP, f"missed: its window ended {deadline:%Y-%m-%d %H:%M} UTC"
    if task.late is Late.NEWEST and any(o.task is task and o.hours.day > day for o in unfinished):
        return Step.SKIP, "a later session's takes its place"
    skipped = [name for name in task.needs if ended.get(name) is False]
    if skipped:
        return Step.SKIP, f"{skipped[0]} was skipped"
    if any(name not in ended for name in task.needs):
        return Step.WAIT, f"waits for {', '.join(name for name in task.needs if name not in ended)}"
    if any(o.task.name in task.after and o.hours.day < day for o in unfinished):
        return Step.WAIT, f"waits for an earlier {' or '.join(task.after)}"
    if job.not_before is not None and now < job.not_before:
        return Step.WAIT, f"tries again at {job.not_before:%H:%M} UTC"
    return Step.RUN, ""


def patience(attempts: int) -> timedelta:
    """Return how long to wait after a failed attempt: a minute, doubling to a quarter of an hour."""
    return timedelta(minutes=min(2 ** min(max(attempts - 1, 0), 4), 15))

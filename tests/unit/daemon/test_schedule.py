"""When jobs are due and what becomes of late ones, by an oracle that knows New York's clock and nothing of ours."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from oomrl.calendar import Calendar
from oomrl.daemon.schedule import TASKS, Late, Standing, Step, Task, next_due, patience, planned, step
from oomrl.daemon.triggers import SessionTrigger

NEW_YORK = ZoneInfo("America/New_York")
#: 2024: leap day, two changes of the clocks, three half days, ten holidays, and a closure that nobody expected.
HOLIDAYS = {
    date(2024, 1, 1), date(2024, 1, 15), date(2024, 2, 19), date(2024, 3, 29), date(2024, 5, 27), date(2024, 6, 19),
    date(2024, 7, 4), date(2024, 9, 2), date(2024, 11, 28), date(2024, 12, 25),
}  # fmt: skip
HALF_DAYS = {date(2024, 7, 3), date(2024, 11, 29), date(2024, 12, 24)}
CLOSURE = date(2024, 10, 9)
BY_NAME = {task.name: task for task in TASKS}


@pytest.fixture(scope="module")
def nyse() -> Calendar:
    return Calendar("XNYS", date(2023, 12, 1), date(2025, 3, 31), closures=[CLOSURE])


def oracle(task: Task) -> list[datetime]:
    """Return when a task is due in 2024, from the clock on the wall in New York."""
    found, week = [], None
    for number in range(366):
        day = date(2024, 1, 1) + timedelta(days=number)
        if day.weekday() > 4 or day in HOLIDAYS or day == CLOSURE:
            continue
        first, week = day.isocalendar()[:2] != week, day.isocalendar()[:2]
        if task.weekly and not first:
            continue
        closes = time(13) if day in HALF_DAYS else time(16)
        at = datetime.combine(day, time(9, 30) if task.anchor == "open" else closes, NEW_YORK)
        found.append(at.astimezone(UTC) + task.offset)
    return found


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_year_of_firings_is_neither_short_nor_double_nor_late(nyse: Calendar, task: Task) -> None:
    trigger = SessionTrigger(task, nyse)
    fired: list[datetime] = []
    now = datetime(2024, 1, 1, tzinfo=UTC)
    while (moment := trigger.get_next_fire_time(fired[-1] if fired else None, now)) and moment < datetime(
        2025, 1, 1, tzinfo=UTC
    ):
        fired.append(moment)
        now = moment
    assert fired == oracle(task)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_what_is_planned_is_what_fires(nyse: Calendar, task: Task) -> None:
    dues = [due for _, due in planned(task, nyse, date(2023, 12, 31), datetime(2024, 12, 31, 23, 59, tzinfo=UTC))]
    assert dues == oracle(task)


def test_a_late_wake_up_does_not_fire_the_past(nyse: Calendar) -> None:
    asleep_since, awake = datetime(2024, 7, 1, 20, 20, tzinfo=UTC), datetime(2024, 7, 9, 12, 0, tzinfo=UTC)
    following = SessionTrigger(BY_NAME["judge"], nyse).get_next_fire_time(asleep_since, awake)
    assert following is not None and following.date() == date(2024, 7, 9)


def test_the_scheduler_itself_drives_a_year_of_triggers_in_its_own_time_zone(nyse: Calendar) -> None:
    """APScheduler hands triggers instants in its own zone; ours must not care."""
    trigger = SessionTrigger(BY_NAME["rebalance"], nyse)
    eve = datetime(2024, 3, 8, 20, 0, tzinfo=NEW_YORK)
    assert trigger.get_next_fire_time(None, eve) == datetime(2024, 3, 11, 14, 0, tzinfo=UTC)


def standing(nyse: Calendar, name: str, day: date, not_before: datetime | None = None) -> Standing:
    hours = nyse.session(day)
    assert hours is not None
    return Standing(BY_NAME[name], hours, not_before)


def test_a_rebalance_runs_within_its_window_and_is_skipped_after_it(nyse: Calendar) -> None:
    job = standing(nyse, "rebalance", date(2024, 7, 2))
    due = job.task.due(job.hours)
    ended = {"pre_open_check": True}
    assert step(job, due, ended, [job])[0] is Step.RUN
    assert step(job, due + timedelta(minutes=179), ended, [job])[0] is Step.RUN
    what, why = step(job, due + timedelta(minutes=180), ended, [job])
    assert what is Step.SKIP and "missed" in why


def test_the_window_of_a_half_day_ends_with_the_session(nyse: Calendar) -> None:
    job = standing(nyse, "rebalance", date(2024, 7, 3))
    assert job.task.deadline(job.hours) == job.hours.closes


def test_nothing_trades_without_the_check_before_the_open(nyse: Calendar) -> None:
    job = standing(nyse, "rebalance", date(2024, 7, 2))
    due = job.task.due(job.hours)
    assert step(job, due, {}, [job])[0] is Step.WAIT
    assert step(job, due, {"pre_open_check": False}, [job])[0] is Step.SKIP


def test_nothing_trades_before_the_session_before_was_judged(nyse: Calendar) -> None:
    job, judging = standing(nyse, "rebalance", date(2024, 7, 2)), standing(nyse, "judge", date(2024, 7, 1))
    due = job.task.due(job.hours)
    assert step(job, due, {"pre_open_check": True}, [judging, job])[0] is Step.WAIT


def test_judging_is_never_too_late(nyse: Calendar) -> None:
    job = standing(nyse, "judge", date(2024, 7, 2))
    assert step(job, datetime(2024, 12, 1, tzinfo=UTC), {}, [job])[0] is Step.RUN


def test_of_missed_backups_the_newest_runs(nyse: Calendar) -> None:
    old, new = standing(nyse, "backup", date(2024, 7, 1)), standing(nyse, "backup", date(2024, 7, 2))
    now = datetime(2024, 7, 3, tzinfo=UTC)
    assert BY_NAME["backup"].late is Late.NEWEST
    assert step(old, now, {}, [old, new])[0] is Step.SKIP
    assert step(new, now, {}, [old, new])[0] is Step.RUN


def test_a_failure_is_left_to_pass(nyse: Calendar) -> None:
    now = datetime(2024, 7, 3, tzinfo=UTC)
    job = standing(nyse, "judge", date(2024, 7, 2), now + patience(1))
    assert step(job, now, {}, [job])[0] is Step.WAIT
    assert step(job, now + timedelta(minutes=1), {}, [job])[0] is Step.RUN
    assert [patience(n).total_seconds() / 60 for n in (1, 2, 3, 5, 60)] == [1, 2, 4, 15, 15]


def test_the_next_due_instant_is_later_than_the_asked_one(nyse: Calendar) -> None:
    task = BY_NAME["judge"]
    due = next_due(task, nyse, datetime(2024, 7, 3, 12, tzinfo=UTC))
    assert due == datetime(2024, 7, 3, 17, 20, tzinfo=UTC)
    assert next_due(task, nyse, due) == datetime(2024, 7, 5, 20, 20, tzinfo=UTC)

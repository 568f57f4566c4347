"""APScheduler triggers that follow the exchange calendar: cron expressions know neither holidays nor half days."""

from __future__ import annotations

from datetime import UTC, datetime

from apscheduler.triggers.base import BaseTrigger

from oomrl.calendar import Calendar
from oomrl.daemon.schedule import Task, next_due


class SessionTrigger(BaseTrigger):  # type: ignore[misc]
    """Fire whenever a task comes due. What was missed is not fired again: the table of jobs knows it."""

    def __init__(self, task: Task, calendar: Calendar) -> None:
        self.task, self.calendar = task, calendar

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """Return the first due instant that is not before now and is later than the previous firing."""
        instant = now.astimezone(UTC)
        if previous_fire_time is not None and previous_fire_time >= instant:
            instant = previous_fire_time.astimezone(UTC)
        return next_due(self.task, self.calendar, instant)

"""The long-running service: wake after each session's close and run that session's stages once.

What is due is decided by the store (sessions without a mark), never by the scheduler: a wake-up that came late, twice
or not at all changes when the work is done, not what is done.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from oomrl.calendar import Calendar

#: Daily bars of the consolidated feed are complete and free from about this long after the close.
DATA_DELAY = timedelta(minutes=20)


class AfterClose(BaseTrigger):  # type: ignore[misc]
    """Fire once after each session's close, as the exchange calendar knows it."""

    def __init__(self, calendar: Calendar, delay: timedelta = DATA_DELAY) -> None:
        self.calendar = calendar
        self.delay = delay

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """Return the next close plus the delay that is later than now and than the previous firing."""
        after = now if previous_fire_time is None else max(previous_fire_time, now)
        hours = self.calendar.next_close(after.astimezone(UTC) - self.delay)
        return None if hours is None else hours.closes + self.delay


def serve(calendar: Calendar, stages: Callable[[datetime], None], stop: Event | None = None) -> None:
    """Run `stages(now)` at once for whatever was missed, then after each close, until SIGINT or SIGTERM.

    A stage under way is finished before the process ends.
    """
    stopping = stop or Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    scheduler = BackgroundScheduler(
        timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
    )
    stages(datetime.now(UTC))
    scheduler.add_job(lambda: stages(datetime.now(UTC)), AfterClose(calendar), id="session")
    scheduler.start()
    stopping.wait()
    scheduler.shutdown(wait=True)

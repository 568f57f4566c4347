"""A clock that stands until somebody waits on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta

from oomrl.domain.market import Hours


class SteppedTimer:
    """Tell the instant that it was last moved to. Implements `ports.Timer`.

    `moved` hears of every move, and of the first minute of each session on the way: a fake exchange follows it.
    """

    def __init__(self, start: datetime = datetime(2010, 1, 4, 14, 0, tzinfo=UTC)) -> None:
        self._now = start
        self.moved: Callable[[datetime], None] = lambda now: None

    def now(self) -> datetime:
        return self._now

    def wait(self, until: datetime) -> None:
        while self._now < until:
            opened = datetime.combine(self._now.date(), time(14, 31), UTC)
            opened += timedelta(days=opened <= self._now)
            self._now = min(opened, until)
            self.moved(self._now)

    def pass_(self, **length: float) -> None:
        """Let some time go by."""
        self.wait(self._now + timedelta(**length))


class Weekdays:
    """Sessions from Monday to Friday, 14:30 to 21:00 UTC. Implements `oomrl.order_path.SessionHours`."""

    def after(self, day: date) -> Hours:
        following = day + timedelta(days=1)
        while following.weekday() > 4:
            following += timedelta(days=1)
        opens, closes = (datetime.combine(following, at, UTC) for at in (time(14, 30), time(21)))
        return Hours(following, opens, closes)

"""When the emulated market does what: sessions of the tape, half days, the four points of each session's path."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import IntEnum
from zoneinfo import ZoneInfo

from oomrl.calendar import Calendar
from oomrl.domain.market import Hours

NEW_YORK = ZoneInfo("America/New_York")


class Moment(IntEnum):
    """What happens at an event of a session, in the order of the day. OPEN to CLOSE are the points of the path."""

    MORNING = -3
    LOCK_OPG = -2
    OPEN = 0
    FIRST = 1
    SECOND = 2
    LOCK_CLS = 3
    CLOSE = 4

    @property
    def point(self) -> int | None:
        """The point of the path, 0 to 3, or None."""
        return {Moment.OPEN: 0, Moment.FIRST: 1, Moment.SECOND: 2, Moment.CLOSE: 3}.get(self)


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Something that the market does at an instant (aware UTC) of one session."""

    at: datetime
    what: Moment
    day: date


class MarketHours:
    """The sessions of a tape with their hours, and those of the exchange's calendar before and after it.

    Within the tape its own days are the sessions: a made-up tape may trade on a holiday.
    """

    def __init__(self, days: tuple[date, ...]) -> None:
        calendar = Calendar(first=days[0] - timedelta(days=400), last=days[-1] + timedelta(days=400))
        inside = [calendar.session(day) or _ordinary(day) for day in days]
        before = [hours for hours in calendar.hours if hours.day < days[0]]
        after = [hours for hours in calendar.hours if hours.day > days[-1]]
        self.hours = (*before, *inside, *after)
        self._days = [hours.day for hours in self.hours]
        self._closes = [hours.closes for hours in self.hours]
        self._opens = [hours.opens for hours in self.hours]

    def session(self, day: date) -> Hours | None:
        """Return the hours of a day, or None when the market is closed."""
        place = bisect_left(self._days, day)
        return self.hours[place] if place < len(self._days) and self._days[place] == day else None

    def between(self, first: date, last: date) -> tuple[Hours, ...]:
        """Return the sessions of first <= day <= last."""
        return self.hours[bisect_left(self._days, first) : bisect_right(self._days, last)]

    def current(self, now: datetime) -> Hours | None:
        """Return the session that is open now: from its open on, before its close."""
        place = bisect_right(self._opens, now) - 1
        return self.hours[place] if place >= 0 and now < self._closes[place] else None

    def next_open(self, now: datetime) -> Hours:
        """Return the first session that opens later than now."""
        return self.hours[min(bisect_right(self._opens, now), len(self.hours) - 1)]

    def next_close(self, now: datetime) -> Hours:
        """Return the first session that closes later than now."""
        return self.hours[min(bisect_right(self._closes, now), len(self.hours) - 1)]

    def previous(self, day: date) -> Hours | None:
        """Return the last session before a day."""
        place = bisect_left(self._days, day) - 1
        return self.hours[place] if place >= 0 else None

    def after(self, day: date, count: int) -> date:
        """Return the day `count` sessions later, for settlement dates."""
        place = bisect_right(self._days, day) - 1 + count
        return self._days[place] if place < len(self._days) else day + timedelta(days=count)

    def expiry(self, now: datetime) -> datetime:
        """Return when a day order that is placed now ends: the close of this session or the next."""
        return self.next_close(now).closes


def points_of(hours: Hours) -> tuple[datetime, datetime, datetime, datetime]:
    """Return the instants of the path: open, a third and two thirds of the session, close."""
    third = (hours.closes - hours.opens) / 3
    return hours.opens, hours.opens + third, hours.opens + 2 * third, hours.closes


def events_of(hours: Hours) -> tuple[Event, ...]:
    """Return what happens in one session, in order."""
    first, second = points_of(hours)[1:3]
    moments = [
        (at(hours.day, time(4)), Moment.MORNING),
        (hours.opens - timedelta(minutes=2), Moment.LOCK_OPG),
        (hours.opens, Moment.OPEN),
        (first, Moment.FIRST),
        (second, Moment.SECOND),
        (hours.closes - timedelta(minutes=10), Moment.LOCK_CLS),
        (hours.closes, Moment.CLOSE),
    ]
    return tuple(Event(instant, moment, hours.day) for instant, moment in moments)


def at(day: date, wall: time) -> datetime:
    """Return a wall-clock time in New York as an aware UTC instant."""
    return datetime.combine(day, wall, NEW_YORK).astimezone(UTC)


def _ordinary(day: date) -> Hours:
    return Hours(day, at(day, time(9, 30)), at(day, time(16)))

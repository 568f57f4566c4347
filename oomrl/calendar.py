"""When sessions open and close, by the exchange calendar.

Cron expressions know no holidays, half days or time zones that change; every instant here comes from the exchange's
own calendar and is an aware UTC datetime.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache

from oomrl.domain.market import Hours
from oomrl.errors import Mistake


class KnownHours:
    """The sessions of one exchange, whoever told them; `hours` ascend."""

    def __init__(self, name: str, hours: Sequence[Hours]) -> None:
        self.name, self.hours = name, tuple(hours)
        self._days = [hours.day for hours in self.hours]
        self._closes = [hours.closes for hours in self.hours]

    def session(self, day: date) -> Hours | None:
        """Return the hours of a day, or None when the exchange is closed."""
        place = bisect_left(self._days, day)
        found = place < len(self._days) and self._days[place] == day
        return self.hours[place] if found else None

    def after(self, day: date) -> Hours:
        """Return the first session after a day."""
        place = bisect_right(self._days, day)
        if place == len(self._days):
            raise Mistake(f"Expected a calendar that goes beyond {day}, was {self.name} to {self._days[-1]}.")
        return self.hours[place]

    def last_closed(self, now: datetime, delay: timedelta = timedelta(0)) -> Hours | None:
        """Return the newest session that closed at least `delay` before now."""
        place = bisect_right(self._closes, now - delay)
        return self.hours[place - 1] if place else None

    def between(self, after: date, until: date) -> tuple[Hours, ...]:
        """Return the sessions with after < day <= until, oldest first."""
        return self.hours[bisect_right(self._days, after) : bisect_right(self._days, until)]

    def before(self, day: date) -> Hours | None:
        """Return the last session before a day."""
        place = bisect_left(self._days, day)
        return self.hours[place - 1] if place else None

    def first_of_week(self, day: date) -> bool:
        """Say whether a session is the first of its ISO week: a Tuesday where Monday is a holiday."""
        earlier = self.before(day)
        return earlier is None or earlier.day.isocalendar()[:2] != day.isocalendar()[:2]


class Calendar(KnownHours):
    """The sessions of one exchange, offline, from `first` to `last` (two years ahead), without `closures`.

    Closures are days on which the exchange stays shut though its calendar does not know it yet. Raises `Mistake` for an
    exchange that the package does not know over that span.
    """

    def __init__(
        self,
        name: str = "XNYS",
        first: date = date(1999, 1, 1),
        last: date | None = None,
        closures: Collection[date] = (),
    ) -> None:
        end = last or date.today() + timedelta(days=2 * 365)  # noqa: DTZ011 - a range, not an instant
        super().__init__(name, [hours for hours in _known(name, first, end) if hours.day not in closures])


@cache
def _known(name: str, first: date, last: date) -> tuple[Hours, ...]:
    import exchange_calendars  # half a second of imports that only a daemon needs

    try:
        source = exchange_calendars.get_calendar(name, start=first.isoformat(), end=last.isoformat())
    except (exchange_calendars.errors.CalendarError, ValueError) as error:
        raise Mistake(f"Setting service.calendar: expected an exchange such as XNYS, was {name!r}: {error}") from error
    # Through arrays: pandas takes a fifth of a second to turn as many stamps into datetimes one by one.
    opens, closes = (
        source.schedule[which].to_numpy("datetime64[s]").astype(object).tolist() for which in ("open", "close")
    )
    return tuple(
        Hours(day.date(), start.replace(tzinfo=UTC), stop.replace(tzinfo=UTC))
        for day, start, stop in zip(
            source.sessions.to_numpy("datetime64[s]").astype(object).tolist(), opens, closes, strict=True
        )
    )

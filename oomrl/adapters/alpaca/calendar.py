"""The broker's own calendar, and where it differs from the exchange's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from oomrl.adapters.alpaca.payloads import DayPayload, many
from oomrl.adapters.alpaca.rest import Rest
from oomrl.calendar import KnownHours
from oomrl.domain.market import Hours
from oomrl.domain.reconciliation import Mismatch, MismatchKind, Policy
from oomrl.errors import Unavailable

#: Alpaca tells bare wall-clock times; they are New York's.
ZONE = ZoneInfo("America/New_York")


def hours_told(trading: Rest, first: date, last: date) -> KnownHours:
    """Return the broker's sessions from `first` to `last`."""
    told = trading.get("/calendar", {"start": first.isoformat(), "end": last.isoformat()})
    days = [_hours(payload) for payload in many(DayPayload, told)]
    return KnownHours("alpaca", sorted(days, key=lambda hours: hours.day))


def differences(ours: Sequence[Hours], theirs: Sequence[Hours], policy: Policy) -> list[Mismatch]:
    """Return each day on which two calendars differ: open or closed, or when."""
    known, told = {hours.day: hours for hours in ours}, {hours.day: hours for hours in theirs}
    return [
        Mismatch(MismatchKind.CALENDAR, day.isoformat(), _words(known.get(day)), _words(told.get(day)), policy)
        for day in sorted({*known, *told})
        if known.get(day) != told.get(day)
    ]


def _words(hours: Hours | None) -> str:
    return "closed" if hours is None else f"{hours.opens:%H:%M} to {hours.closes:%H:%M} UTC"


def _hours(payload: DayPayload) -> Hours:
    opens, closes = (
        datetime.combine(payload.date, _wall(text), ZONE).astimezone(UTC) for text in (payload.open, payload.close)
    )
    return Hours(payload.date, opens, closes)


def _wall(text: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError as error:
        raise Unavailable(f"Expected a time as HH:MM in the broker's calendar, was {text!r}") from error

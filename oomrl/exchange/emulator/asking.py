"""Query parameters of requests, checked: what is wrong is said with an Alpaca error body."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from oomrl.exchange.emulator.hours import at
from oomrl.exchange.emulator.market_data import Range
from oomrl.exchange.emulator.refusals import Refusal, malformed

Query = Mapping[str, str]

#: Instants beyond these are taken as these, so that no time zone leads out of the calendar.
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def bad(message: str) -> Refusal:
    """Return a refusal of a query parameter."""
    return Refusal(400, 40010001, message)


def body_of(raw: bytes) -> Any:
    """Return a JSON body with exact decimals. Raises `Refusal`."""
    try:
        return json.loads(raw, parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise malformed("request body format is invalid") from None


def whole(query: Query, name: str, default: int, least: int, most: int) -> int:
    """Return a whole number within bounds."""
    text = query.get(name)
    if text is None or text == "":
        return default
    digits = text.removeprefix("-")
    if not (digits.isdecimal() and digits.isascii() and len(digits) < 10):
        raise bad(f"invalid {name}: expected a whole number")
    value = int(text)
    if not least <= value <= most:
        raise bad(f"invalid {name}: expected {least} to {most}, was {value}")
    return value


def choice(query: Query, name: str, default: str, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words."""
    value = query.get(name) or default
    if value not in allowed:
        raise bad(f"invalid {name}: expected {', '.join(allowed)}, was {value!r}")
    return value


def flag(query: Query, name: str) -> bool:
    """Return a truth value, false where absent."""
    return choice(query, name, "false", ("true", "false", "True", "False", "1", "0")) in ("true", "True", "1")


def words(query: Query, name: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list, empty where absent."""
    return tuple(part.strip() for part in (query.get(name) or "").split(",") if part.strip())


def day(query: Query, name: str, default: date) -> date:
    """Return a day; an instant is taken by its date."""
    text = query.get(name)
    if not text:
        return default
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        raise bad(f"invalid {name}: expected YYYY-MM-DD") from None


def instant(query: Query, name: str, *, end: bool = False) -> datetime | None:
    """Return an aware UTC instant from RFC 3339 text or a day (its end in New York where `end`), None if absent."""
    text = query.get(name)
    if not text:
        return None
    try:
        if len(text) == 10:
            asked = min(max(date.fromisoformat(text), EARLIEST.date()), LATEST.date())
            return at(asked, time(23, 59, 59, 999999) if end else time(0))
        found = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        found = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        return min(max(found, EARLIEST), LATEST)
    except (ValueError, OverflowError):
        raise bad(f"invalid {name}: expected an RFC 3339 instant or a day") from None


def range_of(query: Query, symbols: tuple[str, ...], *, most: int, default: int) -> Range:
    """Return what a request for history asks for."""
    asked = Range(
        symbols=symbols,
        start=instant(query, "start"),
        end=instant(query, "end", end=True),
        ascending=choice(query, "sort", "asc", ("asc", "desc")) == "asc",
        limit=whole(query, "limit", default, 1, most),
        token=query.get("page_token") or None,
        to_day=len(query.get("end") or "") == 10,
    )
    if asked.start and asked.end and asked.start > asked.end:
        raise bad("invalid start: expected not after end")
    return asked


def symbols_of(query: Query) -> tuple[str, ...]:
    """Return the symbols that a data request must name."""
    found = words(query, "symbols")
    if not found:
        raise bad("symbols is required")
    return found


def _no_constant(text: str) -> Callable[[], None]:
    raise ValueError(text)

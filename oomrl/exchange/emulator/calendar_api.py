"""The clock and calendar endpoints of the trading API, in both versions."""

from __future__ import annotations

from datetime import datetime

from oomrl.domain.market import Hours
from oomrl.exchange.emulator.answers import Answer, Asked
from oomrl.exchange.emulator.asking import Query, bad, choice, day, words
from oomrl.exchange.emulator.hours import NEW_YORK
from oomrl.exchange.emulator.refusals import unprocessable
from oomrl.exchange.emulator.venue import Venue


def clock(venue: Venue, asked: Asked) -> Answer:
    now = venue.now
    return Answer(
        {
            "timestamp": _eastern(now),
            "is_open": venue.hours.current(now) is not None,
            "next_open": _eastern(venue.hours.next_open(now).opens),
            "next_close": _eastern(venue.hours.next_close(now).closes),
        }
    )


def calendar(venue: Venue, asked: Asked) -> Answer:
    days = _calendar_days(venue, asked.query)
    return Answer(
        [
            {
                "date": hours.day.isoformat(),
                "open": f"{hours.opens.astimezone(NEW_YORK):%H:%M}",
                "close": f"{hours.closes.astimezone(NEW_YORK):%H:%M}",
                "session_open": "0400",
                "session_close": "2000",
                "settlement_date": venue.hours.after(hours.day, 1).isoformat(),
            }
            for hours in days
        ]
    )


def clocks(venue: Venue, asked: Asked) -> Answer:
    """GET /v3/clock, for the two US exchanges."""
    now = venue.now
    current = venue.hours.current(now)
    markets = words(asked.query, "markets") or ("NYSE",)
    phase = "core" if current else "closed"
    until = current.closes if current else venue.hours.next_open(now).opens
    return Answer(
        {
            "clocks": [
                {
                    "market": _market(name),
                    "timestamp": _eastern(now),
                    "is_market_day": venue.hours.session(now.astimezone(NEW_YORK).date()) is not None,
                    "next_market_open": _eastern(venue.hours.next_open(now).opens),
                    "next_market_close": _eastern(venue.hours.next_close(now).closes),
                    "phase": phase,
                    "phase_until": _eastern(until),
                }
                for name in markets
            ]
        }
    )


def market_calendar(venue: Venue, asked: Asked) -> Answer:
    """GET /v3/calendar/{market}."""
    days = [
        {
            "date": hours.day.isoformat(),
            "core_start": _eastern(hours.opens),
            "core_end": _eastern(hours.closes),
            "settlement_date": venue.hours.after(hours.day, 1).isoformat(),
        }
        for hours in _calendar_days(venue, asked.query)
    ]
    return Answer({"market": _market(asked.path["market"]), "calendar": days})


def _calendar_days(venue: Venue, query: Query) -> tuple[Hours, ...]:
    if choice(query, "date_type", "TRADING", ("TRADING", "SETTLEMENT")) == "SETTLEMENT":
        raise unprocessable("date_type SETTLEMENT is not supported by this exchange")
    hours = venue.hours.hours
    first, last = day(query, "start", hours[0].day), day(query, "end", hours[-1].day)
    return venue.calendar(first, last)


MARKETS = {
    "NYSE": ("NYSE", "New York Stock Exchange"),
    "XNYS": ("NYSE", "New York Stock Exchange"),
    "NASDAQ": ("NASDAQ", "Nasdaq Stock Market"),
    "XNAS": ("NASDAQ", "Nasdaq Stock Market"),
}


def _market(name: str) -> dict[str, str]:
    if name not in MARKETS:
        raise bad(f"invalid market: expected {', '.join(MARKETS)}, was {name!r}")
    acronym, full = MARKETS[name]
    return {"acronym": acronym, "name": full, "timezone": "America/New_York"}


def _eastern(instant: datetime) -> str:
    return instant.astimezone(NEW_YORK).isoformat(timespec="microseconds")

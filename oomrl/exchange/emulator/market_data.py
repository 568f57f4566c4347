"""Market data: bars, trades and quotes of what has happened up to now, in pages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from oomrl.domain.market import ticks
from oomrl.exchange.emulator.hours import NEW_YORK, at, points_of
from oomrl.exchange.emulator.orders import stamp
from oomrl.exchange.emulator.refusals import Refusal, invalid, unprocessable
from oomrl.exchange.emulator.venue import Venue
from oomrl.exchange.matching import path_of

#: The share of the consolidated volume that the IEX feed sees.
IEX_SHARE = 0.025
FEEDS = ("iex", "sip", "otc", "boats")
LATEST_FEEDS = (*FEEDS, "delayed_sip", "overnight")
SIP_DELAY = timedelta(minutes=15)
ADJUSTMENTS = ("raw", "split", "dividend", "spin-off", "all")
MAX_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Range:
    """What a historical request asks for: symbols, start <= instant <= end, order, rows a page, where to go on.

    `to_day` says that the end was a day: it then means as much of that day as may be seen.
    """

    symbols: tuple[str, ...]
    start: datetime | None = None
    end: datetime | None = None
    ascending: bool = True
    limit: int = 1_000
    token: str | None = None
    to_day: bool = False


@dataclass(frozen=True, slots=True)
class Print:
    """One point of a session's path: the instant, the price in dollars, a quarter of the session's volume."""

    at: datetime
    price: float
    size: int
    point: int


class MarketData:
    """Answer market data requests from a venue. `free_plan` refuses consolidated data of the last 15 minutes, as
    the free plan does."""

    def __init__(self, venue: Venue, *, free_plan: bool = True) -> None:
        self.venue, self.free_plan = venue, free_plan

    # Historical

    def bars(self, asked: Range, timeframe: str, adjustment: str, feed: str) -> dict[str, Any]:
        """Return GET /v2/stocks/bars."""
        unit, count = _timeframe(timeframe)
        share = IEX_SHARE if feed == "iex" else 1.0
        end = self._end(asked, feed)
        kinds = frozenset(adjustment.split(","))
        if unknown := kinds - frozenset(ADJUSTMENTS):
            raise invalid(f"invalid adjustment: {min(unknown)}")

        def rows(symbol: str) -> Iterator[tuple[datetime, dict[str, Any]]]:
            if unit in ("Min", "T", "Hour", "H"):
                source = self._point_bars(symbol, share, asked, end)
            else:
                source = _grouped(self._daily_bars(symbol, kinds, share, end), unit, count)
            for instant, bar in source:
                if (asked.start is None or instant >= asked.start) and instant <= end:
                    yield instant, bar

        return self._paged(asked, "bars", rows)

    def trades(self, asked: Range, feed: str) -> dict[str, Any]:
        """Return GET /v2/stocks/trades: one trade at each point of the path."""
        share, end = (IEX_SHARE if feed == "iex" else 1.0), self._end(asked, feed)

        def rows(symbol: str) -> Iterator[tuple[datetime, dict[str, Any]]]:
            for found in self._prints(symbol, asked.start, end):
                yield found.at, _trade(found, share)

        return self._paged(asked, "trades", rows)

    def quotes(self, asked: Range, feed: str) -> dict[str, Any]:
        """Return GET /v2/stocks/quotes: one quote at each point of the path."""
        share, end = (IEX_SHARE if feed == "iex" else 1.0), self._end(asked, feed)

        def rows(symbol: str) -> Iterator[tuple[datetime, dict[str, Any]]]:
            for found in self._prints(symbol, asked.start, end):
                yield found.at, self._quote(found, share)

        return self._paged(asked, "quotes", rows)

    # Latest

    def latest_bar(self, symbol: str, feed: str) -> dict[str, Any] | None:
        found, share = self._last_print(symbol), self._latest_share(feed)
        return None if found is None else _point_bar(found, share)

    def latest_trade(self, symbol: str, feed: str) -> dict[str, Any] | None:
        found, share = self._last_print(symbol), self._latest_share(feed)
        return None if found is None else _trade(found, share)

    def latest_quote(self, symbol: str, feed: str) -> dict[str, Any] | None:
        found, share = self._last_print(symbol), self._latest_share(feed)
        return None if found is None else self._quote(found, share)

    def snapshot(self, symbol: str, feed: str) -> dict[str, Any] | None:
        """Return the latest trade, quote, minute bar, and the bars of today and of the session before."""
        found, share = self._last_print(symbol), self._latest_share(feed)
        if found is None:
            return None
        days = [bar for _, bar in self._daily_bars(symbol, frozenset({"raw"}), share, self.venue.now, last=2)]
        shot = {
            "latestTrade": _trade(found, share),
            "latestQuote": self._quote(found, share),
            "minuteBar": _point_bar(found, share),
            "dailyBar": days[-1],
        }
        if len(days) > 1:
            shot["prevDailyBar"] = days[-2]
        return shot

    # What there is

    def _end(self, asked: Range, feed: str) -> datetime:
        now = self.venue.now
        newest = now - SIP_DELAY if self.free_plan and feed == "sip" else now
        if asked.end is None:
            return newest
        if asked.end > newest and feed == "sip" and self.free_plan and not asked.to_day:
            raise unprocessable("subscription does not permit querying recent SIP data")
        return min(asked.end, newest)

    def _latest_share(self, feed: str) -> float:
        if feed == "sip" and self.free_plan:
            raise unprocessable("subscription does not permit querying recent SIP data")
        return IEX_SHARE if feed == "iex" else 1.0

    def _prints(self, symbol: str, start: datetime | None, end: datetime) -> Iterator[Print]:
        """Yield the points of a name's path between two instants, oldest first."""
        venue = self.venue
        board, number = venue.board, venue.board.index.get(symbol)
        if number is None:
            return
        columns = venue.tape.columns
        first = 0 if start is None else bisect_left(venue.tape.days, start.astimezone(NEW_YORK).date())
        for row in range(first, board.closed + (board.session is not None)):
            hours = venue.hours.session(venue.tape.days[row])
            bar = [float(columns[column][row, number]) for column in ("open", "high", "low", "close", "volume")]
            assert hours is not None
            if hours.opens > end:
                return
            if np.isnan(bar[0]):
                continue
            reached = 4 if row < board.closed else board.point + 1
            for point, instant in enumerate(points_of(hours)[:reached]):
                if (start is None or instant >= start) and instant <= end:
                    yield Print(instant, _path(bar)[point], int(bar[4]) // 4, point)

    def _last_print(self, symbol: str) -> Print | None:
        venue = self.venue
        board, number = venue.board, venue.board.index.get(symbol)
        if number is None:
            return None
        close = venue.tape.columns["close"][:, number]
        row = board.closed if symbol in board.row and board.point >= 0 else board.closed - 1
        while row >= 0 and np.isnan(close[row]):
            row -= 1
        if row < 0:
            return None
        hours = venue.hours.session(venue.tape.days[row])
        assert hours is not None
        return list(self._prints(symbol, hours.opens, venue.now))[-1]

    def _quote(self, found: Print, share: float) -> dict[str, Any]:
        half = float(self.venue.terms.friction.half_spread(np.array([found.price * 1e4]))[0]) / 1e4
        return {
            "t": stamp(found.at),
            "bx": "V",
            "bp": round(max(found.price - half, 0.0001), 4),
            "bs": max(1, int(found.size * share) // 100),
            "ax": "V",
            "ap": round(found.price + half, 4),
            "as": max(1, int(found.size * share) // 100),
            "c": ["R"],
            "z": "A",
        }

    def _point_bars(
        self, symbol: str, share: float, asked: Range, end: datetime
    ) -> Iterator[tuple[datetime, dict[str, Any]]]:
        for found in self._prints(symbol, asked.start, end):
            yield found.at, _point_bar(found, share)

    def _daily_bars(
        self, symbol: str, kinds: frozenset[str], share: float, until: datetime, last: int | None = None
    ) -> Iterator[tuple[datetime, dict[str, Any]]]:
        """Yield (midnight in New York, bar) of each session; the newest as far as it had gone at `until`."""
        venue = self.venue
        board, number = venue.board, venue.board.index.get(symbol)
        if number is None:
            return
        size = board.closed + (board.point >= 0)
        columns = {name: column[:size, number] for name, column in venue.tape.columns.items()}
        factor, shares = _factors(columns, kinds)
        rows = np.flatnonzero(~np.isnan(columns["close"]))
        for row in rows[-last:] if last else rows:
            bar = [float(columns[column][row]) for column in ("open", "high", "low", "close", "volume")]
            points = self._visible(int(row), until)
            if not points:
                continue
            if points < 4:
                seen = _path(bar)[:points]
                bar = [seen[0], max(seen), min(seen), seen[-1], bar[4] * points // 4]
            midnight = at(venue.tape.days[row], time(0))
            yield midnight, _bar(midnight, bar, float(factor[row]), share * float(shares[row]))

    def _visible(self, row: int, until: datetime) -> int:
        """Return how many points of a session's path had been reached at an instant."""
        board = self.venue.board
        if row < board.closed - 1:
            return 4
        hours = self.venue.hours.session(self.venue.tape.days[row])
        assert hours is not None
        reached = 4 if row < board.closed else board.point + 1
        return min(reached, sum(instant <= until for instant in points_of(hours)))

    def _paged(self, asked: Range, key: str, rows: Any) -> dict[str, Any]:
        """Return one page: `limit` rows over all symbols, sorted by symbol and then by time."""
        symbols = sorted(set(asked.symbols))
        place, skip = 0, 0
        if asked.token:
            name, _, count = asked.token.partition("|")
            if name not in symbols or not count.isdigit():
                raise invalid("invalid page_token")
            place, skip = symbols.index(name), int(count)
        page: dict[str, list[dict[str, Any]]] = {}
        left = asked.limit
        for symbol in symbols[place:]:
            found = [row for _, row in rows(symbol)]
            if not asked.ascending:
                found.reverse()
            if skip > len(found):
                raise invalid("invalid page_token")
            chosen = found[skip : skip + left]
            if chosen:
                page[symbol] = chosen
            left -= len(chosen)
            if skip + len(chosen) < len(found):
                return {key: page, "next_page_token": f"{symbol}|{skip + len(chosen)}", "currency": "USD"}
            skip = 0
        return {key: page, "next_page_token": None, "currency": "USD"}


def feed_of(value: str | None, *, latest: bool = False) -> str:
    """Return the feed that a request names; historical requests default to sip, latest ones to iex."""
    allowed = LATEST_FEEDS if latest else FEEDS
    feed = value or ("iex" if latest else "sip")
    if feed not in allowed:
        raise Refusal(400, 40010001, f"invalid feed: {feed}")
    return feed


def _timeframe(text: str) -> tuple[str, int]:
    for unit in ("Min", "T", "Hour", "H", "Day", "D", "Week", "W", "Month", "M"):
        count = text.removesuffix(unit)
        if text.endswith(unit) and count.isdecimal() and count.isascii() and 1 <= int(count[:4]) <= 59:
            return unit, int(count)
    raise Refusal(400, 40010001, f"invalid timeframe: {text}")


def _grouped(
    bars: Iterator[tuple[datetime, dict[str, Any]]], unit: str, count: int
) -> Iterator[tuple[datetime, dict[str, Any]]]:
    """Join daily bars into weeks (from Monday) or months; days pass as they are."""
    if unit in ("Day", "D"):
        if count != 1:
            raise Refusal(400, 40010001, "day bars come one a day")
        yield from bars
        return
    current: list[tuple[date, dict[str, Any]]] = []
    for midnight, bar in bars:
        day = midnight.astimezone(NEW_YORK).date()
        key = day - timedelta(days=day.weekday()) if unit in ("Week", "W") else _months(day, count)
        if current and current[0][0] != key:
            yield _joined(current)
            current = []
        current.append((key, bar))
    if current:
        yield _joined(current)


def _months(day: date, count: int) -> date:
    return date(day.year, (day.month - 1) // count * count + 1 if count <= 12 else 1, 1)


def _joined(group: list[tuple[date, dict[str, Any]]]) -> tuple[datetime, dict[str, Any]]:
    bars = [bar for _, bar in group]
    midnight = at(group[0][0], time(0))
    volume = sum(bar["v"] for bar in bars)
    worth = sum(bar["vw"] * bar["v"] for bar in bars)
    return midnight, {
        "t": stamp(midnight),
        "o": bars[0]["o"],
        "h": max(bar["h"] for bar in bars),
        "l": min(bar["l"] for bar in bars),
        "c": bars[-1]["c"],
        "v": volume,
        "n": sum(bar["n"] for bar in bars),
        "vw": round(worth / volume, 6) if volume else bars[-1]["c"],
    }


def _factors(columns: dict[str, Any], kinds: frozenset[str]) -> tuple[Any, Any]:
    """Return what each session's prices and volumes are multiplied with, for actions known by now. (sessions,)"""
    size = len(columns["close"])
    price, volume = np.ones(size), np.ones(size)
    if "raw" in kinds or not size:
        return price, volume
    close = columns["close"]
    factor, shares, after = 1.0, 1.0, None
    for row in range(size - 1, -1, -1):
        if after is not None and not np.isnan(close[row]):
            split, dividend = columns["split"][after], columns["dividend"][after]
            if kinds & {"split", "all"} and split != 1:
                factor /= split
                shares *= split
            if kinds & {"dividend", "all"} and dividend > 0:
                factor *= 1 - dividend * split / close[row] if dividend * split < close[row] else 1.0
        price[row], volume[row] = factor, shares
        if not np.isnan(close[row]):
            after = row
    return price, volume


def _bar(instant: datetime, bar: list[float], factor: float, share: float) -> dict[str, Any]:
    opened, high, low, close = (round(value * factor, 4) for value in bar[:4])
    volume = int(round(bar[4] * share))
    return {
        "t": stamp(instant),
        "o": opened,
        "h": high,
        "l": low,
        "c": close,
        "v": volume,
        "n": volume // 100,
        "vw": round((opened + high + low + close) / 4, 6),
    }


def _point_bar(found: Print, share: float) -> dict[str, Any]:
    return _bar(found.at.replace(second=0, microsecond=0), [found.price] * 4 + [float(found.size)], 1.0, share)


def _trade(found: Print, share: float) -> dict[str, Any]:
    return {
        "t": stamp(found.at),
        "x": "V",
        "p": found.price,
        "s": max(1, min(int(found.size * share), 2**32 - 1)),
        "c": ["@"],
        "i": int(found.at.timestamp()) * 10 + found.point,
        "z": "A",
    }


def _path(bar: list[float]) -> list[float]:
    return [float(price) / 1e4 for price in path_of(*ticks(np.array(bar[:4])))]

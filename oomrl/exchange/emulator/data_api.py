"""The market data API: what each endpoint answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oomrl.exchange.emulator.answers import Answer
from oomrl.exchange.emulator.asking import Query, choice, instant, range_of, symbols_of, whole, words
from oomrl.exchange.emulator.corporate_actions import corporate_actions
from oomrl.exchange.emulator.market_data import MAX_ROWS, MarketData, Range, feed_of
from oomrl.exchange.emulator.refusals import not_found

Answering = Callable[[MarketData, Query, dict[str, str]], Answer]
Finding = Callable[[MarketData, str, str], dict[str, Any] | None]

EXCHANGES = {"V": "IEX", "N": "New York Stock Exchange", "Q": "NASDAQ OMX"}


def historical(kind: str) -> tuple[Answering, Answering]:
    """Return the handlers of many symbols and of one for bars, trades or quotes."""

    def page(data: MarketData, query: Query, symbols: tuple[str, ...]) -> dict[str, Any]:
        asked, feed = range_of(query, symbols, most=MAX_ROWS, default=1_000), feed_of(query.get("feed"))
        if kind == "bars":
            timeframe, adjustment = query.get("timeframe") or "1Day", query.get("adjustment") or "raw"
            return data.bars(asked, timeframe, adjustment, feed)
        return data.trades(asked, feed) if kind == "trades" else data.quotes(asked, feed)

    def many(data: MarketData, query: Query, path: dict[str, str]) -> Answer:
        return Answer(page(data, query, symbols_of(query)))

    def one(data: MarketData, query: Query, path: dict[str, str]) -> Answer:
        symbol = path["symbol"]
        found = page(data, query, (symbol,))
        return Answer({**found, kind: found[kind].get(symbol, []), "symbol": symbol})

    return many, one


def latest(plural: str, singular: str, find: Finding) -> tuple[Answering, Answering]:
    """Return the handlers of many symbols and of one for the latest of something; names without any are left out."""

    def many(data: MarketData, query: Query, path: dict[str, str]) -> Answer:
        symbols, feed = symbols_of(query), feed_of(query.get("feed"), latest=True)
        found = {symbol: find(data, symbol, feed) for symbol in symbols}
        shown = {symbol: value for symbol, value in found.items() if value is not None}
        return Answer({plural: shown, "currency": "USD"} if plural else shown)

    def one(data: MarketData, query: Query, path: dict[str, str]) -> Answer:
        symbol = path["symbol"]
        found = find(data, symbol, feed_of(query.get("feed"), latest=True))
        if found is None:
            raise not_found(f"no data found for {symbol}")
        return Answer({**({singular: found} if singular else found), "symbol": symbol, "currency": "USD"})

    return many, one


def actions(data: MarketData, query: Query, path: dict[str, str]) -> Answer:
    asked = Range(
        words(query, "symbols"),
        instant(query, "start"),
        instant(query, "end", end=True),
        choice(query, "sort", "asc", ("asc", "desc")) == "asc",
        whole(query, "limit", 100, 1, 1_000),
        query.get("page_token") or None,
    )
    kinds = words(query, "types")
    return Answer(corporate_actions(data.venue, asked, frozenset(kinds) if kinds else None))


def exchanges(data: MarketData, query: Query, path: dict[str, str]) -> Answer:
    return Answer(EXCHANGES)


def _routes() -> tuple[tuple[str, Answering], ...]:
    out: list[tuple[str, Answering]] = []
    latests = (
        ("bars/latest", latest("bars", "bar", MarketData.latest_bar)),
        ("trades/latest", latest("trades", "trade", MarketData.latest_trade)),
        ("quotes/latest", latest("quotes", "quote", MarketData.latest_quote)),
    )
    snapshots = latest("", "", MarketData.snapshot)
    for name, (many, one) in (*((kind, historical(kind)) for kind in ("bars", "trades", "quotes")), *latests):
        out += [(f"/v2/stocks/{name}", many), (f"/v2/stocks/{{symbol}}/{name}", one)]
    out += [("/v2/stocks/snapshots", snapshots[0]), ("/v2/stocks/{symbol}/snapshot", snapshots[1])]
    out += [("/v1/corporate-actions", actions), ("/v2/stocks/meta/exchanges", exchanges)]
    return tuple(out)


#: path, handler; all are GET.
ROUTES = _routes()

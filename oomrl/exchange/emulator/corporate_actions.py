"""Corporate actions as the market data API shows them: on their ex-date, never before."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np

from oomrl.exchange.emulator.hours import NEW_YORK
from oomrl.exchange.emulator.market_data import Range
from oomrl.exchange.emulator.orders import NAMESPACE
from oomrl.exchange.emulator.refusals import invalid
from oomrl.exchange.emulator.venue import Venue


def corporate_actions(venue: Venue, asked: Range, kinds: frozenset[str] | None) -> dict[str, Any]:
    """Return GET /v1/corporate-actions: dividends and splits with an ex-date up to now."""
    first = asked.start.astimezone(NEW_YORK).date() if asked.start else date.min
    last = asked.end.astimezone(NEW_YORK).date() if asked.end else date.max
    rows = [
        (group, entry)
        for day, group, entry in _actions(venue, asked.symbols)
        if first <= day <= last and (kinds is None or group[:-1] in kinds)
    ]
    if not asked.ascending:
        rows.reverse()
    start = _offset(asked.token)
    page: dict[str, list[dict[str, Any]]] = {}
    for group, entry in rows[start : start + asked.limit]:
        page.setdefault(group, []).append(entry)
    more = start + asked.limit < len(rows)
    return {"corporate_actions": page, "next_page_token": str(start + asked.limit) if more else None}


def _actions(venue: Venue, symbols: tuple[str, ...]) -> Iterator[tuple[date, str, dict[str, Any]]]:
    known = venue.board.closed + (venue.board.session is not None)
    split, dividend = venue.tape.columns["split"][:known], venue.tape.columns["dividend"][:known]
    for row, number in zip(*np.nonzero((split > 0) & (split != 1) | (dividend > 0)), strict=True):
        symbol, day = venue.tape.symbols[number], venue.tape.days[row]
        if symbols and symbol not in symbols:
            continue
        common = {"symbol": symbol, "process_date": day.isoformat(), "ex_date": day.isoformat()}
        common["id"] = str(uuid.uuid5(NAMESPACE, f"ca/{symbol}/{day}"))
        ratio, cash = float(split[row, number]), float(dividend[row, number])
        if ratio != 1.0:
            exact = Fraction(ratio).limit_denominator(1000)
            rates = {"new_rate": exact.numerator, "old_rate": exact.denominator}
            if ratio > 1:
                yield day, "forward_splits", {**common, **rates, "cusip": _cusip(symbol)}
            else:
                cusips = {"old_cusip": _cusip(symbol), "new_cusip": _cusip(symbol)}
                yield day, "reverse_splits", {**common, **rates, **cusips}
        if cash > 0:
            identity = str(uuid.uuid5(NAMESPACE, f"ca/{symbol}/{day}/cash"))
            facts = {"rate": cash, "special": False, "foreign": False, "cusip": _cusip(symbol), "id": identity}
            dates = {"record_date": day.isoformat(), "payable_date": day.isoformat()}
            yield day, "cash_dividends", {**common, **facts, **dates}


def _offset(token: str | None) -> int:
    if not token:
        return 0
    if not (token.isdecimal() and token.isascii() and len(token) < 9):
        raise invalid("invalid page_token")
    return int(token)


def _cusip(symbol: str) -> str:
    return uuid.uuid5(NAMESPACE, f"cusip/{symbol}").hex[:9].upper()

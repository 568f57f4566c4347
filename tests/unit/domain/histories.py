"""Build session records and names for tests of loss, causes and diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import numpy as np

from oomrl.domain.capital import Capital, Thresholds, found, mark
from oomrl.domain.loss import PARTS, DayRecord

FIRST = date(2004, 1, 5)


def weekdays(count: int, first: date = FIRST) -> list[date]:
    days: list[date] = []
    day = first
    while len(days) < count:
        if day.weekday() < 5:
            days.append(day)
        day += timedelta(days=1)
    return days


def history(
    count: int,
    seed: int = 1,
    *,
    beta: float = 1.0,
    drift: float = 0.0,
    selection_sd: float = 0.004,
    turnover: float = 0.02,
    bps: float = 5.0,
    equity: float = 1_000_000.0,
) -> list[DayRecord]:
    """Return sessions whose P&L is market, selection and friction, friction all spread."""
    rng = np.random.default_rng(seed)
    records = []
    for day in weekdays(count):
        market = float(rng.normal(0.0003, 0.01))
        selection = float(rng.normal(drift, selection_sd))
        parts = dict.fromkeys(PARTS, 0.0)
        parts["market"] = beta * market * equity
        parts["selection"] = selection * equity
        parts["spread"] = -2 * turnover * equity * bps / 1e4
        pnl = sum(parts.values())
        equity += pnl
        records.append(DayRecord(day, equity, 0.0, pnl, market, parts, turnover, bps))
    return records


def changed(record: DayRecord, parts: Mapping[str, float], **others: object) -> DayRecord:
    """Add dollars to parts of a session, and to its P&L and equity."""
    more = {name: record.parts[name] + parts.get(name, 0.0) for name in PARTS}
    added = sum(parts.values())
    return replace(record, parts=more, pnl=record.pnl + added, equity=record.equity + added, **others)  # type: ignore[arg-type]


def path(records: list[DayRecord], thresholds: Thresholds) -> Iterator[Capital]:
    """Fold records into the capital at each close; the first endowment is the equity before them."""
    start = Decimal(repr(round(records[0].equity - records[0].pnl, 2)))
    capital = found(records[0].day - timedelta(days=1), start)
    for record in records:
        capital = mark(capital, record.day, Decimal(repr(round(record.equity, 2))), thresholds)
        yield capital


def marked(records: list[DayRecord], thresholds: Thresholds) -> Capital:
    """Return the capital at the last close."""
    return list(path(records, thresholds))[-1]

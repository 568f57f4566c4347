"""Download daily bars and corporate actions into the tape format. What is on a tape already is never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
from alpaca.data.historical.corporate_actions import CorporateActionsClient

from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.alpaca.payloads import ActionPayload, BarPayload, aware, mapping, readable
from oomrl.adapters.alpaca.rest import Rest
from oomrl.errors import Mistake, Refused

NEW_YORK = ZoneInfo("America/New_York")
#: Names in one request, and rows in one answer over all of them.
SYMBOLS, ROWS = 100, 10_000
SPLITS = ("forward_splits", "reverse_splits", "unit_splits")


@dataclass(frozen=True, slots=True)
class Downloaded:
    """What a download brought: rows, the names without any, first and last day."""

    rows: int
    missing: tuple[str, ...]
    first: date | None
    last: date | None


def download(
    broker: AlpacaBrokerage,
    place: Path,
    symbols: Sequence[str],
    first: date,
    last: date,
    feed: str = "sip",
    told: Callable[[str], None] = lambda line: None,
) -> Downloaded:
    """Add the sessions of first <= day <= last that come after what the file holds. Raises `Refused` for a feed that
    sees a part of the volume alone: every liquidity figure would be wrong."""
    if feed != "sip":
        raise Refused(
            f"Expected the consolidated feed (sip), was {feed}: it sees a few per cent of the volume, and limits by "
            "volume would be wrong. Daily bars of sip are free once they are 15 minutes old."
        )
    known = _known(place)
    if known is not None and known.num_rows:
        newest = max(known["date"].to_pylist())
        first = max(first, newest + timedelta(days=1))
    rows: list[dict[str, Any]] = []
    for start in range(0, len(symbols), SYMBOLS):
        some = symbols[start : start + SYMBOLS]
        rows += _rows(broker, some, first, last, feed) if first <= last else []
        told(f"{min(start + SYMBOLS, len(symbols))} of {len(symbols)} names, {len(rows)} rows")
    found = {row["symbol"] for row in rows}
    missing = tuple(symbol for symbol in symbols if symbol not in found)
    if rows:
        _write(place, known, rows)
    days = [row["date"] for row in rows]
    return Downloaded(len(rows), missing, min(days, default=None), max(days, default=None))


def _rows(broker: AlpacaBrokerage, symbols: Sequence[str], first: date, last: date, feed: str) -> list[dict[str, Any]]:
    dividends, splits = _actions(broker, symbols, first, last)
    query = {
        "symbols": ",".join(symbols),
        "timeframe": "1Day",
        "start": first.isoformat(),
        "end": (last + timedelta(days=1)).isoformat(),
        "adjustment": "raw",
        "feed": feed,
        "limit": ROWS,
    }
    rows: dict[tuple[str, date], dict[str, Any]] = {}
    for answer in _pages(broker.data, "/stocks/bars", query):
        for symbol, bars in mapping(answer.get("bars") or {}).items():
            for bar in readable(BarPayload, bars):
                day = aware(bar.t).astimezone(NEW_YORK).date()
                if first <= day <= last:
                    rows[symbol, day] = {
                        "symbol": symbol,
                        "date": day,
                        "open": float(bar.o),
                        "high": float(bar.h),
                        "low": float(bar.l),
                        "close": float(bar.c),
                        "volume": float(bar.v),
                        "dividend": float(dividends.get((symbol, day), Decimal(0))),
                        "split": float(splits.get((symbol, day), Decimal(1))),
                    }
    return [rows[key] for key in sorted(rows)]


Events = dict[tuple[str, date], Decimal]


def _actions(broker: AlpacaBrokerage, symbols: Sequence[str], first: date, last: date) -> tuple[Events, Events]:
    """Return cash dividends a share and split ratios, by name and ex-date."""
    client = CorporateActionsClient(*broker.keys, raw_data=True, url_override=broker.data_url)
    rest = Rest(client, broker.data.timer, broker.allowance, broker.data.patience)
    query = {"symbols": ",".join(symbols), "start": first.isoformat(), "end": last.isoformat(), "limit": 1_000}
    dividends: Events = {}
    splits: Events = {}
    try:
        for answer in _pages(rest, "/corporate-actions", query):
            kinds = mapping(answer.get("corporate_actions") or {})
            for action in readable(ActionPayload, kinds.get("cash_dividends") or []):
                if action.rate is not None:
                    key = action.symbol, action.ex_date
                    dividends[key] = dividends.get(key, Decimal(0)) + action.rate
            for kind in SPLITS:
                for action in readable(ActionPayload, kinds.get(kind) or []):
                    if action.new_rate and action.old_rate:
                        splits[action.symbol, action.ex_date] = action.new_rate / action.old_rate
    finally:
        rest.close()
    return dividends, splits


def _pages(rest: Rest, path: str, query: dict[str, Any]) -> Iterable[Any]:
    token = None
    while True:
        answer = mapping(rest.get(path, query if token is None else {**query, "page_token": token}))
        yield answer
        token = answer.get("next_page_token")
        if not token:
            return


def _known(place: Path) -> pa.Table | None:
    if not place.exists():
        return None
    try:
        return pq.read_table(place)
    except (OSError, pa.ArrowException) as error:
        raise Mistake(f"Expected a tape at {place} to add to, could not read it: {error}") from error


def _write(place: Path, known: pa.Table | None, rows: list[dict[str, Any]]) -> None:
    """Write the whole file anew under another name first, so that a kill leaves the old one."""
    fresh = pa.Table.from_pylist(rows)
    if known is not None:
        fresh = pa.concat_tables([known.select(fresh.column_names).cast(fresh.schema), fresh])
    fresh = fresh.replace_schema_metadata({"source": "alpaca", "feed": "sip"})
    half = place.with_name(f".{place.name}.half")
    pq.write_table(fresh, half)
    half.replace(place)

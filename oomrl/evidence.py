"""Evidence of a loss: what each name did to the account over the window, its costliest orders, and the code behind.

Reads session records and source text; nothing of the strategy is run here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

import numpy as np

from oomrl.domain.account import SessionRecord
from oomrl.domain.attribution import ORDER_PARTS, PARTS
from oomrl.domain.causes import NameRecord, Role, Site
from oomrl.domain.diagnostic import LogLine, Shortfall
from oomrl.domain.observed import Bar
from oomrl.domain.shortfall import shortfall
from oomrl.domain.signal import Declared, SignalFacts, growth_of, signal_facts
from oomrl.domain.trading import TargetPortfolio

#: What a module is for, by the words that its name holds. A strategy of another layout keeps its own words.
ROLES: Mapping[str, Role] = {
    "universe": Role.UNIVERSE,
    "feature": Role.SIGNAL,
    "signal": Role.SIGNAL,
    "factor": Role.SIGNAL,
    "rank": Role.SIGNAL,
    "select": Role.SELECTION,
    "siz": Role.SIZING,
    "weight": Role.SIZING,
    "portfolio": Role.SIZING,
    "liquid": Role.LIQUIDITY,
    "execution": Role.LIQUIDITY,
    "order": Role.LIQUIDITY,
    "return": Role.ACCOUNTING,
    "history": Role.ACCOUNTING,
}


def within(records: Iterable[SessionRecord], first: date, last: date) -> list[SessionRecord]:
    """Return the records of a window, both ends included."""
    return [record for record in records if first <= record.day <= last]


def names_of(window: Sequence[SessionRecord], symbols: Sequence[str]) -> list[NameRecord]:
    """Sum up each name's parts, trades and sizes over a window; names that did nothing are left out."""
    size = len(symbols)
    parts, traded, participation = np.zeros((len(PARTS), size)), np.zeros(size), np.zeros(size)
    weight, unfilled, orders = np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.int64)
    for record in window:
        by_name = record.decomposition.by_name
        parts[:, : by_name.shape[1]] += by_name
        held = record.shares * record.bar.close[: len(record.shares)] / max(float(record.equity), 0.01)
        np.maximum.at(weight, np.arange(len(held)), np.clip(np.nan_to_num(held), 0.0, 1.0))
        batch, fills = record.execution.orders, record.execution.fills
        if not len(batch):
            continue
        rows = record.order_rows
        volume, close = record.bar.volume[rows], record.bar.close[rows]
        asked = np.where(volume > 0, np.abs(batch.shares) / np.maximum(volume, 1.0), 1.0)
        np.maximum.at(participation, rows, np.minimum(asked, 1.0))
        np.add.at(orders, rows, 1)
        np.add.at(unfilled, rows, np.abs(record.execution.unfilled) * close)
        np.add.at(traded, rows[fills.order], np.abs(fills.cents) / 100)
    active = np.flatnonzero((parts != 0).any(axis=0) | (orders > 0))
    return [
        NameRecord(
            symbol=symbols[n],
            parts=dict(zip(PARTS, parts[:, n].tolist(), strict=True)),
            traded=float(traded[n]),
            participation=float(participation[n]),
            weight=float(weight[n]),
            unfilled=float(unfilled[n]),
            orders=int(orders[n]),
        )
        for n in active
    ]


def shortfall_of(window: Sequence[SessionRecord]) -> Shortfall:
    """Sum up the implementation shortfall of a window's orders."""
    measured = [shortfall(r.execution, r.bar, r.order_rows) for r in window if len(r.execution.orders)]
    costs = ("delay", "path", "spread", "impact", "fees", "opportunity", "total", "against_arrival", "against_close")
    sums = {name: sum(float(getattr(one, name).sum()) for one in measured) for name in (*costs, "notional")}
    return Shortfall(
        orders=sum(len(one.notional) for one in measured),
        bps=round(sums["total"] / sums["notional"] * 1e4, 2) if sums["notional"] else 0.0,
        **{name: round(value, 2) for name, value in sums.items()},
    )


def costly_orders(window: Sequence[SessionRecord], most: int = 40) -> list[LogLine]:
    """Return the orders whose fills cost most (delay, waiting, spread, impact, fees), the costliest first."""
    lines: list[tuple[float, LogLine]] = []
    counted = [ORDER_PARTS.index(name) for name in ("delay", "cash_drag", "spread", "impact", "fees")]
    for record in window:
        batch, execution = record.execution.orders, record.execution
        if not len(batch):
            continue
        cost = -record.decomposition.by_order[:, counted].sum(axis=1)
        for row in np.argsort(-cost, kind="stable")[:most]:
            symbol, shares = batch.symbols[row], float(batch.shares[row])
            mine = np.flatnonzero(execution.fills.order == row)
            done = np.abs(execution.fills.shares[mine])
            price = float(execution.fills.price[mine] @ done / done.sum()) if len(mine) else 0.0
            line = LogLine(
                day=record.day,
                symbol=symbol,
                side="buy" if shares > 0 else "sell",
                shares=abs(shares),
                price=round(price, 4),
                cost=round(float(cost[row]), 2),
                participation=0.0,
                unfilled=abs(float(execution.unfilled[row])),
                note=batch.reasons[row],
            )
            lines.append((float(cost[row]), line))
        lines = sorted(lines, key=lambda pair: -pair[0])[:most]
    return [line for _, line in lines]


def signal_of(
    records: Iterable[SessionRecord], bars: Sequence[Bar], symbols: Sequence[str], parameters: Mapping[str, object]
) -> SignalFacts | None:
    """Compare the targets that were decided with the declared signal; None where nothing can be said."""
    declared = Declared.read(parameters)
    if declared is None:
        return None
    place = {bar.day: number for number, bar in enumerate(bars)}
    rows = {symbol: number for number, symbol in enumerate(symbols)}
    decisions = []
    for record in records:
        if record.day in place and isinstance(record.decision, TargetPortfolio):
            weights = np.zeros(len(symbols))
            for symbol, weight in record.decision.weights.items():
                weights[rows[symbol]] = weight
            decisions.append((place[record.day], weights))
    return signal_facts(decisions, growth_of([b.returns for b in bars], [b.present for b in bars]), declared)


def sites_of(tree: Mapping[str, bytes]) -> tuple[Site, ...]:
    """Return the functions of the strategy's source by the role of their module; the source is parsed, never run."""
    found: list[Site] = []
    for path, data in sorted(tree.items()):
        name = path.rsplit("/", 1)[-1]
        if not path.startswith("src/") or not name.endswith(".py"):
            continue
        role = next((role for word, role in ROLES.items() if word in name), None)
        if role is None:
            continue
        try:
            module = ast.parse(data)
        except (SyntaxError, ValueError):
            continue
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found.append(Site(role, path, node.name))
    found.append(Site(Role.CADENCE, "strategy.toml", "cadence"))
    return tuple(found)

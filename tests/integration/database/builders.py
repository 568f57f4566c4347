"""Records that fit together, made from a few numbers."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np

from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.market import COLUMNS, Session
from oomrl.domain.records import Decided, Mark, Run, SessionRecord
from oomrl.domain.trading import Execution, Fills, LiquidityPlan, Orders, TargetPortfolio, UnfilledCause

RUN = "run-1"
AT = datetime(2020, 1, 2, 21, 0, tzinfo=UTC)
FIRST = date(2020, 1, 2)


def run(name: str = RUN) -> Run:
    return Run(name, "simulate", {"cash": 1.5, "names": ["A", "B"]}, 7, "tape", AT)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def session(number: int, names: int = 3) -> Session:
    random = np.random.default_rng(number)
    columns = {name: random.random(names) for name in COLUMNS}
    columns["close"][0] = np.nan
    return Session(day(number), tuple(f"S{at}" for at in range(names)), columns, benchmark=0.1 + number)


def orders(number: int, count: int = 4) -> Orders:
    shares = np.array([(-1) ** at * (at + 1.5) for at in range(count)])
    return Orders(
        decided_on=day(number),
        ids=tuple(f"{day(number)}-{at:03d}" for at in range(count)),
        symbols=tuple(f"S{at % 3}" for at in range(count)),
        shares=shares,
        limit=np.where(np.arange(count) % 2, np.nan, 10.1234),
        participation=np.full(count, 0.1),
        reasons=tuple(f"reason {at}" for at in range(count)),
    )


def execution(number: int, batch: Orders) -> Execution:
    count = len(batch)
    rows = np.array([row for row in range(count - 1) for _ in range(2)], dtype=np.int64)
    halves = batch.shares[rows] / 2
    n = len(rows)
    unfilled = np.zeros(count)
    unfilled[-1] = batch.shares[-1]
    return Execution(
        day=day(number),
        orders=batch,
        fills=Fills(
            order=rows,
            shares=halves,
            price=np.full(n, 10.1234),
            reference=np.full(n, 10.12),
            open=np.full(n, 10.1),
            spread=np.full(n, 0.002),
            impact=np.full(n, 0.0014),
            cents=np.rint(-halves * 1012.34).astype(np.int64),
        ),
        commission=np.full(n, 35, dtype=np.int64),
        regulatory=np.full(n, 2, dtype=np.int64),
        unfilled=unfilled,
        causes=tuple([UnfilledCause.NONE] * (count - 1) + [UnfilledCause.PARTICIPATION]),
    )


def entries(number: int) -> tuple[Entry, ...]:
    return (
        Entry(f"{day(number)}:buy", day(number), Kind.BUY, Book.BOTH, Decimal("-10.12"), "S0", Decimal("1.5")),
        Entry(f"{day(number)}:fee", day(number), Kind.MODEL_BILL, Book.ECONOMIC, Decimal("-0.03"), note="offline"),
    )


def record(number: int) -> SessionRecord:
    """Return session `number`: it works the orders of the one before and decides its own."""
    return SessionRecord(
        mark=Mark(
            day=day(number),
            equity=Decimal("1000.00") + number,
            cash=Decimal("10.50"),
            broker_cash=Decimal("10.53"),
            pnl=Decimal("1.00"),
            benchmark=0.001,
            drawdown=0.1,
            parts={"market": Decimal("0.75"), "selection": Decimal("0.25")},
            turnover=0.2,
            friction=Decimal("0.11"),
        ),
        session=session(number),
        execution=execution(number, orders(number - 1)) if number else None,
        decided=Decided(
            day(number),
            "abc",
            TargetPortfolio({"S0": 0.5}, {"S0": LiquidityPlan(0.1, 2, 50.0)}, {"S0": "ranks well"}),
        ),
        orders=orders(number),
        live_on=day(number + 1),
        entries=entries(number),
        checkpoint={"number": number, "cash": "10.50"},
    )

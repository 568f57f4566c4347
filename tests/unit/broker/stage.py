"""An order path over the fake brokerage, with everything that tests turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np

from oomrl.adapters.journal import MemoryJournal
from oomrl.domain.market import COLUMNS, Session
from oomrl.domain.reconciliation import Mismatch, Policies
from oomrl.domain.trading import AccountRules, Orders
from oomrl.domain.working import Tactics
from oomrl.exchange.friction import Friction
from oomrl.order_path import Opening, OrderPath
from oomrl.testing.brokerage import FakeBrokerage
from oomrl.testing.clocks import SteppedTimer, Weekdays

MONDAY = date(2010, 1, 4)
TUESDAY = date(2010, 1, 5)
AFTER_CLOSE = datetime(2010, 1, 4, 21, 30, tzinfo=UTC)
PAPER = AccountRules(pays_dividends=False, charges_fees=False, applies_splits=False)
PRICES = {
    "AA": (Decimal("10.00"), Decimal("10.02")),
    "BB": (Decimal("55.10"), Decimal("55.20")),
    "CC": (Decimal("99.90"), Decimal("100.10")),
}


def orders(rows: Mapping[str, int], limits: Mapping[str, float] | None = None, day: date = MONDAY) -> Orders:
    """Return a batch of signed shares by symbol, sales first as the service sends them."""
    names = sorted(rows, key=lambda symbol: rows[symbol] > 0)
    return Orders(
        day,
        tuple(f"r0-{day:%Y%m%d}-{symbol}-{'b' if rows[symbol] > 0 else 's'}-0" for symbol in names),
        tuple(names),
        np.array([float(rows[symbol]) for symbol in names]),
        np.array([(limits or {}).get(symbol, np.nan) for symbol in names]),
        np.ones(len(names)),
        ("",) * len(names),
    )


def bars(day: date = TUESDAY, volume: float = 1e6) -> Session:
    """Return a session at about the fake's prices."""
    prices = np.array([float(bid) for bid, _ in PRICES.values()])
    values = {column: prices.copy() for column in COLUMNS}
    values |= {"volume": np.full(3, volume), "dividend": np.zeros(3), "split": np.ones(3), "tradable": np.ones(3)}
    return Session(day, tuple(PRICES), values)


@dataclass
class Desk:
    """The path and what is around it."""

    path: OrderPath
    broker: FakeBrokerage
    journal: MemoryJournal
    timer: SteppedTimer
    alerts: list[Mismatch] = field(default_factory=list)


def desk(
    tactics: Tactics | None = None,
    policies: Policies | None = None,
    opening: Opening | None = None,
    broker: FakeBrokerage | None = None,
    journal: MemoryJournal | None = None,
    held: Mapping[str, int] | None = None,
) -> Desk:
    """Return a path whose broker has 100,000 dollars and some shares that the opening knows."""
    timer = SteppedTimer(AFTER_CLOSE) if broker is None else broker.timer
    assert isinstance(timer, SteppedTimer)
    if broker is None:
        broker = FakeBrokerage(timer, Decimal(100_000), dict(PRICES))
        broker.shares = {symbol: Decimal(shares) for symbol, shares in (held or {}).items()}
    journal = journal or MemoryJournal()
    alerts: list[Mismatch] = []
    path = OrderPath(
        brokerage=broker,
        journal=journal,
        timer=timer,
        calendar=Weekdays(),
        opening=opening or Opening(MONDAY, broker.money, dict(broker.shares)),
        costs=Friction(),
        rules=PAPER,
        tactics=tactics or Tactics(),
        policies=policies or Policies(),
        alert=alerts.append,
    )
    return Desk(path, broker, journal, timer, alerts)

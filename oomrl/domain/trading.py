"""Decisions, orders and fills, as records of arrays: one row an order, one row a fill.

Arrays are float64 (shares, dollars) or int64 (cents) inside the engine; `Order` and `Fill` are the Decimal
records that cross to ledgers, brokers and stores. `Orders.record` and `Fills.record` are that crossing point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from oomrl.domain.market import Floats

Ints = NDArray[np.int64]

CENT = Decimal("0.01")


class Side(StrEnum):
    BUY = "buy"
    SELL = "sell"


class UnfilledCause(StrEnum):
    """Why shares of an order stayed unfilled at the end of its session."""

    NONE = "none"
    PARTICIPATION = "participation"
    LIMIT_PRICE = "limit_price"
    CASH = "cash"
    NOT_TRADED = "not_traded"


@dataclass(frozen=True, slots=True)
class LiquidityPlan:
    """Say how one order may take liquidity.

    `max_participation` is a share of the session's volume (0..1), `sessions` over how many sessions the order
    may work, `limit_bps` the collar around the decision close in basis points (None, or from 10,000 on:
    market order).
    """

    max_participation: float = 1.0
    sessions: int = 1
    limit_bps: float | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Decide to leave the target as it is."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class TargetPortfolio:
    """Decide target weights (fractions of economic equity; the rest is cash), by symbol."""

    weights: Mapping[str, float]
    plan: Mapping[str, LiquidityPlan] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


Decision = Hold | TargetPortfolio


@dataclass(frozen=True, slots=True)
class Portfolio:
    """What the strategy is told of its account before it decides: economic equity, cash, shares by symbol."""

    day: date
    equity: float
    cash: float
    shares: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Order:
    """One order at the edge of the engine."""

    client_order_id: str
    symbol: str
    side: Side
    qty: Decimal
    limit_price: Decimal | None
    decided_on: date
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Fill:
    """One execution at the edge of the engine. `amount` is qty * price in whole cents, always positive."""

    client_order_id: str
    symbol: str
    side: Side
    qty: Decimal
    price: Decimal
    amount: Decimal
    day: date
    sequence: int


@dataclass(frozen=True, slots=True, eq=False)
class Orders:
    """A batch of orders, one row each, all arrays of shape (n,).

    `shares` is signed (buys positive), `limit` dollars or NaN for market orders, `participation` the share of
    the session's volume that the order may take. Rows stand in the order in which they are worked: sells first.
    """

    decided_on: date
    ids: tuple[str, ...]
    symbols: tuple[str, ...]
    shares: Floats
    limit: Floats
    participation: Floats
    reasons: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def record(self, row: int) -> Order:
        """Return one row as a Decimal record."""
        limit = float(self.limit[row])
        shares = float(self.shares[row])
        return Order(
            client_order_id=self.ids[row],
            symbol=self.symbols[row],
            side=Side.BUY if shares > 0 else Side.SELL,
            qty=Decimal(repr(abs(shares))).normalize(),
            limit_price=None if np.isnan(limit) else Decimal(repr(round(limit, 4))),
            decided_on=self.decided_on,
            reason=self.reasons[row],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Fills:
    """The executions of one session, all arrays of shape (n,), in the order in which they happened.

    `order` is the row in the batch; `shares` is signed; `price` = `reference` + signed `spread` + signed
    `impact`, each a multiple of $0.0001; `open` is the session's open of that name; `cents` is the signed cash
    that moved (negative for buys), rounded to whole cents.
    """

    order: Ints
    shares: Floats
    price: Floats
    reference: Floats
    open: Floats
    spread: Floats
    impact: Floats
    cents: Ints

    def __len__(self) -> int:
        return len(self.order)

    def record(self, row: int, orders: Orders, day: date) -> Fill:
        """Return one row as a Decimal record; its sequence is its place in the session."""
        at, shares = int(self.order[row]), float(self.shares[row])
        return Fill(
            client_order_id=orders.ids[at],
            symbol=orders.symbols[at],
            side=Side.BUY if shares > 0 else Side.SELL,
            qty=Decimal(repr(abs(shares))).normalize(),
            price=Decimal(repr(round(float(self.price[row]), 4))),
            amount=Decimal(abs(int(self.cents[row]))).scaleb(-2),
            day=day,
            sequence=row,
        )


@dataclass(frozen=True, slots=True)
class AccountRules:
    """Say what the broker's account does by itself. What it leaves out counts in the economic book alone."""

    pays_dividends: bool = True
    charges_fees: bool = True
    applies_splits: bool = True


#: What an Alpaca paper account does: none of it.
ALPACA_PAPER = AccountRules(pays_dividends=False, charges_fees=False, applies_splits=False)


class ActionKind(StrEnum):
    DIVIDEND = "dividend"
    SPLIT = "split"
    CASH_IN_LIEU = "cash_in_lieu"
    WRITE_OFF = "write_off"
    #: Shares that left by a sale which no order of the session made.
    SALE = "sale"


@dataclass(frozen=True, slots=True)
class CorporateAction:
    """One change of the account that no order made.

    `value` is the cash a share or the split ratio; `shares` the signed change of the position; `amount` the
    signed cash in whole cents; `in_broker` False where the broker's account leaves it out, so that it counts
    in the economic book alone.
    """

    kind: ActionKind
    symbol: str
    value: Decimal
    shares: Decimal
    amount: Decimal
    in_broker: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """All that happened to the account in one session, before its marks.

    `unfilled` is the signed shares of each order left at the close and `causes` why; `commission` and
    `regulatory` are whole cents for each fill, never negative; `fees_in_broker` False where the broker's
    account does not charge them.
    """

    day: date
    orders: Orders
    fills: Fills
    commission: Ints
    regulatory: Ints
    unfilled: Floats
    causes: tuple[UnfilledCause, ...]
    actions: tuple[CorporateAction, ...] = ()
    fees_in_broker: bool = True

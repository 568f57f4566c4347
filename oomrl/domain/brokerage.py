"""What a broker and the service say to each other about single orders: Decimal records, aware UTC instants."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from oomrl.domain.records import FINAL_STATES, OrderState
from oomrl.domain.trading import Side

#: What the client order ids of the kill switch's sales begin with (`oomrl halt --flatten`).
FLATTEN = "flatten-"


@dataclass(frozen=True, slots=True)
class Ticket:
    """One order as it goes out, good for the day. `limit_price` None is a market order.

    `participation` is the share of the session's volume that it may take (1: no cap); brokers that know no such
    instruction ignore it.
    """

    client_order_id: str
    symbol: str
    side: Side
    qty: Decimal
    limit_price: Decimal | None = None
    participation: float = 1.0


@dataclass(frozen=True, slots=True)
class BrokerOrder:
    """An order as the broker tells it. `status` is the broker's own word, `state` ours for it.

    `filled` is cumulative, `average` the price over all of it (None before the first fill).
    """

    id: str
    client_order_id: str
    symbol: str
    side: Side
    qty: Decimal
    filled: Decimal
    state: OrderState
    status: str
    submitted_at: datetime
    limit_price: Decimal | None = None
    average: Decimal | None = None

    @property
    def final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def left(self) -> Decimal:
        return self.qty - self.filled


@dataclass(frozen=True, slots=True)
class FillDetail:
    """How a simulated price came about, dollars a share with the sign of the trade: only our own exchange tells."""

    reference: Decimal
    open: Decimal
    spread: Decimal
    impact: Decimal
    commission: Decimal = Decimal(0)
    regulatory: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class BrokerFill:
    """One execution as the broker tells it. `id` is unique at the broker for ever; `order` is the broker's order id."""

    id: str
    order: str
    symbol: str
    side: Side
    qty: Decimal
    price: Decimal
    at: datetime
    detail: FillDetail | None = None


@dataclass(frozen=True, slots=True)
class CashMove:
    """A line of the broker's account that is no trade: dividend, fee, interest, transfer, split."""

    id: str
    kind: str
    day: date
    amount: Decimal
    symbol: str | None = None
    qty: Decimal = Decimal(0)
    a_share: Decimal | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class BrokerAccount:
    """The account's money in dollars. `blocked` says why it may not trade, empty where it may; `number` is what the
    broker's customer knows it by."""

    id: str
    cash: Decimal
    equity: Decimal
    buying_power: Decimal
    blocked: str = ""
    number: str = ""


@dataclass(frozen=True, slots=True)
class Holding:
    """A position: shares, and those of them that no open order of sale holds."""

    symbol: str
    qty: Decimal
    available: Decimal


@dataclass(frozen=True, slots=True)
class Quote:
    """The best bid and ask and when they were said; `volume` is the session's so far (None where unknown)."""

    symbol: str
    bid: Decimal
    ask: Decimal
    at: datetime
    volume: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """One attempt to trade a part of an order: a durable row before the broker hears of it.

    `order` is the client order id of the order that it works for, `attempt` counts from 0 within it and is part of
    `client_order_id`. `filled` is what the broker says, never what was booked. `doubtful`: sent, and no answer heard.
    """

    client_order_id: str
    order: str
    attempt: int
    decided_on: date
    symbol: str
    side: Side
    qty: Decimal
    limit_price: Decimal | None
    participation: float
    intended_at: datetime
    state: OrderState = OrderState.INTENDED
    broker_id: str | None = None
    filled: Decimal = Decimal(0)
    cancelling: bool = False
    doubtful: bool = False
    note: str = ""

    @property
    def final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def left(self) -> Decimal:
        """What may still trade."""
        return Decimal(0) if self.final else self.qty - self.filled

    def ticket(self) -> Ticket:
        """Return the order that goes out for it."""
        return Ticket(self.client_order_id, self.symbol, self.side, self.qty, self.limit_price, self.participation)


def placement_id(order: str, attempt: int) -> str:
    """Return the client order id of an attempt: the order's own for the first, with a number for later ones."""
    return order if attempt == 0 else f"{order}.{attempt}"


@dataclass(frozen=True, slots=True)
class BookedFill:
    """A broker's fill and the placement that it belongs to; booked once, under the broker's id."""

    fill: BrokerFill
    client_order_id: str
    order: str
    day: date = field(default=date.min)

"""Orders as the exchange keeps them, and as Alpaca shows them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from oomrl.domain.trading import CENT, Side

NAMESPACE = uuid.UUID("6f6d6f72-6c00-5000-8000-000000000000")


class Kind(StrEnum):
    MARKET = "market"
    LIMIT = "limit"
    STOP = "stop"
    STOP_LIMIT = "stop_limit"
    TRAILING_STOP = "trailing_stop"


class Force(StrEnum):
    """Time in force."""

    DAY = "day"
    GTC = "gtc"
    OPG = "opg"
    CLS = "cls"
    IOC = "ioc"
    FOK = "fok"


class Status(StrEnum):
    NEW = "new"
    PARTIALLY_FILLED = "partially_filled"
    FILLED = "filled"
    DONE_FOR_DAY = "done_for_day"
    CANCELED = "canceled"
    EXPIRED = "expired"
    REPLACED = "replaced"
    PENDING_CANCEL = "pending_cancel"
    PENDING_REPLACE = "pending_replace"
    ACCEPTED = "accepted"
    PENDING_NEW = "pending_new"
    ACCEPTED_FOR_BIDDING = "accepted_for_bidding"
    STOPPED = "stopped"
    REJECTED = "rejected"
    SUSPENDED = "suspended"
    CALCULATED = "calculated"
    HELD = "held"


TERMINAL = frozenset({Status.FILLED, Status.CANCELED, Status.EXPIRED, Status.REPLACED, Status.REJECTED})


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a checked order request asks for. Prices and quantities are exact decimals; one of qty and notional is
    set. `participation` is the largest share of a session's volume that the order may take (0..1)."""

    symbol: str
    side: Side
    kind: Kind
    force: Force
    qty: Decimal | None = None
    notional: Decimal | None = None
    limit: Decimal | None = None
    stop: Decimal | None = None
    trail_price: Decimal | None = None
    trail_percent: Decimal | None = None
    client_order_id: str | None = None
    extended_hours: bool = False
    participation: float = 1.0


@dataclass(slots=True, eq=False)
class PaperOrder:
    """One order's life. `number` is its place in the order of arrival; `filled_cents` the dollars of its fills.

    `taken` are the shares that it took in the running session, `live` whether it has met a point of the path and
    waits there, `triggered` whether its stop was reached, `hwm` the best price that a trailing stop has seen,
    `reserve` the dollars a share that buying power sets aside for it, `cancels` what a requested cancel waits for.
    """

    id: str
    number: int
    client_order_id: str
    ticket: Ticket
    qty: Decimal | None
    limit: Decimal | None
    stop: Decimal | None
    entered: datetime
    expires: datetime
    status: Status
    reserve: Decimal = Decimal(0)
    filled_qty: Decimal = Decimal(0)
    filled_value: Decimal = Decimal(0)
    taken: float = 0.0
    live: bool = False
    triggered: bool = False
    again: bool = False
    cancels: str | None = None
    hwm: Decimal | None = None
    replaces: str | None = None
    replaced_by: str | None = None
    shown_status: str | None = None
    stamps: dict[str, datetime] = field(default_factory=dict)

    @property
    def open(self) -> bool:
        return self.status not in TERMINAL

    @property
    def side(self) -> Side:
        return self.ticket.side

    @property
    def symbol(self) -> str:
        return self.ticket.symbol

    @property
    def buying(self) -> bool:
        return self.ticket.side is Side.BUY

    @property
    def remaining(self) -> Decimal:
        """Shares still to be filled; zero for a notional order whose quantity is not known yet."""
        return (self.qty or Decimal(0)) - self.filled_qty

    @property
    def average_price(self) -> Decimal | None:
        if not self.filled_qty:
            return None
        return (self.filled_value / self.filled_qty).quantize(Decimal("0.000001")).normalize()

    def move(self, status: Status, now: datetime) -> None:
        """Change the status and stamp the change."""
        self.status, self.stamps["updated_at"] = status, now
        self.shown_status = None
        name = _STAMPED.get(status)
        if name:
            self.stamps[name] = now

    def shown(self) -> dict[str, Any]:
        """Return the order as the trading API shows it."""
        ticket, stamps = self.ticket, self.stamps
        return {
            "id": self.id,
            "client_order_id": self.client_order_id,
            "created_at": stamp(self.entered),
            "updated_at": stamp(stamps.get("updated_at", self.entered)),
            "submitted_at": stamp(self.entered),
            "filled_at": _or_none(stamps.get("filled_at")),
            "expired_at": _or_none(stamps.get("expired_at")),
            "expires_at": stamp(self.expires),
            "canceled_at": _or_none(stamps.get("canceled_at")),
            "failed_at": _or_none(stamps.get("failed_at")),
            "replaced_at": _or_none(stamps.get("replaced_at")),
            "replaced_by": self.replaced_by,
            "replaces": self.replaces,
            "asset_id": asset_id(ticket.symbol),
            "symbol": ticket.symbol,
            "asset_class": "us_equity",
            "notional": _text(ticket.notional),
            "qty": None if ticket.notional is not None else _text(self.qty),
            "filled_qty": plain(self.filled_qty),
            "filled_avg_price": _text(self.average_price),
            "order_class": "simple",
            "order_type": ticket.kind.value,
            "type": ticket.kind.value,
            "side": ticket.side.value,
            "position_intent": "buy_to_open" if self.buying else "sell_to_close",
            "time_in_force": ticket.force.value,
            "limit_price": _text(self.limit),
            "stop_price": _text(self.stop),
            "status": self.shown_status or self.status.value,
            "extended_hours": ticket.extended_hours,
            "legs": None,
            "trail_percent": _text(ticket.trail_percent),
            "trail_price": _text(ticket.trail_price),
            "hwm": _text(self.hwm),
            "ratio_qty": None,
        }


@dataclass(frozen=True, slots=True)
class PaperFill:
    """One execution. `amount`, `commission` and `regulatory` are dollars in whole cents, never negative.

    `made_of` says how the price came about, dollars a share: reference, the session's open, and with the sign of the
    trade half-spread and impact.
    """

    id: str
    order: PaperOrder
    qty: Decimal
    price: Decimal
    amount: Decimal
    commission: Decimal
    regulatory: Decimal
    at: datetime
    day: date
    cumulative: Decimal
    leaves: Decimal
    made_of: tuple[Decimal, Decimal, Decimal, Decimal]


_STAMPED = {
    Status.FILLED: "filled_at",
    Status.CANCELED: "canceled_at",
    Status.EXPIRED: "expired_at",
    Status.REPLACED: "replaced_at",
    Status.REJECTED: "failed_at",
}


def asset_id(symbol: str) -> str:
    """Return the id of the asset of a name, the same on every exchange that this package emulates."""
    return str(uuid.uuid5(NAMESPACE, f"asset/{symbol}"))


def stamp(instant: datetime) -> str:
    """Return an instant as the API writes it: RFC 3339 in UTC."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def plain(value: Decimal) -> str:
    """Return a decimal without exponent and trailing zeros: 10, 0.5, 0."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def money(value: Decimal) -> str:
    """Return dollars in whole cents, halves up as everywhere: 10.00."""
    return format(value.quantize(CENT, "ROUND_HALF_UP"), "f")


def _text(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)


def _or_none(instant: datetime | None) -> str | None:
    return None if instant is None else stamp(instant)

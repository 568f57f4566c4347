"""Alpaca's payloads as we read them: what we need, in Decimal; new fields and unknown words change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from oomrl.domain.brokerage import (
    BrokerAccount,
    BrokerFill,
    BrokerOrder,
    CashMove,
    FillDetail,
    Holding,
    Quote,
)
from oomrl.domain.records import OrderState
from oomrl.domain.trading import Side
from oomrl.errors import Unavailable

from typing import Annotated  # isort: skip

#: Final states by Alpaca's word. Every other word, known or not, is an order that may still trade.
FINAL = {
    "filled": OrderState.FILLED,
    "canceled": OrderState.CANCELLED,
    "expired": OrderState.EXPIRED,
    "replaced": OrderState.CANCELLED,
    "rejected": OrderState.REJECTED,
}

Money = Annotated[Decimal, BeforeValidator(lambda value: 0 if value in (None, "") else value)]


class Payload(BaseModel):
    """Tolerant on purpose: a foreign service may add fields."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class OrderPayload(Payload):
    id: str
    client_order_id: str = ""
    symbol: str = ""
    side: str = "buy"
    qty: Decimal | None = None
    filled_qty: Money = Decimal(0)
    filled_avg_price: Decimal | None = None
    limit_price: Decimal | None = None
    status: str = ""
    submitted_at: datetime | None = None
    created_at: datetime | None = None

    def record(self) -> BrokerOrder:
        """Return it in our words. An order by notional has the shares that it filled."""
        working = OrderState.PARTIAL if self.filled_qty else OrderState.WORKING
        return BrokerOrder(
            id=self.id,
            client_order_id=self.client_order_id,
            symbol=self.symbol,
            side=Side.SELL if self.side.startswith("sell") else Side.BUY,
            qty=self.filled_qty if self.qty is None else self.qty,
            filled=self.filled_qty,
            state=FINAL.get(self.status, working),
            status=self.status,
            submitted_at=aware(self.submitted_at or self.created_at or datetime(1970, 1, 1, tzinfo=UTC)),
            limit_price=self.limit_price,
            average=self.filled_avg_price,
        )


class DetailPayload(Payload):
    """What our own exchange adds to a fill."""

    reference: Decimal
    open: Decimal
    spread: Decimal
    impact: Decimal
    commission: Money = Decimal(0)
    regulatory: Money = Decimal(0)


class FillPayload(Payload):
    id: str
    order_id: str
    symbol: str
    side: str
    qty: Decimal
    price: Decimal
    transaction_time: datetime
    oomrl: DetailPayload | None = None

    def record(self) -> BrokerFill:
        detail = None if self.oomrl is None else FillDetail(**self.oomrl.model_dump())
        side = Side.SELL if self.side.startswith("sell") else Side.BUY
        return BrokerFill(
            self.id, self.order_id, self.symbol, side, self.qty, self.price, aware(self.transaction_time), detail
        )


class MovePayload(Payload):
    id: str
    activity_type: str
    date: date
    net_amount: Money = Decimal(0)
    symbol: str | None = None
    qty: Money = Decimal(0)
    per_share_amount: Decimal | None = None
    description: str = ""

    def record(self) -> CashMove:
        return CashMove(
            self.id,
            self.activity_type,
            self.date,
            self.net_amount,
            self.symbol,
            self.qty,
            self.per_share_amount,
            self.description,
        )


class AccountPayload(Payload):
    id: str = ""
    account_number: str = ""
    status: str = ""
    cash: Money
    equity: Money = Decimal(0)
    buying_power: Money = Decimal(0)
    account_blocked: bool = False
    trading_blocked: bool = False
    trade_suspended_by_user: bool = False

    def record(self) -> BrokerAccount:
        reasons = [
            name for name in ("account_blocked", "trading_blocked", "trade_suspended_by_user") if getattr(self, name)
        ]
        if self.status not in ("ACTIVE", ""):
            reasons.append(f"status {self.status}")
        return BrokerAccount(
            self.id or self.account_number,
            self.cash,
            self.equity,
            self.buying_power,
            ", ".join(reasons),
            self.account_number,
        )


class PositionPayload(Payload):
    symbol: str
    qty: Decimal
    qty_available: Decimal | None = None

    def record(self) -> Holding:
        return Holding(self.symbol, self.qty, self.qty if self.qty_available is None else self.qty_available)


class SnapshotPayload(Payload):
    bid: Money = Field(Decimal(0), validation_alias=AliasPath("latestQuote", "bp"))
    ask: Money = Field(Decimal(0), validation_alias=AliasPath("latestQuote", "ap"))
    at: datetime = Field(validation_alias=AliasPath("latestQuote", "t"))
    volume: Decimal | None = Field(None, validation_alias=AliasPath("dailyBar", "v"))

    def record(self, symbol: str) -> Quote:
        return Quote(symbol, self.bid, self.ask, aware(self.at), self.volume)


class BarPayload(Payload):
    t: datetime
    o: Decimal
    h: Decimal
    l: Decimal  # noqa: E741 - the feed's own name
    c: Decimal
    v: Decimal


class ActionPayload(Payload):
    """A corporate action: `rate` dollars a share of a dividend, `new_rate` for `old_rate` shares of a split."""

    symbol: str
    ex_date: date
    rate: Decimal | None = None
    new_rate: Decimal | None = None
    old_rate: Decimal | None = None


class DayPayload(Payload):
    date: date
    open: str
    close: str


Model = TypeVar("Model", bound=Payload)


def one(model: type[Model], told: object) -> Model:
    """Read one payload; raise `Unavailable` where what we need is not in it."""
    try:
        return model.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Unavailable(
            f"Expected {model.__name__.removesuffix('Payload').lower()} with {where}, was: {first['msg']}"
        ) from error


def many(model: type[Model], told: object) -> list[Model]:
    """Read a list of payloads."""
    if not isinstance(told, list):
        raise Unavailable(f"Expected a list of {model.__name__.removesuffix('Payload').lower()}s, was {told!r:.60}")
    return [one(model, item) for item in told]


def readable(model: type[Model], told: Iterable[object]) -> list[Model]:
    """Read what can be read of a list in which one bad row must not hide the others (assets)."""
    found = []
    for item in told:
        try:
            found.append(model.model_validate(item))
        except ValidationError:
            continue
    return found


def mapping(told: object) -> Mapping[str, Any]:
    """Return a JSON object; raise `Unavailable` for anything else."""
    if not isinstance(told, dict):
        raise Unavailable(f"Expected a JSON object, was {told!r:.60}")
    return told


def aware(instant: datetime) -> datetime:
    """Return an aware UTC instant; one without a zone is UTC by Alpaca's documentation."""
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)

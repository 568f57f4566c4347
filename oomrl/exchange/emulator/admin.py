"""The admin endpoints: the clock, the exchange's own books, money in and out. Loopback only, no keys, no limit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from oomrl.exchange.emulator.hours import Moment
from oomrl.exchange.emulator.orders import plain, stamp
from oomrl.exchange.emulator.refusals import Refusal, invalid
from oomrl.exchange.emulator.venue import Venue

#: What `{"until": ...}` may name, and the events it stops after.
UNTIL = {
    "next": tuple(Moment),
    "morning": (Moment.MORNING,),
    "open": (Moment.OPEN,),
    "point": (Moment.OPEN, Moment.FIRST, Moment.SECOND, Moment.CLOSE),
    "close": (Moment.CLOSE,),
}


def clock(venue: Venue) -> dict[str, Any]:
    """Return the exchange's time and what comes next."""
    event = venue.next_event
    return {
        "now": stamp(venue.now),
        "is_open": venue.hours.current(venue.now) is not None,
        "next": None if event is None else {"at": stamp(event.at), "what": event.what.name.lower()},
    }


def target(venue: Venue, body: Any) -> datetime:
    """Return the instant that a request to move the clock names. Raises `Refusal`."""
    if not isinstance(body, dict) or len(body) != 1:
        raise invalid('expected one of {"to": instant}, {"by": seconds}, {"until": event}')
    if "by" in body:
        seconds = body["by"]
        if isinstance(seconds, bool) or not isinstance(seconds, int | Decimal) or not 0 <= seconds <= 10**9:
            raise invalid("expected seconds of 0 to 1e9")
        return venue.now + timedelta(seconds=float(seconds))
    if "to" in body:
        try:
            to = datetime.fromisoformat(str(body["to"])).astimezone(UTC)
        except (ValueError, OverflowError):
            raise invalid("expected an RFC 3339 instant") from None
        if to < venue.now:
            raise invalid(f"expected an instant not before {stamp(venue.now)}")
        return to
    moments = UNTIL.get(body.get("until", ""))
    if moments is None:
        raise invalid(f"expected until to be one of {', '.join(UNTIL)}")
    found = venue.next_after(moments)
    if found is None:
        raise Refusal(409, 40910000, "the tape has ended")
    return found


def amount_of(body: Any, name: str) -> Decimal:
    """Return a field that is dollars in whole cents. Raises `Refusal`."""
    try:
        amount = Decimal(str(body[name]))
        if amount.is_finite() and amount == amount.quantize(Decimal("0.01")):
            return amount
    except (InvalidOperation, KeyError, TypeError):
        pass
    raise invalid(f"expected {name}: dollars in whole cents")


def books(venue: Venue) -> dict[str, Any]:
    """Return all that the exchange knows of the account. Amounts and quantities are text, instants RFC 3339."""
    return {
        "now": stamp(venue.now),
        "account": venue.account.id,
        "opening_cash": plain(venue.account.opening_cash),
        "cash": plain(venue.account.cash),
        "equity": plain(venue.account.equity()),
        "positions": {symbol: plain(shares) for symbol, shares in venue.account.positions().items()},
        "orders": [
            {
                **{name: shown[name] for name in _ORDER},
                "qty": None if order.qty is None else plain(order.qty),
                "number": order.number,
                "open": order.open,
                "answered": shown["status"],
            }
            for order in venue.account.orders.values()
            for shown in [order.shown()]
        ],
        "fills": [
            {
                "id": fill.id,
                "order_id": fill.order.id,
                "client_order_id": fill.order.client_order_id,
                "symbol": fill.order.symbol,
                "side": fill.order.side.value,
                "qty": plain(fill.qty),
                "price": plain(fill.price),
                "amount": plain(fill.amount),
                "commission": plain(fill.commission),
                "regulatory": plain(fill.regulatory),
                "at": stamp(fill.at),
                "day": fill.day.isoformat(),
            }
            for fill in venue.account.fills
        ],
        "actions": [
            {
                "id": action.id,
                "kind": action.what.kind.value,
                "symbol": action.what.symbol,
                "value": plain(action.what.value),
                "shares": plain(action.what.shares),
                "amount": plain(action.what.amount),
                "at": stamp(action.at),
                "day": action.day.isoformat(),
            }
            for action in venue.account.actions
        ],
        "transfers": [
            {"id": transfer.id, "amount": plain(transfer.amount), "at": stamp(transfer.at)}
            for transfer in venue.account.transfers
        ],
        "fees_charged": venue.terms.rules.charges_fees,
    }


_ORDER = (
    "id",
    "client_order_id",
    "symbol",
    "side",
    "type",
    "time_in_force",
    "status",
    "filled_qty",
    "replaces",
    "replaced_by",
    "limit_price",
    "stop_price",
    "created_at",
    "canceled_at",
)

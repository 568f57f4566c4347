"""Order requests, checked for form: what can be said about them without looking at the market or the account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, TypeVar

from oomrl.domain.trading import Side
from oomrl.exchange.emulator.orders import Force, Kind, PaperOrder, Ticket
from oomrl.exchange.emulator.refusals import invalid, malformed, unprocessable

Choice = TypeVar("Choice", bound=StrEnum)

DECIMALS = 9
#: What text may say of a number: Python's own reading also takes blanks, underscores and other scripts' digits.
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(?i:nan|snan|inf(inity)?)")
LARGEST = Decimal(10) ** 9

#: Which prices an order type needs; any other price is refused.
PRICES = {
    Kind.MARKET: (),
    Kind.LIMIT: ("limit_price",),
    Kind.STOP: ("stop_price",),
    Kind.STOP_LIMIT: ("limit_price", "stop_price"),
    Kind.TRAILING_STOP: ("trail_price", "trail_percent"),
}


def ticket_of(body: Any, *, fractional_limits: bool = False) -> Ticket:
    """Return the order that a request body asks for. Raises `Refusal` with the reason.

    Fractional and notional orders are market orders for the day, unless `fractional_limits` allows other types.
    """
    fields = _fields(body)
    order_class = fields.get("order_class") or "simple"
    if order_class != "simple":
        raise unprocessable(f"order class {order_class!r} is not supported by this exchange, only simple")
    symbol = fields.get("symbol")
    if not isinstance(symbol, str) or not symbol:
        raise invalid("symbol is required")
    side, kind = _choice(Side, fields, "side"), _choice(Kind, fields, "type")
    force = _choice(Force, fields, "time_in_force")
    qty, notional = number(fields, "qty"), number(fields, "notional")
    if (qty is None) == (notional is None):
        raise invalid("qty or notional is required" if qty is None else "only one of qty or notional is accepted")
    client_order_id = fields.get("client_order_id") or None
    if client_order_id is not None and not (isinstance(client_order_id, str) and len(client_order_id) <= 128):
        raise invalid("client_order_id must be no more than 128 characters")
    extended = fields.get("extended_hours") or False
    if not isinstance(extended, bool):
        raise invalid("extended_hours must be a boolean")
    prices = {name: number(fields, name) for name in ("limit_price", "stop_price", "trail_price", "trail_percent")}
    _check_prices(kind, prices)
    _check_size(kind, force, qty, notional, fractional_limits)
    _check_force(kind, force, extended)
    return Ticket(
        symbol=symbol,
        side=side,
        kind=kind,
        force=force,
        qty=qty,
        notional=notional,
        limit=prices["limit_price"],
        stop=prices["stop_price"],
        trail_price=prices["trail_price"],
        trail_percent=prices["trail_percent"],
        client_order_id=client_order_id,
        extended_hours=extended,
        participation=_participation(fields.get("advanced_instructions")),
    )


def changes_of(body: Any) -> dict[str, Any]:
    """Return what a replace request changes: qty, limit, stop, trail, force, client_order_id; absent ones left out."""
    fields = _fields(body)
    changes: dict[str, Any] = {}
    for name, key in (("qty", "qty"), ("limit_price", "limit"), ("stop_price", "stop"), ("trail", "trail")):
        value = number(fields, name)
        if value is not None:
            changes[key] = value
    if changes.get("qty") is not None and changes["qty"] != changes["qty"].to_integral_value():
        raise unprocessable("qty must be a whole number of shares in a replacement")
    if fields.get("time_in_force"):
        changes["force"] = _choice(Force, fields, "time_in_force")
    client_order_id = fields.get("client_order_id")
    if client_order_id:
        if not isinstance(client_order_id, str) or len(client_order_id) > 128:
            raise invalid("client_order_id must be no more than 128 characters")
        changes["client_order_id"] = client_order_id
    return changes


def changed(order: PaperOrder, changes: dict[str, Any]) -> Ticket:
    """Return what an open order becomes by a replacement. Raises `Refusal`."""
    ticket = replace(order.ticket, limit=order.limit, stop=order.stop, qty=order.remaining)
    if not changes:
        raise unprocessable("unable to replace order, nothing changes")
    if "qty" in changes:
        if changes["qty"] <= order.filled_qty:
            raise unprocessable(f"qty must be more than the filled quantity {order.filled_qty}")
        ticket = replace(ticket, qty=changes["qty"] - order.filled_qty)
    for name in ("limit", "stop"):
        if name in changes:
            if getattr(ticket, name) is None or ticket.kind is Kind.TRAILING_STOP:
                raise unprocessable(f"a {ticket.kind.value} order has no {name} price to replace")
            check_increment(f"{name}_price", changes[name])
            ticket = replace(ticket, **{name: changes[name]})
    if "trail" in changes:
        if ticket.kind is not Kind.TRAILING_STOP:
            raise unprocessable("only trailing stop orders have a trail to replace")
        which = "trail_price" if ticket.trail_price is not None else "trail_percent"
        ticket = replace(ticket, **{which: changes["trail"]})
    if ticket.kind is Kind.TRAILING_STOP:
        ticket = replace(ticket, stop=None)
    if "force" in changes:
        _check_force(ticket.kind, changes["force"], ticket.extended_hours)
        ticket = replace(ticket, force=changes["force"])
    return replace(ticket, client_order_id=changes.get("client_order_id"))


def _check_force(kind: Kind, force: Force, extended: bool) -> None:
    """Refuse lives that an order of a kind cannot have."""
    if extended and not (kind is Kind.LIMIT and force in (Force.DAY, Force.GTC)):
        raise unprocessable("extended hours order must be DAY or GTC limit orders")
    if force in (Force.OPG, Force.CLS) and kind not in (Kind.MARKET, Kind.LIMIT):
        raise unprocessable("opg and cls orders must be market or limit orders")
    if force in (Force.IOC, Force.FOK) and kind not in (Kind.MARKET, Kind.LIMIT):
        raise unprocessable("ioc and fok orders must be market or limit orders")


def number(fields: Mapping[str, Any], name: str) -> Decimal | None:
    """Return a positive decimal of at most nine places from text or a JSON number, None where absent."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise invalid(f"{name} must be a number")
    if isinstance(value, str) and not NUMBER.fullmatch(value):
        raise invalid(f"{name} must be a number")
    try:
        found = Decimal(value)
    except InvalidOperation:
        raise invalid(f"{name} must be a number") from None
    if not found.is_finite() or found <= 0:
        raise invalid(f"{name} must be > 0")
    if found > LARGEST:
        raise invalid(f"{name} must be <= {LARGEST}")
    if found < Decimal(1).scaleb(-DECIMALS):
        raise invalid(f"{name} must have at most {DECIMALS} decimal places")
    found = found.normalize()
    exponent = found.as_tuple().exponent
    assert isinstance(exponent, int)
    if -exponent > DECIMALS:
        raise invalid(f"{name} must have at most {DECIMALS} decimal places")
    return found


def check_increment(name: str, price: Decimal | None) -> None:
    """Refuse prices with more decimals than the market quotes: two from $1 on, four below."""
    if price is None:
        return
    step = Decimal("0.01") if price >= 1 else Decimal("0.0001")
    if price % step:
        raise unprocessable(
            f"invalid {name} {price:f}. sub-penny increment does not fulfill minimum pricing criteria",
            **{name: format(price, "f")},
        )


def _fields(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise malformed("request body format is invalid")
    return body


def _choice(kind: type[Choice], fields: Mapping[str, Any], name: str) -> Choice:
    value = fields.get(name)
    if value is None:
        raise invalid(f"{name} is required")
    try:
        return kind(value)
    except ValueError:
        raise invalid(f"invalid {name}: {value!r}") from None


def _check_prices(kind: Kind, prices: Mapping[str, Decimal | None]) -> None:
    wanted = PRICES[kind]
    given = [name for name, value in prices.items() if value is not None]
    surplus = [name for name in given if name not in wanted]
    if surplus:
        raise unprocessable(f"{kind.value} orders must not have {surplus[0]}")
    if kind is Kind.TRAILING_STOP:
        if len(given) != 1:
            raise unprocessable("trailing stop orders must specify one of trail_price or trail_percent")
        percent = prices["trail_percent"]
        if percent is not None and percent >= 100:
            raise unprocessable("trail_percent must be below 100")
    elif len(given) < len(wanted):
        missing = next(name for name in wanted if name not in given)
        raise unprocessable(f"{kind.value.replace('_', ' ')} orders require {missing.replace('_', ' ')}")
    for name in ("limit_price", "stop_price"):
        check_increment(name, prices[name])


def _check_size(kind: Kind, force: Force, qty: Decimal | None, notional: Decimal | None, limits: bool) -> None:
    fractional = notional is not None or (qty is not None and qty != qty.to_integral_value())
    if not fractional:
        return
    if force is not Force.DAY:
        raise unprocessable("fractional orders must be DAY orders")
    if kind is not Kind.MARKET and not (limits and notional is None and kind is not Kind.TRAILING_STOP):
        raise unprocessable("fractional orders must be market orders")
    if notional is not None:
        if notional < 1:
            raise invalid("notional must be >= 1.00")
        if notional % Decimal("0.01"):
            raise invalid("notional must be in whole cents")


def _participation(instructions: Any) -> float:
    """Return the share of volume that `advanced_instructions.max_percentage` allows, as the router documents it."""
    if instructions is None:
        return 1.0
    if not isinstance(instructions, dict):
        raise invalid("advanced_instructions must be an object")
    share = number(instructions, "max_percentage")
    if share is None:
        return 1.0
    if share > 1:
        raise invalid("advanced_instructions.max_percentage must be in (0, 1]")
    return float(share)

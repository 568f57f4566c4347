"""Work a session's orders: what to send, what to cancel, and why the rest waits. Pure; the caller acts.

Sales first; buys go out as far as the broker's cash pays for them, and no buy goes out in part while sales that would
pay for the rest still work. Each order is released in slices over the session; a slice goes out as a marketable limit,
beyond the far side of a fresh quote by the collar and never beyond the order's own limit. A placement that did not
trade in time is cancelled, and what is left goes out anew once the broker has confirmed that. Before the close
everything still open is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from oomrl.domain.brokerage import Placement, Quote, placement_id
from oomrl.domain.market import Hours
from oomrl.domain.records import OrderState
from oomrl.domain.trading import Side

BPS = Decimal(10_000)


@dataclass(frozen=True, slots=True)
class Tactics:
    """How orders are worked.

    at_open: hand the whole batch over before the open, as it is; the exchange does the rest (simulations).
    collar_bps: how far beyond the far side of the quote a limit goes.
    stale_after: no order on an older quote. straggler_after: cancel what did not fill by then.
    sweep_before: cancel everything this long before the close, and send nothing after it.
    slice_share: the most of the average daily volume in one slice; max_slices: the most slices of a session.
    reserve_bps: kept back from buys for moves until the fill. cycle: time between two looks at the broker.
    max_attempts: placements of one order in a session; max_refusals: after so many answers of "not now" (buying power,
    shares held by another order, wash trade) an order is given up; a plain rejection gives it up at once.
    most_at_once: placements sent in one cycle.
    """

    at_open: bool = False
    collar_bps: Decimal = Decimal(50)
    stale_after: timedelta = timedelta(seconds=60)
    straggler_after: timedelta = timedelta(minutes=2)
    sweep_before: timedelta = timedelta(minutes=5)
    slice_share: Decimal = Decimal("0.005")
    max_slices: int = 13
    reserve_bps: Decimal = Decimal(10)
    cycle: timedelta = timedelta(seconds=15)
    max_attempts: int = 40
    max_refusals: int = 3
    most_at_once: int = 50


@dataclass(frozen=True, slots=True)
class Wanted:
    """One order of the session as decided: `qty` shares, the row's own limit or None, the expected daily volume."""

    client_order_id: str
    decided_on: date
    symbol: str
    side: Side
    qty: Decimal
    limit_price: Decimal | None
    participation: float
    volume: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """What to do now, in this order: cancel, then place. `waiting` says why an order that is not done sends nothing."""

    cancel: tuple[Placement, ...] = ()
    place: tuple[Placement, ...] = ()
    waiting: Mapping[str, str] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        return not self.cancel and not self.place


def steps(
    wanted: Sequence[Wanted],
    placements: Iterable[Placement],
    quotes: Mapping[str, Quote],
    cash: Decimal,
    now: datetime,
    hours: Hours,
    tactics: Tactics,
) -> Steps:
    """Return what to do at an instant. `cash` is the broker's, before what open buys may still take."""
    of_order: dict[str, list[Placement]] = {order.client_order_id: [] for order in wanted}
    for placement in placements:
        of_order.setdefault(placement.order, []).append(placement)
    if tactics.at_open:
        return Steps(place=tuple(_whole(order, now) for order in wanted if not of_order[order.client_order_id]))
    working = [p for made in of_order.values() for p in made if not p.final]
    if now >= hours.closes - tactics.sweep_before:
        return Steps(cancel=tuple(p for p in working if _cancellable(p)))
    stragglers = tuple(p for p in working if _cancellable(p) and now - p.intended_at >= tactics.straggler_after)
    if now < hours.opens:
        return Steps(cancel=stragglers, waiting={o.client_order_id: "the session has not opened" for o in wanted})

    waiting: dict[str, str] = {}
    place: list[Placement] = []
    budget = cash - sum(
        (p.left * (p.limit_price or Decimal(0)) * _reserved(tactics) for p in working if p.side is Side.BUY), Decimal(0)
    )
    sales = any(_unfinished(order, of_order[order.client_order_id], tactics) for order in wanted if _sells(order))
    for order in wanted:
        made = of_order[order.client_order_id]
        key = order.client_order_id
        if len(place) >= tactics.most_at_once:
            break
        qty, reason = _released(order, made, now, hours, tactics)
        if not qty:
            if reason:
                waiting[key] = reason
            continue
        quote = quotes.get(order.symbol)
        if quote is None or now - quote.at > tactics.stale_after or not 0 < quote.bid <= quote.ask:
            waiting[key] = "no fresh quote"
            continue
        limit = marketable(order.side, quote, order.limit_price, tactics.collar_bps)
        if not _sells(order):
            cost = limit * _reserved(tactics)
            if qty * cost > budget:
                if sales:
                    waiting[key] = "cash of sales that still work"
                    continue
                qty = max(budget / cost, Decimal(0)).to_integral_value(ROUND_FLOOR)
                if not qty:
                    waiting[key] = "cash"
                    continue
            budget -= qty * cost
        place.append(_placement(order, len(made), qty, limit, now))
    return Steps(stragglers, tuple(place), waiting)


def done(wanted: Sequence[Wanted], placements: Iterable[Placement], tactics: Tactics) -> bool:
    """Return whether nothing of the session's orders is left to do."""
    of_order: dict[str, list[Placement]] = {order.client_order_id: [] for order in wanted}
    for placement in placements:
        of_order.setdefault(placement.order, []).append(placement)
    if any(not p.final for made in of_order.values() for p in made):
        return False
    return not any(_unfinished(order, of_order[order.client_order_id], tactics) for order in wanted)


def marketable(side: Side, quote: Quote, limit: Decimal | None, collar_bps: Decimal) -> Decimal:
    """Return a limit beyond the far side by the collar, never beyond the order's own; whole cents from $1 on."""
    far = quote.ask if side is Side.BUY else quote.bid
    sign = 1 if side is Side.BUY else -1
    price = far * (1 + sign * collar_bps / BPS)
    step = Decimal("0.01") if price >= 1 else Decimal("0.0001")
    price = price.quantize(step, ROUND_FLOOR if side is Side.BUY else ROUND_CEILING)
    if limit is None:
        return max(price, step)
    return min(price, limit) if side is Side.BUY else max(price, limit)


def slices(order: Wanted, tactics: Tactics) -> int:
    """Return in how many slices an order goes out: one for each `slice_share` of the average daily volume."""
    if not order.volume:
        return 1
    needed = (order.qty / (order.volume * tactics.slice_share)).to_integral_value(ROUND_CEILING)
    return max(1, min(tactics.max_slices, int(needed)))


def cleaned(placement: Placement, state: OrderState, filled: Decimal, broker_id: str | None) -> Placement:
    """Return a placement as the broker tells it now: its filled shares never shrink, its answer ends any doubt."""
    return replace(
        placement,
        state=state,
        filled=max(filled, placement.filled),
        broker_id=broker_id or placement.broker_id,
        doubtful=False,
    )


def _sells(order: Wanted) -> bool:
    return order.side is Side.SELL


def _reserved(tactics: Tactics) -> Decimal:
    return 1 + tactics.reserve_bps / BPS


def _cancellable(placement: Placement) -> bool:
    return not placement.cancelling and not placement.doubtful and placement.broker_id is not None


def _unfinished(order: Wanted, made: Sequence[Placement], tactics: Tactics) -> bool:
    if any(not p.final for p in made):
        return True
    rejected = bool(made) and made[-1].state is OrderState.REJECTED
    refused = sum(p.state is OrderState.REFUSED for p in made) >= tactics.max_refusals
    left = order.qty - sum((p.filled for p in made), Decimal(0))
    return left > 0 and not rejected and not refused and len(made) < tactics.max_attempts


def _released(
    order: Wanted, made: Sequence[Placement], now: datetime, hours: Hours, tactics: Tactics
) -> tuple[Decimal, str]:
    """Return the shares that may go out now, or zero and why not (no reason for an order that is done or working)."""
    if any(not p.final for p in made) or not _unfinished(order, made, tactics):
        return Decimal(0), ""
    filled = sum((p.filled for p in made), Decimal(0))
    parts = slices(order, tactics)
    length = (hours.closes - tactics.sweep_before - hours.opens) / parts
    turn = min(parts, int((now - hours.opens) / length) + 1)
    released = (order.qty * turn / parts).to_integral_value(ROUND_CEILING)
    if order.volume and order.participation < 1.0:
        cap = (Decimal(repr(order.participation)) * order.volume * turn / parts).to_integral_value(ROUND_FLOOR)
        released = min(released, cap)
    qty = min(released, order.qty) - filled
    return (qty, "") if qty > 0 else (Decimal(0), "its next slice")


def _whole(order: Wanted, now: datetime) -> Placement:
    return _placement(order, 0, order.qty, order.limit_price, now)


def _placement(order: Wanted, attempt: int, qty: Decimal, limit: Decimal | None, now: datetime) -> Placement:
    return Placement(
        client_order_id=placement_id(order.client_order_id, attempt),
        order=order.client_order_id,
        attempt=attempt,
        decided_on=order.decided_on,
        symbol=order.symbol,
        side=order.side,
        qty=qty,
        limit_price=limit,
        participation=order.participation,
        intended_at=now,
    )

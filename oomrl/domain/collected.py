"""From what a broker told to what the account books: one session's execution. Pure; the crossing from Decimal rows to
arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Protocol

import numpy as np

from oomrl.domain.actions import cents_of, split_adjusted
from oomrl.domain.brokerage import FLATTEN, BookedFill, BrokerFill, BrokerOrder, CashMove, FillDetail
from oomrl.domain.market import Floats, Session
from oomrl.domain.trading import (
    AccountRules,
    ActionKind,
    CorporateAction,
    Execution,
    Fills,
    Orders,
    Side,
    UnfilledCause,
)

TICK = Decimal("0.0001")

#: What the account's lines that are no trades do to the books, by the broker's word for them.
ACTIONS = {
    "DIV": ActionKind.DIVIDEND,
    "DIVCGL": ActionKind.DIVIDEND,
    "DIVCGS": ActionKind.DIVIDEND,
    "DIVROC": ActionKind.DIVIDEND,
    "SPLIT": ActionKind.SPLIT,
    "SSP": ActionKind.SPLIT,
    "CIL": ActionKind.CASH_IN_LIEU,
    "MISC": ActionKind.CASH_IN_LIEU,
    "MA": ActionKind.WRITE_OFF,
    "REORG": ActionKind.WRITE_OFF,
    "FLATTEN": ActionKind.SALE,
}


class Costs(Protocol):
    """What trading is taken to cost where the broker does not say it, and the most of a volume that one order takes."""

    max_participation: float

    def half_spread(self, reference: Floats) -> Floats: ...

    def commission(self, shares: Floats, cents: Floats) -> Floats: ...

    def sale_fees(self, shares: Floats, cents: Floats) -> tuple[Floats, Floats]: ...


def execution_of(
    session: Session,
    orders: Orders,
    booked: Sequence[BookedFill],
    moves: Iterable[CashMove],
    costs: Costs,
    rules: AccountRules,
) -> Execution:
    """Return a session's execution from the fills booked for its orders and the day's lines that are no trades.

    Where the broker does not say how a price came about, the modelled half-spread counts as spread and the rest as the
    path from the open; where it charges no fees, modelled ones count in the economic book alone.
    """
    if rules.applies_splits:
        orders = split_adjusted(orders, session)
    row_of = {name: row for row, name in enumerate(orders.ids)}
    opens = dict(zip(session.symbols, session["open"].tolist(), strict=True))
    lines = sorted(booked, key=lambda line: (line.fill.at, row_of[line.order], line.fill.id))
    count = len(lines)
    row, cents = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    fees = np.zeros((2, count), dtype=np.int64)
    values = np.zeros((6, count))
    for n, line in enumerate(lines):
        fill, sign = line.fill, 1 if line.fill.side is Side.BUY else -1
        amount = cents_of(fill.qty * fill.price)
        detail = fill.detail or _guess(fill, amount, opens, costs)
        row[n], cents[n] = row_of[line.order], -sign * int(amount.scaleb(2))
        fees[:, n] = int(detail.commission.scaleb(2)), int(detail.regulatory.scaleb(2))
        price = fill.price.quantize(TICK, ROUND_HALF_UP)
        numbers = (sign * fill.qty, price, detail.reference, detail.open, detail.spread, detail.impact)
        values[:, n] = [float(number) for number in numbers]
    fills = Fills(row, values[0], values[1], values[2], values[3], values[4], values[5], cents)
    done = np.bincount(row, weights=values[0], minlength=len(orders)) if count else np.zeros(len(orders))
    unfilled = orders.shares - done[: len(orders)]
    return Execution(
        day=session.day,
        orders=orders,
        fills=fills,
        commission=fees[0],
        regulatory=fees[1],
        unfilled=unfilled,
        causes=_causes(session, orders, unfilled, costs.max_participation),
        actions=tuple(_action(move, session) for move in moves if is_action(move)),
        fees_in_broker=rules.charges_fees,
    )


def flattened(orders: Iterable[BrokerOrder], fills: Iterable[BrokerFill]) -> list[CashMove]:
    """Return the fills of the kill switch's sales as lines of the account, on the days of the fills.

    The kill switch writes nothing down: it works without a database. The broker's word makes up for it.
    """
    ours = {order.id: order.client_order_id for order in orders if order.client_order_id.startswith(FLATTEN)}
    return [
        CashMove(
            id=fill.id,
            kind="FLATTEN",
            day=fill.at.date(),
            amount=cents_of(fill.qty * fill.price),
            symbol=fill.symbol,
            qty=-fill.qty,
            a_share=fill.price,
            note=ours[fill.order],
        )
        for fill in fills
        if fill.order in ours and fill.side is Side.SELL
    ]


def is_action(move: CashMove) -> bool:
    """Return whether a line of the account belongs into the books: what a position brought, or lost.

    Fees of trades are part of their fills; transfers are endowments, which a person books.
    """
    return move.kind in ACTIONS and move.symbol is not None


def moved(positions: Mapping[str, Decimal], booked: Iterable[BookedFill]) -> dict[str, Decimal]:
    """Return positions after some fills, names without shares left out."""
    after = dict(positions)
    for line in booked:
        fill = line.fill
        change = fill.qty if fill.side is Side.BUY else -fill.qty
        after[fill.symbol] = after.get(fill.symbol, Decimal(0)) + change
    return {symbol: shares for symbol, shares in after.items() if shares}


def after(
    cash: Decimal, positions: Mapping[str, Decimal], moves: Iterable[CashMove]
) -> tuple[Decimal, dict[str, Decimal]]:
    """Return cash and positions after some lines of the account that are no trades."""
    held = dict(positions)
    for move in moves:
        if is_action(move):
            cash += move.amount
            held[move.symbol or ""] = held.get(move.symbol or "", Decimal(0)) + move.qty
    return cash, {symbol: shares for symbol, shares in held.items() if shares}


def paid(booked: Iterable[BookedFill], rules: AccountRules) -> Decimal:
    """Return the signed cash that fills moved at the broker, in whole cents each."""
    total = Decimal(0)
    for line in booked:
        fill = line.fill
        amount = cents_of(fill.qty * fill.price)
        total += -amount if fill.side is Side.BUY else amount
        if rules.charges_fees and fill.detail is not None:
            total -= fill.detail.commission + fill.detail.regulatory
    return total


def _action(move: CashMove, session: Session) -> CorporateAction:
    kind, symbol = ACTIONS[move.kind], move.symbol or ""
    value = move.a_share
    if value is None:
        column = {ActionKind.SPLIT: "split", ActionKind.CASH_IN_LIEU: "open"}.get(kind)
        known = column is not None and symbol in session.symbols
        value = Decimal(repr(float(session[column][session.symbols.index(symbol)]))) if column and known else Decimal(0)
    return CorporateAction(kind, symbol, value, move.qty, move.amount)


def _guess(fill: BrokerFill, amount: Decimal, opens: Mapping[str, float], costs: Costs) -> FillDetail:
    sign = 1 if fill.side is Side.BUY else -1
    price = fill.price.quantize(TICK, ROUND_HALF_UP)
    spread = TICK * int(costs.half_spread(np.array([float(price / TICK)]))[0])
    shares, cents = np.array([float(fill.qty)]), np.array([float(amount.scaleb(2))])
    if fill.side is Side.BUY:
        commission, regulatory = costs.commission(shares, cents), np.zeros(1)
    else:
        commission, regulatory = costs.sale_fees(shares, cents)
    opened = opens.get(fill.symbol)
    return FillDetail(
        reference=price - sign * spread,
        open=price if opened is None else Decimal(repr(round(opened, 4))),
        spread=sign * spread,
        impact=Decimal(0),
        commission=Decimal(int(commission[0])).scaleb(-2),
        regulatory=Decimal(int(regulatory[0])).scaleb(-2),
    )


def _causes(session: Session, orders: Orders, unfilled: Floats, most: float) -> tuple[UnfilledCause, ...]:
    """Say from the session's bar why shares stayed unfilled, in the exchange's own order of reasons."""
    at = {symbol: n for n, symbol in enumerate(session.symbols)}
    return tuple(_cause(session, orders, unfilled, n, at.get(symbol), most) for n, symbol in enumerate(orders.symbols))


def _cause(session: Session, orders: Orders, unfilled: Floats, n: int, at: int | None, most: float) -> UnfilledCause:
    if not unfilled[n]:
        return UnfilledCause.NONE
    if at is None or not session["tradable"][at] or not session["volume"][at]:
        return UnfilledCause.NOT_TRADED
    filled = abs(orders.shares[n] - unfilled[n])
    if filled >= np.floor(min(orders.participation[n], most) * session["volume"][at] + 1e-9):
        return UnfilledCause.PARTICIPATION
    limit, buying = orders.limit[n], orders.shares[n] > 0
    met = np.isnan(limit) or (session["low"][at] <= limit if buying else session["high"][at] >= limit)
    return UnfilledCause.CASH if buying and met else UnfilledCause.LIMIT_PRICE

"""A brokerage in memory: the smallest thing that passes the conformance suite. Never used to trade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal

from oomrl.domain.actions import cents_of
from oomrl.domain.brokerage import (
    BrokerAccount,
    BrokerFill,
    BrokerOrder,
    CashMove,
    Holding,
    Quote,
    Ticket,
)
from oomrl.domain.records import OrderState
from oomrl.domain.trading import Side
from oomrl.errors import BrokerRefusal
from oomrl.ports import Timer
from oomrl.testing.clocks import SteppedTimer

NOBODY = BrokerRefusal("no such order", missing=True)


class FakeBrokerage:
    """Fill at the quote between 14:30 and 21:00 UTC whatever the quote meets; the rest waits and ends at the close.

    `prices` are (bid, ask) by symbol and may be changed at any time; `tick` works what waits. `depth` is the most
    shares of one fill, so that orders fill in parts.
    """

    name = "fake"

    def __init__(
        self, timer: Timer, cash: Decimal, prices: dict[str, tuple[Decimal, Decimal]], depth: Decimal | None = None
    ) -> None:
        self.timer, self.money, self.prices, self.depth = timer, cash, prices, depth
        self.book: dict[str, BrokerOrder] = {}
        self.done: list[BrokerFill] = []
        self.shares: dict[str, Decimal] = {}
        self.blocked = ""
        self.moves: list[CashMove] = []
        if isinstance(timer, SteppedTimer):
            timer.moved = lambda now: self.tick()

    def account(self) -> BrokerAccount:
        value = sum((qty * self.prices[symbol][0] for symbol, qty in self.shares.items()), Decimal(0))
        return BrokerAccount("fake", self.money, self.money + value, self.money - self._reserved(), self.blocked)

    def holdings(self) -> Sequence[Holding]:
        return [Holding(symbol, qty, qty - self._offered(symbol)) for symbol, qty in self.shares.items() if qty]

    def place(self, ticket: Ticket) -> BrokerOrder:
        if any(order.client_order_id == ticket.client_order_id for order in self.book.values()):
            raise BrokerRefusal("client_order_id must be unique", "40010001", duplicate=True)
        if ticket.symbol not in self.prices:
            raise BrokerRefusal(f"asset {ticket.symbol} not found", "40410000")
        if ticket.qty <= 0:
            raise BrokerRefusal("qty must be > 0", "40010001")
        if ticket.side is Side.SELL:
            free = self.shares.get(ticket.symbol, Decimal(0)) - self._offered(ticket.symbol)
            if ticket.qty > free:
                raise BrokerRefusal(f"insufficient qty available (available: {free})", "40310000", later=True)
        else:
            price = ticket.limit_price or self.prices[ticket.symbol][1]
            if ticket.qty * price > self.money - self._reserved():
                raise BrokerRefusal("insufficient buying power", "40310000", later=True)
        order = BrokerOrder(
            id=f"order-{len(self.book) + 1}",
            client_order_id=ticket.client_order_id,
            symbol=ticket.symbol,
            side=ticket.side,
            qty=ticket.qty,
            filled=Decimal(0),
            state=OrderState.WORKING,
            status="accepted",
            submitted_at=self.timer.now(),
            limit_price=ticket.limit_price,
        )
        self.book[order.id] = order
        self.tick()
        return self.book[order.id]

    def find(self, client_order_id: str) -> BrokerOrder | None:
        self.tick()
        return next((order for order in self.book.values() if order.client_order_id == client_order_id), None)

    def orders(self, since: datetime, symbols: Sequence[str] = ()) -> Sequence[BrokerOrder]:
        self.tick()
        wanted = set(symbols)
        listed = [order for order in self.book.values() if order.submitted_at >= since]
        return [order for order in listed if not wanted or order.symbol in wanted]

    def open_orders(self) -> Sequence[BrokerOrder]:
        self.tick()
        return [order for order in self.book.values() if not order.final]

    def cancel(self, order: str) -> None:
        there = self.book.get(order)
        if there is None:
            raise NOBODY
        if there.final:
            raise BrokerRefusal(f"order is already in {there.status!r} state", "42210000")
        self.book[order] = replace(there, state=OrderState.CANCELLED, status="canceled")

    def cancel_all(self) -> None:
        for order in self.open_orders():
            self.cancel(order.id)

    def close_all(self) -> None:
        self.cancel_all()
        for turn, holding in enumerate(self.holdings()):
            name = f"close-{len(self.book)}-{turn}"
            self.place(Ticket(name, holding.symbol, Side.SELL, holding.qty))

    def fills(self, since: datetime) -> Sequence[BrokerFill]:
        self.tick()
        return [fill for fill in self.done if fill.at >= since]

    def cash_moves(self, after: date) -> Sequence[CashMove]:
        return [move for move in self.moves if move.day > after]

    def quotes(self, symbols: Sequence[str]) -> Mapping[str, Quote]:
        now = self.timer.now()
        return {s: Quote(s, *self.prices[s], now) for s in symbols if s in self.prices}

    def tick(self) -> None:
        """Fill what meets its quote; outside the session end what was there before its close."""
        now = self.timer.now()
        opens, closes = (datetime.combine(now.date(), at, now.tzinfo) for at in (time(14, 30), time(21)))
        for order in [order for order in self.book.values() if not order.final]:
            if opens <= now < closes:
                self._meet(order)
            elif now >= closes and order.submitted_at < closes:
                self.book[order.id] = replace(order, state=OrderState.EXPIRED, status="expired")

    def _meet(self, order: BrokerOrder) -> None:
        bid, ask = self.prices[order.symbol]
        buying = order.side is Side.BUY
        price, limit = (ask, order.limit_price) if buying else (bid, order.limit_price)
        if limit is not None and (price > limit if buying else price < limit):
            return
        qty = order.left if self.depth is None else min(order.left, self.depth)
        amount = cents_of(qty * price)
        self.money += -amount if buying else amount
        self.shares[order.symbol] = self.shares.get(order.symbol, Decimal(0)) + (qty if buying else -qty)
        done = self.timer.now()
        self.done.append(BrokerFill(f"fill-{len(self.done):06}", order.id, order.symbol, order.side, qty, price, done))
        filled = order.filled + qty
        whole = filled == order.qty
        self.book[order.id] = replace(
            order,
            filled=filled,
            state=OrderState.FILLED if whole else OrderState.PARTIAL,
            status="filled" if whole else "partially_filled",
            average=price,
        )

    def _reserved(self) -> Decimal:
        waiting = [order for order in self.book.values() if not order.final and order.side is Side.BUY]
        return sum((o.left * (o.limit_price or self.prices[o.symbol][1]) for o in waiting), Decimal(0))

    def _offered(self, symbol: str) -> Decimal:
        waiting = [o for o in self.book.values() if not o.final and o.symbol == symbol and o.side is Side.SELL]
        return sum((order.left for order in waiting), Decimal(0))

"""The account at the emulated exchange: cash and shares (the in-process exchange's own), orders, fills, what happened.

One register holds all orders of the account's life; `working` are those that may still trade.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from oomrl.domain.trading import CorporateAction
from oomrl.exchange.emulator.board import Board
from oomrl.exchange.emulator.orders import NAMESPACE, PaperFill, PaperOrder, Status
from oomrl.exchange.emulator.terms import Terms
from oomrl.exchange.exchange import PaperExchange


@dataclass(frozen=True, slots=True)
class Action:
    """A change of the account that no order made, at its instant."""

    id: str
    what: CorporateAction
    at: datetime
    day: date


@dataclass(frozen=True, slots=True)
class Transfer:
    """Money that came (positive) or went."""

    id: str
    amount: Decimal
    at: datetime
    day: date


@dataclass(frozen=True, slots=True)
class Update:
    """One event of an order, for the stream. `order` is the order as it was shown then."""

    event: str
    at: datetime
    order: dict[str, Any]
    fill: PaperFill | None = None
    position_qty: Decimal | None = None


class PaperAccount:
    """One account. `on_update` hears of every event of its orders.

    `serial` distinguishes accounts that follow each other at one venue; `journal` is all that moved money or shares,
    in its order; `cost` is the dollars paid for each position, `marks` the equity at each point of the path as
    (instant, day, dollars).
    """

    def __init__(self, terms: Terms, board: Board, cash: Decimal, serial: int = 0) -> None:
        self.terms, self.board, self.serial = terms, board, serial
        self.id = str(uuid.uuid5(NAMESPACE, f"account/{serial}"))
        self.core = PaperExchange(
            cash,
            terms.friction,
            terms.rules,
            delist_after=terms.delist_after,
            delisting_recovery=terms.delisting_recovery,
        )
        self.on_update: Callable[[Update], None] = lambda update: None
        #: A state that an order that became new is shown in, against its true one.
        self.odd_state: Callable[[PaperOrder], str | None] = lambda order: None
        self.opened: datetime | None = None
        self.opening_cash = self.closing_equity = cash
        self.suspended = False
        self.orders: dict[str, PaperOrder] = {}
        self.by_client_id: dict[str, PaperOrder] = {}
        self.working: dict[str, PaperOrder] = {}
        self.fills: list[PaperFill] = []
        self.actions: list[Action] = []
        self.transfers: list[Transfer] = []
        self.journal: list[Transfer | Action | PaperFill] = []
        self.cost: dict[str, Decimal] = {}
        self.marks: list[tuple[datetime, date, Decimal]] = []
        self.day_start_shares: dict[str, Decimal] = {}

    def successor(self, cash: Decimal) -> PaperAccount:
        """Return an empty account under a new id that knows the market as this one does."""
        fresh = PaperAccount(self.terms, self.board, cash, self.serial + 1)
        known = self.core.snapshot()
        names = {symbol: [0.0, *facts[1:]] for symbol, facts in known["names"].items()}
        fresh.core.restore({**known, "cents": int(cash * 100), "names": names})
        fresh.on_update, fresh.odd_state, fresh.opened = self.on_update, self.odd_state, self.board.now
        return fresh

    def identity(self, what: str, number: int) -> str:
        """Return the id of the account's so many-eth thing of a kind."""
        return str(uuid.uuid5(NAMESPACE, f"{what}/{self.id}/{number}"))

    @property
    def cash(self) -> Decimal:
        return self.core.cash()

    def positions(self) -> dict[str, Decimal]:
        """Return shares by symbol."""
        return dict(self.core.positions())

    def market_value(self) -> Decimal:
        """Return the dollars of all positions at their last prices, exact."""
        total = Decimal(0)
        for symbol, shares in self.core.positions().items():
            total += shares * (self.board.price(symbol) or Decimal(0))
        return total

    def equity(self) -> Decimal:
        return self.cash + self.market_value()

    def reserved(self) -> Decimal:
        """Return the dollars that open buys set aside."""
        total = Decimal(0)
        for order in self.working.values():
            if order.buying:
                total += order.ticket.notional or order.remaining * order.reserve
        return total

    def buying_power(self) -> Decimal:
        """Return what is left for buys: the cash, or twice the equity less the margin in use, less open buys."""
        cash = self.cash
        means = cash if self.terms.multiplier == 1 else 2 * cash + self.market_value()
        return max(Decimal(0), means - self.reserved())

    def on_sale(self, symbol: str) -> Decimal:
        """Return the shares that open sales hold."""
        return sum((o.remaining for o in self.working.values() if o.symbol == symbol and not o.buying), Decimal(0))

    def deposit(self, amount: Decimal) -> None:
        """Take money in, or out where negative."""
        self.core.deposit(amount)
        identity = self.identity("transfer", len(self.transfers))
        self.transfers.append(Transfer(identity, amount, self.board.now, self.board.today or self.core.day))
        self.journal.append(self.transfers[-1])

    def act(self, actions: list[CorporateAction]) -> None:
        """Keep what splits, dividends and delistings did."""
        for action in actions:
            identity = self.identity("action", len(self.actions))
            self.actions.append(Action(identity, action, self.board.now, self.board.today or self.core.day))
            self.journal.append(self.actions[-1])
        held = self.core.positions()
        self.cost = {symbol: cost for symbol, cost in self.cost.items() if symbol in held}

    def mark(self, day: date) -> None:
        """Keep the equity of this moment."""
        self.marks.append((self.board.now, day, self.equity()))

    def fill(
        self,
        order: PaperOrder,
        *,
        qty: Decimal,
        price: Decimal,
        amount: Decimal,
        commission: Decimal,
        regulatory: Decimal,
        made_of: tuple[Decimal, Decimal, Decimal, Decimal],
    ) -> None:
        """Keep a fill whose shares and cash the core has already booked, and move its order. See `PaperFill`."""
        held = self.core.position(order.symbol)
        if order.buying:
            self.cost[order.symbol] = self.cost.get(order.symbol, Decimal(0)) + amount
        elif held:
            self.cost[order.symbol] *= held / (held + qty)
        else:
            self.cost.pop(order.symbol, None)
        order.taken += float(qty)
        order.filled_qty += qty
        order.filled_value += qty * price
        day = self.board.today
        assert day is not None
        fill = PaperFill(
            id=self.identity("fill", len(self.fills)),
            order=order,
            qty=qty,
            price=price,
            amount=amount,
            commission=commission,
            regulatory=regulatory,
            at=self.board.now,
            day=day,
            cumulative=order.filled_qty,
            leaves=order.remaining,
            made_of=made_of,
        )
        self.fills.append(fill)
        self.journal.append(fill)
        if order.remaining <= 0:
            self.move(order, Status.FILLED, fill)
        elif order.status in (Status.CANCELED, Status.PENDING_CANCEL):
            self.tell(order, "partial_fill", fill)
        else:
            self.move(order, Status.PARTIALLY_FILLED, fill)

    def move(self, order: PaperOrder, status: Status, fill: PaperFill | None = None) -> None:
        """Change an order's state and tell it."""
        order.move(status, self.board.now)
        if not order.open:
            self.working.pop(order.id, None)
            order.cancels = None
        self.tell(order, _EVENTS.get(status, status.value), fill)
        if status is Status.NEW and (shown := self.odd_state(order)) is not None:
            order.shown_status = shown
            self.tell(order, shown)

    def tell(self, order: PaperOrder, event: str, fill: PaperFill | None = None) -> None:
        """Tell the stream of an event."""
        held = self.core.position(order.symbol) if fill else None
        self.on_update(Update(event, self.board.now, order.shown(), fill, held))


_EVENTS = {Status.FILLED: "fill", Status.PARTIALLY_FILLED: "partial_fill"}

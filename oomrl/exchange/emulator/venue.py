"""The exchange behind the protocol: one account, its orders, and a market that moves along a tape.

Everything happens in `advance` (the market's events, in order) and in the calls that a request makes; the caller runs
both in one thread. Matching, friction, corporate actions and delistings are those of the in-process exchange; this
module keeps what orders have that a batch has not: arrival between the points, times in force, states, replacement.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from typing import Any

import numpy as np

from oomrl.calendar import Hours
from oomrl.domain.market import Session
from oomrl.domain.trading import AccountRules, CorporateAction, Orders
from oomrl.exchange.emulator.board import Board
from oomrl.exchange.emulator.hours import Event, MarketHours, Moment, events_of
from oomrl.exchange.emulator.orders import NAMESPACE, Force, Kind, PaperFill, PaperOrder, Status, Ticket, asset_id
from oomrl.exchange.emulator.protections import Protections
from oomrl.exchange.emulator.refusals import not_found, unprocessable
from oomrl.exchange.emulator.tickets import check_increment
from oomrl.exchange.exchange import PaperExchange
from oomrl.exchange.friction import Friction
from oomrl.exchange.matching import Book
from oomrl.exchange.tape import Tape

GTC_LIFE = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Terms:
    """How the exchange treats its account.

    `multiplier` 1 is a cash account, 2 one with Regulation T margin. `cash_rule` "refuse" refuses buys beyond the
    buying power, as the broker does; "wait" accepts them and lets them wait for cash, as the in-process exchange
    does. `fractional_limits` allows fractional limit and stop orders. The rest is as in `PaperExchange`.
    """

    cash: Decimal = Decimal(1_000_000)
    friction: Friction = field(default_factory=Friction)
    rules: AccountRules = field(default_factory=AccountRules)
    multiplier: int = 1
    cash_rule: str = "refuse"
    fractional_limits: bool = False
    delist_after: int = 10
    delisting_recovery: float = 1.0


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


class Venue:
    """One account at an exchange. `start` is the first session that is still to come; `on_update` hears of orders."""

    def __init__(self, tape: Tape, terms: Terms | None = None, start: date | None = None) -> None:
        self.tape, self.terms = tape, terms or Terms()
        self.hours = MarketHours(tape.days)
        self.start = start or tape.days[0]
        self.on_update: Callable[[Update], None] = lambda update: None
        #: Whether an order's fill shall be partial for no reason of the market's, and which fraction of it.
        self.partly: Callable[[PaperOrder], float | None] = lambda order: None
        #: A state that an order that became new is shown in, against its true one.
        self.odd_state: Callable[[PaperOrder], str | None] = lambda order: None
        self.open_account(self.terms.cash)
        self.board = Board(tape, self.terms.friction, self.terms.delist_after)
        self.untradable: set[str] = set()
        self.suspended = False
        #: Days of which the calendar endpoints show other hours than the market keeps, or none.
        self.misprints: dict[date, Hours | None] = {}
        self._sessions = tape.sessions()
        self._coming = next(self._sessions, None)
        while self._coming is not None and self._coming.day < self.start:
            self._warm_up(self._coming)
            self._coming = next(self._sessions, None)
        before = self.hours.previous(self.start)
        self.now = before.closes + timedelta(minutes=30) if before else self._events_of_coming()[0].at
        self._events = self._upcoming()
        self._next = next(self._events, None)

    def open_account(self, cash: Decimal) -> None:
        """Start over with an empty account: no orders, no positions, no history."""
        terms = self.terms
        self.account_id = str(uuid.uuid5(NAMESPACE, f"account/{getattr(self, 'account_id', '')}"))
        fresh = PaperExchange(
            cash,
            terms.friction,
            terms.rules,
            delist_after=terms.delist_after,
            delisting_recovery=terms.delisting_recovery,
        )
        if hasattr(self, "core"):
            known = self.core.snapshot()
            names = {symbol: [0.0, *facts[1:]] for symbol, facts in known["names"].items()}
            fresh.restore({**known, "cents": int(cash * 100), "names": names})
        self.core = fresh
        self.opened: datetime | None = getattr(self, "now", None)
        self.opening_cash = cash
        self.orders: dict[str, PaperOrder] = {}
        self.by_client_id: dict[str, PaperOrder] = {}
        self.working: dict[str, PaperOrder] = {}
        self.fills: list[PaperFill] = []
        self.actions: list[Action] = []
        self.transfers: list[Transfer] = []
        self.cost: dict[str, Decimal] = {}
        self.marks: list[tuple[datetime, date, Decimal]] = []
        self.closing_equity = cash
        self.day_start_shares: dict[str, Decimal] = {}
        self._freed = 0.0
        self._number = 0

    # What the account is worth

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

    # Time

    def advance(self, to: datetime) -> None:
        """Let everything happen that is due up to an instant, each event at its own."""
        while self._next is not None and self._next.at <= to:
            event = self._next
            self.now = max(self.now, event.at)
            self._happen(event)
            self._next = next(self._events, None)
        self.now = max(self.now, to)

    def calendar(self, first: date, last: date) -> tuple[Hours, ...]:
        """Return the sessions of first <= day <= last, as the calendar endpoints show them."""
        return tuple(
            shown for hours in self.hours.between(first, last) if (shown := self.misprints.get(hours.day, hours))
        )

    @property
    def next_event(self) -> Event | None:
        return self._next

    def next_after(self, moments: tuple[Moment, ...]) -> datetime | None:
        """Return when the first event of certain kinds comes, None once the tape has ended."""
        if self._next is None:
            return None
        for hours in self.hours.between(self._next.day, self.tape.days[-1]):
            for event in events_of(hours):
                if event.at >= self._next.at and event.what in moments:
                    return event.at
        return None

    def _events_of_coming(self) -> tuple[Event, ...]:
        if self._coming is None:
            return ()
        hours = self.hours.session(self._coming.day)
        assert hours is not None
        return events_of(hours)

    def _upcoming(self) -> Iterator[Event]:
        while self._coming is not None:
            yield from self._events_of_coming()
            self._coming = next(self._sessions, None)

    def _warm_up(self, session: Session) -> None:
        self.core.begin(session)
        self.core.end(session)
        self.board.begin(session)
        self.board.end()

    def _happen(self, event: Event) -> None:
        what = event.what
        if what is Moment.MORNING:
            self._morning()
        elif what in (Moment.LOCK_OPG, Moment.LOCK_CLS):
            force = Force.OPG if what is Moment.LOCK_OPG else Force.CLS
            for order in list(self.working.values()):
                if order.ticket.force is force and order.status is not Status.ACCEPTED_FOR_BIDDING:
                    self._move(order, Status.ACCEPTED_FOR_BIDDING)
        else:
            point = what.point
            assert point is not None
            self._reach(point)
            if point == 3:
                self._close()

    def _morning(self) -> None:
        """Begin a session: splits and dividends, for the account and for the orders that wait."""
        session = self._coming
        assert session is not None
        self.board.begin(session)
        self.day_start_shares = self.positions()
        self._act(self.core.begin(session))
        if self.terms.rules.applies_splits and (session["split"] != 1.0).any():
            for order in list(self.working.values()):
                row = self.board.row.get(order.symbol)
                ratio = float(session["split"][row]) if row is not None else 1.0
                if ratio != 1.0:
                    self._restate(order, ratio)
        self.day_start_shares = {name: self.positions().get(name, Decimal(0)) for name in self.day_start_shares}

    def _restate(self, order: PaperOrder, ratio: float) -> None:
        """Restate an order after a split: whole shares towards zero, prices by the ratio, as the engine does."""
        exact = Decimal(repr(ratio))
        if order.qty is not None:
            left = Decimal(int(np.floor(float(order.remaining) * ratio + 1e-6)))
            order.qty = left + order.filled_qty
            if not left:
                self._move(order, Status.CANCELED)
                return
        for name in ("limit", "stop", "hwm"):
            price = getattr(order, name)
            if price is not None:
                setattr(order, name, Decimal(repr(round(float(price) / ratio, 4))))
        order.reserve /= exact

    def _reach(self, point: int) -> None:
        board = self.board
        board.reach(point, self.now)
        if point == 0:
            self._awake()
            self._match([o for o in self._matchable() if not _at_once(o)], 0, entering=True)
            for order in [o for o in self._matchable() if _at_once(o)]:
                self._at_once(order, 0)
            for order in [o for o in self._matchable() if o.ticket.force is Force.OPG]:
                self._move(order, Status.CANCELED)
        else:
            again = [o for o in self._matchable() if o.again]
            self._match([o for o in self._matchable() if o.live and not o.again], point)
            self._match(again, point, entering=True)
            if point == 3:
                auction = [o for o in self._matchable() if o.ticket.force is Force.CLS]
                self._match(auction, point, entering=True)
        for order in self._matchable():
            if order.cancels == "late" and order.open:
                self._move(order, Status.CANCELED)
            elif not order.open:
                del self.working[order.id]
        self._trail()
        self._mark()

    def _awake(self) -> None:
        """Let waiting orders become new at the open; those in names that do not trade are suspended."""
        for order in list(self.working.values()):
            halted = self.board.halted(order.symbol)
            if order.status is Status.SUSPENDED and not halted:
                self._move(order, Status.NEW)
            elif halted and order.status in (Status.ACCEPTED, Status.NEW, Status.DONE_FOR_DAY):
                self._move(order, Status.SUSPENDED)
            elif order.status in (Status.ACCEPTED, Status.DONE_FOR_DAY):
                self._move(order, Status.NEW)

    def _close(self) -> None:
        """End a session: orders for the day end, good-till-cancelled ones rest, delisted positions are paid out."""
        session = self.board.session
        assert session is not None
        self._freed = 0.0
        for order in list(self.working.values()):
            order.taken, order.live, order.again = 0.0, False, False
            if order.entered + GTC_LIFE <= self.now:
                self._move(order, Status.CANCELED)
            elif order.ticket.force is not Force.GTC and order.expires <= self.now:
                self._move(order, Status.CANCELED if order.filled_qty else Status.EXPIRED)
            elif order.status in (Status.NEW, Status.PARTIALLY_FILLED):
                self._move(order, Status.DONE_FOR_DAY)
        self.board.end()
        ended = self.core.end(session)
        self._act(ended)
        for action in ended:
            for order in [o for o in self.working.values() if o.symbol == action.symbol]:
                self._move(order, Status.CANCELED)
        self.closing_equity = self.equity()
        self.marks.append((self.now, session.day, self.closing_equity))

    def _mark(self) -> None:
        day = self.board.today
        if day is not None and self.board.point < 3:
            self.marks.append((self.now, day, self.equity()))

    def _act(self, actions: list[CorporateAction]) -> None:
        day = self.board.today or self.core.day
        for action in actions:
            identity = str(uuid.uuid5(NAMESPACE, f"action/{self.account_id}/{len(self.actions)}"))
            self.actions.append(Action(identity, action, self.now, day))
        held = self.core.positions()
        for symbol in [symbol for symbol in self.cost if symbol not in held]:
            del self.cost[symbol]

    # Orders

    def submit(self, ticket: Ticket) -> tuple[PaperOrder, dict[str, Any]]:
        """Take an order in, and let it trade where the market is open. Returns it as it was first answered.

        Raises `Refusal`.
        """
        reserve = self._check(ticket)
        client_id = ticket.client_order_id
        if client_id is None:
            client_id = str(uuid.uuid5(NAMESPACE, f"client/{self.account_id}/{self._number}"))
        order = self._admit(ticket, client_id, reserve)
        shown = order.shown()
        self._arrive(order)
        return order, shown

    def _check(self, ticket: Ticket, replaced: PaperOrder | None = None) -> Decimal:
        return Protections(self).check(ticket, replaced)

    def _admit(self, ticket: Ticket, client_id: str, reserve: Decimal) -> PaperOrder:
        self._number += 1
        opened = self.hours.current(self.now) is not None and self.board.point >= 0
        life = self.now + GTC_LIFE if ticket.force is Force.GTC else self.hours.expiry(self.now)
        order = PaperOrder(
            id=str(uuid.uuid5(NAMESPACE, f"order/{self.account_id}/{self._number}")),
            number=self._number,
            client_order_id=client_id,
            ticket=ticket,
            qty=ticket.qty,
            limit=ticket.limit,
            stop=ticket.stop,
            entered=self.now,
            expires=life,
            status=Status.PENDING_NEW if opened and ticket.force not in (Force.OPG, Force.CLS) else Status.ACCEPTED,
            reserve=reserve,
        )
        order.stamps["updated_at"] = self.now
        self.orders[order.id] = self.by_client_id[client_id] = self.working[order.id] = order
        if ticket.kind is Kind.TRAILING_STOP:
            order.hwm = self.board.price(ticket.symbol)
            self._set_stop(order)
        return order

    def _arrive(self, order: PaperOrder) -> None:
        if order.status is not Status.PENDING_NEW:
            self._tell(order, Status.ACCEPTED.value)
            return
        if self.board.halted(order.symbol):
            self._move(order, Status.SUSPENDED)
            return
        self._move(order, Status.NEW)
        if _at_once(order):
            self._at_once(order, self.board.point)
        else:
            self._match([order], self.board.point, entering=True, arriving=True)

    def cancel(self, order: PaperOrder, how: str | None = None) -> None:
        """Cancel an open order. Raises `Refusal` where it is not open.

        `how` is what goes wrong: "ignored" (acknowledged, never done), "late" (done after the next point of the
        path), "then_fill" (done, yet it may fill at the next point). None: done at once.
        """
        if not order.open:
            raise unprocessable(f'order is already in "{order.status.value}" state')
        if how is None:
            self._move(order, Status.CANCELED)
        elif how == "then_fill":
            self._move(order, Status.CANCELED)
            self.working[order.id] = order
            order.cancels = "late"
        else:
            order.cancels = how
            self._move(order, Status.PENDING_CANCEL)

    def replace(self, order: PaperOrder, changes: dict[str, Any], *, too_late: bool = False) -> dict[str, Any]:
        """Replace an open order by a new one with a new id; quantities count what the old one has filled.

        `too_late` answers as if it worked, but the old order goes on and the replacement is rejected. Raises
        `Refusal`. Returns the new order as it was first answered.
        """
        if not order.open or order.cancels is not None:
            raise unprocessable(f'unable to replace order, order isn\'t in a replaceable state: "{order.status.value}"')
        if order.ticket.notional is not None:
            raise unprocessable("unable to replace order, notional orders cannot be replaced")
        ticket = self._changed(order, changes)
        reserve = self._check(ticket, order)
        client_id = ticket.client_order_id or str(uuid.uuid5(NAMESPACE, f"client/{self.account_id}/{self._number}"))
        if too_late:
            self._number += 1
            ghost = replace_ghost(order, self._number, self.account_id, client_id, ticket, self.now)
            self._tell(order, "order_replace_rejected")
            return ghost.shown()
        new = self._admit(ticket, client_id, reserve)
        new.replaces, order.replaced_by = order.id, new.id
        new.hwm = order.hwm if order.hwm is not None else new.hwm
        self._set_stop(new)
        new.taken = 0.0
        self._move(order, Status.REPLACED)
        shown = {**new.shown(), "status": Status.PENDING_REPLACE.value}
        self._arrive(new)
        return shown

    def _changed(self, order: PaperOrder, changes: dict[str, Any]) -> Ticket:
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
            ticket = replace(ticket, force=changes["force"])
        return replace(ticket, client_order_id=changes.get("client_order_id"))

    def find(self, order_id: str) -> PaperOrder:
        """Return an order by its id. Raises `Refusal`."""
        order = self.orders.get(order_id)
        if order is None:
            raise not_found(f"order not found for {order_id}")
        return order

    def ban(self, symbol: str) -> None:
        """Make a name untradable from now on; its open orders are rejected."""
        self.untradable.add(symbol)
        for order in [order for order in self.working.values() if order.symbol == symbol and order.open]:
            self._move(order, Status.REJECTED)

    def deposit(self, amount: Decimal) -> None:
        """Take money in, or out where negative."""
        self.core.deposit(amount)
        identity = str(uuid.uuid5(NAMESPACE, f"transfer/{self.account_id}/{len(self.transfers)}"))
        self.transfers.append(Transfer(identity, amount, self.now, self.board.today or self.core.day))

    # Matching

    def _matchable(self) -> list[PaperOrder]:
        return [order for order in self.working.values() if order.status not in (Status.SUSPENDED, Status.HELD)]

    def _match(self, orders: list[PaperOrder], point: int, *, entering: bool = False, arriving: bool = False) -> None:
        """Work orders at a point of the path, and settle what they fill.

        Orders enter at the open or when they arrive, and are worked along the legs afterwards. Those that arrive
        between the points may spend all cash; the others that of sales from the next point on.
        """
        orders = [order for order in orders if order.ticket.force is not Force.CLS or point == 3]
        if point == 0 and not arriving:
            self._freed = 0.0
        if not orders:
            return
        all_cash = arriving or (entering and point > 0)

        def worked(left: dict[int, float]) -> Book:
            book = self._book(orders, point, all_cash)
            for row, shares in left.items():
                book.left[row] = shares
            if entering:
                book.enter(point)
            else:
                book.work(point)
            return book

        book = worked({})
        shortened = self._shortened(orders, book)
        if shortened:
            book = worked(shortened)
        self._take(orders, book, point, spent_freed=all_cash)
        for row in shortened:
            orders[row].again = orders[row].open

    def _shortened(self, orders: list[PaperOrder], book: Book) -> dict[int, float]:
        """Return the fills that shall be partial for no reason of the market's: row -> shares."""
        fills, short = book.result().fills, {}
        for row, shares in zip(fills.order.tolist(), np.abs(fills.shares).tolist(), strict=True):
            fraction = self.partly(orders[row]) if shares > 1 else None
            if fraction is not None:
                short[row] = max(1.0, float(np.floor(shares * fraction)))
        return short

    def _at_once(self, order: PaperOrder, point: int) -> None:
        """Fill an order now or never: what fills of an IOC order stays filled, a FOK order fills whole or not."""
        book = self._book([order], point, all_cash=True)
        book.enter(point)
        whole = not book.left.any() and book.wanted[0] == book.size[0]
        if order.ticket.force is Force.IOC or whole:
            self._take([order], book, point, spent_freed=True)
        if order.open:
            self._move(order, Status.CANCELED)

    def _book(self, orders: list[PaperOrder], point: int, all_cash: bool) -> Book:
        session = self.board.session
        assert session is not None
        symbols = tuple([order.symbol for order in orders])
        rows = self.core.rows_in_session(symbols, session)
        for order in orders:
            if order.ticket.notional is not None and order.qty is None:
                order.qty = self._shares_for(order)
        sign = np.array([1.0 if order.buying else -1.0 for order in orders])
        taken = np.array([order.taken for order in orders])
        size = np.array([float(order.remaining) for order in orders]) + taken
        batch = Orders(
            session.day,
            tuple([order.client_order_id for order in orders]),
            symbols,
            sign * size,
            np.array([np.nan if order.limit is None else float(order.limit) for order in orders]),
            np.array([order.ticket.participation for order in orders]),
            ("",) * len(orders),
        )
        stop = None
        if any(order.stop is not None and not order.triggered for order in orders):
            stop = np.array(
                [np.nan if order.stop is None or order.triggered else float(order.stop) for order in orders]
            )
        cents = int(self.cash.scaleb(2)) + self._credit()
        book = Book(
            batch,
            rows,
            session,
            cents if all_cash else cents - int(self._freed),
            self.terms.friction,
            self.core.volatility(symbols),
            charge_fees=self.terms.rules.charges_fees,
            stop=stop,
            taken=taken,
        )
        if not all_cash:
            book.freed[point] = self._freed
        return book

    def _credit(self) -> int:
        """Return the cents that the broker lends beside the cash."""
        return 0 if self.terms.multiplier == 1 else max(0, int(self.equity().scaleb(2)))

    def _shares_for(self, order: PaperOrder) -> Decimal | None:
        """Return the shares that a notional order's dollars buy at the next price, None where there is none."""
        assert order.ticket.notional is not None
        quote = self.board.quote(order.symbol)
        if quote is None:
            return None
        price = float(quote[1] if order.buying else quote[0]) * 1e4
        session, row = self.board.session, self.board.row.get(order.symbol)
        assert session is not None
        if row is None or not session["volume"][row] > 0:
            return None
        friction, volume = self.terms.friction, session["volume"][row : row + 1]
        scale = friction.impact_scale(self.core.volatility((order.symbol,)), volume)
        shares = float(order.ticket.notional) * 1e4 / price
        impact = float(friction.impact(np.array([price]), scale, np.array([shares]))[0])
        exact = order.ticket.notional / (Decimal(int(price + (impact if order.buying else -impact))) / 10_000)
        return exact.quantize(Decimal(1).scaleb(-9), ROUND_DOWN)

    def _take(self, orders: list[PaperOrder], book: Book, point: int, *, spent_freed: bool) -> None:
        """Settle what a book filled into the account and its orders."""
        matched = book.result()
        cents = matched.cash - self._credit()
        coming = sum(book.freed)
        self._freed = coming + (min(self._freed, max(0.0, cents - coming)) if spent_freed else 0.0)
        for row, order in enumerate(orders):
            order.live, order.again = True, False
            if book.stop is not None and np.isneginf(book.stop[row]):
                order.triggered = True
        self.core.settle(tuple([order.symbol for order in orders]), matched.fills, cents)
        for at in range(len(matched.fills)):
            record = orders[int(matched.fills.order[at])]
            fill = matched.fills
            self._fill(
                record,
                Decimal(repr(round(abs(float(fill.shares[at])), 9))).normalize(),
                Decimal(repr(round(float(fill.price[at]), 4))),
                Decimal(abs(int(fill.cents[at]))).scaleb(-2),
                Decimal(int(matched.commission[at])).scaleb(-2),
                Decimal(int(matched.regulatory[at])).scaleb(-2),
                (
                    _dollars(fill.reference[at]),
                    _dollars(fill.open[at]),
                    _dollars(fill.spread[at]),
                    _dollars(fill.impact[at]),
                ),
            )

    def _fill(
        self,
        order: PaperOrder,
        qty: Decimal,
        price: Decimal,
        amount: Decimal,
        commission: Decimal,
        regulatory: Decimal,
        made_of: tuple[Decimal, Decimal, Decimal, Decimal],
    ) -> None:
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
        done = order.remaining <= 0
        identity = str(uuid.uuid5(NAMESPACE, f"fill/{self.account_id}/{len(self.fills)}"))
        day = self.board.today
        assert day is not None
        fill = PaperFill(
            identity,
            order,
            qty,
            price,
            amount,
            commission,
            regulatory,
            self.now,
            day,
            order.filled_qty,
            order.remaining,
            made_of,
        )
        self.fills.append(fill)
        if done:
            self._move(order, Status.FILLED, fill)
        elif order.status in (Status.CANCELED, Status.PENDING_CANCEL):
            self._tell(order, "partial_fill", fill)
        else:
            self._move(order, Status.PARTIALLY_FILLED, fill)

    # Stops and states

    def _trail(self) -> None:
        for order in self._matchable():
            if order.ticket.kind is Kind.TRAILING_STOP and not order.triggered and order.live:
                price = self.board.price(order.symbol)
                if price is not None and order.hwm is not None:
                    order.hwm = min(order.hwm, price) if order.buying else max(order.hwm, price)
                    self._set_stop(order)

    def _set_stop(self, order: PaperOrder) -> None:
        ticket = order.ticket
        if ticket.kind is not Kind.TRAILING_STOP or order.hwm is None:
            return
        trail = ticket.trail_price or order.hwm * (ticket.trail_percent or Decimal(0)) / 100
        stop = order.hwm + trail if order.buying else order.hwm - trail
        order.stop = max(Decimal("0.0001"), stop.quantize(Decimal("0.0001")))

    def _move(self, order: PaperOrder, status: Status, fill: PaperFill | None = None) -> None:
        order.move(status, self.now)
        if not order.open:
            self.working.pop(order.id, None)
            order.cancels = None
        self._tell(order, _EVENTS.get(status, status.value), fill)
        if status is Status.NEW and (shown := self.odd_state(order)) is not None:
            order.shown_status = shown
            self._tell(order, shown)

    def _tell(self, order: PaperOrder, event: str, fill: PaperFill | None = None) -> None:
        held = self.core.position(order.symbol) if fill else None
        self.on_update(Update(event, self.now, order.shown(), fill, held))


def _at_once(order: PaperOrder) -> bool:
    return order.ticket.force in (Force.IOC, Force.FOK)


def replace_ghost(
    order: PaperOrder, number: int, account: str, client_id: str, ticket: Ticket, now: datetime
) -> PaperOrder:
    """Return the order that a replacement which came too late was answered with; it never existed."""
    ghost = PaperOrder(
        id=str(uuid.uuid5(NAMESPACE, f"order/{account}/{number}")),
        number=number,
        client_order_id=client_id,
        ticket=ticket,
        qty=ticket.qty,
        limit=ticket.limit,
        stop=ticket.stop,
        entered=now,
        expires=order.expires,
        status=Status.PENDING_REPLACE,
        replaces=order.id,
    )
    ghost.stamps["updated_at"] = now
    return ghost


_EVENTS = {Status.FILLED: "fill", Status.PARTIALLY_FILLED: "partial_fill"}

__all__ = ["Terms", "Update", "Venue", "asset_id"]


def _dollars(price: float) -> Decimal:
    return Decimal(repr(round(float(price), 4)))

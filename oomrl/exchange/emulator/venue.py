"""The exchange behind the protocol: one account, its orders, and a market that moves along a tape.

Everything happens in `advance` (the market's events, in order) and in the calls that a request makes; the caller runs
both in one thread. Matching, friction, corporate actions and delistings are those of the in-process exchange; this
module keeps what orders have that a batch has not: arrival between the points, times in force, states, replacement.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from typing import Any

import numpy as np

from oomrl.domain.market import Hours, Session
from oomrl.domain.trading import Side
from oomrl.exchange.emulator.board import Board
from oomrl.exchange.emulator.hours import Event, MarketHours, Moment, events_of
from oomrl.exchange.emulator.matcher import Matcher
from oomrl.exchange.emulator.orders import Force, Kind, PaperOrder, Status, Ticket
from oomrl.exchange.emulator.paper_account import PaperAccount
from oomrl.exchange.emulator.protections import Protections
from oomrl.exchange.emulator.refusals import not_found, unprocessable
from oomrl.exchange.emulator.terms import Terms
from oomrl.exchange.emulator.tickets import changed
from oomrl.exchange.tape import Tape

GTC_LIFE = timedelta(days=90)


class Venue:
    """One account at an exchange that follows a tape. `start` is the first session that is still to come.

    `misprints` are days of which the calendar endpoints show other hours than the market keeps, or none.
    """

    def __init__(self, tape: Tape, terms: Terms | None = None, start: date | None = None) -> None:
        self.tape, self.terms = tape, terms or Terms()
        self.hours = MarketHours(tape.days)
        self.start = start or tape.days[0]
        self.board = Board(tape, self.terms.friction, self.terms.delist_after)
        self.account = PaperAccount(self.terms, self.board, self.terms.cash)
        self.matcher = Matcher(self.account, self.board, self.terms)
        self.untradable: set[str] = set()
        self.misprints: dict[date, Hours | None] = {}
        self._sessions = tape.sessions()
        self._coming = next(self._sessions, None)
        while self._coming is not None and self._coming.day < self.start:
            self._warm_up(self._coming)
            self._coming = next(self._sessions, None)
        before = self.hours.previous(self.start)
        self.board.now = before.closes + timedelta(minutes=30) if before else self._events_of_coming()[0].at
        self._events = self._upcoming()
        self._next = next(self._events, None)

    @property
    def now(self) -> datetime:
        """The market's time, aware UTC."""
        return self.board.now

    def reset(self, cash: Decimal) -> None:
        """Start over with an empty account under a new id: no orders, no positions, no history."""
        partly = self.matcher.partly
        self.account = self.account.successor(cash)
        self.matcher = Matcher(self.account, self.board, self.terms)
        self.matcher.partly = partly

    # Time

    def advance(self, to: datetime) -> None:
        """Let everything happen that is due up to an instant, each event at its own."""
        while self._next is not None and self._next.at <= to:
            event = self._next
            self.board.now = max(self.now, event.at)
            self._happen(event)
            self._next = next(self._events, None)
        self.board.now = max(self.now, to)

    def calendar(self, first: date, last: date) -> tuple[Hours, ...]:
        """Return the sessions of first <= day <= last, as the calendar endpoints show them."""
        wrong = {day: hours for day, hours in self.misprints.items() if first <= day <= last}
        shown = {hours.day: hours for hours in self.hours.between(first, last)} | wrong
        return tuple(hours for _, hours in sorted(shown.items()) if hours)

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
        self.account.core.begin(session)
        self.account.core.end(session)
        self.board.begin(session)
        self.board.end()

    def _happen(self, event: Event) -> None:
        what = event.what
        if what is Moment.MORNING:
            self._morning()
        elif what in (Moment.LOCK_OPG, Moment.LOCK_CLS):
            force = Force.OPG if what is Moment.LOCK_OPG else Force.CLS
            for order in list(self.account.working.values()):
                if order.ticket.force is force and order.status is not Status.ACCEPTED_FOR_BIDDING:
                    self.account.move(order, Status.ACCEPTED_FOR_BIDDING)
        else:
            point = what.point
            assert point is not None
            self._reach(point)
            if point == 3:
                self._close()

    def _morning(self) -> None:
        """Begin a session: splits and dividends, for the account and for the orders that wait."""
        session, account = self._coming, self.account
        assert session is not None
        self.board.begin(session)
        account.act(account.core.begin(session))
        account.day_start_shares = account.positions()
        if self.terms.rules.applies_splits and (session["split"] != 1.0).any():
            for order in list(account.working.values()):
                row = self.board.row.get(order.symbol)
                ratio = float(session["split"][row]) if row is not None else 1.0
                if ratio != 1.0:
                    self._restate(order, ratio)

    def _restate(self, order: PaperOrder, ratio: float) -> None:
        """Restate an order after a split: whole shares towards zero, prices by the ratio, as the engine does."""
        exact = Decimal(repr(ratio))
        if order.qty is not None:
            left = order.remaining * exact
            if order.remaining == order.remaining.to_integral_value():
                left = Decimal(int(np.floor(float(order.remaining) * ratio + 1e-6)))
            left = left.quantize(Decimal(1).scaleb(-9)).normalize()
            order.qty = left + order.filled_qty
            if not left:
                self.account.move(order, Status.CANCELED)
                return
        for name in ("limit", "stop", "hwm"):
            price = getattr(order, name)
            if price is not None:
                setattr(order, name, Decimal(repr(round(float(price) / ratio, 4))))
        order.reserve /= exact

    def _reach(self, point: int) -> None:
        self.board.reach(point)
        matcher = self.matcher
        if point == 0:
            self._awake()
            waiting = [o for o in self._matchable() if o.ticket.force is not Force.CLS]
            matcher.enter([o for o in waiting if not _at_once(o)], at_the_open=True)
            for order in [o for o in waiting if _at_once(o)]:
                matcher.now_or_never(order)
            for order in [o for o in self._matchable() if o.ticket.force is Force.OPG]:
                self.account.move(order, Status.CANCELED)
        else:
            again = [o for o in self._matchable() if o.again]
            matcher.work([o for o in self._matchable() if o.live and not o.again])
            matcher.enter(again)
            if point == 3:
                matcher.enter([o for o in self._matchable() if o.ticket.force is Force.CLS])
        for order in self._matchable():
            if order.cancels == "late" and order.open:
                self.account.move(order, Status.CANCELED)
            elif not order.open:
                del self.account.working[order.id]
        self._trail()
        day = self.board.today
        if day is not None and point < 3:
            self.account.mark(day)

    def _awake(self) -> None:
        """Let waiting orders become new at the open; those in names that do not trade are suspended."""
        for order in list(self.account.working.values()):
            halted = self.board.halted(order.symbol)
            if order.status is Status.SUSPENDED and not halted:
                self.account.move(order, Status.NEW)
            elif halted and order.status in (Status.ACCEPTED, Status.NEW, Status.DONE_FOR_DAY):
                self.account.move(order, Status.SUSPENDED)
            elif order.status in (Status.ACCEPTED, Status.DONE_FOR_DAY):
                self.account.move(order, Status.NEW)

    def _close(self) -> None:
        """End a session: orders for the day end, good-till-cancelled ones rest, delisted positions are paid out."""
        session = self.board.session
        assert session is not None
        self.matcher.freed = 0.0
        for order in list(self.account.working.values()):
            order.taken, order.live, order.again = 0.0, False, False
            if order.entered + GTC_LIFE <= self.now:
                self.account.move(order, Status.CANCELED)
            elif order.ticket.force is not Force.GTC and order.expires <= self.now:
                self.account.move(order, Status.CANCELED if order.filled_qty else Status.EXPIRED)
            elif order.status is Status.NEW:
                self.account.move(order, Status.DONE_FOR_DAY)
        self.board.end()
        ended = self.account.core.end(session)
        self.account.act(ended)
        for action in ended:
            for order in [o for o in self.account.working.values() if o.symbol == action.symbol]:
                self.account.move(order, Status.CANCELED)
        self.account.closing_equity = self.account.equity()
        self.account.mark(session.day)

    # Orders

    def submit(self, ticket: Ticket) -> tuple[PaperOrder, dict[str, Any]]:
        """Take an order in, and let it trade where the market is open. Returns it as it was first answered.

        Raises `Refusal`.
        """
        reserve = self._check(ticket)
        client_id = ticket.client_order_id
        if client_id is None:
            client_id = self.account.identity("client", len(self.account.orders))
        order = self._admit(ticket, client_id, reserve)
        shown = order.shown()
        self._arrive(order)
        return order, shown

    def _check(self, ticket: Ticket, replaced: PaperOrder | None = None) -> Decimal:
        return Protections(self).check(ticket, replaced)

    def _admit(self, ticket: Ticket, client_id: str, reserve: Decimal) -> PaperOrder:
        number = len(self.account.orders) + 1
        opened = self.hours.current(self.now) is not None and self.board.point >= 0
        life = self.now + GTC_LIFE if ticket.force is Force.GTC else self.hours.expiry(self.now)
        order = PaperOrder(
            id=self.account.identity("order", number),
            number=number,
            client_order_id=client_id,
            ticket=ticket,
            qty=self._sold_for(ticket) if ticket.side is Side.SELL else ticket.qty,
            limit=ticket.limit,
            stop=ticket.stop,
            entered=self.now,
            expires=life,
            status=Status.PENDING_NEW if opened and ticket.force not in (Force.OPG, Force.CLS) else Status.ACCEPTED,
            reserve=reserve,
        )
        order.stamps["updated_at"] = self.now
        self.account.orders[order.id] = self.account.by_client_id[client_id] = self.account.working[order.id] = order
        if ticket.kind is Kind.TRAILING_STOP:
            order.hwm = self.board.price(ticket.symbol)
            self._set_stop(order)
        return order

    def _sold_for(self, ticket: Ticket) -> Decimal | None:
        """Return a sale's shares. Those for so many dollars are fixed at the bid, so that none are sold twice."""
        quote = self.board.quote(ticket.symbol)
        if ticket.notional is None or quote is None:
            return ticket.qty
        return (ticket.notional / quote[0]).quantize(Decimal(1).scaleb(-9), ROUND_DOWN).normalize()

    def _arrive(self, order: PaperOrder) -> None:
        if order.status is not Status.PENDING_NEW:
            self.account.tell(order, Status.ACCEPTED.value)
            return
        if self.board.halted(order.symbol):
            self.account.move(order, Status.SUSPENDED)
            return
        self.account.move(order, Status.NEW)
        if _at_once(order):
            self.matcher.now_or_never(order)
        else:
            self.matcher.enter([order])

    def cancel(self, order: PaperOrder, how: str | None = None) -> None:
        """Cancel an open order. Raises `Refusal` where it is not open.

        `how` is what goes wrong: "ignored" (acknowledged, never done), "late" (done after the next point of the
        path), "then_fill" (done, yet it may fill at the next point). None: done at once.
        """
        if not order.open:
            raise unprocessable(f'order is already in "{order.status.value}" state')
        if how is None:
            self.account.move(order, Status.CANCELED)
        elif how == "then_fill":
            self.account.move(order, Status.CANCELED)
            self.account.working[order.id] = order
            order.cancels = "late"
        else:
            order.cancels = how
            self.account.move(order, Status.PENDING_CANCEL)

    def replace(self, order: PaperOrder, changes: dict[str, Any], *, too_late: bool = False) -> dict[str, Any]:
        """Replace an open order by a new one with a new id; quantities count what the old one has filled.

        `too_late` answers as if it worked, but the old order goes on and the replacement is rejected. Raises
        `Refusal`. Returns the new order as it was first answered.
        """
        if not order.open or order.cancels is not None:
            raise unprocessable(f'unable to replace order, order isn\'t in a replaceable state: "{order.status.value}"')
        if order.ticket.notional is not None:
            raise unprocessable("unable to replace order, notional orders cannot be replaced")
        ticket = changed(order, changes)
        reserve = self._check(ticket, order)
        client_id = ticket.client_order_id or self.account.identity("client", len(self.account.orders))
        if too_late:
            self.account.tell(order, "order_replace_rejected")
            return self._ghost(order, ticket, client_id).shown()
        new = self._admit(ticket, client_id, reserve)
        new.replaces, order.replaced_by = order.id, new.id
        new.hwm = order.hwm if order.hwm is not None else new.hwm
        self._set_stop(new)
        self.account.move(order, Status.REPLACED)
        shown = {**new.shown(), "status": Status.PENDING_REPLACE.value}
        self._arrive(new)
        return shown

    def _ghost(self, order: PaperOrder, ticket: Ticket, client_id: str) -> PaperOrder:
        """Return the order that a replacement which came too late is answered with; it never existed."""
        return PaperOrder(
            id=self.account.identity("ghost", len(self.account.orders)),
            number=0,
            client_order_id=client_id,
            ticket=ticket,
            qty=ticket.qty,
            limit=ticket.limit,
            stop=ticket.stop,
            entered=self.now,
            expires=order.expires,
            status=Status.PENDING_REPLACE,
            replaces=order.id,
        )

    def find(self, order_id: str) -> PaperOrder:
        """Return an order by its id. Raises `Refusal`."""
        order = self.account.orders.get(order_id)
        if order is None:
            raise not_found(f"order not found for {order_id}")
        return order

    def ban(self, symbol: str) -> None:
        """Make a name untradable from now on; its open orders are rejected."""
        self.untradable.add(symbol)
        for order in [order for order in self.account.working.values() if order.symbol == symbol and order.open]:
            self.account.move(order, Status.REJECTED)

    def _matchable(self) -> list[PaperOrder]:
        return [order for order in self.account.working.values() if order.status not in (Status.SUSPENDED, Status.HELD)]

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


def _at_once(order: PaperOrder) -> bool:
    return order.ticket.force in (Force.IOC, Force.FOK)

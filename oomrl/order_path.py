"""The order path: from a session's orders to fills in the books, so that a kill at any instruction loses nothing.

Intent first: a placement is a durable row before the broker hears of it, and its client order id is made of that row,
so that a second sending of the same intent is refused by the broker as a duplicate. What the broker says is heard by
listing, never by hope: an answer that did not come leaves the placement in doubt until a listing or a look-up by client
order id says what became of it. Fills are booked once, under the broker's own id, in one transaction with what was
heard of their orders; nothing is booked from a stream, an acknowledgement or a count of shares.

Long for a module, because whoever changes one step of it must have read the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Protocol

from oomrl.domain.books import no_orders
from oomrl.domain.brokerage import (
    FLATTEN,
    BookedFill,
    BrokerAccount,
    BrokerFill,
    BrokerOrder,
    CashMove,
    Holding,
    Placement,
    Quote,
)
from oomrl.domain.collected import Costs, after, execution_of, flattened, moved, paid
from oomrl.domain.market import Hours, Session
from oomrl.domain.reconciliation import Expected, Mismatch, MismatchKind, Policies, Policy, Told, compare
from oomrl.domain.records import OrderState
from oomrl.domain.trading import AccountRules, Execution, Orders
from oomrl.domain.working import Steps, Tactics, Wanted, cleaned, done, steps
from oomrl.errors import BrokerRefusal, Halt, InDoubt, Unavailable
from oomrl.ports import Brokerage, Timer

#: How far the broker's clock may be from ours, so that a listing surely holds what we just sent.
SKEW = timedelta(minutes=5)
#: How often a sweep looks again for orders that are still open after their cancel, and how long it waits each time.
SWEEPS, SWEEP_PAUSE = 20, timedelta(seconds=3)
#: How often money and positions are read anew because a fill came between.
READINGS = 5
#: Sessions behind the average daily volume by which orders are cut into slices.
VOLUME_SESSIONS = 20


class Journal(Protocol):
    """What the order path must find again after a kill. Each method is one transaction."""

    def placements(self, orders: Sequence[str]) -> Sequence[Placement]:
        """Return all attempts for some orders, by order and attempt."""
        ...

    def placement(self, client_order_id: str) -> Placement | None:
        """Return the attempt of a client order id, of any day."""
        ...

    def intend(self, placements: Sequence[Placement]) -> None:
        """Write attempts before the broker hears of them. One that is there already stays as it is."""
        ...

    def hear(self, placements: Sequence[Placement], fills: Sequence[BookedFill] = ()) -> None:
        """Write what became of attempts, and fills that are not booked yet, together."""
        ...

    def booked(self, orders: Sequence[str]) -> Sequence[BookedFill]:
        """Return the fills booked for some orders."""
        ...

    def keep(self, day: date, moves: Sequence[CashMove]) -> None:
        """Write a day's lines of the account that are no trades."""
        ...

    def moves(self, day: date) -> Sequence[CashMove]:
        """Return what was kept of a day."""
        ...

    def note(self, found: Sequence[Mismatch], at: datetime) -> None:
        """Write mismatches as they were found."""
        ...

    def rounding(self) -> Decimal:
        """Return by how much the broker's cash is known to differ: the sum of the adopted cash differences."""
        ...


class SessionHours(Protocol):
    """The exchange's calendar, in what the order path needs of it."""

    def after(self, day: date) -> Hours:
        """Return the first session after a day."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """What the account held after the session of `day`, when the books began: all its cash, shares inside the fence.

    `shared` where others trade in the same account, so that its cash is nobody's to compare; `symbols` is the fence.
    """

    day: date
    cash: Decimal
    positions: Mapping[str, Decimal] = field(default_factory=dict)
    shared: bool = False
    symbols: frozenset[str] | None = None


@dataclass(slots=True)
class OrderPath:
    """Work a session's orders at a brokerage. Implements `ports.Broker`.

    `guard` is asked before each order goes out and raises `Halt` where none may (kill switch, lost lead). `alert` hears
    of mismatches that do not halt; `reconnected` says that the broker's stream began anew, after which books and broker
    are compared. `given` says how much persons have endowed that is not booked yet, so that the broker may show it
    already; `deposited` hears of it once it is. Sessions up to `closed` are history, read from the journal alone.
    """

    brokerage: Brokerage
    journal: Journal
    timer: Timer
    calendar: SessionHours
    opening: Opening
    costs: Costs
    rules: AccountRules
    tactics: Tactics = field(default_factory=Tactics)
    policies: Policies = field(default_factory=Policies)
    guard: Callable[[], None] = lambda: None
    alert: Callable[[Mismatch], None] = lambda mismatch: None
    reconnected: Callable[[], bool] = lambda: False
    given: Callable[[], Decimal] = lambda: Decimal(0)
    deposited: Callable[[Decimal], None] = lambda amount: None
    closed: date = date.min
    waiting: Mapping[str, str] = field(default_factory=dict)
    _batch: Orders | None = None
    _wanted: list[Wanted] = field(default_factory=list)
    _placements: dict[str, Placement] = field(default_factory=dict)
    _booked: dict[str, BookedFill] = field(default_factory=dict)
    _quotes: dict[str, Quote] = field(default_factory=dict)
    _cash: Decimal = Decimal(0)
    _positions: Mapping[str, Decimal] = field(default_factory=dict)
    _volumes: deque[Mapping[str, float]] = field(default_factory=lambda: deque(maxlen=VOLUME_SESSIONS))
    _sums: dict[str, Decimal] = field(default_factory=dict)
    _fills: int = 0
    _sales: Sequence[CashMove] = ()
    _lost: list[str] = field(default_factory=list)
    _begun: bool = False
    _alerts: set[Mismatch] = field(default_factory=set)
    _compared: datetime = datetime.min.replace(tzinfo=UTC)
    _last: date = date.min

    def __post_init__(self) -> None:
        self._cash, self._positions = self.opening.cash, dict(self.opening.positions)
        self._last = self.opening.day

    # -- ports.Broker

    def submit(self, orders: Orders) -> None:
        """Take over the next session's orders; where they go out before the open, send them.

        Again changes nothing, nor does a batch whose session has been collected.
        """
        known = self._batch is not None and self._batch.ids == orders.ids
        if not len(orders) or known or orders.decided_on < self._last:
            return
        self._batch = orders
        self._wanted = [self._want(orders, row) for row in range(len(orders))]
        self._placements = {p.client_order_id: p for p in self.journal.placements(orders.ids)}
        self._booked, self._sums = {}, {}
        self._book(self.journal.booked(orders.ids))
        if orders.decided_on < self.closed:
            return
        self.begin()
        if self.tactics.at_open and self.timer.now() < self._hours().opens:
            self.cycle()

    def collect(self, session: Session) -> Execution:
        """Work the session to its end, settle every order, reconcile, and return all that happened."""
        batch = self._batch or no_orders(session.day)
        live = session.day > self.closed
        if live:
            self.begin()
            self.work()
            self._settle(session.day)
        lines = self.journal.booked(batch.ids) if len(batch) else ()
        moves = self.journal.moves(session.day)
        execution = execution_of(session, batch, lines, moves, self.costs, self.rules)
        self._cash += paid(lines, self.rules)
        self._positions = moved(self._positions, lines)
        self._cash, self._positions = after(self._cash, self._positions, moves)
        self._batch, self._wanted, self._placements, self._booked, self._sums = None, [], {}, {}, {}
        self._last = session.day
        self._sales = [sale for sale in self._sales if sale.day > session.day]
        volumes = zip(session.symbols, session["volume"].tolist(), strict=True)
        self._volumes.append(dict(volumes))
        if live:
            self.reconcile()
        return execution

    def deposit(self, amount: Decimal) -> None:
        """Expect an endowment in the broker's cash from now on."""
        self._cash += amount
        self.deposited(amount)

    def cash(self) -> Decimal:
        """Return the cash that the broker must show: the opening, endowments, fills and lines of the account."""
        return self._cash + paid(self._booked.values(), self.rules)

    def positions(self) -> Mapping[str, Decimal]:
        """Return the shares that the broker must show inside the fence."""
        return moved(self._positions, self._booked.values())

    # -- a session

    def work(self) -> None:
        """Work the current orders until nothing is left to do or the session is over."""
        if self._batch is None:
            return
        hours = self._hours()
        while True:
            last = self.cycle()
            now = self.timer.now()
            if now >= hours.closes or (not self.tactics.at_open and self._done()):
                return
            if self.tactics.at_open:
                self._wait(hours.closes)
            elif now < hours.opens:
                self._wait(hours.opens)
            elif not last.place:
                self.timer.wait(min(now + self.tactics.cycle, hours.closes))

    def cycle(self) -> Steps:
        """Hear what became of earlier orders, then do what is to do now: cancel, then place. Books and broker are
        compared each cycle, no more often than cycles are long."""
        self.refresh()
        if self.reconnected() or self._due():
            self.reconcile()
        for placement in list(self._placements.values()):
            if placement.state is OrderState.INTENDED:
                self._again(placement)
        hours, now = self._hours(), self.timer.now()
        if self.tactics.at_open and now >= hours.opens:
            return Steps()
        cash = self._quote_and_count(now, hours)
        found = steps(self._wanted, self._placements.values(), self._quotes, cash, now, hours, self.tactics)
        self.waiting = found.waiting
        for placement in found.cancel:
            self._hear([replace(placement, cancelling=True)])
            assert placement.broker_id is not None
            self._cancel(placement.broker_id)
        if found.place:
            self.guard()
            self.journal.intend(found.place)
            self._placements |= {p.client_order_id: p for p in found.place}
        for placement in found.place:
            self._send(placement)
        return found

    def refresh(self) -> None:
        """Hear of all placements of the current orders by listing, and book their new fills. Sends nothing."""
        if not self._placements:
            return
        since = min(p.intended_at for p in self._placements.values()) - SKEW
        symbols = sorted({p.symbol for p in self._placements.values()})
        listed = {order.client_order_id: order for order in self.brokerage.orders(since, symbols)}
        changed, self._lost = [], []
        for name, placement in self._placements.items():
            told = listed.get(name)
            if told is None and not placement.final:
                told = self.brokerage.find(name)
            if told is not None:
                now = _heard(placement, told)
                changed += [now] if now != placement else []
            elif placement.broker_id is not None and not placement.final:
                self._lost.append(name)
        self._hear(changed, since)

    def begin(self) -> None:
        """Reconcile once before the first order of this process goes out."""
        if not self._begun:
            self.refresh()
            self.reconcile()
            self._begun = True

    def reconcile(self) -> list[Mismatch]:
        """Compare books and broker. Raises `Halt` for what the policies halt on; says the rest and goes on.

        Listings of a broker may lag behind each other, so that a halting difference counts once it has stayed.
        """
        found = self._differences()
        for _ in range(READINGS):
            if all(mismatch.policy is not Policy.HALT for mismatch in found):
                break
            self._wait(self.timer.now() + SWEEP_PAUSE)
            self.refresh()
            found = self._differences()
        new = [mismatch for mismatch in found if mismatch not in self._alerts]
        if new:
            self.journal.note(new, self.timer.now())
        self._obey(new)
        self._alerts |= {mismatch for mismatch in new if mismatch.policy is Policy.ALERT}
        self._fills, self._compared = 0, self.timer.now()
        return found

    # -- inside

    def _due(self) -> bool:
        """Return whether a cycle has passed since the last comparison; batches handed over whole wait for the close."""
        return not self.tactics.at_open and self.timer.now() - self._compared >= self.tactics.cycle

    def _differences(self) -> list[Mismatch]:
        """Return what differs between books and broker now. Open orders of ours that no current order knows (they
        arrived after we had given them up) are cancelled."""
        account, holdings, moves = self._read()
        orders: list[BrokerOrder] = []
        for order in self.brokerage.open_orders():
            if order.client_order_id in self._placements or order.client_order_id.startswith(FLATTEN):
                continue
            if order.client_order_id and self.journal.placement(order.client_order_id) is not None:
                self._cancel(order.id)
                continue
            orders.append(order)
        behind = {
            name: (placement.filled, booked)
            for name, placement in self._placements.items()
            if (booked := self._booked_of(placement)) != placement.filled
        }

        def compared() -> list[Mismatch]:
            cash, positions = after(self.cash(), self.positions(), (*moves, *self._sales))
            expected = Expected(
                positions=positions,
                cash=None if self.opening.shared else cash + self.journal.rounding(),
                given=self.given(),
                behind=behind,
                lost=self._lost,
                fills=self._fills + len(self._sales),
                symbols=self.opening.symbols,
            )
            return compare(expected, Told(orders, holdings, account.cash, account.blocked), self.policies)

        found = compared()
        if any(mismatch.kind is MismatchKind.UNKNOWN_POSITION for mismatch in found):
            self._adopt_sales()
            found = compared()
        return found

    def _adopt_sales(self) -> None:
        """Look for sales of the kill switch since the last session and write what is new of them, as the policy says.

        They become lines of the account on their days, so that a later start finds them where it finds dividends.
        """
        if self.policies.flattened is not Policy.ADOPT:
            return
        since = datetime.combine(self._last, time.min, UTC)
        orders = self.brokerage.orders(since, sorted(self.positions()))
        if not any(order.client_order_id.startswith(FLATTEN) for order in orders):
            return
        self._sales = [sale for sale in flattened(orders, self.brokerage.fills(since)) if sale.day > self._last]
        for sale in self._sales:
            if all(line.id != sale.id for line in self.journal.moves(sale.day)):
                was = f"{-sale.qty:f} sold at {sale.a_share:f} by {sale.note}"
                found = Mismatch(MismatchKind.FLATTENED, sale.symbol or "", "none sold", was, Policy.ADOPT)
                self.journal.note([found], self.timer.now())
                self.journal.keep(sale.day, [sale])
                self.alert(found)

    def _read(self) -> tuple[BrokerAccount, Sequence[Holding], Sequence[CashMove]]:
        """Return money, positions and lines of the account as they were while no fill came between."""
        for _ in range(READINGS):
            booked = len(self._booked)
            told = self.brokerage.account(), self.brokerage.holdings(), self.brokerage.cash_moves(self._last)
            self.refresh()
            if len(self._booked) == booked:
                break
        return told

    def _settle(self, day: date) -> None:
        """Wait for the close, bring every order to its end, keep the day's lines of the account, reconcile."""
        self._wait(self.calendar.after(day - timedelta(days=1)).closes)
        for _ in range(SWEEPS):
            self.refresh()
            open_ = [p for p in self._placements.values() if not p.final]
            behind = [p for p in self._placements.values() if p.filled != self._booked_of(p)]
            if not open_ and not behind:
                break
            for placement in open_:
                if placement.broker_id is not None:
                    self._cancel(placement.broker_id)
                elif placement.state is OrderState.INTENDED:
                    self._again(placement)
            self._wait(self.timer.now() + SWEEP_PAUSE)
        else:
            names = ", ".join(p.client_order_id for p in (*open_, *behind))
            raise Halt(f"Expected every order of {day} to end with its fills told, was not: {names}. See the broker.")
        self._adopt_sales()
        moves = [move for move in self.brokerage.cash_moves(self._last) if move.day <= day]
        self.journal.keep(day, moves)

    def _again(self, placement: Placement) -> None:
        """Send an intent that the broker does not know, unless its session is over: then it never arrived."""
        hours, now = self._hours(), self.timer.now()
        if now >= (hours.opens if self.tactics.at_open else hours.closes - self.tactics.sweep_before):
            self._hear([replace(placement, state=OrderState.REFUSED, doubtful=False, note="it never arrived")])
            return
        self._send(placement)

    def _send(self, placement: Placement) -> None:
        self.guard()
        try:
            told = self.brokerage.place(placement.ticket())
        except BrokerRefusal as refusal:
            there = self.brokerage.find(placement.client_order_id) if refusal.duplicate or placement.doubtful else None
            if there is not None:
                self._hear([_heard(placement, there)])
            elif refusal.duplicate:
                self._hear([replace(placement, doubtful=True, note=str(refusal))])
            else:
                state = OrderState.REFUSED if refusal.later else OrderState.REJECTED
                self._hear([replace(placement, state=state, doubtful=False, note=str(refusal))])
        except InDoubt as doubt:
            self._hear([replace(placement, doubtful=True, note=str(doubt))])
        except Unavailable as unsent:
            self._hear([replace(placement, note=str(unsent))])
        else:
            self._hear([_heard(placement, told)])

    def _cancel(self, order: str) -> None:
        """Ask to cancel. What became of it is heard by listing; an answer, good or bad, proves nothing."""
        try:
            self.brokerage.cancel(order)
        except (BrokerRefusal, Unavailable):
            return

    def _hear(self, changed: Sequence[Placement], since: datetime | None = None) -> None:
        """Write what was heard, with the fills that it says there must be, in one transaction."""
        now = self._placements | {p.client_order_id: p for p in changed}
        behind = since is not None and any(p.filled > self._booked_of(p) for p in now.values())
        fills = self._new_fills(now, since) if behind and since is not None else []
        if changed or fills:
            self.journal.hear(changed, fills)
        self._placements = now
        self._book(fills)
        self._fills += len(fills)

    def _new_fills(self, placements: Mapping[str, Placement], since: datetime) -> list[BookedFill]:
        mine = {p.broker_id: p for p in placements.values() if p.broker_id is not None}
        day = self._hours().day
        found: dict[str, BookedFill] = {}
        for fill in self.brokerage.fills(since):
            placement = mine.get(fill.order)
            if placement is not None and fill.id not in self._booked:
                line = BookedFill(_of(fill, placement), placement.client_order_id, placement.order, day)
                found[fill.id] = line
        return list(found.values())

    def _booked_of(self, placement: Placement) -> Decimal:
        return self._sums.get(placement.client_order_id, Decimal(0))

    def _book(self, lines: Sequence[BookedFill]) -> None:
        for line in lines:
            if line.fill.id in self._booked:
                continue
            self._booked[line.fill.id] = line
            self._sums[line.client_order_id] = self._sums.get(line.client_order_id, Decimal(0)) + line.fill.qty

    def _quote_and_count(self, now: datetime, hours: Hours) -> Decimal:
        """Bring quotes of the next orders up to date and return the broker's cash; ask for neither in vain."""
        if self.tactics.at_open or not hours.opens <= now < hours.closes - self.tactics.sweep_before:
            return Decimal(0)
        made: dict[str, list[Placement]] = {order.client_order_id: [] for order in self._wanted}
        for placement in self._placements.values():
            made[placement.order].append(placement)
        idle = [
            order.symbol
            for order in self._wanted
            if all(p.final for p in made[order.client_order_id])
            and not done([order], made[order.client_order_id], self.tactics)
        ]
        soon = idle[: self.tactics.most_at_once]
        fresh = now - self.tactics.stale_after / 2
        if any(symbol not in self._quotes or self._quotes[symbol].at < fresh for symbol in soon):
            self._quotes |= self.brokerage.quotes(idle[: 4 * self.tactics.most_at_once])
        return self.brokerage.account().cash if soon else Decimal(0)

    def _done(self) -> bool:
        return done(self._wanted, self._placements.values(), self.tactics)

    def _want(self, orders: Orders, row: int) -> Wanted:
        order = orders.record(row)
        seen = [day[order.symbol] for day in self._volumes if order.symbol in day]
        return Wanted(
            client_order_id=order.client_order_id,
            decided_on=order.decided_on,
            symbol=order.symbol,
            side=order.side,
            qty=order.qty,
            limit_price=order.limit_price,
            participation=float(orders.participation[row]),
            volume=Decimal(int(sum(seen) / len(seen))) if seen else None,
        )

    def _hours(self) -> Hours:
        assert self._batch is not None
        return self.calendar.after(self._batch.decided_on)

    def _wait(self, until: datetime) -> None:
        while self.timer.now() < until:
            self.timer.wait(until)

    def _obey(self, found: Sequence[Mismatch]) -> None:
        halting = [mismatch for mismatch in found if mismatch.policy is Policy.HALT]
        if halting:
            raise Halt("The books and the broker differ: " + "; ".join(str(mismatch) for mismatch in halting))
        for mismatch in found:
            self.alert(mismatch)


def _heard(placement: Placement, told: BrokerOrder) -> Placement:
    return cleaned(placement, told.state, told.filled, told.id)


def _of(fill: BrokerFill, placement: Placement) -> BrokerFill:
    if (fill.symbol, fill.side) != (placement.symbol, placement.side):
        raise Halt(f"Expected a fill of {placement.side} {placement.symbol}, was {fill.side} {fill.symbol} ({fill.id})")
    return fill

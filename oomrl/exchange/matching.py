"""Match a batch of orders against one session's bars.

Orders decided after the close before live along the path open -> nearer of high and low -> the other -> close (a tie
goes to the high first, the dearer order for a buyer). Market orders and limits that the open meets fill at the open,
other limits at their price on the first leg that crosses it. Sales need no cash and come first. Buys are paid in row
order, first come, first served; one that cash cannot pay waits, and fills from the next point of the path after sales
have freed the cash. An order takes at most its share of the session's volume. Prices are reference + concession, the
concession cut so that a limit is never violated; all prices are whole ticks, all amounts whole cents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.domain.market import Bools, Floats, Ints, Session, half_up_cents, ticks
from oomrl.domain.trading import Fills, Orders, UnfilledCause
from oomrl.exchange.friction import Friction

CAUSES = tuple(UnfilledCause)
_NONE, _PARTICIPATION, _LIMIT, _CASH, _NOT_TRADED = range(len(CAUSES))


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """The fills of one batch, fees in cents a fill, what stayed unfilled and why, and the cash afterwards."""

    fills: Fills
    commission: Ints
    regulatory: Ints
    unfilled: Floats
    causes: tuple[UnfilledCause, ...]
    cash: int


_NO_INTS = np.empty(0, dtype=np.int64)
_NO_FLOATS = np.empty(0)
NO_FILLS = Fills(_NO_INTS, _NO_FLOATS, _NO_FLOATS, _NO_FLOATS, _NO_FLOATS, _NO_FLOATS, _NO_FLOATS, _NO_INTS)


def match(
    orders: Orders,
    rows: Ints,
    session: Session,
    cash: int,
    friction: Friction,
    volatility: Floats,
    *,
    charge_fees: bool = True,
    sales_fund_at_once: bool = False,
) -> Matched:
    """Fill a batch. `rows` (n,) are the orders' rows in the session, -1 where the name did not print; `cash` is in
    cents; `volatility` (n,) is daily, known before the session.

    `charge_fees` False leaves fees out of the cash (they are still reported); `sales_fund_at_once` lets sales at the
    open pay for buys at the open, as frictionless comparisons want it.
    """
    if not len(orders):
        return Matched(NO_FILLS, _NO_INTS, _NO_INTS, _NO_FLOATS, (), cash)
    book = Book(orders, rows, session, cash, friction, volatility, charge_fees=charge_fees)
    book.enter(0, sales_fund_at_once=sales_fund_at_once)
    for point in (1, 2, 3):
        book.work(point)
    return book.result()


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Fills that happened together. `values` has shape (7, fills): shares >= 0, reference, half-spread and impact in
    ticks, amount, commission and regulatory fees in cents."""

    rows: Ints
    values: Floats


class Book:
    """One batch at work, point by point of the session's path. Arrays have shape (orders,); prices are whole ticks
    and amounts whole cents in float64.

    `match` walks one book along all four points. An exchange whose orders come and go between the points makes a book
    of what is there at each point instead: `stop` (n,) are prices in dollars that must be reached, against the
    trader, before an order lives (NaN: lives already), `taken` (n,) the shares that it took in this session before.
    `freed[point]` are the cents of sales that become spendable there; whoever goes on in a new book carries them over.
    """

    def __init__(
        self,
        orders: Orders,
        rows: Ints,
        session: Session,
        cash: int,
        friction: Friction,
        volatility: Floats,
        *,
        charge_fees: bool = True,
        stop: Floats | None = None,
        taken: Floats | None = None,
    ) -> None:
        self.orders, self.cash, self.friction, self.charge_fees = orders, float(cash), friction, charge_fees
        self.size = np.abs(orders.shares)
        self.selling: Bools = orders.shares < 0
        self.sign = np.where(self.selling, -1.0, 1.0)
        known = rows >= 0
        at = rows if known.all() else np.where(known, rows, 0)
        if not len(session.symbols):
            session = _blank(session)
        bars = np.array([session[column] for column in ("open", "high", "low", "close", "volume", "tradable")])[:, at]
        opened, high, low, close = ticks(bars[:4])
        volume = bars[4]
        self.alive: Bools = known & (bars[5] > 0) & (volume > 0)
        share = np.minimum(orders.participation, friction.max_participation)
        wanted = np.minimum(self.size, np.floor(share * volume + 1e-9))
        self.wanted = wanted if self.alive.all() else np.where(self.alive, wanted, 0.0)
        self.path = path_of(opened, high, low, close)
        self.scale = friction.impact_scale(volatility, np.maximum(volume, 1.0)) if friction.impact_coefficient else None
        # Seen with the order's sign, prices fall towards the trader and a limit is met from above, buy or sell.
        self.limit: Floats | None = None
        self.stop: Floats | None = None
        unlimited = np.isnan(orders.limit)
        if stop is not None or not unlimited.all():
            self.seen = [self.sign * price for price in self.path]
            self.limit = np.where(unlimited, np.inf, np.floor(self.sign * orders.limit * 10_000 + 1e-6))
        if stop is not None:
            self.stop = np.where(np.isnan(stop), -np.inf, self.sign * ticks(stop))
        self.left = self.wanted.copy() if taken is None else np.maximum(np.round(self.wanted - taken, 9), 0.0)
        self.short: Bools = np.zeros(len(orders), dtype=np.bool_)
        self.freed = [0.0] * 5
        self.legs: list[list[_Chunk]] = [[], [], [], []]

    def enter(self, point: int, *, sales_fund_at_once: bool = False) -> None:
        """Fill the orders that a point meets as they enter there, sales first. The open is the first such point."""
        met = (self.left > 0) & self._triggered(point) & self._meets(point)
        sales = (met & self.selling).nonzero()[0]
        self._sales(sales, self.path[point], point, point if sales_fund_at_once else point + 1)
        self._release(point)
        self._pay((met & ~self.selling).nonzero()[0], self.path[point], point)

    def work(self, point: int) -> None:
        """Walk the leg that ends at a point: stops and limits that it crosses, then cash freed so far, then the buys
        that waited for it."""
        if self.limit is not None:
            reached, reference = self._reached(point)
            touch = self.seen[point] == reference
            price = self.sign * reference
            sales = reached & self.selling
            self._sales((sales & ~touch).nonzero()[0], price, point, point)
            self._sales((sales & touch).nonzero()[0], price, point, point + 1)
            self._pay((reached & ~self.selling).nonzero()[0], price, point)
        if self._release(point):
            waiting = ~self.selling & (self.left > 0) & self._triggered(point) & self._meets(point)
            self._pay(waiting.nonzero()[0], self.path[point], point)

    def result(self) -> Matched:
        """Return the fills in the order in which they happened."""
        unfilled = self.size - self.wanted + self.left
        causes = self._causes(unfilled)
        chunks = [chunk for leg in self.legs for chunk in leg]
        unfilled = self.sign * unfilled
        cash = int(self.cash + sum(self.freed))
        if not chunks:
            return Matched(NO_FILLS, _NO_INTS, _NO_INTS, unfilled, causes, cash)
        row = np.concatenate([chunk.rows for chunk in chunks])
        size, reference, spread, impact, cents, commission, regulatory = np.concatenate(
            [chunk.values for chunk in chunks], axis=1
        )
        sign = self.sign[row]
        spread, impact = sign * spread, sign * impact
        prices = np.array([reference + spread + impact, reference, self.path[0][row], spread, impact]) / 10_000
        whole = np.array([-sign * cents, commission, regulatory]).astype(np.int64)
        fills = Fills(row, sign * size, prices[0], prices[1], prices[2], prices[3], prices[4], whole[0])
        return Matched(fills, whole[1], whole[2], unfilled, causes, cash)

    def _meets(self, point: int) -> Bools | bool:
        return True if self.limit is None else self.seen[point] <= self.limit

    def _triggered(self, point: int) -> Bools | bool:
        if self.stop is None:
            return True
        self.stop = np.where(self.seen[point] >= self.stop, -np.inf, self.stop)
        return np.isneginf(self.stop)

    def _reached(self, point: int) -> tuple[Bools, Floats]:
        """Return which waiting orders the leg to a point fills, and at which price as seen by each."""
        assert self.limit is not None
        before, here = self.seen[point - 1], self.seen[point]
        reached: Bools = (self.left > 0) & (before > self.limit) & (here <= self.limit)
        if self.stop is None:
            return reached, self.limit
        triggers = (before < self.stop) & (here >= self.stop)
        reached &= before >= self.stop
        reached |= (self.left > 0) & triggers & (self.stop <= self.limit)
        reference = np.where(triggers, self.stop, self.limit)
        self.stop = np.where(triggers, -np.inf, self.stop)
        return reached, reference

    def _release(self, point: int) -> bool:
        """Make spendable what sales freed for a point; return whether there was any."""
        freed, self.freed[point] = self.freed[point], 0.0
        self.cash += freed
        return freed > 0

    def _sales(self, which: Ints, prices: Floats, leg: int, frees: int) -> None:
        if not len(which):
            return
        shares, reference = self.left[which], prices[which]
        spread, impact = self._concession(which, reference, shares, selling=True)
        cents = half_up_cents(shares * (reference - spread - impact))
        commission, regulatory = self.friction.sale_fees(shares, cents)
        proceeds = cents - commission - regulatory if self.charge_fees else cents
        self.freed[frees] += float(proceeds.sum())
        self.left[which] = 0.0
        self.legs[leg].append(
            _Chunk(which, np.array([shares, reference, spread, impact, cents, commission, regulatory]))
        )

    def _pay(self, which: Ints, prices: Floats, leg: int) -> None:
        """Fill buys in row order while the cash lasts; the first that it cannot pay whole fills in part."""
        count = len(which)
        if not count:
            return
        reference = prices[which]
        values = self._bought(which, reference, self.left[which])
        total = (values[4] + values[5] if self.charge_fees else values[4]).cumsum()
        paid = int(total.searchsorted(self.cash, side="right"))
        if paid:
            self.cash -= float(total[paid - 1])
            self.left[which[:paid]] = 0.0
            self.legs[leg].append(_Chunk(which[:paid], values[:, :paid]))
        if paid < count:
            self.short[which[paid:]] = True
            each = float(values[1:4, paid].sum())
            each += self.friction.commission_per_share * 1e4 + each * self.friction.commission_bps / 1e4
            shares, rest = divmod(self.cash * 100, each)
            # Rounding to cents and a smaller impact may let one share more through.
            shares += rest > each - 200
            self._pay_part(which[paid : paid + 1], reference[paid : paid + 1], shares, leg)

    def _pay_part(self, row: Ints, reference: Floats, shares: float, leg: int) -> None:
        """Fill one buy in part: the most shares, from an upper estimate down, that the cash pays."""
        while shares >= 1:
            values = self._bought(row, reference, np.array([shares]))
            cost = float(values[4, 0] + values[5, 0] if self.charge_fees else values[4, 0])
            if cost <= self.cash:
                self.cash -= cost
                self.left[row] -= shares
                self.legs[leg].append(_Chunk(row, values))
                return
            shares -= 1

    def _bought(self, which: Ints, reference: Floats, shares: Floats) -> Floats:
        """Return what `_Chunk` holds for buys that have not been paid yet."""
        spread, impact = self._concession(which, reference, shares, selling=False)
        cents = half_up_cents(shares * (reference + spread + impact))
        commission = self.friction.commission(shares, cents)
        return np.array([shares, reference, spread, impact, cents, commission, np.zeros_like(cents)])

    def _concession(self, which: Ints, reference: Floats, shares: Floats, *, selling: bool) -> tuple[Floats, Floats]:
        """Return half-spread and impact, cut so that a limit holds and a sale's price stays above zero."""
        spread = self.friction.half_spread(reference)
        if self.scale is None:
            impact = np.zeros_like(spread)
        else:
            before = self.wanted[which] - self.left[which]
            impact = self.friction.impact(reference, self.scale[which], shares, before)
        if self.limit is None:
            if not selling:
                return spread, impact
            room = reference - 1
        else:
            room = self.limit[which] - self.sign[which] * reference
            if selling:
                room = np.minimum(room, reference - 1)
        spread = np.minimum(spread, room)
        return spread, np.minimum(impact, room - spread)

    def _causes(self, unfilled: Floats) -> tuple[UnfilledCause, ...]:
        if not unfilled.any():
            return (UnfilledCause.NONE,) * len(self.orders)
        code = np.where(self.short, _CASH, _LIMIT)
        code = np.where(self.left > 0, code, _PARTICIPATION)
        code = np.where(self.alive, code, _NOT_TRADED)
        code = np.where(unfilled > 0, code, _NONE)
        return tuple([CAUSES[number] for number in code.tolist()])


def path_of(opened: Floats, high: Floats, low: Floats, close: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return a session's path of four points: open, the nearer of high and low, the other, close. Shapes kept."""
    up_first = high - opened <= opened - low
    return opened, np.where(up_first, high, low), np.where(up_first, low, high), close


def _blank(session: Session) -> Session:
    """Give a session without names one dead row, so that gathers by row 0 stay legal."""
    return Session(session.day, ("",), {column: np.ones(1) for column in session.columns}, session.benchmark)

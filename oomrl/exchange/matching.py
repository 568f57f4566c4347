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


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """A session as the orders of a batch meet it: `path` (4, orders) in ticks, `volume` (orders,) in shares, 0 where
    a name is not traded, and `scale` (orders,) of what an order moves the price by, None for not at all."""

    path: Floats
    volume: Floats
    scale: Floats | None


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
    walk = walk_of(session, rows, friction, volatility)
    book = Book(orders.shares, orders.limit, orders.participation, walk, cash, friction, charge_fees=charge_fees)
    book.walk_through(sales_fund_at_once=sales_fund_at_once)
    return book.result()


def walk_of(session: Session, rows: Ints, friction: Friction, volatility: Floats) -> Walk:
    """Return a session as orders in its `rows` (n,) meet it, -1 where the name did not print."""
    known = rows >= 0
    at = rows if known.all() else np.where(known, rows, 0)
    if not len(session.symbols):
        session = _blank(session)
    bars = np.array([session[column] for column in ("open", "high", "low", "close", "volume", "tradable")])[:, at]
    volume = bars[4]
    scale = friction.impact_scale(volatility, np.maximum(volume, 1.0)) if friction.impact_coefficient else None
    return Walk(np.array(path_of(*ticks(bars[:4]))), np.where(known & (bars[5] > 0), volume, 0.0), scale)


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Fills that happened together, by their orders' `rows`. `values` has shape (7, fills): shares >= 0, reference,
    half-spread and impact in ticks, amount, commission and regulatory fees in cents."""

    rows: Ints
    values: Floats


class Book:
    """One batch at work, point by point of the session's path. Arrays have shape (orders,); prices are whole ticks
    and amounts whole cents in float64. `shares`, `limit` and `participation` are as in `Orders`; None for `limit` or
    `participation` is all market orders, or the whole volume.

    `match` walks one book along all four points. An exchange whose orders come and go between the points makes a book
    of what is there at each point instead: `stop` (n,) are prices in dollars that must be reached, against the
    trader, before an order lives (NaN: lives already), `taken` (n,) the shares that it took in this session before.
    `freed[point]` are the cents of sales that become spendable there; whoever goes on in a new book carries them over.
    """

    def __init__(
        self,
        shares: Floats,
        limit: Floats | None,
        participation: Floats | None,
        walk: Walk,
        cash: int,
        friction: Friction,
        *,
        charge_fees: bool = True,
        stop: Floats | None = None,
        taken: Floats | None = None,
    ) -> None:
        self.cash, self.friction, self.charge_fees = float(cash), friction, charge_fees
        self.path, self.volume, self.scale = walk.path, walk.volume, walk.scale
        self.size = np.abs(shares)
        self.selling: Bools = shares < 0
        self.sign = np.where(self.selling, -1.0, 1.0)
        most = friction.max_participation
        share = most if participation is None else np.minimum(participation, most)
        self.wanted = np.minimum(self.size, np.floor(share * walk.volume + 1e-9))
        # Seen with the order's sign, prices fall towards the trader and a limit is met from above, buy or sell.
        self.limit: Floats | None = None
        self.stop: Floats | None = None
        unlimited = None if limit is None else np.isnan(limit)
        if stop is not None or not (unlimited is None or unlimited.all()):
            self.seen = self.sign * walk.path
            given = np.nan if limit is None else limit
            self.limit = np.where(np.isnan(given), np.inf, np.floor(self.sign * given * 10_000 + 1e-6))
        if stop is not None:
            self.stop = np.where(np.isnan(stop), -np.inf, self.sign * ticks(stop))
        self.begun = taken is not None
        self.left = self.wanted.copy() if taken is None else np.maximum(np.round(self.wanted - taken, 9), 0.0)
        self.short: Bools | None = None
        self.freed = [0.0] * 5
        self.legs: list[list[Chunk]] = [[], [], [], []]

    def walk_through(self, *, sales_fund_at_once: bool = False) -> None:
        """Go along the whole path, or as far as any order has something left."""
        self.enter(0, sales_fund_at_once=sales_fund_at_once)
        for point in (1, 2, 3):
            if not np.count_nonzero(self.left):
                return
            self.work(point)

    def enter(self, point: int, *, sales_fund_at_once: bool = False) -> None:
        """Fill the orders that a point meets as they enter there, sales first. The open is the first such point."""
        met = self._met(point)
        sales, buys = (met & self.selling).nonzero()[0], (met & ~self.selling).nonzero()[0]
        prices, frees = self.path[point], point if sales_fund_at_once else point + 1
        if self.begun:
            self._sales(sales, prices, point, frees)
            self._release(point)
            self._pay(buys, prices, point)
            return
        # Nothing was filled yet: both sides in one pass.
        count = len(sales)
        values = self._quoted(np.concatenate([sales, buys]), prices, count)
        self.begun = True
        self._sell(sales, values[:, :count], point, frees)
        self._release(point)
        self._buy(buys, values[:, count:], point)

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
            waiting = ~self.selling & self._met(point)
            self._pay(waiting.nonzero()[0], self.path[point], point)

    @property
    def cash_after(self) -> int:
        """The cash in cents once all that sales freed is there."""
        return int(self.cash + sum(self.freed))

    @property
    def filled(self) -> Floats:
        """The signed shares that each order took in this book."""
        return self.sign * (self.wanted - self.left)

    @property
    def lacking(self) -> Floats | None:
        """The signed shares that each order misses for lack of cash, None where none does."""
        if self.short is None:
            return None
        unfilled = self.sign * (self.size - self.wanted + self.left)
        return unfilled * (self.short & (self.left > 0))

    def chunk(self) -> Chunk | None:
        """Return all fills in the order in which they happened, None for none."""
        chunks = [chunk for leg in self.legs for chunk in leg]
        if len(chunks) < 2:
            return chunks[0] if chunks else None
        values = np.concatenate([chunk.values for chunk in chunks], axis=1)
        return Chunk(np.concatenate([chunk.rows for chunk in chunks]), values)

    def result(self) -> Matched:
        """Return the fills in the order in which they happened."""
        unfilled = self.size - self.wanted + self.left
        causes = self._causes(unfilled)
        unfilled = self.sign * unfilled
        chunk = self.chunk()
        if chunk is None:
            return Matched(NO_FILLS, _NO_INTS, _NO_INTS, unfilled, causes, self.cash_after)
        row = chunk.rows
        fills, commission, regulatory = fills_of(row, self.sign[row], self.path[0, row], chunk.values)
        return Matched(fills, commission, regulatory, unfilled, causes, self.cash_after)

    def _met(self, point: int) -> Bools:
        """Return which orders have something left and would fill at a point."""
        met: Bools = self.left > 0
        if self.stop is not None:
            self.stop = np.where(self.seen[point] >= self.stop, -np.inf, self.stop)
            met &= np.isneginf(self.stop)
        if self.limit is not None:
            met &= self.seen[point] <= self.limit
        return met

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
        if len(which):
            self._sell(which, self._quoted(which, prices, len(which)), leg, frees)

    def _pay(self, which: Ints, prices: Floats, leg: int) -> None:
        if len(which):
            self._buy(which, self._quoted(which, prices, 0), leg)

    def _sell(self, which: Ints, values: Floats, leg: int, frees: int) -> None:
        """Fill sales whole."""
        if len(which):
            proceeds = values[4] - values[5] - values[6] if self.charge_fees else values[4]
            self.freed[frees] += float(proceeds.sum())
            self.left[which] = 0.0
            self.legs[leg].append(Chunk(which, values))

    def _buy(self, which: Ints, values: Floats, leg: int) -> None:
        """Fill buys in row order while the cash lasts; the first that it cannot pay whole fills in part."""
        count = len(which)
        if not count:
            return
        total = (values[4] + values[5] if self.charge_fees else values[4]).cumsum()
        paid = int(total.searchsorted(self.cash, side="right"))
        if paid:
            self.cash -= float(total[paid - 1])
            self.left[which[:paid]] = 0.0
            self.legs[leg].append(Chunk(which[:paid], values[:, :paid]))
        if paid < count:
            if self.short is None:
                self.short = np.zeros(len(self.left), dtype=np.bool_)
            self.short[which[paid:]] = True
            each = float(values[1:4, paid].sum())
            each += self.friction.commission_per_share * 1e4 + each * self.friction.commission_bps / 1e4
            shares, rest = divmod(self.cash * 100, each)
            # Rounding to cents and a smaller impact may let one share more through.
            shares += rest > each - 200
            self._pay_part(which[paid : paid + 1], values[1, paid : paid + 1], shares, leg)

    def _pay_part(self, row: Ints, reference: Floats, shares: float, leg: int) -> None:
        """Fill one buy in part: the most shares, from an upper estimate down, that the cash pays."""
        while shares >= 1:
            values = self._costs(row, reference, np.array([shares]), 0)
            cost = float(values[4, 0] + values[5, 0] if self.charge_fees else values[4, 0])
            if cost <= self.cash:
                self.cash -= cost
                self.left[row] -= shares
                self.legs[leg].append(Chunk(row, values))
                return
            shares -= 1

    def _quoted(self, which: Ints, prices: Floats, sales: int) -> Floats:
        """Return what `Chunk` holds for all that is left of orders, of which the first `sales` are sales."""
        return self._costs(which, prices[which], self.left[which], sales)

    def _costs(self, which: Ints, reference: Floats, shares: Floats, sales: int) -> Floats:
        values = np.zeros((7, len(which)))
        spread, impact = self._concession(which, reference, shares, sales)
        price = spread + impact
        np.negative(price[:sales], out=price[:sales])
        cents = half_up_cents(shares * (reference + price))
        values[:5] = shares, reference, spread, impact, cents
        if sales:
            values[5:, :sales] = self.friction.sale_fees(shares[:sales], cents[:sales])
        values[5, sales:] = self.friction.commission(shares[sales:], cents[sales:])
        return values

    def _concession(self, which: Ints, reference: Floats, shares: Floats, sales: int) -> tuple[Floats, Floats]:
        """Return half-spread and impact, cut so that a limit holds and a sale's price stays above zero."""
        spread = self.friction.half_spread(reference)
        if self.scale is None:
            impact = np.zeros_like(spread)
        else:
            before = self.wanted[which] - self.left[which] if self.begun else None
            impact = self.friction.impact(reference, self.scale[which], shares, before)
        if self.limit is not None:
            room = self.limit[which] - self.sign[which] * reference
            np.minimum(spread, room, out=spread)
            np.minimum(impact, room - spread, out=impact)
        if sales:
            room = reference[:sales] - 1
            np.minimum(spread[:sales], room, out=spread[:sales])
            np.minimum(impact[:sales], room - spread[:sales], out=impact[:sales])
        return spread, impact

    def _causes(self, unfilled: Floats) -> tuple[UnfilledCause, ...]:
        if not unfilled.any():
            return (UnfilledCause.NONE,) * len(unfilled)
        code = np.where(False if self.short is None else self.short, _CASH, _LIMIT)
        code = np.where(self.left > 0, code, _PARTICIPATION)
        code = np.where(self.volume > 0, code, _NOT_TRADED)
        code = np.where(unfilled > 0, code, _NONE)
        return tuple([CAUSES[number] for number in code.tolist()])


def fills_of(row: Ints, sign: Floats, opened: Floats, values: Floats) -> tuple[Fills, Ints, Ints]:
    """Return fills in dollars, their commission and regulatory fees in cents.

    `row` is each one's order, `sign` -1 for sales, `opened` the session's open in ticks: (fills,); `values` as `Chunk`.
    """
    size, reference, spread, impact, cents, commission, regulatory = values
    spread, impact = sign * spread, sign * impact
    prices = np.array([reference + spread + impact, reference, opened, spread, impact]) / 10_000
    whole = np.array([-sign * cents, commission, regulatory]).astype(np.int64)
    fills = Fills(row, sign * size, prices[0], prices[1], prices[2], prices[3], prices[4], whole[0])
    return fills, whole[1], whole[2]


def path_of(opened: Floats, high: Floats, low: Floats, close: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return a session's path of four points: open, the nearer of high and low, the other, close. Shapes kept."""
    up_first = high - opened <= opened - low
    return opened, np.where(up_first, high, low), np.where(up_first, low, high), close


def _blank(session: Session) -> Session:
    """Give a session without names one dead row, so that gathers by row 0 stay legal."""
    return Session(session.day, ("",), {column: np.ones(1) for column in session.columns}, session.benchmark)

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
    count = len(orders)
    if not count:
        return Matched(NO_FILLS, _NO_INTS, _NO_INTS, _NO_FLOATS, (), cash)
    book = _Book(orders, rows, session, cash, friction, volatility, charge_fees)
    book.sell(sales_fund_at_once)
    book.buy()
    return book.result()


class _Book:
    """One batch at work. Arrays have shape (orders,); prices are whole ticks in float64."""

    def __init__(
        self,
        orders: Orders,
        rows: Ints,
        session: Session,
        cash: int,
        friction: Friction,
        volatility: Floats,
        charge_fees: bool,
    ) -> None:
        self.orders, self.cash, self.friction, self.volatility = orders, cash, friction, volatility
        self.charge_fees = charge_fees
        self.size = np.abs(orders.shares)
        self.selling = orders.shares < 0
        self.sign = np.where(self.selling, -1.0, 1.0)
        known = rows >= 0
        at = rows if known.all() else np.where(known, rows, 0)
        if not len(session.symbols):
            session = _blank(session)
        opened, high, low, close = (ticks(session[column][at]) for column in ("open", "high", "low", "close"))
        self.volume = session["volume"][at]
        self.alive: Bools = known & (session["tradable"][at] > 0) & (self.volume > 0)
        share = np.minimum(orders.participation, friction.max_participation)
        self.wanted = np.where(self.alive, np.minimum(self.size, np.floor(share * self.volume + 1e-9)), 0.0)
        up_first = high - opened <= opened - low
        self.path = (opened, np.where(up_first, high, low), np.where(up_first, low, high), close)
        # Seen with the order's sign, prices fall towards the trader and a limit is met from above, buy or sell.
        self.seen = [self.sign * price for price in self.path]
        limit = np.floor(self.sign * orders.limit * 10_000 + 1e-6)
        self.limit = np.where(np.isnan(orders.limit), np.inf, limit)
        self.left = self.wanted.copy()
        self.short: Bools = np.zeros(len(orders), dtype=np.bool_)
        self.freed = [0, 0, 0, 0, 0]
        self.chunks: list[list[tuple[Ints, Floats, Floats, Floats, Floats]]] = [[], [], [], []]

    def sell(self, at_once: bool) -> None:
        """Fill all sales, and note at which point of the path each one's cash is there."""
        ready = self.selling & (self.left > 0)
        if not ready.any():
            return
        meets = self.seen[0] <= self.limit
        self._sales(np.flatnonzero(ready & meets), self.path[0], 0, None, 0 if at_once else 1)
        ready &= ~meets
        for point in (1, 2, 3):
            if not ready.any():
                return
            crossing = ready & (self.seen[point - 1] > self.limit) & (self.seen[point] <= self.limit)
            ready &= ~crossing
            touch = self.seen[point] == self.limit
            self._sales(np.flatnonzero(crossing & ~touch), self.limit, point, -1.0, point)
            self._sales(np.flatnonzero(crossing & touch), self.limit, point, -1.0, point + 1)

    def _sales(self, which: Ints, prices: Floats, leg: int, sign: float | None, frees: int) -> None:
        if not len(which):
            return
        shares, reference = self.left[which], prices[which] * (sign or 1.0)
        spread, impact = self._concession(which, reference, shares)
        cents = half_up_cents(shares * (reference - spread - impact))
        proceeds = int(cents.sum())
        if self.charge_fees:
            commission, regulatory = self.friction.fees(-shares, cents)
            proceeds -= int(commission.sum()) + int(regulatory.sum())
        self.freed[frees] += proceeds
        self.left[which] = 0.0
        self.chunks[leg].append((which, shares, reference, spread, impact))

    def buy(self) -> None:
        """Walk the path: limits that a leg crosses, then cash freed so far, then the buys that waited for it."""
        self.cash += self.freed[0]
        waiting = ~self.selling & (self.left > 0)
        if waiting.any():
            self._pay(np.flatnonzero(waiting & (self.seen[0] <= self.limit)), self.path[0], 0)
        for point in (1, 2, 3):
            waiting = ~self.selling & (self.left > 0)
            if not waiting.any():
                break
            crossing = waiting & (self.seen[point - 1] > self.limit) & (self.seen[point] <= self.limit)
            if crossing.any():
                self._pay(np.flatnonzero(crossing), self.limit, point)
            if self.freed[point]:
                self.cash += self.freed[point]
                self.freed[point] = 0
                released = ~self.selling & (self.left > 0) & (self.seen[point] <= self.limit)
                self._pay(np.flatnonzero(released), self.path[point], point)
        self.cash += sum(self.freed[1:])

    def _pay(self, which: Ints, prices: Floats, leg: int) -> None:
        """Fill buys in row order while the cash lasts; the first that it cannot pay whole fills in part."""
        if not len(which):
            return
        shares, reference = self.left[which], prices[which]
        spread, impact = self._concession(which, reference, shares)
        cost = self._cost(shares, reference + spread + impact)
        total = np.cumsum(cost)
        paid = int(np.searchsorted(total, self.cash, side="right"))
        if paid < len(which):
            self.short[which[paid:]] = True
        if paid:
            self.cash -= int(total[paid - 1])
            self._take(which[:paid], shares[:paid], reference[:paid], spread[:paid], impact[:paid], leg)
        if paid < len(which):
            each = float((reference + spread + impact)[paid])
            each += self.friction.commission_per_share * 1e4 + each * self.friction.commission_bps / 1e4
            self._pay_part(which[paid : paid + 1], reference[paid : paid + 1], self.cash * 100 // each + 1.0, leg)

    def _pay_part(self, row: Ints, reference: Floats, shares: float, leg: int) -> None:
        """Fill one buy in part: the most shares, from an upper estimate down, that the cash pays."""
        while shares >= 1:
            some = np.array([shares])
            spread, impact = self._concession(row, reference, some)
            cost = int(self._cost(some, reference + spread + impact)[0])
            if cost <= self.cash:
                self.cash -= cost
                self._take(row, some, reference, spread, impact, leg)
                return
            shares -= 1

    def _cost(self, shares: Floats, price: Floats) -> Ints:
        cents = half_up_cents(shares * price)
        return cents + self.friction.fees(shares, cents)[0] if self.charge_fees else cents

    def _take(self, which: Ints, shares: Floats, reference: Floats, spread: Floats, impact: Floats, leg: int) -> None:
        self.left[which] -= shares
        self.chunks[leg].append((which, shares, reference, spread, impact))

    def _concession(self, which: Ints, reference: Floats, shares: Floats) -> tuple[Floats, Floats]:
        """Return half-spread and impact, cut so that a limit holds and a sale's price stays above zero."""
        before = self.wanted[which] - self.left[which]
        spread, impact = self.friction.concession(reference, self.volatility[which], before, shares, self.volume[which])
        room = self.limit[which] - self.sign[which] * reference
        room = np.where(self.selling[which], np.minimum(room, reference - 1), room)
        spread = np.minimum(spread, room)
        return spread, np.minimum(impact, room - spread)

    def result(self) -> Matched:
        """Return the fills in the order in which they happened."""
        chunks = [chunk for leg in self.chunks for chunk in leg]
        filled = self.wanted - self.left
        unfilled = self.size - filled
        causes: tuple[UnfilledCause, ...]
        if unfilled.any():
            code = np.where(self.short, _CASH, _LIMIT)
            code = np.where(self.left > 0, code, _PARTICIPATION)
            code = np.where(self.alive, code, _NOT_TRADED)
            code = np.where(unfilled > 0, code, _NONE)
            causes = tuple([CAUSES[number] for number in code.tolist()])
        else:
            causes = (UnfilledCause.NONE,) * len(self.orders)
        if not chunks:
            return Matched(NO_FILLS, _NO_INTS, _NO_INTS, self.sign * unfilled, causes, self.cash)
        if len(chunks) == 1:
            row, size, reference, spread, impact = chunks[0]
        else:
            row, size, reference, spread, impact = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
        sign = self.sign[row]
        spread, impact = sign * spread, sign * impact
        price = reference + spread + impact
        cents = half_up_cents(size * price)
        shares = sign * size
        cents = np.where(sign > 0, -cents, cents)
        commission, regulatory = self.friction.fees(shares, cents)
        fills = Fills(
            order=row,
            shares=shares,
            price=price / 10_000,
            reference=reference / 10_000,
            open=self.path[0][row] / 10_000,
            spread=spread / 10_000,
            impact=impact / 10_000,
            cents=cents,
        )
        return Matched(fills, commission, regulatory, self.sign * unfilled, causes, self.cash)


def _blank(session: Session) -> Session:
    """Give a session without names one dead row, so that gathers by row 0 stay legal."""
    return Session(session.day, ("",), {column: np.ones(1) for column in session.columns}, session.benchmark)

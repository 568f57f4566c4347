"""Sessions that an account went through in a row, kept until they are explained all at once.

What comes out is, bit for bit, what `Attribution.session` says of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.domain.attribution import ACTIONS, Followed, book_costs, book_held, fill_costs, unexplained
from oomrl.domain.market import Floats, Ints, half_up_cents, ticks
from oomrl.domain.observed import Bars
from oomrl.domain.trading import Fills


@dataclass(frozen=True, slots=True, eq=False)
class Traded:
    """Fills of several sessions, in the order in which they happened: each one's `session`, the number of its `name`
    and its `fees` in cents, (fills,)."""

    fills: Fills
    session: Ints
    name: Ints
    fees: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """Sessions in which nothing but trades and dividends happened to an account. Arrays as in `SessionRecord`.

    `exact` is (sessions, 12), `by_name` (12, sessions, names); all others (sessions,).
    """

    equity_cents: Ints
    pnl_cents: Ints
    exposure: Floats
    exact: Floats
    by_name: Floats


class Span:
    """Gather sessions of one `Bars`. `ticks` and `cents` are the equity before the first, `first` its number."""

    def __init__(self, bars: Bars, first: int, ticks: int, cents: int) -> None:
        self.bars, self.first = bars, first
        self._ticks, self._cents = [np.array([ticks])], [np.array([cents])]
        self._cash: list[Ints] = []
        self._followed: list[Followed] = []
        self._held: list[tuple[Floats, Floats]] = []

    def add(self, followed: Followed, before: Floats, after: Floats, ticks: Ints, cents: Ints, cash: Ints) -> None:
        """Add sessions that were followed as one: shares `before` and `after` their fills (names,); equity in ticks and
        in cents, and cash in cents, (sessions,)."""
        self._followed.append(followed)
        self._held.append((before, after))
        self._ticks.append(ticks)
        self._cents.append(cents)
        self._cash.append(cash)

    def explained(self, traded: Traded) -> Explained:
        """Decompose all of them; `traded` are their fills, sessions counted from the first.

        Raises `Halt` if the parts of a session do not sum to its change of equity.
        """
        turns = np.repeat(np.arange(len(self._cash)), [len(cash) for cash in self._cash])
        ticks, cents, cash = (np.concatenate(each) for each in (self._ticks, self._cents, self._cash))
        parts = self._parts(turns, traded)
        exact = parts.sum(axis=2).T
        change = np.diff(ticks) / 10_000
        wrong = ~(np.abs(exact.sum(axis=1) - change) <= 1e-6 * np.maximum(1.0, np.abs(cents[1:]) / 1e9))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise unexplained(self.bars.days[self.first + at], float(change[at]), float(exact[at].sum()))
        invested = ticks[1:] / 100 - cash
        exposure = np.divide(invested, cents[1:], out=np.zeros(len(cash)), where=cents[1:] > 0)
        return Explained(cents[1:], np.diff(cents), exposure, exact, parts)

    def _parts(self, turns: Ints, traded: Traded) -> Floats:
        """Return the parts by session and name, (12, sessions, names); `turns` (sessions,) are the sessions' places in
        what was added."""
        bars, within = self.bars, slice(self.first, self.first + len(turns))
        target = np.array([one.target for one in self._followed])[turns]
        goal = np.array([one.goal for one in self._followed])[turns]
        short = np.array([one.cash_gap for one in self._followed])[turns]
        before, after = np.array(self._held).swapaxes(0, 1)[:, turns]
        last, dividend = bars.previous[within], bars.dividend[within]
        total = bars.close[within] - last
        parts = np.zeros((12, *total.shape))
        if np.count_nonzero(bars.eventful[within]):
            total = total + dividend
            paid = half_up_cents(ticks(dividend) * before)
            np.subtract(paid / 100, before * dividend, out=parts[ACTIONS])
        if len(traded.fills):
            place = (traded.session, traded.name)
            costs = fill_costs(traded.fills, traded.fees, last[place], dividend[place])
            book_costs(parts, costs, traded.session * total.shape[1] + traded.name)
        market = bars.beta[within] * bars.benchmark[within, None]
        book_held(parts, market, target, goal, short, last, total, goal - after)
        return parts

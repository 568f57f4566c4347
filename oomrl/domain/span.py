"""Sessions that an account went through in a row, kept until they are explained all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.domain.attribution import Attribution, Followed, Traded
from oomrl.domain.market import Floats, Ints
from oomrl.domain.observed import Bars


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
        self._sessions: list[int] = []

    def add(self, followed: Followed, before: Floats, after: Floats, ticks: Ints, cents: Ints, cash: Ints) -> None:
        """Add sessions that were followed as one: shares `before` and `after` (names,); equity in ticks and in cents, and
        cash in cents, (sessions,)."""
        self._followed.append(followed)
        self._held.append((before, after))
        self._sessions.append(len(ticks))
        self._ticks.append(ticks)
        self._cents.append(cents)
        self._cash.append(cash)

    def explained(self, attribution: Attribution, traded: Traded) -> Explained:
        """Decompose all of them; `traded` are their fills, sessions counted from the first.

        Raises `Halt` as `Attribution.session` does.
        """
        ticks, cents, cash = (np.concatenate(each) for each in (self._ticks, self._cents, self._cash))
        exact, by_name = attribution.explain(
            self.bars,
            slice(self.first, self.first + len(cash)),
            self._followed,
            self._held,
            np.repeat(np.arange(len(self._sessions)), self._sessions),
            traded,
            np.diff(ticks),
            cents[1:],
        )
        invested = ticks[1:] / 100 - cash
        exposure = np.divide(invested, cents[1:], out=np.zeros(len(cash)), where=cents[1:] > 0)
        return Explained(cents[1:], np.diff(cents), exposure, exact, by_name)

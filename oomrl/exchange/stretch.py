"""Sessions in a row as replays go through them: the market's side of trading, worked out once for all accounts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from oomrl.domain.market import Bools, Floats, Ints, Session, ticks
from oomrl.domain.observed import Bars
from oomrl.exchange.friction import Friction
from oomrl.exchange.matching import Walk, path_of
from oomrl.exchange.prints import Seen


class Stretch:
    """Sessions in which the same names print, with what is known of the market at each and what their prints teach.

    Arrays are (sessions, names) over the roster. What is asked for is made once, for all sessions; whoever asks about
    a session gets what was known in it.
    """

    def __init__(self, sessions: Sequence[Session], bars: Bars, seen: Seen) -> None:
        self.sessions, self.bars, self.seen = sessions, bars, seen
        self._scales: dict[Friction, Floats] = {}

    def walk(self, at: int, rows: Ints, friction: Friction) -> Walk:
        """Return session number `at` as orders in names by their numbers meet it."""
        scale = self._scale(friction)[at][rows] if friction.impact_coefficient else None
        table = self._path_and_volume[at].take(rows, axis=1)
        return Walk(table[:4], table[4], scale)

    @cached_property
    def dividend_ticks(self) -> Floats:
        """Dividends a share in ticks."""
        return ticks(self.bars.dividend)

    @cached_property
    def open_ticks(self) -> Floats:
        """Opens in ticks."""
        return self._path_and_volume[:, 0]

    @cached_property
    def _path_and_volume(self) -> Floats:
        """The path's four points in ticks and the volume, 0 where a name is not traded: (sessions, 5, names)."""
        bars = self.bars
        opened, high, low = ticks(bars.opened), ticks(self._table("high")), ticks(self._table("low"))
        volume = np.where(bars.tradable, bars.volume, 0.0)
        return np.stack([*path_of(opened, high, low, bars.close_ticks), volume], axis=1)

    def _scale(self, friction: Friction) -> Floats:
        if friction not in self._scales:
            seen = self.seen
            volatility = seen.volatilities
            if not self.bars.whole:
                wide = np.zeros(self.bars.close.shape)
                wide[:, seen.rows] = volatility
                volatility = wide
            self._scales[friction] = friction.impact_scale(volatility, np.maximum(self.bars.volume, 1.0))
        return self._scales[friction]

    def _table(self, column: str) -> Floats:
        values = np.array([session[column] for session in self.sessions])
        if self.bars.whole:
            return values
        wide = np.zeros(self.bars.close.shape)
        wide[:, self.seen.rows] = values
        return wide

    def silent(self, within: slice, sessions: int) -> Bools | None:
        """Return where a name did not print for so many `sessions`, (within, roster), None where every name prints."""
        return None if self.seen.missing is None else self.seen.missing[within] >= sessions

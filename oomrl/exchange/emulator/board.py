"""What the market has shown up to now: prices along the running session, closes before it. Never what comes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np

from oomrl.domain.market import Floats, Ints, Session, ticks
from oomrl.exchange.friction import Friction
from oomrl.exchange.matching import path_of
from oomrl.exchange.tape import Tape

TICK = Decimal("0.0001")


class Board:
    """Follow a tape point by point.

    `now` is the market's time; `closed` counts the tape's sessions that have closed; `session` is the running one from
    its morning to its close, `point` the last point of its path that was reached (-1: none yet).
    """

    def __init__(self, tape: Tape, friction: Friction, delist_after: int) -> None:
        self.tape, self.friction, self.delist_after = tape, friction, delist_after
        self.index = {symbol: number for number, symbol in enumerate(tape.symbols)}
        self.now = datetime.min.replace(tzinfo=UTC)
        self.closed = 0
        self.session: Session | None = None
        self.point = -1
        self.row: dict[str, int] = {}
        self.path = np.empty((4, 0))
        names = len(tape.symbols)
        self._last: Floats = np.full(names, np.nan)
        self._seen: Ints = np.full(names, -1, dtype=np.int64)

    @property
    def today(self) -> date | None:
        """The running session's day."""
        return self.session.day if self.session else None

    def begin(self, session: Session) -> None:
        """Start a session; its bars stay hidden until their points are reached."""
        self.session, self.point = session, -1
        self.row = {symbol: row for row, symbol in enumerate(session.symbols)}
        bars = [ticks(session[column]) for column in ("open", "high", "low", "close")]
        self.path = np.array(path_of(*bars))

    def reach(self, point: int) -> None:
        """Show the next point of the path."""
        self.point = point

    def end(self) -> None:
        """Close the session."""
        assert self.session is not None
        names = np.array([self.index[symbol] for symbol in self.session.symbols], dtype=np.int64)
        self._last[names] = ticks(self.session["close"])
        self._seen[names] = self.closed
        self.closed += 1
        self.session, self.point, self.row = None, -1, {}

    def listed(self, symbol: str) -> bool:
        """Return whether a name has ever printed."""
        number = self.index.get(symbol)
        return number is not None and (self._seen[number] >= 0 or (self.point >= 0 and symbol in self.row))

    def active(self, symbol: str) -> bool:
        """Return whether a name is listed and has printed within the last sessions."""
        if not self.listed(symbol):
            return False
        if self.point >= 0 and symbol in self.row:
            return True
        return self.closed - int(self._seen[self.index[symbol]]) <= self.delist_after

    def halted(self, symbol: str) -> bool:
        """Return whether a name is listed but does not trade in the running session."""
        if self.session is None or self.point < 0:
            return False
        row = self.row.get(symbol)
        return row is None or not self.session["volume"][row] > 0

    def price_ticks(self, symbol: str) -> float:
        """Return the last price in ticks, NaN for a name that never printed."""
        row = self.row.get(symbol)
        if row is not None and self.point >= 0:
            return float(self.path[self.point, row])
        number = self.index.get(symbol)
        return float("nan") if number is None else float(self._last[number])

    def price(self, symbol: str) -> Decimal | None:
        """Return the last price, None for a name that never printed."""
        return _dollars(self.price_ticks(symbol))

    def quote(self, symbol: str) -> tuple[Decimal, Decimal] | None:
        """Return (bid, ask): the last price less and plus the half-spread."""
        price = self.price_ticks(symbol)
        if np.isnan(price):
            return None
        half = float(self.friction.half_spread(np.array([price]))[0])
        bid, ask = _dollars(max(price - half, 1.0)), _dollars(price + half)
        assert bid is not None and ask is not None
        return bid, ask

    def previous_close(self, symbol: str) -> Decimal | None:
        """Return the close of the last session that has ended, restated for a split of the running one."""
        number = self.index.get(symbol)
        if number is None:
            return None
        last = float(self._last[number])
        row = self.row.get(symbol)
        if row is not None and self.session is not None and self.session["split"][row] != 1.0:
            last = float(np.rint(last / self.session["split"][row]))
        return _dollars(last)


def _dollars(price_ticks: float) -> Decimal | None:
    return None if np.isnan(price_ticks) else int(price_ticks) * TICK

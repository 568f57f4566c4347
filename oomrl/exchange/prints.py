"""What an exchange learns from prints: each name's last close, its volatility, how long it has been silent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oomrl.domain.market import Floats, Ints, Roster, Session, padded
from oomrl.exchange.friction import UNKNOWN_VOLATILITY

#: Decay of the exponentially weighted variance of daily returns (RiskMetrics 1996), and how many returns it needs.
DECAY = 0.94
LEAST_RETURNS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What was known of the names before each of some sessions, and how it stood after: (sessions, names).

    `rows` (names that print,) are their places in the roster, and the columns of `variance` and `returns`: the
    weighted variance and the number of returns known before. `missing` (sessions, roster) counts the sessions without
    a print up to and with each, None where every name prints; `close` (roster,) holds the closes of silent names.
    """

    rows: Ints
    variance: Floats
    returns: Floats
    missing: Floats | None
    close: Floats

    @property
    def volatilities(self) -> Floats:
        """The daily volatilities known before each session of the names that print in it, (sessions, names)."""
        volatility: Floats = np.where(self.returns >= LEAST_RETURNS, np.sqrt(self.variance), UNKNOWN_VOLATILITY)
        return volatility

    def volatility(self, at: int, place: Ints) -> Floats:
        """Return the daily volatility known before a session of names by their place in it (-1: no print)."""
        known = (self.returns[at, place] >= LEAST_RETURNS) & (place >= 0)
        volatility: Floats = np.where(known, np.sqrt(self.variance[at, place]), UNKNOWN_VOLATILITY)
        return volatility


class Prints:
    """Follow the prints of a market over a roster, which may be shared. Arrays have shape (names,)."""

    def __init__(self, roster: Roster | None = None) -> None:
        self.roster = Roster() if roster is None else roster
        self.close = self.variance = self.returns = self.missing = np.empty(0)

    def fit(self) -> None:
        """Make room for every name of the roster."""
        size = len(self.roster.symbols)
        if len(self.close) < size:
            self.close, self.variance = padded(self.close, size, np.nan), padded(self.variance, size)
            self.returns, self.missing = padded(self.returns, size), padded(self.missing, size)

    def volatility(self, rows: Ints) -> Floats:
        """Return the daily volatility known of names by their numbers."""
        known = self.returns[rows] >= LEAST_RETURNS
        volatility: Floats = np.where(known, np.sqrt(self.variance[rows]), UNKNOWN_VOLATILITY)
        return volatility

    def see(self, sessions: Sequence[Session]) -> Seen:
        """Learn closed sessions in which the same names print, suspected jumps in the first alone: those teach nothing
        about volatility."""
        first, count = sessions[0], len(sessions)
        rows = self.roster.rows(first.symbols)
        self.fit()
        closes = np.empty((count + 1, len(rows)))
        closes[0] = self.close[rows]
        closes[1:] = [session["close"] for session in sessions]
        dividend, split = np.array([[session[name] for session in sessions] for name in ("dividend", "split")])
        with np.errstate(invalid="ignore"):
            squared = np.log(split * (closes[1:] + dividend) / closes[:-1]) ** 2
        learn = ~np.isnan(closes[0])
        if first.suspected:
            learn &= ~np.isin(first.symbols, first.suspected)
        returns = np.empty((count + 1, len(rows)))
        returns[0] = self.returns[rows]
        returns[1:] = returns[0] + learn + np.arange(count)[:, None]
        variance = np.empty((count + 1, len(rows)))
        variance[0] = now = self.variance[rows]
        weight = np.maximum(1 - DECAY, 1 / (returns[:-1] + 1))
        for at in range(count):
            learned = now + weight[at] * (squared[at] - now)
            variance[at + 1] = now = learned if at else np.where(learn, learned, now)
        before = self.missing + 1
        self.close[rows], self.variance[rows], self.returns[rows] = closes[-1], now, returns[-1]
        self.missing += count
        self.missing[rows] = 0
        silent = None
        if len(rows) < len(self.close):
            silent = before + np.arange(count)[:, None]
            silent[:, rows] = 0
        return Seen(rows, variance[:-1], returns[:-1], silent, self.close)

"""What is known of the market at a close: a pure function of the sessions shown so far, shared by all accounts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from oomrl.domain.market import Bools, Floats, Ints, Roster, Session, padded, ticks

#: Sessions behind an ex-ante beta, and the fewest with which it is estimated; below, it is 1.
BETA_SESSIONS = 252
BETA_LEAST = 60
#: Sessions behind the average daily volume.
VOLUME_SESSIONS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Bar:
    """One session over the whole roster: arrays of shape (names,), one entry for every name ever shown.

    A name that did not print keeps its last close as open, close and `previous`, with split 1 and dividend 0.
    `previous` is the close before (the open for a name's first print), in shares as counted before today's split.
    `returns` are total returns, 0 where there is none or where the jump is suspected. `beta` uses returns before
    this session; `benchmark` is the benchmark's total return of this session; `volume` is in shares, 0 without a print.
    """

    day: date
    present: Bools
    opened: Floats
    close: Floats
    close_ticks: Floats
    previous: Floats
    dividend: Floats
    split: Floats
    eventful: bool
    tradable: Bools
    suspected: Bools | None
    returns: Floats
    beta: Floats
    benchmark: float
    volume: Floats


class Observed:
    """Follow the market session by session. Restore it by showing the same sessions again."""

    def __init__(self) -> None:
        self.roster = Roster()
        self.count = 0
        self.bar: Bar | None = None
        self._close = np.empty(0)
        self._tradable = np.empty(0, dtype=np.bool_)
        self._seen = self._first = np.empty(0)
        self._returns = np.zeros((BETA_SESSIONS, 0))
        self._known = np.zeros((BETA_SESSIONS, 0))
        self._benchmark = np.zeros(BETA_SESSIONS)
        # Running sums of the window, by name: known returns, and over them b, b * b, r and r * b.
        self._sums = np.zeros((5, 0))
        self._volume = np.zeros((VOLUME_SESSIONS, 0))
        self._weights = np.empty(0)
        self._worth = 0.0
        self._all_rows: Ints | None = None
        self._adv: Floats | None = None

    @property
    def day(self) -> date:
        """The last session shown, or `date.min`."""
        return self.bar.day if self.bar else date.min

    def show(self, session: Session) -> Bar:
        """Take in a session that has closed, later than all before it."""
        if session.day <= self.day:
            raise ValueError(f"Expected a session after {self.day}, was {session.day}")
        rows = self.roster.rows(session.symbols)
        size = len(self.roster)
        fresh = size > len(self._close)
        if fresh:
            self._grow(size)
            self._all_rows = None
        whole = rows is self._all_rows
        if not whole and len(rows) == size and (rows == np.arange(size)).all():
            whole, self._all_rows = True, rows
        split, dividend = session["split"], session["dividend"]
        eventful = bool((split != 1.0).any() or dividend.any())
        if whole:
            present = np.ones(size, dtype=np.bool_)
            opened, close, volume = session["open"], session["close"], session["volume"]
            tradable = session["tradable"] > 0
        else:
            present = np.zeros(size, dtype=np.bool_)
            present[rows] = True
            opened, close = self._close.copy(), self._close.copy()
            opened[rows], close[rows] = session["open"], session["close"]
            volume, tradable = np.zeros(size), np.zeros(size, dtype=np.bool_)
            volume[rows], tradable[rows] = session["volume"], session["tradable"] > 0
            split, dividend = np.ones(size), np.zeros(size)
            split[rows], dividend[rows] = session["split"], session["dividend"]
        suspected = None
        if session.suspected:
            suspected = np.isin(np.array(self.roster.symbols), session.suspected)
        known = present & (self._seen > 0) if fresh or not whole else present
        if suspected is not None:
            known = known & ~suspected
        previous = np.where(self._seen > 0, self._close, opened) if fresh or not whole else self._close
        returns = (split * (close + dividend) if eventful else close) / previous - 1.0
        if known is not present or not whole:
            returns = np.where(known, returns, 0.0)
        beta = self._beta(size)
        benchmark = self._index(session, returns)
        self._push(returns, known, benchmark, volume, split, eventful)
        self._seen = self._seen + present if not whole else self._seen + 1.0
        self._close, self._tradable, self._adv = close, tradable, None
        self.bar = Bar(
            session.day,
            present,
            opened,
            close,
            ticks(close),
            previous,
            dividend,
            split,
            eventful,
            tradable,
            suspected,
            returns,
            beta,
            benchmark,
            volume,
        )
        self.count += 1
        return self.bar

    def average_volume(self) -> Floats:
        """Return the mean daily volume of up to 20 sessions to now, in today's shares; 0 for a day without print."""
        if self._adv is None:
            self._adv = self._volume.sum(axis=0) / np.clip(self.count - self._first, 1.0, VOLUME_SESSIONS)
        return self._adv

    def _grow(self, size: int) -> None:
        self._first = padded(self._first, size, float(self.count))
        self._close = padded(self._close, size, np.nan)
        self._seen, self._weights = padded(self._seen, size), padded(self._weights, size)
        self._tradable = padded(self._tradable.astype(np.float64), size) > 0
        self._returns, self._known = padded(self._returns, size), padded(self._known, size)
        self._sums = padded(self._sums, size)
        self._volume = padded(self._volume, size)

    def _beta(self, size: int) -> Floats:
        """Return cov(name, benchmark) / var(benchmark) over each name's known returns of the last 252 sessions."""
        if self.count < BETA_LEAST:
            return np.ones(size)
        n, sum_b, sum_bb, sum_r, sum_rb = self._sums
        below = n * sum_bb - sum_b * sum_b
        usable = (n >= BETA_LEAST) & (below > 1e-12)
        if usable.all():
            return (n * sum_rb - sum_b * sum_r) / below
        return np.where(usable, (n * sum_rb - sum_b * sum_r) / np.where(usable, below, 1.0), 1.0)

    def _index(self, session: Session, returns: Floats) -> float:
        """Return the benchmark's total return: the tape's index, or equal weights over the names tradable the day
        before, set anew at the end of each month and left to drift within it."""
        if session.benchmark is not None:
            return session.benchmark
        last, day = self.day, session.day
        if last.month != day.month or last.year != day.year or not self._worth:
            self._weights = self._tradable.astype(np.float64)
            self._worth = float(self._weights.sum())
            if not self._worth:
                return 0.0
        gain = float(self._weights @ returns) / self._worth
        self._weights = self._weights * (1.0 + returns)
        self._worth *= 1.0 + gain
        return gain

    def _push(
        self, returns: Floats, known: Bools, benchmark: float, volume: Floats, split: Floats, eventful: bool
    ) -> None:
        at = self.count % BETA_SESSIONS
        sums, past = self._sums, float(self._benchmark[at])
        if self.count >= BETA_SESSIONS:
            old, was = self._returns[at], self._known[at]
            lost = past * was
            sums[0] -= was
            sums[1] -= lost
            sums[2] -= past * lost
            sums[3] -= old
            sums[4] -= past * old
        gained = benchmark * known
        sums[0] += known
        sums[1] += gained
        sums[2] += benchmark * gained
        sums[3] += returns
        sums[4] += benchmark * returns
        self._returns[at], self._known[at], self._benchmark[at] = returns, known, benchmark
        if eventful and (split != 1.0).any():
            self._volume = self._volume * split
        self._volume[self.count % VOLUME_SESSIONS] = volume

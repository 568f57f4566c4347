"""What is known of the market at a close: a pure function of the sessions shown so far, shared by all accounts.

Several sessions may be taken in at once. Each row of what comes out is the same, bit for bit, as if its session had
been shown alone, and depends on no later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np

from oomrl.domain.market import Bools, Floats, Ints, Roster, Session, padded, ticks

#: Sessions behind an ex-ante beta, and the fewest with which it is estimated; below, it is 1.
BETA_SESSIONS = 252
BETA_LEAST = 60
#: Sessions behind the average daily volume.
VOLUME_SESSIONS = 20
#: The most numbers (sessions x names) that are taken in at once.
MOST_AT_ONCE = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Bar:
    """One session over the whole roster: arrays of shape (names,), one entry for every name ever shown.

    A name that did not print keeps its last close as open, close and `previous`, with split 1 and dividend 0.
    `previous` is the close before (the open for a name's first print), in shares as counted before today's split.
    `returns` are total returns, 0 where there is none or where the jump is suspected. `beta` uses returns before
    this session; `benchmark` is the benchmark's total return of this session; `volume` is in shares, 0 without a
    print, `average_volume` its mean over up to 20 sessions to this one, in today's shares.
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
    average_volume: Floats


@dataclass(frozen=True, eq=False)
class Bars:
    """Sessions in a row as `Bar` describes each: arrays with a leading axis, (sessions, names).

    The same names print in all of them (`present` (names,), `whole` where that is every name), and only the first may
    have splits or suspected jumps (`jumps` says whether it has). `eventful` (sessions,) tells where there is a split
    or a dividend. `volumes` holds the 20 sessions before too, one row a session, in the shares of these; `listed`
    (names,) says for how many sessions each name is known at the first, `count` is the first one's number.
    """

    days: tuple[date, ...]
    present: Bools
    whole: bool
    jumps: bool
    opened: Floats
    close: Floats
    close_ticks: Floats
    previous: Floats
    dividend: Floats
    split: Floats
    eventful: Bools
    tradable: Bools
    suspected: Bools | None
    returns: Floats
    beta: Floats
    benchmark: Floats
    volume: Floats
    volumes: Floats
    listed: Floats
    count: int

    def __len__(self) -> int:
        return len(self.days)

    def bar(self, at: int) -> Bar:
        """Return one session, the same object to all who ask."""
        made = self._made.get(at)
        if made is None:
            made = self._made[at] = self._bar(at)
        return made

    @cached_property
    def _made(self) -> dict[int, Bar]:
        return {}

    def _bar(self, at: int) -> Bar:
        return Bar(
            self.days[at],
            self.present,
            self.opened[at],
            self.close[at],
            self.close_ticks[at],
            self.previous[at],
            self.dividend[at],
            self.split[at],
            bool(self.eventful[at]),
            self.tradable[at],
            None if at else self.suspected,
            self.returns[at],
            self.beta[at],
            float(self.benchmark[at]),
            self.volume[at],
            self.average_volume[at],
        )

    @cached_property
    def average_volume(self) -> Floats:
        """The mean daily volume of up to 20 sessions to each, in today's shares: (sessions, names).

        Sums in one order whatever was shown together, so that sums of fractions come out alike.
        """
        at = np.arange(len(self))[:, None]
        turns = _TURNS[(self.count + at[:, 0]) % VOLUME_SESSIONS] + at + 1
        means: Floats = self.volumes[turns].sum(axis=1) / np.clip(self.listed + at, 1.0, VOLUME_SESSIONS)
        return means


#: For each place of the newest session in a ring of `VOLUME_SESSIONS`, the ring's rows as numbered from the oldest.
_TURNS = np.array([np.roll(np.arange(VOLUME_SESSIONS), newest + 1) for newest in range(VOLUME_SESSIONS)])


class Observed:
    """Follow the market session by session. Restore it by showing the same sessions again."""

    def __init__(self) -> None:
        self.roster = Roster()
        self.count = 0
        self.day = date.min
        self._bar: Bar | None = None
        self._last: Bars | None = None
        self._close = np.empty(0)
        self._tradable = np.empty(0, dtype=np.bool_)
        self._seen = self._first = np.empty(0)
        self._returns = np.zeros((BETA_SESSIONS, 0))
        self._known = np.zeros((BETA_SESSIONS, 0))
        self._benchmark = np.zeros(BETA_SESSIONS)
        # Running sums of the window, by name: known returns, and over them b, b * b, r and r * b.
        self._sums = np.zeros((5, 0))
        # Volumes of the last sessions, oldest first.
        self._volumes = np.zeros((VOLUME_SESSIONS, 0))
        self._weights = np.empty(0)
        self._worth = 0.0
        self._all_rows: Ints | None = None

    @property
    def bar(self) -> Bar | None:
        """The last session shown."""
        if self._bar is None and self._last is not None:
            self._bar = self._last.bar(len(self._last) - 1)
        return self._bar

    def show(self, session: Session) -> Bar:
        """Take in a session that has closed, later than all before it."""
        self.take((session,))
        bar = self.bar
        assert bar is not None
        return bar

    def take(self, sessions: Sequence[Session]) -> Bars:
        """Take in the first of some sessions that have closed, and as many after it as go with it as `Bars`."""
        session = sessions[0]
        if session.day <= self.day:
            raise ValueError(f"Expected a session after {self.day}, was {session.day}")
        rows = self.roster.rows(session.symbols)
        size = len(self.roster)
        if size > len(self._close):
            self._grow(size)
            self._all_rows = None
        whole = rows is self._all_rows
        if not whole and len(rows) == size and (rows == np.arange(size)).all():
            whole, self._all_rows = True, rows
        sessions = _alike(sessions, max(1, min(MOST_AT_ONCE // max(size, 1), BETA_SESSIONS)))
        count = len(sessions)

        def table(column: str, fill: Floats | float) -> Floats:
            values = np.array([session[column] for session in sessions])
            if whole:
                return values
            out = np.full((count, size), fill)
            out[:, rows] = values
            return out

        present = np.ones(size, dtype=np.bool_)
        if not whole:
            present[:] = False
            present[rows] = True
        opened, close = table("open", self._close), table("close", self._close)
        volume, tradable = table("volume", 0.0), table("tradable", 0.0) > 0
        split, dividend = table("split", 1.0), table("dividend", 0.0)
        eventful = np.asarray(dividend.any(axis=1))
        splits = bool((split[0] != 1.0).any())
        eventful[0] |= splits
        suspected = None
        if session.suspected:
            suspected = np.isin(np.array(self.roster.symbols), session.suspected)
        known = np.empty((count, size), dtype=np.bool_)
        known[:] = present
        known[0] &= self._seen > 0
        if suspected is not None:
            known[0] &= ~suspected
        previous = np.concatenate([np.where(self._seen > 0, self._close, opened[0])[None, :], close[:-1]])
        returns = np.where(known, split * (close + dividend) / previous - 1.0, 0.0)
        benchmark = np.array([self._index(*each) for each in zip(sessions, returns, tradable, strict=True)])
        beta = self._beta(returns, known, benchmark)
        if splits:
            self._volumes = self._volumes * split[0]
        volumes = np.concatenate([self._volumes, volume])
        bars = Bars(
            days=tuple([session.day for session in sessions]),
            present=present,
            whole=whole,
            jumps=splits or suspected is not None,
            opened=opened,
            close=close,
            close_ticks=ticks(close),
            previous=previous,
            dividend=dividend,
            split=split,
            eventful=eventful,
            tradable=tradable,
            suspected=suspected,
            returns=returns,
            beta=beta,
            benchmark=benchmark,
            volume=volume,
            volumes=volumes,
            listed=self.count + 1 - self._first,
            count=self.count,
        )
        self._seen = self._seen + count * present
        self._close, self._volumes = close[-1], volumes[-VOLUME_SESSIONS:]
        self._last, self._bar = bars, None
        self.count += count
        return bars

    def _grow(self, size: int) -> None:
        self._first = padded(self._first, size, float(self.count))
        self._close = padded(self._close, size, np.nan)
        self._seen, self._weights = padded(self._seen, size), padded(self._weights, size)
        self._tradable = padded(self._tradable.astype(np.float64), size) > 0
        self._returns, self._known = padded(self._returns, size), padded(self._known, size)
        self._sums = padded(self._sums, size)
        self._volumes = padded(self._volumes, size)

    def _index(self, session: Session, returns: Floats, tradable: Bools) -> float:
        """Return the benchmark's total return: the tape's index, or equal weights over the names tradable the day
        before, set anew at the end of each month and left to drift within it."""
        last, day = self.day, session.day
        if day <= last:
            raise ValueError(f"Expected a session after {last}, was {day}")
        before, self.day, self._tradable = self._tradable, day, tradable
        if session.benchmark is not None:
            return session.benchmark
        if last.month != day.month or last.year != day.year or not self._worth:
            self._weights = before.astype(np.float64)
            self._worth = float(self._weights.sum())
            if not self._worth:
                return 0.0
        gain = float(self._weights @ returns) / self._worth
        self._weights = self._weights * (1.0 + returns)
        self._worth *= 1.0 + gain
        return gain

    def _beta(self, returns: Floats, known: Bools, benchmark: Floats) -> Floats:
        """Return cov(name, benchmark) / var(benchmark) over each name's known returns of the 252 sessions before each
        row, and move the window on to its end. 1 below 60 sessions."""
        count = len(returns)
        at = (self.count + np.arange(count)) % BETA_SESSIONS
        # One step takes a session out of the sums and the next takes one in, as if they came one by one.
        steps = np.empty((2 * count + 1, *self._sums.shape))
        steps[0] = self._sums
        _moments(steps[1::2], self._returns[at], self._known[at], self._benchmark[at])
        np.negative(steps[1::2], out=steps[1::2])
        _moments(steps[2::2], returns, known, benchmark)
        sums = np.add.accumulate(steps, axis=0)
        self._returns[at], self._known[at], self._benchmark[at] = returns, known, benchmark
        self._sums = sums[-1].copy()
        n, sum_b, sum_bb, sum_r, sum_rb = sums[0:-1:2].swapaxes(0, 1)
        below = n * sum_bb - sum_b * sum_b
        usable = (n >= BETA_LEAST) & (below > 1e-12)
        beta: Floats = np.where(usable, (n * sum_rb - sum_b * sum_r) / np.where(usable, below, 1.0), 1.0)
        return beta


def _alike(sessions: Sequence[Session], most: int) -> Sequence[Session]:
    """Return the first sessions that differ in their bars alone: same names, no split or suspected jump but in the
    first."""
    symbols = sessions[0].symbols
    for at, session in enumerate(sessions[1:most], start=1):
        if session.symbols is not symbols or session.suspected or (session["split"] != 1.0).any():
            return sessions[:at]
    return sessions[:most]


def _moments(out: Floats, returns: Floats, known: Floats | Bools, benchmark: Floats) -> None:
    """Write what each session adds to the running sums into `out`, (sessions, 5, names)."""
    index = benchmark[:, None]
    out[:, 0] = known
    np.multiply(index, known, out=out[:, 1])
    np.multiply(index, out[:, 1], out=out[:, 2])
    out[:, 3] = returns
    np.multiply(index, returns, out=out[:, 4])

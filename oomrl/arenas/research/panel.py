"""A panel of names and days, split into a public part and hidden windows.

Time runs in row numbers. The signal of row t may use rows 0..t; it is executed at the close of row t+1 and
earns the return of row t+2. Every array has the shape (days, names).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from oomrl.arenas.research.operators import ewm
from oomrl.domain.market import Floats

#: Rows from a signal to the return it earns.
HORIZON = 2
BETA_DAYS = 120


@dataclass(frozen=True, slots=True)
class Truth:
    """What only the judge and the oracle know of a synthetic panel.

    `expectation[t]` is E[return of row t+2 | rows 0..t], shape (days, names), all zero on a panel without
    signal: the sum over `signals` of volatility * weight * regime * 0.5 ** (t / halflife) * zscore(signal).
    `regimes` says of each signal whether it is "steady", turns round under stress ("flips") or works in
    "calm" alone.
    """

    expectation: Floats
    signals: tuple[Mapping[str, object], ...] = ()
    weights: tuple[float, ...] = ()
    regimes: tuple[str, ...] = ()
    halflife: float = 1.0
    volatility: tuple[float, ...] = ()

    @property
    def tradable(self) -> bool:
        return bool(self.signals)


@dataclass(frozen=True)
class Panel:
    """Hold what is public and what is hidden of one episode.

    `columns` are the fields by name; `returns[t]` is the total return from close t-1 to close t (row 0: zero);
    `dollar_volume` is the trailing mean traded value known at t; `public_days` is T: rows 0..T-1 are shown.
    `windows` are the hidden windows as (start, stop) rows of signals; their last return is row stop + 1.
    `tradable` is False where a name may not be traded on the signal of that row.
    """

    names: tuple[str, ...]
    columns: Mapping[str, Floats]
    returns: Floats
    dollar_volume: Floats
    tradable: np.ndarray
    public_days: int
    windows: tuple[tuple[int, int], ...]
    truth: Truth | None = field(default=None, repr=False)

    @property
    def days(self) -> int:
        return len(self.returns)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @cached_property
    def market(self) -> Floats:
        """Return the equal-weight return of each row, shape (days,)."""
        return self.returns.mean(axis=1)

    @cached_property
    def beta(self) -> Floats:
        """Return each name's trailing least-squares beta to the market known at t, one part in five to 1."""
        market = self.market
        product = _trailing(self.returns * market[:, None]) - _trailing(self.returns) * _trailing(market)[:, None]
        variance = _trailing(market**2) - _trailing(market) ** 2
        raw = product / np.maximum(variance, 1e-12)[:, None]
        raw[:20] = 1.0
        return 0.8 * np.clip(raw, -1.0, 4.0) + 0.2

    @cached_property
    def volatility(self) -> Floats:
        """Return each name's smoothed deviation of daily returns known at t (half-life 40 rows)."""
        start = np.full((1, self.returns.shape[1]), 0.02**2)
        return np.sqrt(ewm(np.vstack([start, self.returns**2]), 40.0)[1:])

    @cached_property
    def forward(self) -> Floats:
        """Return what the signal of each row earns; NaN in the last two rows."""
        out = np.full_like(self.returns, np.nan)
        out[:-HORIZON] = self.returns[HORIZON:]
        return out

    @cached_property
    def digest(self) -> str:
        """Return a hash of all that the panel holds, hidden part included."""
        state = hashlib.sha256(repr((self.names, self.public_days, self.windows)).encode())
        for name, values in sorted(self.columns.items()):
            state.update(name.encode())
            state.update(np.ascontiguousarray(values).tobytes())
        state.update(np.ascontiguousarray(self.returns).tobytes())
        return state.hexdigest()

    def public(self) -> Panel:
        """Return rows 0..T-1 alone, without truth and windows."""
        stop = self.public_days
        return Panel(
            self.names,
            {name: values[:stop] for name, values in self.columns.items()},
            self.returns[:stop],
            self.dollar_volume[:stop],
            self.tradable[:stop],
            stop,
            (),
        )


def _trailing(values: Floats) -> Floats:
    """Average the last `BETA_DAYS` rows, fewer at the start."""
    total = np.cumsum(values, axis=0)
    total[BETA_DAYS:] -= total[:-BETA_DAYS].copy()
    count = np.minimum(np.arange(1, len(values) + 1), BETA_DAYS)
    return total / (count if values.ndim == 1 else count[:, None])

"""Style proxies: the top fifth's return less the bottom fifth's, of names ranked by what was known the day before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.domain.market import Floats

#: Share of the names at each end, sessions behind momentum and volatility, fewest names for a figure.
END = 0.2
WINDOW = 20
LEAST = 5


@dataclass(frozen=True, slots=True, eq=False)
class Styles:
    """Hold the daily return of each style, fractions of shape (sessions,), NaN where too few names were known."""

    size: Floats
    momentum: Floats
    volatility: Floats


def styles(close: Floats, volume: Floats, returns: Floats) -> Styles:
    """Measure size (log(close * volume)), 20-day momentum and 20-day volatility, each lagged by one session.

    All arrays have shape (sessions, names), NaN where a name did not print; `returns` are simple total returns.
    """
    if not (close.shape == volume.shape == returns.shape) or close.ndim != 2:
        raise ValueError(f"Expected arrays of one shape, was {close.shape}, {volume.shape}, {returns.shape}")
    value = close * volume
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(value > 0, np.log(value), np.nan)
    momentum, volatility = np.full(close.shape, np.nan), np.full(close.shape, np.nan)
    if len(close) >= WINDOW:
        windows = np.lib.stride_tricks.sliding_window_view(returns, WINDOW, axis=0)
        momentum[WINDOW - 1 :] = np.prod(1.0 + windows, axis=2) - 1.0
        volatility[WINDOW - 1 :] = np.std(windows, axis=2, ddof=1)
    return Styles(*(_spread(known, returns) for known in (size, momentum, volatility)))


def _spread(known: Floats, returns: Floats) -> Floats:
    """Return top less bottom for each session, ranked by the session before."""
    out = np.full(len(returns), np.nan)
    for t in range(1, len(returns)):
        usable = np.flatnonzero(np.isfinite(known[t - 1]) & np.isfinite(returns[t]))
        count = int(len(usable) * END)
        if len(usable) < LEAST or count == 0:
            continue
        order = usable[np.argsort(known[t - 1, usable], kind="stable")]
        out[t] = returns[t, order[-count:]].mean() - returns[t, order[:count]].mean()
    return out

"""Causal operators on panels, shape (days, names): row t of an answer uses rows up to t alone.

Nothing but numpy is imported here: the oracle's model code carries these functions into the sandbox as text.
A cell without a value is NaN going in; `zscore` turns it into 0, which means "no view".
"""

import numpy as np


def zscore(x):
    """Standardise each row over its names (population deviation); NaN and rows without spread become 0."""
    seen = np.isfinite(x)
    count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    filled = np.where(seen, x, 0.0)
    centred = np.where(seen, filled - filled.sum(axis=1, keepdims=True) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    return np.where(spread > 1e-12, centred / np.where(spread > 1e-12, spread, 1.0), 0.0)


def ewm(x, halflife):
    """Average with exponentially falling weights; a NaN repeats the average so far."""
    keep = 0.5 ** (1.0 / halflife)
    out = np.empty_like(x)
    level = np.where(np.isfinite(x[0]), x[0], 0.0)
    for t in range(len(x)):
        level = np.where(np.isfinite(x[t]), keep * level + (1.0 - keep) * x[t], level)
        out[t] = level
    return out


def lag(x, days):
    """Take the value of `days` rows earlier; the first rows have none."""
    out = np.full_like(x, np.nan)
    if days < len(x):
        out[days:] = x[: len(x) - days]
    return out


def change(x, days):
    """Subtract the value of `days` rows earlier."""
    return x - lag(x, days)


def mean(x, window):
    """Average the last `window` rows, NaN left out; NaN where none of them has a value."""
    seen = np.isfinite(x)
    total = np.cumsum(np.where(seen, x, 0.0), axis=0)
    count = np.cumsum(seen, axis=0).astype(float)
    total[window:] -= total[:-window].copy()
    count[window:] -= count[:-window].copy()
    return np.where(count > 0, total / np.maximum(count, 1.0), np.nan)

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
    """Average with exponentially falling weights from row 0; a missing cell counts as the last one seen, or 0."""
    keep = 0.5 ** (1.0 / halflife)
    seen = np.isfinite(x)
    last = np.maximum.accumulate(np.where(seen, np.arange(len(x))[:, None], -1), axis=0)
    known = np.take_along_axis(np.where(seen, x, 0.0), np.maximum(last, 0), axis=0)
    filled = np.where(last >= 0, known, 0.0)
    # Rows in blocks: within one, a lower triangle of weights; across, the level carried over.
    step = np.arange(64)
    age = np.maximum(step[:, None] - step, 0)
    weights = np.tril((1.0 - keep) * keep**age)
    carried = keep ** (step + 1.0)
    out = np.empty_like(filled)
    level = filled[0]
    for start in range(0, len(x), 64):
        part = filled[start : start + 64]
        count = len(part)
        out[start : start + count] = weights[:count, :count] @ part + carried[:count, None] * level
        level = out[start + count - 1]
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

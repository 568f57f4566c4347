"""Protected mathematics: returns, dividend reinvestment, cross-sectional ranks and the value of holdings.

Every function here is pure, is pinned by hand-computed golden cases, and may not be changed by a repair.
"""

import numpy as np


def total_return(close: np.ndarray, dividend: np.ndarray, split: np.ndarray, previous_close: np.ndarray) -> np.ndarray:
    """Return the total return from one print to the next, shape (n,), for raw prices in dollars.

    The split applies before the open of the day and the dividend is cash for each share held after it: one
    share of `previous_close` has become `split` shares, each worth `close + dividend`.
    """
    return split * (close + dividend) / previous_close - 1.0


def reinvested(level: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return the logarithm of wealth after a total return is earned and reinvested at that day's close.

    `level` is the logarithm of wealth before, `change` the total return (-1 < change), both shape (n,).
    """
    return level + np.log1p(change)


def growth(later: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """Return the total return between two levels of `reinvested`, shape (n,)."""
    return np.expm1(later - earlier)


def rank(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return mid-ranks in (0, 1) among the names in `mask`, shape (n,); 0.5 for the names outside it.

    The mid-rank is (names below + names at or below) / (2 * names): ties share one rank, the mean is 0.5.
    """
    ranks = np.full(values.shape, 0.5)
    inside = values[mask]
    if inside.size:
        ordered = np.sort(inside)
        below = np.searchsorted(ordered, inside, side="left")
        up_to = np.searchsorted(ordered, inside, side="right")
        ranks[mask] = (below + up_to) / (2.0 * inside.size)
    return ranks


def holding_value(shares: np.ndarray, close: np.ndarray) -> np.ndarray:
    """Return what holdings are worth in dollars at raw closing prices, shape (n,)."""
    return shares * close


def holding_weights(shares: np.ndarray, close: np.ndarray, equity: float) -> np.ndarray:
    """Return holdings as fractions of equity (dollars, above 0), shape (n,)."""
    return holding_value(shares, close) / equity

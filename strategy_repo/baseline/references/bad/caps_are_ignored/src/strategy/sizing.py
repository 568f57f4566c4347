"""How much of each chosen name is held."""

import numpy as np

from strategy.parameters import Parameters

#: Weights never sum to more than this: just below 1, so that rounding cannot lift them above it.
CEILING = 1.0 - 1e-9


def name_cap(count: int, parameters: Parameters) -> float:
    """Return the largest weight of one name: `max_weight`, more where only a few names share the exposure."""
    if count == 0:
        return 0.0
    return min(max(parameters.max_weight, parameters.exposure / count), parameters.few_names_weight)


def proportions(volatility: np.ndarray, chosen: np.ndarray, power: float) -> np.ndarray:
    """Return weights that sum to 1 over `chosen`, each in proportion to volatility to the power -`power`."""
    if not chosen.any():
        return np.zeros(chosen.shape)
    raw = np.where(chosen, volatility ** (-power), 0.0)
    return raw / raw.sum()


def capped(shares: np.ndarray, caps: np.ndarray, budget: float) -> np.ndarray:
    """Return `budget` spread in proportion to `shares`, no name above its cap, shape (names,).

    What a cap cuts off goes to the names below theirs; where every name is at its cap the rest stays cash.
    """
    weights = np.zeros(shares.shape)
    free = shares > 0.0
    left = budget
    while left > 0.0 and free.any():
        spread = left * shares / shares[free].sum()
        over = free & (spread < 0.0)
        if not over.any():
            weights[free] = spread[free]
            break
        weights[over] = caps[over]
        left = left - caps[over].sum()
        free = free & ~over
    return weights


def banded(ideal: np.ndarray, current: np.ndarray, band: float) -> np.ndarray:
    """Return `current` where `ideal` is within `band` of the larger of the two, else `ideal`, shape (names,).

    Entries and exits always pass (for a band below 1): their distance is the whole of the larger weight.
    """
    near = np.abs(ideal - current) <= band * np.maximum(ideal, current)
    return np.where(near, current, ideal)


def fitted(target: np.ndarray, current: np.ndarray, locked: np.ndarray, exposure: float) -> np.ndarray:
    """Return `target` and `locked` together, cut until they fit, shape (names,).

    Purchases (`target` above `current`) are cut in proportion until all weights sum to `exposure` at most. Where
    holdings alone sum to more than 1, those of `target` are cut in proportion, and `locked` only where it must be.
    """
    buys = np.maximum(target - current, 0.0)
    excess = target.sum() + locked.sum() - exposure
    if excess > 0.0 and buys.any():
        target = target - buys * min(1.0, excess / buys.sum())
    locked = scaled_down(locked, CEILING)
    return scaled_down(target, CEILING - locked.sum()) + locked


def scaled_down(weights: np.ndarray, ceiling: float) -> np.ndarray:
    """Return `weights` in proportion so that they sum to `ceiling` (at least 0) at most, shape (names,)."""
    total = weights.sum()
    if total <= ceiling:
        return weights
    return weights * (max(ceiling, 0.0) / total)

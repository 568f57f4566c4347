"""Which names may be bought."""

import numpy as np

from strategy.features import Features
from strategy.parameters import Parameters


def eligible(features: Features, parameters: Parameters) -> np.ndarray:
    """Return the mask, shape (names,), of names that trade today and are old, dear and liquid enough.

    A name must have had a return in half the sessions that its age and the volatility window allow at least.
    Of more than `universe_size` such names the most liquid are taken, the first seen where they tie.
    """
    returns_wanted = min(parameters.min_history, parameters.volatility_window) // 2
    mask = (
        features.tradable
        & (features.age >= parameters.min_history)
        & (features.observed >= returns_wanted)
        & (features.close >= parameters.min_price)
        & (features.dollars > 0.0)
        & (features.dollars >= parameters.min_dollar_volume)
    )
    return most_liquid(mask, features.dollars, parameters.universe_size)


def most_liquid(mask: np.ndarray, dollars: np.ndarray, size: int) -> np.ndarray:
    """Return `mask` cut down to its `size` most liquid names."""
    cut = mask.copy()
    for slot in np.flatnonzero(mask):
        before = mask & (np.arange(mask.size) < slot) & (dollars == dollars[slot])
        more = mask & (dollars > dollars[slot])
        cut[slot] = int(more.sum()) + int(before.sum()) < size
    return cut

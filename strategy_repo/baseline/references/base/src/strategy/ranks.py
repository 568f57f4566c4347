"""One score a name, from the cross-sectional ranks of its factors."""

from dataclasses import dataclass

import numpy as np

from strategy import returns
from strategy.features import Features
from strategy.parameters import Parameters


@dataclass(frozen=True)
class Scores:
    """Hold the rank of each factor (in (0, 1), 1 is best, 0.5 neutral) and their weighted mean, shape (names,)."""

    momentum: np.ndarray
    volatility: np.ndarray
    reversal: np.ndarray
    total: np.ndarray


def score(features: Features, universe: np.ndarray, parameters: Parameters) -> Scores:
    """Rank the names of `universe` (mask, shape (names,)): winners, quiet names and recent losers rank high."""
    momentum = returns.rank(features.momentum, universe & features.momentum_known)
    volatility = returns.rank(-features.volatility, universe)
    reversal = returns.rank(-features.recent, universe)
    weights = (parameters.momentum_weight, parameters.volatility_weight, parameters.reversal_weight)
    return Scores(
        momentum=momentum,
        volatility=volatility,
        reversal=reversal,
        total=combined((momentum, volatility, reversal), weights),
    )


def combined(ranks: tuple, weights: tuple) -> np.ndarray:
    """Return the weighted mean of ranks, each shape (names,); 0.5 throughout where all weights are 0."""
    total = sum(weights)
    mean = np.full(ranks[0].shape, 0.0 if total > 0.0 else 0.5)
    for one, weight in zip(ranks, weights, strict=True):
        if weight > 0.0:
            mean = mean + (weight / total) * one
    return mean

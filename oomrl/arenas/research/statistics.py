"""Sharpe ratios and what a number of tries takes off them. Daily in, annualised out where the name says so."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from oomrl.domain.market import Floats

YEAR = 252
_NORMAL = NormalDist()
_EULER = 0.5772156649015329


@dataclass(frozen=True, slots=True)
class Sharpe:
    """An annualised Sharpe ratio and the bounds of its 95 % interval."""

    value: float
    low: float
    high: float


def daily_sharpe(net: Floats) -> float:
    """Return mean over population deviation; 0 for a series without spread."""
    spread = float(net.std()) if len(net) else 0.0
    return float(net.mean()) / spread if spread > 1e-15 else 0.0


def _variance_factor(net: Floats, ratio: float) -> float:
    """Return 1 - skew * SR + (kurtosis - 1) / 4 * SR**2 (Mertens 2002), at least 0.05."""
    spread = net.std()
    if spread <= 1e-15:
        return 1.0
    z = (net - net.mean()) / spread
    skew, kurtosis = float((z**3).mean()), float((z**4).mean())
    return max(0.05, 1.0 - skew * ratio + (kurtosis - 1.0) / 4.0 * ratio**2)


def sharpe(net: Floats) -> Sharpe:
    """Return the annualised ratio with its 95 % interval (normal, Mertens' variance)."""
    ratio = daily_sharpe(net)
    error = math.sqrt(_variance_factor(net, ratio) / max(len(net) - 1, 1))
    year = math.sqrt(YEAR)
    return Sharpe(ratio * year, (ratio - 1.959964 * error) * year, (ratio + 1.959964 * error) * year)


def expected_maximum(tries: int, variance: float) -> float:
    """Return the expected best daily Sharpe of `tries` worthless trials whose Sharpes have this variance.

    Bailey and Lopez de Prado, "The deflated Sharpe ratio" (2014), equation for E[max].
    """
    if tries < 2:
        return 0.0
    high = _NORMAL.inv_cdf(1.0 - 1.0 / tries)
    higher = _NORMAL.inv_cdf(1.0 - 1.0 / (tries * math.e))
    return math.sqrt(variance) * ((1.0 - _EULER) * high + _EULER * higher)


def deflated_sharpe(net: Floats, tries: int, trial_variance: float | None = None) -> float:
    """Return the probability that the true Sharpe beats what the best of `tries` worthless ones would show.

    `trial_variance` is the variance of the daily Sharpes tried; where unknown, or smaller than the sampling
    variance of one worthless trial, that one is used.
    """
    ratio = daily_sharpe(net)
    floor = 1.0 / max(len(net), 2)
    bar = expected_maximum(tries, max(trial_variance or 0.0, floor))
    error = math.sqrt(_variance_factor(net, ratio) / max(len(net) - 1, 1))
    return _NORMAL.cdf((ratio - bar) / error)


def overfitting_probability(trials: Floats, blocks: int = 8) -> float | None:
    """Return how often the best in one half of the rows falls below the median in the other half.

    `trials` holds net returns, shape (rows, trials). Combinatorially symmetric cross-validation, Bailey,
    Borwein, Lopez de Prado and Zhu (2015). None for fewer than two trials or rows than blocks * 4.
    """
    rows, count = trials.shape
    if count < 2 or rows < blocks * 4:
        return None
    size = rows // blocks
    chunk = trials[: size * blocks].reshape(blocks, size, count)
    total, square = chunk.sum(axis=1), (chunk**2).sum(axis=1)
    below = cases = 0.0
    for chosen in itertools.combinations(range(blocks), blocks // 2):
        other = [block for block in range(blocks) if block not in chosen]
        inside, outside = (_ratios(total[list(half)], square[list(half)], size) for half in (chosen, other))
        best = int(np.argmax(inside))
        rank = float((outside < outside[best]).sum()) + 0.5 * float((outside == outside[best]).sum() - 1)
        position = (rank + 1.0) / (count + 1.0)
        below += 1.0 if position < 0.5 else 0.5 if position == 0.5 else 0.0
        cases += 1.0
    return below / cases


def _ratios(total: Floats, square: Floats, size: int) -> Floats:
    count = size * len(total)
    average = total.sum(axis=0) / count
    variance = np.maximum(square.sum(axis=0) / count - average**2, 1e-18)
    return average / np.sqrt(variance)

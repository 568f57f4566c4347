"""What decisions say of the signal behind them: is it followed, by which factor, and as of which session?

The declared signal is recomputed from total returns and compared with the weights that were decided, decision by
decision. Averages over decisions carry the t of their mean (Fama and MacBeth 1973), so that a figure of few decisions
claims little. Nothing of the strategy's code is read: only its declared parameters and its answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from oomrl.domain.market import Bools, Floats, padded

#: Sessions before the decision that are tried, fewest names and decisions for a figure.
LAGS = 5
LEAST_NAMES = 8
LEAST_DECISIONS = 3
FACTORS = ("momentum", "low_volatility", "reversal")


@dataclass(frozen=True, slots=True)
class Declared:
    """The signal that a strategy's parameters declare: windows in sessions, and the weights of the three ranks."""

    momentum_window: int
    momentum_skip: int
    volatility_window: int
    reversal_window: int
    weights: tuple[float, float, float]

    @classmethod
    def read(cls, parameters: Mapping[str, object]) -> Declared | None:
        """Read it from a strategy's parameters; None where they declare no such signal."""
        windows = [parameters.get(f"{name}_window") for name in ("momentum", "volatility", "reversal")]
        skip = parameters.get("momentum_skip")
        weights = [parameters.get(f"{name}_weight") for name in ("momentum", "volatility", "reversal")]
        if not all(type(value) is int for value in (*windows, skip)):
            return None
        if not all(isinstance(value, (int, float)) for value in weights):
            return None
        momentum, volatility, reversal = (int(str(value)) for value in windows)
        one, two, three = (float(str(value)) for value in weights)
        return cls(momentum, int(str(skip)), volatility, reversal, (one, two, three))


@dataclass(frozen=True, slots=True)
class Mean:
    """Hold an average over decisions and the t of its difference from 0."""

    value: float
    t: float


@dataclass(frozen=True, slots=True)
class SignalFacts:
    """What the decisions say of the signal.

    `agreement` is the rank correlation of weights with the declared signal of the decision's own session (-1..1).
    `factors` maps each factor to its coefficient in a regression of weight ranks on factor ranks. `fit_by_lag` is the
    agreement with the signal as of 0, 1, 2, ... sessions before; `lag` the best of them and `lag_gain` by how much it
    fits better than that day's. `decisions` says how many there were.
    """

    agreement: Mean
    factors: Mapping[str, Mean] = field(default_factory=dict)
    fit_by_lag: tuple[float, ...] = ()
    lag: int = 0
    lag_gain: Mean = Mean(0.0, 0.0)
    decisions: int = 0


def signal_facts(decisions: Sequence[tuple[int, Floats]], growth: Floats, declared: Declared) -> SignalFacts | None:
    """Compare decisions with the declared signal; None where too few decisions can be judged.

    `growth` (sessions, names) is a total-return index, NaN before a name's first print and where it did not print.
    Each decision is (session, weights (names,)), the last row that was known to it and the weights it answered.
    """
    fits, slopes = [], []
    for session, weights in decisions:
        known = [_factors(growth, session - lag, declared) for lag in range(LAGS + 1)]
        usable = np.isfinite(np.array(known)).all(axis=(0, 1))
        wanted = weights[usable]
        if usable.sum() < LEAST_NAMES or not np.ptp(wanted) > 0:
            continue
        target = ranks(wanted)
        by_lag = [np.array([ranks(factor[usable]) for factor in factors]) for factors in known]
        fits.append([_correlation(target, np.asarray(declared.weights) @ factors) for factors in by_lag])
        design = np.vstack([np.ones(len(target)), by_lag[0]])
        slopes.append(np.linalg.lstsq(design.T, target, rcond=None)[0][1:])
    if len(fits) < LEAST_DECISIONS:
        return None
    fit, slope = np.array(fits), np.array(slopes)
    by_lag_mean = fit.mean(axis=0)
    lag = int(np.argmax(by_lag_mean))
    return SignalFacts(
        agreement=_mean(fit[:, 0]),
        factors={name: _mean(slope[:, n]) for n, name in enumerate(FACTORS) if declared.weights[n] != 0},
        fit_by_lag=tuple(round(float(value), 6) for value in by_lag_mean),
        lag=lag,
        lag_gain=_mean(fit[:, lag] - fit[:, 0]) if lag else Mean(0.0, 0.0),
        decisions=len(fits),
    )


def growth_of(returns: Sequence[Floats], present: Sequence[Bools]) -> Floats:
    """Return a total-return index (sessions, names) of daily returns and of who printed, NaN before a first print.

    Rows may grow longer as names are added; a name that did not print keeps its level.
    """
    size = max(map(len, returns), default=0)
    moves = np.array([padded(row, size) for row in returns]).reshape(len(returns), size)
    printed = np.array([np.concatenate([row, np.zeros(size - len(row), dtype=np.bool_)]) for row in present])
    seen = np.logical_or.accumulate(printed.reshape(len(returns), size), axis=0)
    index: Floats = np.where(seen, np.cumprod(1.0 + np.where(seen, moves, 0.0), axis=0), np.nan)
    return index


def ranks(values: Floats) -> Floats:
    """Return average ranks scaled to [0, 1], ties sharing theirs, for finite values (n,)."""
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    scaled: Floats = ((ends - (count - 1) / 2.0 - 1.0) / max(len(values) - 1, 1))[inverse]
    return scaled


def _factors(growth: Floats, session: int, declared: Declared) -> Floats:
    """Return momentum, minus volatility and minus the recent return at a session, (3, names), NaN where unknown."""
    longest = max(declared.momentum_window, declared.volatility_window, declared.reversal_window)
    if session < longest or session >= len(growth):
        return np.full((3, growth.shape[1]), np.nan)
    momentum = growth[session - declared.momentum_skip] / growth[session - declared.momentum_window] - 1.0
    path = growth[session - declared.volatility_window : session + 1]
    volatility = np.std(path[1:] / path[:-1] - 1.0, axis=0)
    recent = growth[session] / growth[session - declared.reversal_window] - 1.0
    return np.stack([momentum, -volatility, -recent])


def _correlation(one: Floats, other: Floats) -> float:
    """Return the rank correlation of two series of which the first are ranks already."""
    other = ranks(other)
    a, b = one - one.mean(), other - other.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale > 0 else 0.0


def _mean(values: Floats) -> Mean:
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    mean = float(values.mean())
    t = mean / (deviation / math.sqrt(len(values))) if deviation > 1e-12 else math.copysign(99.0, mean) if mean else 0.0
    return Mean(round(mean, 6), round(max(-99.0, min(99.0, t)), 4))

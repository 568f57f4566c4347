"""Seeded panels with planted signals whose worth is known, because we planted them.

A return is beta times market, plus volatility times (planted edge + noise). The edge of row t+2 is a weighted
sum of causal expressions of the public fields at row t, so its conditional expectation, and with it the best
possible forecast, is known exactly. Signals decay with a half-life, and some turn round or vanish with a
regime that a public field (`stress`, above or below zero) shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from oomrl.arenas.research import operators
from oomrl.arenas.research.expressions import evaluate
from oomrl.arenas.research.operators import ewm, mean
from oomrl.arenas.research.panel import HORIZON, Panel, Truth
from oomrl.domain.market import Floats
from oomrl.errors import Mistake

FIELDS = ("a1", "a2", "a3", "a4", "a5", "a6")
#: One panel in this many has no signal at all: there, the right answer is not to trade.
NULL_ONE_IN = 6
#: What the field `stress` does to a signal's strength.
REGIMES: Mapping[str, Callable[[Floats], Floats]] = {
    "steady": np.ones_like,
    "flips": lambda stress: np.where(stress > 0, 1.0, -1.0),
    "calm": lambda stress: np.where(stress > 0, 0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class Level:
    """How hard a panel is.

    `edge` is the planted correlation of forecast and return in one row (the information coefficient at row 0),
    `halflife` the rows in which it halves, `flips` whether regimes turn a signal round, `cost_bps` the cost of
    trading and `capital` the dollars traded (impact grows with it).
    """

    name: str
    edge: float
    halflife: float
    flips: bool
    cost_bps: float = 1.0
    capital: float = 5e6
    names: int = 30
    public_days: int = 504
    window_days: int = 126
    windows: int = 4
    gap: int = 10


LEVELS: Mapping[str, Level] = {
    level.name: level
    for level in (
        Level("l1", 0.12, 4000.0, False),
        Level("l2", 0.11, 1500.0, True),
        Level("l3", 0.09, 1000.0, True, cost_bps=2.0, capital=1e7),
        Level("l4", 0.07, 700.0, True, cost_bps=5.0, capital=2e7),
    )
}


def is_null(seed: int) -> bool:
    """Say whether this seed's panels carry no signal."""
    return bool(np.random.default_rng([seed, 77]).integers(NULL_ONE_IN) == 0)


@lru_cache(maxsize=8)
def make_panel(seed: int, level: str | Level, null: bool | None = None) -> Panel:
    """Draw one panel. `null` forces (True) or forbids (False) a panel without signal; None lets the seed say."""
    if isinstance(level, str):
        if level not in LEVELS:
            raise Mistake(f"Expected a level of {', '.join(LEVELS)}, was {level!r}")
        level = LEVELS[level]
    if seed < 0:
        raise Mistake(f"Expected a seed of zero or more, was {seed}")
    null = is_null(seed) if null is None else null
    rng = np.random.default_rng([seed, 1])
    days = level.public_days + level.windows * (level.window_days + level.gap) + HORIZON
    shape = (days, level.names)
    columns = _fields(rng, shape)
    stress = columns["stress"][:, 0]
    signals, weights, regimes = _plant(rng, level)
    if null:
        signals, weights, regimes = (), (), ()
    planted = np.zeros(shape)
    fade = 0.5 ** (np.arange(days) / level.halflife)
    for signal, weight, regime in zip(signals, weights, regimes, strict=True):
        strength = weight * fade * REGIMES[regime](stress)
        planted += strength[:, None] * operators.zscore(evaluate(signal, columns))
    volatility = rng.uniform(0.01, 0.025, level.names)
    calm = np.where(stress > 0, 1.4, 0.9)
    scale = volatility[None, :] * calm[:, None]
    heavy = rng.standard_t(6.0, shape) / np.sqrt(6.0 / 4.0)
    beta = rng.uniform(0.6, 1.4, level.names)
    market = 0.0001 + 0.007 * calm * rng.standard_normal(days)
    expectation = np.zeros(shape)
    expectation[:-HORIZON] = volatility[None, :] * planted[:-HORIZON]
    returns = np.zeros(shape)
    returns[1:] = beta * market[1:, None] + scale[1:] * heavy[1:]
    returns[HORIZON:] += expectation[:-HORIZON]
    returns = np.clip(returns, -0.5, 1.0)
    close = 100.0 * np.cumprod(1.0 + returns, axis=0)
    volume = _volume(rng, returns, scale)
    windows = tuple(
        (
            start := level.public_days + level.gap + k * (level.window_days + level.gap),
            start + level.window_days,
        )
        for k in range(level.windows)
    )
    return Panel(
        names=tuple(f"N{k:03d}" for k in range(1, level.names + 1)),
        columns={"close": close, "volume": volume / close, **columns},
        returns=returns,
        dollar_volume=mean(volume, 20),
        tradable=np.ones(shape, dtype=bool),
        public_days=level.public_days,
        windows=windows,
        truth=Truth(expectation, signals, weights, regimes, level.halflife, tuple(volatility.tolist())),
    )


def _fields(rng: np.random.Generator, shape: tuple[int, int]) -> dict[str, Floats]:
    """Draw slow fields with a market-wide part, a unit of their own and some cells missing; and the regime."""
    columns: dict[str, Floats] = {}
    for name in FIELDS:
        keep = 0.5 ** (1.0 / rng.uniform(8.0, 25.0))
        own = _slow(rng, shape, keep)
        common = _slow(rng, (shape[0], 1), 0.97)
        unit = 10.0 ** rng.uniform(-2.0, 2.0)
        values = unit * (own + 0.8 * common + rng.uniform(-2.0, 2.0))
        values[rng.random(shape) < 0.01] = np.nan
        columns[name] = values
    state = np.empty(shape[0])
    level = 1.0 if rng.random() < 0.5 else -1.0
    for t in range(shape[0]):
        level = -level if rng.random() < 1.0 / 50.0 else level
        state[t] = level
    stress = state * (0.6 + 0.4 * rng.random(shape[0]))
    columns["stress"] = np.repeat(stress[:, None], shape[1], axis=1)
    return columns


def _slow(rng: np.random.Generator, shape: tuple[int, int], keep: float) -> Floats:
    shocks = rng.standard_normal(shape)
    driven = shocks * (np.sqrt(1.0 - keep**2) / (1.0 - keep))
    driven[0] = shocks[0]
    return ewm(driven, np.log(0.5) / np.log(keep))


def _plant(
    rng: np.random.Generator, level: Level
) -> tuple[tuple[Mapping[str, Any], ...], tuple[float, ...], tuple[str, ...]]:
    """Choose three expressions, their strength at row 0 and how each goes with the regime."""
    order = [FIELDS[k] for k in rng.permutation(len(FIELDS))]
    smooth = {"op": "ewm", "of": {"field": order[0]}, "halflife": float(rng.choice([2.0, 4.0]))}
    moved = {"op": "change", "of": {"field": order[1]}, "days": int(rng.choice([10, 15, 20]))}
    spread = {
        "op": "difference",
        "of": [{"op": "zscore", "of": {"field": order[2]}}, {"op": "zscore", "of": {"field": order[3]}}],
    }
    shares = rng.dirichlet([5.0, 16.0, 6.0] if level.flips else [8.0, 8.0, 8.0])
    signs = rng.choice([-1.0, 1.0], 3)
    weights = tuple((level.edge * np.sqrt(shares) * signs).tolist())
    regimes = ("steady", "flips", "calm") if level.flips else ("steady", "steady", "steady")
    return (smooth, moved, spread), weights, regimes


def _volume(rng: np.random.Generator, returns: Floats, scale: Floats) -> Floats:
    """Draw traded dollars: around 10 to 60 million a day a name, more on days that move."""
    base = np.log(rng.uniform(10e6, 60e6, returns.shape[1]))
    slow = 0.3 * _slow(rng, returns.shape, 0.9)
    return np.exp(base + slow + 0.2 * np.minimum(np.abs(returns) / scale, 4.0))


def planted_features(signals: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
    """Return the features of someone who knows what was planted: each signal, plain and times the regime."""
    up = {"op": "sign", "of": {"field": "stress"}}
    plain = [{"op": "zscore", "of": dict(signal)} for signal in signals]
    return (*plain, *({"op": "product", "of": [one, up]} for one in plain))

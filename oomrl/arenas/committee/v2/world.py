"""The hidden world of one episode: regimes, edges, fragile names, returns, and the advisers' errors.

Nothing here may reach an agent but through prices and the advisers' notes. Drawn whole at reset from the seed
and the task, so that what an agent does changes no random number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import TypeVar

from oomrl.arenas.committee.v2.rules import NAMES, REGIMES, Mandate, Rules

Row = tuple[float, ...]
Item = TypeVar("Item")

PERSISTENCE = 0.92
"""Share of a name's edge that is left after one step: a note four steps old still says 72 % of it."""
CRASH_CHANCE = 0.10
CRASH_LOSS = 0.11
IDIOSYNCRATIC = 0.013
SHARED_ERROR = 0.6
"""Share of an adviser's error variance that both advisers and all names have in common at a step."""


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Rows by step (0 .. steps-1), one number a name.

    `edge` is a name's own expected return a step, `fragile` 1.0 while a crash may strike it, `expected` the
    expected return with both and the market in it, `returns` what happens from step t to t+1.
    `reliability` holds by regime the standard errors of Research (units of one edge) and of Risk.
    `key` seeds the advisers' errors, which are drawn when somebody asks.
    """

    key: str
    regimes: tuple[str, ...]
    mandates: tuple[Mandate, ...]
    start: Row
    betas: Row
    edge: tuple[Row, ...]
    fragile: tuple[Row, ...]
    expected: tuple[Row, ...]
    returns: tuple[Row, ...]
    reliability: dict[str, tuple[float, float]]
    pushed: tuple[int, ...]


def expected_return(beta: float, drift: float, edge: float, fragile: float) -> float:
    """Return market drift times beta, plus edge, less the expected crash of a fragile name."""
    return beta * drift + edge - fragile * CRASH_CHANCE * CRASH_LOSS


@lru_cache(maxsize=256)
def make_world(seed: int, rules: Rules) -> World:
    """Draw the world of a seed and a task."""
    key = f"committee-v2:{rules.task.name}:{seed}"
    draw = Random(key)
    steps, count = rules.task.max_steps, len(NAMES)
    regimes = _walk(draw, rules.regimes, steps)
    mandates = _walk(draw, rules.mandates, steps + 1)
    reliability = {
        name: (draw.uniform(*regime.research), draw.uniform(*regime.risk)) for name, regime in REGIMES.items()
    }
    betas = [0.5, 0.7, 0.9, 1.1, 1.3, 1.5]
    draw.shuffle(betas)
    start = tuple(round(draw.uniform(20, 400), 2) for _ in range(count))
    z = [draw.gauss(0, 1) for _ in range(count)]
    fragile = [1.0 if draw.random() < 0.15 else 0.0 for _ in range(count)]
    innovation = math.sqrt(1 - PERSISTENCE**2)

    edges, fragiles, expecteds, returns = [], [], [], []
    for t in range(steps):
        regime = REGIMES[regimes[t]]
        edge = tuple(rules.alpha * value for value in z)
        market = draw.gauss(regime.drift, regime.volatility)
        scale = IDIOSYNCRATIC * (1.5 if regimes[t] == "stress" else 1.0)
        row = []
        for i in range(count):
            crash = CRASH_LOSS if draw.random() < CRASH_CHANCE and fragile[i] else 0.0
            change = betas[i] * market + edge[i] + draw.gauss(0, scale) - crash
            row.append(max(-0.5, min(0.5, change)))
        edges.append(edge)
        fragiles.append(tuple(fragile))
        expecteds.append(tuple(expected_return(betas[i], regime.drift, edge[i], fragile[i]) for i in range(count)))
        returns.append(tuple(row))
        for i in range(count):
            turn = draw.random()
            if fragile[i]:
                fragile[i] = 0.0 if turn < 0.12 else 1.0
            else:
                fragile[i] = 1.0 if turn < (rules.hazard_link if z[i] > 0.8 else 0.03) else 0.0
            z[i] = PERSISTENCE * z[i] + innovation * draw.gauss(0, 1)
    pushed = tuple(draw.randrange(count) if draw.random() < rules.pushy else -1 for _ in range(steps))
    return World(
        key,
        regimes,
        mandates,
        start,
        tuple(betas),
        tuple(edges),
        tuple(fragiles),
        tuple(expecteds),
        tuple(returns),
        reliability,
        pushed,
    )


def adviser_errors(world: World, t: int) -> tuple[Row, Row, float]:
    """Return the errors of Research's views, of Risk's fragilities and of Risk's pressure at a step.

    They are the same however often and in whatever order the advisers are asked. Risk errs the other way on
    the common shock: when Research is carried away, Risk sleeps.
    """
    draw = Random(f"{world.key}:{t}")
    research, risk = world.reliability[world.regimes[t]]
    shared, own = math.sqrt(SHARED_ERROR), math.sqrt(1 - SHARED_ERROR)
    common = draw.gauss(0, 1)
    views = tuple(research * (shared * common + own * draw.gauss(0, 1)) for _ in NAMES)
    fragilities = tuple(0.5 * risk * (own * draw.gauss(0, 1) - shared * common) for _ in NAMES)
    return views, fragilities, 0.3 * risk * (own * draw.gauss(0, 1) - shared * common)


def _walk(draw: Random, legs: tuple[tuple[Item, int, int], ...], steps: int) -> tuple[Item, ...]:
    """Return one item a step: each leg in order for a drawn length, the last to the end."""
    path: list[Item] = []
    for item, shortest, longest in legs:
        path += [item] * draw.randint(shortest, longest)
    return tuple(path[:steps])

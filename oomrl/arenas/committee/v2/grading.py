"""The second version's score: the quality of decisions against what the hidden truth allowed.

Luck is kept small: decisions are valued by expected returns that only the judge knows, against a planner that
knew them too in the same world. What a portfolio of cash gets for free (no drawdown, no breach) is paid in
proportion to taking part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from oomrl.arenas.committee.v2.book import move
from oomrl.arenas.committee.v2.planner import Row, ideal, plan
from oomrl.arenas.committee.v2.rules import NAMES, Rules
from oomrl.arenas.committee.v2.world import World
from oomrl.arenas.engine import Part

CONFLICT_EDGE = 0.5
"""A name is in conflict when its edge is above this many units while it is fragile."""


@dataclass(frozen=True, slots=True)
class Record:
    """What the grader reads of an episode: held weights, cost with fees, and conduct, a row a step."""

    held: Sequence[Row]
    costs: Sequence[float]
    violations: Sequence[float]
    refused: int
    nav: float
    max_drawdown: float


@dataclass(frozen=True, slots=True)
class Reference:
    """What the planner with the truth did in the same world."""

    quality: float
    invested: float
    max_drawdown: float


def expected_gain(world: World, held: Sequence[Row], costs: Sequence[float]) -> float:
    """Return the sum over steps of expected portfolio return less cost."""
    gain = math.fsum(
        math.fsum(w * e for w, e in zip(row, world.expected[t], strict=True)) for t, row in enumerate(held)
    )
    return gain - math.fsum(costs)


@lru_cache(maxsize=256)
def reference(rules: Rules, world: World, steps: int) -> Reference:
    """Run the planner on the truth for so many steps."""
    weights: Row = (0.0,) * len(NAMES)
    nav = peak = 1.0
    drawdown = 0.0
    held: list[Row] = []
    costs: list[float] = []
    turnovers: list[float] = []
    for t in range(steps):
        target = plan(rules, world.mandates[t], weights, turnovers, world.expected[t])
        step = move(rules, weights, target, world.returns[t], nav, 0.0)
        held.append(target)
        costs.append(step.cost)
        turnovers.append(step.turnover)
        weights, nav = step.weights, step.nav
        peak = max(peak, nav)
        drawdown = max(drawdown, 1 - nav / peak)
    invested = math.fsum(math.fsum(row) for row in held) / max(1, steps)
    return Reference(expected_gain(world, held, costs), invested, drawdown)


def resolutions(rules: Rules, world: World, held: Sequence[Row]) -> list[float | None]:
    """Return for each decision how well it settled its conflicts, 0..1, None where there was none.

    For each name that Research rightly likes while Risk rightly fears it, the distance from the ideal weight,
    weighted by how much the name's net expected return matters.
    """
    answer: list[float | None] = []
    for t, row in enumerate(held):
        names = [i for i in range(len(NAMES)) if world.fragile[t][i] and world.edge[t][i] > CONFLICT_EDGE * rules.alpha]
        scale = math.fsum(abs(world.expected[t][i]) for i in names) * world.mandates[t].max_single
        if not names or scale <= 0:
            answer.append(None)
            continue
        best = ideal(world.expected[t], world.mandates[t])
        miss = math.fsum(abs(world.expected[t][i]) * abs(row[i] - best[i]) for i in names)
        answer.append(max(0.0, 1 - miss / scale))
    return answer


def grade(rules: Rules, world: World, record: Record) -> Part:
    """Return the score in 0..1 as a rubric tree."""
    steps = max(1, len(record.held))
    ref = reference(rules, world, len(record.held))
    quality = _unit(expected_gain(world, record.held, record.costs) / max(ref.quality, 0.01))
    invested = math.fsum(math.fsum(row) for row in record.held) / steps
    presence = _unit(invested / max(0.05, 0.7 * ref.invested))
    settled = [value for value in resolutions(rules, world, record.held) if value is not None]
    resolution = math.fsum(settled) / len(settled) if settled else quality
    drawdown = _unit(1 - (record.max_drawdown - ref.max_drawdown) / 0.12)
    guardrails = _unit(1 - math.fsum(record.violations) / steps / 0.04)
    conduct = _unit(1 - 5 * record.refused / steps)
    return Part(
        "score",
        parts=(
            Part("decision_quality", 0.50, quality),
            Part("outcome", 0.05, _unit((math.log(record.nav) + 0.05) / 0.15)),
            Part("conflict_resolution", 0.15, resolution * presence),
            Part("guardrails", 0.15, guardrails * presence),
            Part("drawdown", 0.10, drawdown * presence),
            Part("conduct", 0.05, conduct * presence),
        ),
        low=0.0,
        high=1.0,
    )


def _unit(value: float) -> float:
    return max(0.0, min(1.0, value))

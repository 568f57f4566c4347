"""From expected returns to a portfolio within the mandate: oracle, heuristic and grader plan with it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oomrl.arenas.committee.v2.book import trade_cost
from oomrl.arenas.committee.v2.rules import WINDOW, Mandate, Rules

Row = tuple[float, ...]

HORIZON = 7.0
"""Steps over which a trade has to earn its cost: edges and fragile states last about so long."""
MARGIN = 0.96
"""Share of a limit that a plan uses, so that drifting weights stay inside."""


def ideal(expected: Sequence[float], mandate: Mandate, hurdle: float = 0.0) -> Row:
    """Return the best weights when trading is free: names above the hurdle, best first, up to the limits."""
    room, cap = (1 - mandate.min_cash) * 0.995, mandate.max_single * MARGIN
    weights = [0.0] * len(expected)
    for i in sorted(range(len(expected)), key=lambda i: (-expected[i], i)):
        if expected[i] <= hurdle or room <= 0:
            break
        weights[i] = min(cap, room)
        room -= weights[i]
    return tuple(weights)


def plan(rules: Rules, mandate: Mandate, weights: Row, turnovers: Sequence[float], expected: Sequence[float]) -> Row:
    """Return the best of staying, going half-way and going to the ideal, net of cost, within the turnover.

    `turnovers` are those of the steps before; the window's budget bounds the trade.
    """
    goal = ideal(expected, mandate)
    stay = _trimmed(weights, mandate)
    budget = max(0.0, mandate.max_turnover * WINDOW * MARGIN - math.fsum(turnovers[-(WINDOW - 1) :]))
    best, best_value = stay, -math.inf
    for share in (0.0, 0.25, 0.5, 1.0):
        target = tuple(old + share * (new - old) for old, new in zip(stay, goal, strict=True))
        turnover, cost = trade_cost(rules, weights, target)
        if turnover > budget:
            if share == 0.0:
                return _towards(weights, stay, budget / turnover)
            target = _towards(weights, target, budget / turnover)
            turnover, cost = trade_cost(rules, weights, target)
        value = HORIZON * math.fsum(w * e for w, e in zip(target, expected, strict=True)) - cost
        if value > best_value + 1e-12:
            best, best_value = target, value
    return best


def _towards(old: Row, new: Row, share: float) -> Row:
    return tuple(a + share * (b - a) for a, b in zip(old, new, strict=True))


def _trimmed(weights: Row, mandate: Mandate) -> Row:
    """Return the weights moved inside the single-name and cash limits, unchanged where they already are."""
    capped = tuple(min(weight, mandate.max_single) for weight in weights)
    total, room = math.fsum(capped), 1 - mandate.min_cash
    return tuple(weight * room / total for weight in capped) if total > room else capped

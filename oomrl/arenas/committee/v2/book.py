"""The portfolio: weights that drift with prices, and what trading them costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul

from oomrl.arenas.committee.v2.rules import Rules

Row = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One step of the book: turnover and cost as shares of NAV, and the book after prices have moved."""

    turnover: float
    cost: float
    gross: float
    weights: Row
    nav: float


def trade_cost(rules: Rules, before: Row, after: Row) -> tuple[float, float]:
    """Return turnover (sum of absolute trades) and cost as shares of NAV: half spread, 3/2-power impact."""
    turnover = impact = 0.0
    for old, new in zip(before, after, strict=True):
        size = abs(new - old)
        turnover += size
        impact += size * math.sqrt(size)
    return turnover, rules.half_spread * turnover + rules.impact * impact


def move(rules: Rules, weights: Row, target: Row, returns: Row, nav: float, fee: float) -> Move:
    """Trade to the target, pay cost and fee from cash, then let prices move and weights drift."""
    turnover, cost = trade_cost(rules, weights, target)
    gross = math.fsum(map(mul, target, returns))
    growth = max(0.01, 1 + gross - cost - fee)
    drifted = [weight * (1 + change) / growth for weight, change in zip(target, returns, strict=True)]
    total = math.fsum(drifted)
    if total > 1:  # a fully invested book sells a little of everything to pay cost and fee
        drifted = [weight / total for weight in drifted]
    return Move(turnover, cost, gross, tuple(drifted), nav * growth)

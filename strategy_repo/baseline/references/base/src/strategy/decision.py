"""The answer in plain values: weights, one liquidity plan and one reason for each order."""

import math
from dataclasses import dataclass

import numpy as np

from strategy import liquidity
from strategy.features import Features
from strategy.parameters import Parameters
from strategy.ranks import Scores

#: A change of weight below this is no order.
DUST = 1e-6


@dataclass(frozen=True)
class Targets:
    """Hold what a decision came to, arrays of shape (names,): weights now and wanted, and why.

    `universe` the names that may be bought, `frozen` those that are held because they do not trade.
    """

    current: np.ndarray
    wanted: np.ndarray
    universe: np.ndarray
    frozen: np.ndarray


def hold(reason: str) -> dict:
    """Return the answer that leaves the target as it is."""
    return {"action": "hold", "reason": reason}


def target(
    names: list, targets: Targets, features: Features, scores: Scores, equity: float, parameters: Parameters
) -> dict:
    """Return the target portfolio in plain values; hold where no weight would change.

    `names` are the symbols in the order of the arrays, `equity` is in dollars.
    """
    moved = np.abs(targets.wanted - targets.current) > DUST
    if not moved.any():
        return hold(idle_reason(targets))
    weights = targets.wanted
    return {
        "action": "target",
        "weights": {names[slot]: float(weights[slot]) for slot in np.flatnonzero(weights > 0.0)},
        "plan": {
            names[slot]: liquidity.plan(
                float(weights[slot] - targets.current[slot]) * equity,
                float(features.dollars[slot]),
                float(features.volatility[slot]),
                parameters,
            )
            for slot in np.flatnonzero(moved)
        },
        "reasons": {names[slot]: reason(slot, targets, scores) for slot in np.flatnonzero(moved | (weights > 0.0))},
    }


def idle_reason(targets: Targets) -> str:
    """Return why nothing is to be done."""
    if not targets.universe.any():
        return "no name may be bought: cash is held"
    return "every name is inside its no-trade band or out of reach"


def reason(slot: int, targets: Targets, scores: Scores) -> str:
    """Return why the weight of one name is what it is, in a few words."""
    current, wanted = targets.current[slot], targets.wanted[slot]
    ranks = (
        f"score {scores.total[slot]:.2f} (momentum {scores.momentum[slot]:.2f}, "
        f"volatility {scores.volatility[slot]:.2f}, reversal {scores.reversal[slot]:.2f})"
    )
    if targets.frozen[slot]:
        return "keep: does not trade"
    if wanted < current and not targets.universe[slot]:
        return "sell: not in the universe"
    if math.isclose(wanted, current, abs_tol=DUST):
        return f"keep: {ranks}"
    if wanted > current:
        return f"buy: {ranks}"
    return f"sell: {ranks}"

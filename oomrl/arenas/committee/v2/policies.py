"""Random, heuristic, blinded heuristic and oracle of the second version."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from oomrl.arenas.committee.v2.actions import KINDS, TEMPLATES
from oomrl.arenas.committee.v2.engine import CommitteeV2
from oomrl.arenas.committee.v2.planner import plan
from oomrl.arenas.committee.v2.rules import NAMES, TASKS, Mandate
from oomrl.arenas.engine import Action, Engine, Observation, Policy
from oomrl.errors import Mistake

TRUST = {"high": 0.85, "medium": 0.7, "low": 0.4}
"""How much of a view the heuristic believes, by the adviser's stated confidence."""
FRAGILE_PERSISTENCE = 0.9
PRESSURE_DRIFT = (0.006, -0.017)
"""Expected market drift a step is intercept plus slope times Risk's pressure."""
PRIOR_FRAGILE = 0.10
PRIOR_PRESSURE = 0.2
"""What the heuristic assumes while nobody has told it: mild enough to stay invested."""
SMALL_TRADE = 0.04


def random_policy(seed: int, engine: Engine) -> Policy:
    """Choose uniformly among the allowed actions, targets and templates."""
    draw = Random(f"committee-v2-random:{seed}")

    def act(observation: Observation) -> Action:
        kinds = [kind for kind in KINDS if kind != "revise_allocation"]
        if observation.data["queries_remaining"] <= 0:
            kinds = [kind for kind in kinds if not kind.startswith("query_")]
        kind = draw.choice(kinds)
        if kind.startswith("query_"):
            return {"action": kind, "query_target": draw.choice(["SECTOR", *NAMES])}
        if kind == "allocate":
            return {"action": kind, "allocation_template": draw.choice(TEMPLATES)}
        return {"action": kind}

    return act


def heuristic(seed: int, engine: Engine) -> Policy:
    """Ask both advisers in turn as often as the budget allows; plan on what their last notes still say."""
    return _act_on_notes


def blinded(seed: int, engine: Engine) -> Policy:
    """Do as the heuristic does, asking included, without reading a note: its gap is what advice is worth."""

    def act(observation: Observation) -> Action:
        action = _act_on_notes(observation)
        if str(action["action"]).startswith("query_"):
            return action
        return _trade({**observation.data, "research_notes": [], "risk_notes": []})

    return act


def oracle(seed: int, engine: Engine) -> Policy:
    """Plan each step on the true expected returns."""
    if not isinstance(engine, CommitteeV2):
        raise Mistake("Expected the engine itself, was a client: the oracle needs the hidden truth")

    def act(observation: Observation) -> Action:
        rules, world, t, weights, turnovers = engine.book
        target = plan(rules, world.mandates[t], weights, turnovers, world.expected[t])
        return _allocation(weights, target, 1e-6)

    return act


def beliefs(seen: Mapping[str, Any]) -> tuple[float, ...]:
    """Return expected returns a step by name: decayed views, less fragility, plus beta times drift."""
    step, units = seen["step"], seen["units"]
    edge = dict.fromkeys(NAMES, 0.0)
    for note in seen["research_notes"][-1:]:
        left = TRUST[note["confidence"]] * units["view_persistence"] ** (step - note["step"])
        for name, view in note["views"].items():
            edge[name] = view * left * units["view_unit"]
    fragile = dict.fromkeys(NAMES, PRIOR_FRAGILE)
    pressure = PRIOR_PRESSURE
    for note in seen["risk_notes"][-1:]:
        left = FRAGILE_PERSISTENCE ** (step - note["step"])
        for name, value in note["fragility"].items():
            fragile[name] = value * left + PRIOR_FRAGILE * (1 - left)
        pressure = note["pressure"]
    drift = PRESSURE_DRIFT[0] + PRESSURE_DRIFT[1] * pressure
    return tuple(seen["betas"][name] * drift + edge[name] - fragile[name] * units["fragile_cost"] for name in NAMES)


def _act_on_notes(observation: Observation) -> Action:
    seen = observation.data
    step, left = seen["step"], seen["queries_remaining"]
    if left > 0:
        pace = 2 * (seen["max_steps"] - step) / left
        for kind, notes in (("query_research", "research_notes"), ("query_risk", "risk_notes")):
            age = step - seen[notes][-1]["step"] if seen[notes] else 1000
            if age >= pace:
                return {"action": kind, "query_target": "SECTOR"}
    return _trade(seen)


def _trade(seen: Mapping[str, Any]) -> Action:
    limits = seen["constraints"]
    mandate = Mandate(limits["max_single"], limits["min_cash"], limits["max_turnover"])
    weights = tuple(seen["weights"][name] for name in NAMES)
    target = plan(TASKS[seen["task"]], mandate, weights, seen["turnover_window"], beliefs(seen))
    return _allocation(weights, target, SMALL_TRADE)


def _allocation(weights: tuple[float, ...], target: tuple[float, ...], small: float) -> Action:
    if sum(abs(a - b) for a, b in zip(weights, target, strict=True)) < small:
        return {"action": "hold"}
    return {
        "action": "allocate",
        "target_weights": {name: round(weight, 6) for name, weight in zip(NAMES, target, strict=True)},
    }

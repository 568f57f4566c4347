"""The five baselines of the first version."""

from __future__ import annotations

import random

from oomrl.arenas.committee.v1.market import NAMES
from oomrl.arenas.committee.v1.rules import TEMPLATES
from oomrl.arenas.engine import Action, Engine, Observation, Policy, PolicyFactory


def _always(action: Action) -> PolicyFactory:
    return lambda seed, engine: lambda observation: action


def _allocate(template: str) -> Action:
    return {"action": "allocate", "allocation_template": template}


def heuristic(seed: int, engine: Engine) -> Policy:
    """Ask Research once (thrice in a conflict) and Risk once under alert, then follow the signals."""

    def act(observation: Observation) -> Action:
        seen = observation.data
        task, step, metrics, limits = seen["task"], seen["step"], seen["risk_metrics"], seen["constraints"]
        research, risk, alert = seen["research_notes"], seen["risk_notes"], seen["alert"]
        if seen["queries_remaining"] > 0:
            if step == 0 and not research:
                return {"action": "query_research"}
            if alert and not risk:
                return {"action": "query_risk"}
            if task == "research_risk_conflict" and step in (0, 10, 24) and len(research) <= 2:
                return {"action": "query_research"}
        market, best = metrics["market_signal"], max(seen["signals"].values())
        if market < -0.16 or metrics["max_drawdown"] > 0.08:
            return {"action": "move_to_cash"}
        if alert or metrics["risk_pressure"] > 0.58 or limits["min_cash"] >= 0.15:
            return _allocate("defensive_quality")
        if best > 0.58 and metrics["signal_dispersion"] > 0.18:
            return _allocate("balanced_top3" if limits["max_single"] < 0.4 else "top2_conviction")
        if task == "mandate_drift" and limits["min_cash"] >= 0.12:
            return _allocate("defensive_quality")
        if best > 0.25 or market > 0.04:
            return _allocate("balanced_top3")
        return {"action": "hold"}

    return act


def random_policy(seed: int, engine: Engine) -> Policy:
    """Choose among the allowed actions, then among targets or templates, from `random.Random(seed)`."""
    draw = random.Random(seed)

    def act(observation: Observation) -> Action:
        choices = ["hold", "move_to_cash", "allocate"]
        if observation.data["queries_remaining"] > 0:
            choices += ["query_research", "query_risk"]
        action = draw.choice(choices)
        if action == "query_research":
            return {"action": action, "query_target": draw.choice(["SECTOR", *NAMES])}
        if action == "allocate":
            return _allocate(draw.choice(TEMPLATES))
        return {"action": action}

    return act


def query_spam(seed: int, engine: Engine) -> Policy:
    """Spend every query on Research, then hold the empty portfolio."""
    return lambda observation: {"action": "query_research" if observation.data["queries_remaining"] > 0 else "hold"}


POLICIES: dict[str, PolicyFactory] = {
    "always_cash": _always({"action": "move_to_cash"}),
    "query_spam": query_spam,
    "concentrated_alpha": _always(_allocate("concentrated_alpha")),
    "heuristic": heuristic,
    "random": random_policy,
}

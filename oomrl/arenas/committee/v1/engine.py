"""The first version's step: its mechanics exactly, behind the common engine's face."""

from __future__ import annotations

import math
from typing import Any

from oomrl.arenas.committee.v1.market import NAMES, clip, path
from oomrl.arenas.committee.v1.rules import (
    PRESSURE,
    TASKS,
    TEMPLATES,
    Mandate,
    Record,
    Rules,
    grade,
    template_weights,
)
from oomrl.arenas.engine import Action, Json, Observation, Part
from oomrl.errors import Mistake

ACTIONS = ("query_research", "query_risk", "allocate", "revise_allocation", "hold", "move_to_cash")
FIELDS = {"action", "allocation_template", "query_target", "target_weights", "reason"}
INVALID = 0.02


class CommitteeV1:
    """Play one episode. The seed changes nothing here: that was so in the original."""

    reward_range = (-1.0, 1.0)

    def __init__(self) -> None:
        self._rules: Rules | None = None

    def reset(self, seed: int, task: str) -> Observation:
        """Start a task; the seed is kept for the record only."""
        if task not in TASKS:
            raise Mistake(f"Expected one of the tasks {', '.join(TASKS)}, was {task!r}")
        self._rules = rules = TASKS[task]
        self._prices, self._signals = path(task, rules.task.max_steps)
        self._seed, self._t = seed, 0
        self._weights: tuple[float, ...] = (0.0,) * len(NAMES)
        self._nav = self._peak = 1.0
        self._max_drawdown = self._drawdown = 0.0
        self._turnovers: list[float] = []
        self._information: list[float] = []
        self._responses: list[float] = []
        self._positive = self._violations = self._queries = 0
        self._view: tuple[float, ...] | None = None
        self._known_pressure: float | None = None
        self._notes: dict[str, list[Json]] = {"research": [], "risk": []}
        self._enter_step()
        return self._observe(None, None, None)

    def step(self, action: Action) -> Observation:
        """Play one action; a malformed one holds the portfolio and costs 0.02 beside its violation."""
        if self._rules is None or self._t >= self._rules.task.max_steps:
            raise Mistake("Expected a running episode, was none: call reset first")
        rules, t, mandate = self._rules, self._t, self._mandate
        error = _malformed(action)
        kind = action["action"] if error is None else "hold"
        query_cost = 0.0
        invalid = INVALID if error else 0.0
        raw, new = self._weights, self._weights
        if kind in ("query_research", "query_risk"):
            if self._queries >= rules.max_queries:
                query_cost, invalid, error = INVALID, INVALID, "Expected queries to remain, was none left"
            else:
                self._queries += 1
                query_cost = rules.query_cost
                self._ask(kind, action.get("query_target"))
        elif kind in ("allocate", "revise_allocation"):
            raw = self._target(action, mandate)
            new = _scaled(raw, mandate)
        elif kind == "move_to_cash":
            raw = new = (0.0,) * len(NAMES)

        turnover = sum(abs(after - before) for after, before in zip(new, self._weights, strict=True))
        penalty = 0.0
        if kind in ("allocate", "revise_allocation"):
            penalty = sum(max(0.0, weight - mandate.max_single) for weight in raw)
            penalty += max(0.0, mandate.min_cash - (1 - sum(new)))
            penalty += max(0.0, turnover - mandate.max_turnover)

        signals = self._signals[t]
        returns = [self._prices[t + 1][i] / self._prices[t][i] - 1 for i in range(len(NAMES))]
        gross = sum(weight * change for weight, change in zip(new, returns, strict=True))
        cost = turnover * rules.cost_bps / 1e4
        concentration, before = _hhi(new), _hhi(self._weights)
        cash_rise = sum(self._weights) - sum(new)
        defensive = max(0.0, cash_rise) + max(0.0, before - concentration)
        aggressive = max(0.0, -cash_rise) + max(0.0, concentration - before)
        pressure = self._known_pressure if self._known_pressure is not None else self._pressure
        response = defensive * pressure - 0.5 * aggressive * max(0.0, pressure - 0.2)
        alignment = sum(weight * signal for weight, signal in zip(new, signals, strict=True))
        information = sum(weight * view for weight, view in zip(new, self._view, strict=True)) if self._view else 0.0
        mean = sum(returns) / len(returns)
        variance = sum((change - mean) ** 2 for change in returns) / len(returns)

        self._nav = max(0.01, self._nav * (1 + gross - cost))
        self._peak = max(self._peak, self._nav)
        self._drawdown = 1 - self._nav / self._peak
        self._max_drawdown = max(self._max_drawdown, self._drawdown)
        parts = Part(
            "reward",
            parts=(
                Part("portfolio_return", 1.0, gross),
                Part("alignment", 0.002, alignment),
                Part("information", 0.003, information),
                Part("risk_response", 0.003, response),
                Part("cost", -1.0, cost),
                Part("query", -1.0, query_cost),
                Part("risk", -rules.risk_aversion, variance * (1 + concentration)),
                Part("drawdown", -rules.drawdown_penalty, max(0.0, self._max_drawdown - 0.04)),
                Part("violation", -0.04, penalty),
                Part("invalid", -1.0, invalid),
            ),
            low=self.reward_range[0],
            high=self.reward_range[1],
        )
        self._weights = new
        self._turnovers.append(turnover)
        self._information.append(information)
        self._responses.append(response)
        self._positive += parts.total > 0
        self._violations += penalty > 0 or invalid > 0
        self._t += 1
        self._enter_step()
        return self._observe(parts.total, parts, error)

    @property
    def state(self) -> Json:
        """Return step, task and public totals; the original also showed its hidden regime here."""
        if self._rules is None:
            return {"step": 0, "task": None}
        return {
            "task": self._rules.task.name,
            "step": self._t,
            "nav": round(self._nav, 10),
            "queries_remaining": self._rules.max_queries - self._queries,
            "violations": self._violations,
        }

    def hidden(self) -> Json:
        """Return the regime of the step."""
        if self._rules is None:
            return {}
        regime = self._rules.regime(min(self._t, self._rules.task.max_steps - 1))
        return {"canaries": [regime], "regime": regime}

    def grade(self) -> Part:
        """Return the task's published grader over the steps played."""
        if self._rules is None:
            raise Mistake("Expected an episode, was none: call reset first")
        steps = max(1, self._t)
        record = Record(
            self._nav - 1,
            self._max_drawdown,
            sum(self._information) / steps,
            sum(self._responses) / steps,
            self._positive / steps,
            1 - self._violations / steps,
            sum(self._turnovers) / steps,
            sum(self._weights),
        )
        return grade(self._rules.task.name, record)

    def _enter_step(self) -> None:
        """Put the step's mandate in force, then recompute metrics and alert with the step's signals."""
        rules = self._rules
        assert rules is not None
        t = min(self._t, rules.task.max_steps - 1)
        if self._t == 0:
            self._mandate = rules.mandate
        elif self._t in rules.schedule:
            self._mandate = rules.schedule[self._t]
            self._notes["risk"].append({"step": self._t, "note": "the mandate has changed"})
            self._known_pressure = max(self._known_pressure or 0.0, 0.45)
        signals = self._signals[t]
        self._market_signal = sum(signals) / len(signals)
        self._pressure = (
            0.7 * max(0.0, -self._market_signal) + 2 * max(0.0, self._max_drawdown - 0.03) + PRESSURE[rules.regime(t)]
        )
        self._alert = self._pressure >= rules.alert_level

    def _ask(self, kind: str, target: object) -> None:
        t, rules = self._t, self._rules
        assert rules is not None
        if kind == "query_risk":
            self._known_pressure = self._pressure
            self._notes["risk"].append({"step": t, "pressure": round(self._pressure, 6)})
            return
        self._view = tuple(
            round(clip(signal + rules.noise * math.sin((t + 1) * (k + 1) / 2.9), -1, 1), 4)
            for k, signal in enumerate(self._signals[t])
        )
        shown = {name: view for name, view in zip(NAMES, self._view, strict=True) if target in (None, "SECTOR", name)}
        self._notes["research"].append({"step": t, "views": shown})

    def _target(self, action: Action, mandate: Mandate) -> tuple[float, ...]:
        template = action.get("allocation_template")
        if template is not None:
            return template_weights(template, self._view or self._signals[self._t], mandate.min_cash)
        weights: dict[str, float] = action["target_weights"]
        return tuple(float(weights.get(name, 0.0)) for name in NAMES)

    def _observe(self, reward: float | None, parts: Part | None, error: str | None) -> Observation:
        rules, mandate = self._rules, self._mandate
        assert rules is not None
        t = min(self._t, rules.task.max_steps - 1)
        signals = self._signals[t]
        steps = max(1, self._t)
        data: Json = {
            "task": rules.task.name,
            "step": self._t,
            "max_steps": rules.task.max_steps,
            "prices": dict(zip(NAMES, self._prices[self._t], strict=True)),
            "signals": dict(zip(NAMES, signals, strict=True)),
            "weights": {name: round(w, 6) for name, w in zip(NAMES, self._weights, strict=True)},
            "cash": round(1 - sum(self._weights), 6),
            "nav": round(self._nav, 10),
            "turnover": round(self._turnovers[-1], 6) if self._turnovers else 0.0,
            "risk_metrics": {
                "market_signal": round(self._market_signal, 6),
                "signal_dispersion": round(
                    sum(abs(signal - self._market_signal) for signal in signals) / len(signals), 6
                ),
                "concentration": round(_hhi(self._weights), 6),
                "average_turnover": round(sum(self._turnovers) / steps, 6),
                "max_drawdown": round(self._max_drawdown, 6),
                "cash_buffer_hint": round(max(mandate.min_cash, 0.3 * self._pressure), 6),
                "risk_pressure": round(self._pressure, 6),
                "compliance_headroom": round(1 - self._violations / steps, 6),
            },
            "constraints": {
                "max_single": mandate.max_single,
                "min_cash": mandate.min_cash,
                "max_turnover": mandate.max_turnover,
            },
            "research_notes": self._notes["research"][-3:],
            "risk_notes": self._notes["risk"][-3:],
            "templates": list(TEMPLATES),
            "alert": self._alert,
            "queries_remaining": rules.max_queries - self._queries,
            "violations": self._violations,
            "error": error,
        }
        return Observation(data, self._t >= rules.task.max_steps, reward, parts)


def _hhi(weights: tuple[float, ...]) -> float:
    return sum(weight * weight for weight in weights)


def _scaled(raw: tuple[float, ...], mandate: Mandate) -> tuple[float, ...]:
    capped = tuple(min(weight, mandate.max_single) for weight in raw)
    total, most = sum(capped), 1 - mandate.min_cash
    return tuple(weight * (most / total) for weight in capped) if total > most else capped


def _malformed(action: Any) -> str | None:
    """Return what is wrong with an action, or None."""
    if not isinstance(action, dict):
        return f"Expected an object, was {type(action).__name__}"
    unknown = sorted(set(action) - FIELDS)
    if unknown:
        return f"Expected the fields {', '.join(sorted(FIELDS))}, was {unknown[0]!r}"
    if action.get("action") not in ACTIONS:
        return f"Expected one of {', '.join(ACTIONS)}, was {action.get('action')!r}"
    template, weights = action.get("allocation_template"), action.get("target_weights")
    if template is not None and template not in TEMPLATES:
        return f"Expected one of {', '.join(TEMPLATES)}, was {template!r}"
    if action.get("query_target") not in (None, "SECTOR", *NAMES):
        return f"Expected SECTOR or one of {', '.join(NAMES)}, was {action['query_target']!r}"
    if action["action"] in ("allocate", "revise_allocation") and template is None:
        if not isinstance(weights, dict) or not weights or set(weights) - set(NAMES):
            return "Expected a template or target_weights by name, was neither"
        if any(not _is_weight(weight) for weight in weights.values()):
            return "Expected weights from 0 to 1, was another value"
    return None


def _is_weight(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1

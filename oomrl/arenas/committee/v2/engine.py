"""The second version's step: ask an adviser, trade, or wait, while prices and weights move on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oomrl.arenas.committee.v2.actions import TEMPLATES, Move, parse, template_weights
from oomrl.arenas.committee.v2.advisers import ask_research, ask_risk
from oomrl.arenas.committee.v2.book import move
from oomrl.arenas.committee.v2.grading import Record, grade, resolutions
from oomrl.arenas.committee.v2.rules import NAMES, TASKS, TOLERANCE, WINDOW, Mandate, Rules
from oomrl.arenas.committee.v2.world import CRASH_CHANCE, CRASH_LOSS, PERSISTENCE, World, make_world
from oomrl.arenas.engine import Action, Json, Observation, Part
from oomrl.errors import Mistake

REFUSED_COST = 0.02
NOTES_SHOWN = 3


class CommitteeV2:
    """Play one episode of the committee. See the arena's README for the rules."""

    reward_range = (-1.0, 1.0)

    def __init__(self) -> None:
        self._rules: Rules | None = None

    def reset(self, seed: int, task: str) -> Observation:
        """Draw the world of the seed and start in cash."""
        if task not in TASKS:
            raise Mistake(f"Expected one of the tasks {', '.join(TASKS)}, was {task!r}")
        self._rules = rules = TASKS[task]
        self._world: World = make_world(seed, rules)
        self._t = 0
        self._weights: tuple[float, ...] = (0.0,) * len(NAMES)
        self._nav = self._peak = 1.0
        self._max_drawdown = 0.0
        self._prices = [self._world.start]
        self._held: list[tuple[float, ...]] = []
        self._largest: list[float] = []
        self._invested: list[float] = []
        self._costs: list[float] = []
        self._turnovers: list[float] = []
        self._violations: list[float] = []
        self._queries = self._refused = 0
        self._notes: dict[str, list[Json]] = {"research": [], "risk": []}
        self._views = [0.0] * len(NAMES)
        return self._observe(None, None, None)

    def step(self, action: Action) -> Observation:
        """Play one action; a refused one holds the portfolio, costs 0.02 and counts against conduct."""
        if self._rules is None or self._t >= self._rules.task.max_steps:
            raise Mistake("Expected a running episode, was none: call reset first")
        rules, world, t = self._rules, self._world, self._t
        parsed = parse(action)
        error = parsed if isinstance(parsed, str) else None
        target, fee = self._weights, 0.0
        if isinstance(parsed, Move):
            if parsed.kind.startswith("query_"):
                if self._queries >= rules.max_queries:
                    error = "Expected queries to remain, was none left"
                else:
                    self._queries += 1
                    fee = rules.query_fee
                    self._ask(parsed)
            else:
                target = self._target(parsed)
        if error is not None:
            self._refused += 1

        peak, drawdown = self._peak, 1 - self._nav / self._peak
        step = move(rules, self._weights, target, world.returns[t], self._nav, fee)
        growth = step.nav / self._nav
        self._nav = step.nav
        self._peak = max(peak, step.nav)
        self._max_drawdown = max(self._max_drawdown, 1 - step.nav / self._peak)
        self._held.append(target)
        self._largest.append(max(target))
        self._invested.append(math.fsum(target))
        self._costs.append(step.cost + fee)
        self._turnovers.append(step.turnover)
        violation = self._violation(world.mandates[t])
        self._violations.append(violation)
        self._weights = step.weights
        self._prices.append(
            tuple(
                round(price * (1 + change), 4) for price, change in zip(self._prices[-1], world.returns[t], strict=True)
            )
        )
        self._t += 1
        parts = Part(
            "reward",
            parts=(
                Part("growth", 5.0, math.log(growth)),
                Part("deeper_drawdown", -2.5, max(0.0, 1 - step.nav / self._peak - drawdown)),
                Part("guardrails", -1.0, violation),
                Part("refused", -1.0, REFUSED_COST if error else 0.0),
            ),
            low=self.reward_range[0],
            high=self.reward_range[1],
        )
        return self._observe(parts.total, parts, error)

    @property
    def state(self) -> Json:
        """Return the public totals of the episode."""
        if self._rules is None:
            return {"task": None, "step": 0}
        return {
            "task": self._rules.task.name,
            "step": self._t,
            "max_steps": self._rules.task.max_steps,
            "done": self._t >= self._rules.task.max_steps,
            "nav": round(self._nav, 6),
            "queries_remaining": self._rules.max_queries - self._queries,
            "refused": self._refused,
        }

    def hidden(self) -> Json:
        """Return the truth of the current step, the advisers' reliability, and the decisions' resolutions."""
        if self._rules is None:
            return {}
        world = self._world
        t = min(self._t, self._rules.task.max_steps - 1)
        return {
            "canaries": [world.regimes[t], world.key, "edge", 'fragile"', "reliability", "expected"]
            + [repr(value) for row in (world.edge[t], world.expected[t]) for value in row],
            "regime": world.regimes[t],
            "edge": list(world.edge[t]),
            "fragile": list(world.fragile[t]),
            "expected": list(world.expected[t]),
            "reliability": {name: list(pair) for name, pair in world.reliability.items()},
            "resolutions": resolutions(self._rules, world, self._held),
        }

    def grade(self) -> Part:
        """Return the score of the steps played so far."""
        if self._rules is None:
            raise Mistake("Expected an episode, was none: call reset first")
        return grade(
            self._rules,
            self._world,
            Record(self._held, self._costs, self._violations, self._refused, self._nav, self._max_drawdown),
        )

    @property
    def book(self) -> tuple[Rules, World, int, tuple[float, ...], Sequence[float]]:
        """Return rules, world, step, weights and turnovers for the oracle. Never shown to an agent."""
        if self._rules is None:
            raise Mistake("Expected an episode, was none: call reset first")
        return self._rules, self._world, self._t, self._weights, self._turnovers

    def _ask(self, parsed: Move) -> None:
        assert self._rules is not None
        if parsed.kind == "query_risk":
            self._notes["risk"].append(ask_risk(self._world, self._t, parsed.asked))
            return
        note = ask_research(self._rules, self._world, self._t, parsed.asked)
        self._notes["research"].append(note)
        for name, view in note["views"].items():
            self._views[NAMES.index(name)] = view

    def _target(self, parsed: Move) -> tuple[float, ...]:
        if parsed.kind == "hold":
            return self._weights
        if parsed.kind == "move_to_cash":
            return (0.0,) * len(NAMES)
        named = parsed.weights
        if named is None:
            assert parsed.template is not None
            named = template_weights(parsed.template, self._views, self._world.betas, self._world.mandates[self._t])
        if parsed.kind == "allocate":
            return tuple(named.get(i, 0.0) for i in range(len(NAMES)))
        target = tuple(named.get(i, weight) for i, weight in enumerate(self._weights))
        total = math.fsum(target)
        return tuple(weight / total for weight in target) if total > 1 else target

    def _violation(self, mandate: Mandate) -> float:
        """Return by how much the window's averages break the mandate of the step, beyond the tolerance.

        The window reaches back to the mandate's first step at most: a new mandate is not held against the
        weights of before it, but from its second step on.
        """
        mandates = self._world.mandates
        first = self._t
        while first > 0 and self._t - first < WINDOW - 1 and mandates[first - 1] is mandate:
            first -= 1
        if first == self._t and self._t > 0:
            return 0.0
        count = self._t + 1 - first
        single = math.fsum(self._largest[first:]) / count - mandate.max_single
        cash = mandate.min_cash - (1 - math.fsum(self._invested[first:]) / count)
        turnover = math.fsum(self._turnovers[-WINDOW:]) / WINDOW - mandate.max_turnover
        return sum(excess - TOLERANCE for excess in (single, cash, turnover) if excess > TOLERANCE)

    def _observe(self, reward: float | None, parts: Part | None, error: str | None) -> Observation:
        rules, world = self._rules, self._world
        assert rules is not None
        mandate = world.mandates[self._t]
        last, back = self._prices[-1], self._prices[max(0, len(self._prices) - 1 - WINDOW)]
        data: Json = {
            "task": rules.task.name,
            "step": self._t,
            "max_steps": rules.task.max_steps,
            "names": list(NAMES),
            "prices": dict(zip(NAMES, last, strict=True)),
            "recent_returns": {name: round(new / old - 1, 4) for name, new, old in zip(NAMES, last, back, strict=True)},
            "betas": dict(zip(NAMES, world.betas, strict=True)),
            "weights": {name: round(w, 6) for name, w in zip(NAMES, self._weights, strict=True)},
            "cash": round(1 - math.fsum(self._weights), 6),
            "nav": round(self._nav, 6),
            "max_drawdown": round(self._max_drawdown, 6),
            "turnover_window": [round(turnover, 6) for turnover in self._turnovers[-WINDOW:]],
            "constraints": {
                "max_single": mandate.max_single,
                "min_cash": mandate.min_cash,
                "max_turnover": mandate.max_turnover,
                "window": WINDOW,
            },
            "costs": {
                "half_spread": rules.half_spread,
                "impact": rules.impact,
                "query_fee": rules.query_fee,
            },
            "units": {
                "view_unit": rules.alpha,
                "view_persistence": PERSISTENCE,
                "fragile_cost": round(CRASH_CHANCE * CRASH_LOSS, 6),
            },
            "research_notes": self._notes["research"][-NOTES_SHOWN:],
            "risk_notes": self._notes["risk"][-NOTES_SHOWN:],
            "conflicts": self._conflicts(),
            "templates": list(TEMPLATES),
            "queries_remaining": rules.max_queries - self._queries,
            "violation": round(self._violations[-1], 6) if self._violations else 0.0,
            "refused": self._refused,
            "error": error,
        }
        return Observation(data, self._t >= rules.task.max_steps, reward, parts)

    def _conflicts(self) -> list[str]:
        """Return the names that the last notes disagree on: Research likes, Risk fears."""
        if not self._notes["research"] or not self._notes["risk"]:
            return []
        views = self._notes["research"][-1]["views"]
        fragility = self._notes["risk"][-1]["fragility"]
        return [name for name in NAMES if views.get(name, 0.0) > 0.5 and fragility.get(name, 0.0) > 0.5]

"""The research arena's engine: seeded, in logical time, the same bytes for the same seed and calls.

A call is one tick. Fitting happens inside the call that starts a job and is shown when the job's ticks have
passed, so that nothing depends on a clock. The laboratory is passed in: one that ends in a sandbox for model
code, or one in this process that runs models of our own alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oomrl.arenas.engine import Action, Json, Observation, Part, plain
from oomrl.arenas.research import scoring
from oomrl.arenas.research.desks.backtests import BacktestDesk
from oomrl.arenas.research.desks.base import ATTEMPTS, Desk, Setting
from oomrl.arenas.research.desks.features import FeatureDesk
from oomrl.arenas.research.desks.model import ModelDesk
from oomrl.arenas.research.desks.portfolio import PortfolioDesk
from oomrl.arenas.research.desks.regimes import RegimeDesk
from oomrl.arenas.research.execution import Design
from oomrl.arenas.research.laboratory import Laboratory, ReferenceLaboratory
from oomrl.arenas.research.panel import Panel
from oomrl.arenas.research.synthetic import LEVELS, Level, make_panel
from oomrl.arenas.research.tools import Refusal
from oomrl.errors import Mistake

ERRORS = 10
MAX_STEPS = 300
#: How many earlier results each observation repeats.
MEMORY = 20
TAPE = "tape"
DESKS: Mapping[str, type[Desk]] = {
    "model": ModelDesk,
    "features": FeatureDesk,
    "portfolio": PortfolioDesk,
    "backtest": BacktestDesk,
    "regime": RegimeDesk,
}
#: Desks that need no planted truth and can run on a real tape.
TAPE_DESKS = ("model", "features")
PanelMaker = Callable[[int], Panel]


def task_names(tape: bool = False) -> tuple[str, ...]:
    """Return every task, `desk@level`."""
    names = [f"{desk}@{level}" for desk in DESKS for level in LEVELS]
    return (*names, *(f"{desk}@{TAPE}" for desk in TAPE_DESKS)) if tape else tuple(names)


class ResearchEngine:
    """Play one episode at a time; see `oomrl.arenas.engine.Engine`.

    `tape` draws a panel from a real tape by seed and opens the tasks `model@tape` and `features@tape`;
    `levels` replaces the built-in levels (smaller ones, for tests).
    """

    reward_range = (-1.0, 1.0)

    def __init__(
        self,
        laboratory: Laboratory | None = None,
        tape: PanelMaker | None = None,
        levels: Mapping[str, Level] = LEVELS,
    ) -> None:
        self._laboratory = laboratory or ReferenceLaboratory()
        self._tape = tape
        self._levels = levels
        self._desk: Desk | None = None
        self._done = True

    def reset(self, seed: int, task: str) -> Observation:
        """Start a task, `desk@level`."""
        kind, _, level = task.partition("@")
        if kind not in DESKS or (level not in self._levels and not (level == TAPE and kind in TAPE_DESKS)):
            raise Mistake(f"Expected a task such as {', '.join(task_names()[:3])}, was {task!r}")
        if level == TAPE and self._tape is None:
            raise Mistake(f"Expected a tape for {task}, was none: make the engine with one")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise Mistake(f"Expected a seed of zero or more, was {seed!r}")
        if level == TAPE:
            assert self._tape is not None
            panel, design = self._tape(seed), Design(capital=1e6)
        else:
            hard = self._levels[level]
            panel, design = make_panel(seed, hard), Design(cost_bps=hard.cost_bps, capital=hard.capital)
        self._desk = DESKS[kind](Setting(panel, design, self._laboratory, seed))
        self._task, self._seed = task, seed
        self._errors = self._steps = 0
        self._paid = 0.0
        self._done = False
        self._reminder = {
            "brief": self._desk.brief(),
            "tools": {name: list(tool.fields) for name, tool in self._desk.tools.items()},
        }
        self._tried: list[Json] = []
        schemas = [tool.schema() for tool in self._desk.tools.values()]
        return Observation({**self.state, **self._reminder, "tool_schemas": schemas})

    def step(self, action: Action) -> Observation:
        """Play one call, `{"tool": name, "arguments": {...}}`."""
        if self._done or self._desk is None:
            raise Mistake("Expected a running episode, was none: call reset first")
        desk = self._desk
        self._steps += 1
        desk.tick += 1
        error = ""
        try:
            result = desk.call(*_read(action))
        except Refusal as refusal:
            self._errors += 1
            error = str(refusal)
            result = {"status": "refused", "message": error}
        out_of_errors = self._errors >= ERRORS and desk.result is None
        self._done = desk.result is not None or out_of_errors or self._steps >= MAX_STEPS
        if not self._done:
            parts = scoring.tree("reward", errors=1 if error else 0)
            self._paid += parts.total
        elif desk.result is None:
            # What refusals have cost already is part of the lowest score.
            parts = scoring.tree("reward", missing=scoring.SCORE_RANGE[0] - self._paid)
        else:
            parts = desk.parts("reward", 0)
            result = {**result, "outcome": desk.result.details}
        if not error:
            self._remember(action["tool"], result)
        data = {**self.state, **self._reminder, "tried": self._tried, "result": result}
        if error:
            data["error"] = error
        return Observation(data, self._done, parts.total, parts)

    def _remember(self, tool: str, result: Json) -> None:
        """Keep the figures of the last tries in view: a player may not remember its first turns."""
        figures = {key: value for key, value in result.items() if isinstance(value, str | int | float)}
        if len(figures) > 1 and "row" not in figures:
            self._tried = [*self._tried, {"tool": tool, **figures}][-MEMORY:]

    @property
    def state(self) -> Json:
        """Return budgets and logical time."""
        if self._desk is None:
            return {"task": None, "tick": 0}
        return {
            "task": self._task,
            "tick": self._desk.tick,
            "attempts_left": ATTEMPTS - self._desk.attempts,
            "errors_left": max(0, ERRORS - self._errors),
            "steps_left": MAX_STEPS - self._steps,
        }

    def hidden(self) -> Json:
        """Return the truth of the panel and what the oracle would do."""
        if self._desk is None:
            return {}
        panel = self._desk.panel
        truth = panel.truth
        return {
            "tradable": self._desk.tradable,
            "signals": [] if truth is None else [dict(signal) for signal in truth.signals],
            "strengths": [] if truth is None else list(truth.weights),
            "hidden_returns": panel.returns[panel.public_days :, :4].ravel().tolist(),
            "panel_digest": panel.digest,
            "canaries": self._canaries(),
            "oracle": self._desk.oracle() if truth is not None else {},
        }

    def _canaries(self) -> list[str]:
        """Return texts that would betray the truth: digests, planted strengths, some hidden returns."""
        assert self._desk is not None
        panel = self._desk.panel
        hidden = panel.returns[panel.public_days :]
        weights = () if panel.truth is None else panel.truth.weights
        sample = [f"{value:.8f}" for value in hidden[:: max(1, len(hidden) // 40), 0]]
        return [panel.digest, *(repr(weight) for weight in weights), *sample]

    def grade(self) -> Part:
        """Return the rubric tree: capture, the desk's second part and protocol errors; -1 until submitted."""
        if self._desk is None:
            raise Mistake("Expected an episode, was none: call reset first")
        return self._desk.parts("score", self._errors)

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the panel's public field names."""
        return () if self._desk is None else self._desk.panel.fields


def _read(action: Any) -> tuple[str, Any]:
    action = plain(action)
    if not isinstance(action, Mapping):
        raise Refusal("Expected an action with 'tool' and 'arguments', was no object")
    unknown = sorted(str(key)[:40] for key in action if key not in ("tool", "arguments"))
    if unknown:
        raise Refusal(f"Expected 'tool' and 'arguments' alone, was {unknown[0]!r} too")
    if not isinstance(action.get("tool"), str):
        raise Refusal("Expected 'tool' to be the name of a tool, was none")
    return action["tool"], action.get("arguments", {})

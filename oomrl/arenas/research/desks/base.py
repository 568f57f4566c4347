"""What every desk shares: the panel, the budgets, logical time, and how a submission becomes a grade."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oomrl.arenas.engine import Json, Part
from oomrl.arenas.research import scoring
from oomrl.arenas.research.execution import Design
from oomrl.arenas.research.laboratory import Laboratory
from oomrl.arenas.research.panel import HORIZON, Panel
from oomrl.arenas.research.tools import Refusal, Tool
from oomrl.domain.market import Floats

ATTEMPTS = 100
Handler = Callable[[Mapping[str, Any]], Json]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a desk is given: the panel, how it trades, where models are fitted and the episode's seed."""

    panel: Panel
    design: Design
    laboratory: Laboratory
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """A judged submission: its capture, its second part by name, and the details shown after the end."""

    capture: float
    second: float
    second_name: str
    details: Json


class Desk:
    """Answer the calls of one task. Subclasses name their tools and add a handler `_name` for each."""

    tools: Mapping[str, Tool] = {}

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.panel = setting.panel
        self.public = setting.panel.public()
        self.tick = 0
        self.attempts = 0
        self.result: Result | None = None

    def brief(self) -> Json:
        """Return what the agent is told of this task at the start."""
        panel, design = self.panel, self.setting.design
        return {
            "public_rows": panel.public_days,
            "names": list(panel.names),
            "fields": list(panel.fields),
            "hidden_windows": len(panel.windows),
            "timing": "signal of row t, executed at the close of row t+1, earns the return of row t+2",
            "cost_bps": design.cost_bps,
            "capital": design.capital,
            "smoothing_halflife": design.halflife,
        }

    def call(self, tool: str, arguments: Any) -> Json:
        """Answer one call; `Refusal` is a protocol error."""
        known = self.tools.get(tool)
        if known is None:
            raise Refusal(f"Expected a tool of {', '.join(self.tools)}, was {tool[:60]!r}")
        handler: Handler = getattr(self, f"_{tool}")
        return handler(known.check(arguments))

    def oracle(self) -> Json:
        """Return what a player who knows the truth would do; for judges and the oracle alone."""
        raise NotImplementedError

    def parts(self, name: str, errors: int) -> Part:
        """Return the rubric tree of the submission, or of its absence."""
        if self.result is None:
            return scoring.tree(name, missing=-1.0, errors=errors)
        second = {self.result.second_name: self.result.second}
        return scoring.tree(name, self.result.capture, errors=errors, **second)

    @property
    def tradable(self) -> bool | None:
        truth = self.panel.truth
        return None if truth is None else truth.tradable

    def _spend(self) -> None:
        if self.attempts >= ATTEMPTS:
            raise Refusal(f"Expected attempts to remain, all {ATTEMPTS} are used: submit or abstain")
        self.attempts += 1

    def _abstain(self, second_name: str = "evidence", second: float | None = None) -> Json:
        right = scoring.abstention(self.tradable)
        value = second if second is not None else 1.0 if right == 1.0 else 0.0
        self.result = Result(right, value, second_name, {"abstained": True})
        return {"status": "abstained"}

    def _captured(self, hidden: scoring.Hidden, ceiling: float | None) -> float:
        captured = scoring.capture(hidden.sharpe.value, ceiling)
        if hidden.active < scoring.ACTIVE:
            captured = min(captured, scoring.abstention(self.tradable))
        return captured

    def _finish(self, hidden: scoring.Hidden, ceiling: float | None, second: float, name: str, more: Json) -> Json:
        captured = self._captured(hidden, ceiling)
        details = {**hidden.to_json(), "ceiling": None if ceiling is None else round(ceiling, 4), **more}
        self.result = Result(captured, second, name, details)
        return {"status": "submitted"}


def information(forecast: Floats, panel: Panel, start: int, stop: int) -> tuple[float, float]:
    """Return the mean daily correlation of signal and return over rows, and its t value.

    Uses returns up to row stop - 1 alone: the last rows' signals wait for theirs.
    """
    last = min(stop, panel.days) - HORIZON
    x, y = forecast[start:last], panel.returns[start + HORIZON : last + HORIZON]
    x = np.where(np.isfinite(x), x, 0.0)
    x = x - x.mean(axis=1, keepdims=True)
    y = y - y.mean(axis=1, keepdims=True)
    norm = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    daily = np.where(norm > 1e-15, (x * y).sum(axis=1) / np.maximum(norm, 1e-15), 0.0)
    spread = float(daily.std())
    return float(daily.mean()), float(daily.mean() / spread * len(daily) ** 0.5) if spread > 1e-15 else 0.0


def persistence(forecast: Floats, start: int, stop: int) -> float:
    """Return the mean correlation of a signal with itself one row later."""
    x = np.where(np.isfinite(forecast[start:stop]), forecast[start:stop], 0.0)
    x = x - x.mean(axis=1, keepdims=True)
    norm = np.sqrt((x[1:] ** 2).sum(axis=1) * (x[:-1] ** 2).sum(axis=1))
    return float(np.mean((x[1:] * x[:-1]).sum(axis=1) / np.maximum(norm, 1e-15)))

"""Backtest judgement: strategies come with claims; find out which are honest, and trade one or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oomrl.arenas.engine import Json
from oomrl.arenas.research import scoring, statistics
from oomrl.arenas.research.desks.base import Desk, Setting
from oomrl.arenas.research.execution import MAX_GROSS
from oomrl.arenas.research.sources import KINDS, Recipe, make_sources
from oomrl.arenas.research.tools import ABSTAIN, RATIONALE, START, STOP, Field, Refusal, Tool, row_range
from oomrl.domain.market import Floats

MIN_ROWS = 60
RECIPES = (
    Recipe("honest", 0.65, 10.0),
    Recipe("honest", 0.45, 10.0),
    Recipe("overfit", 0.3, 6.0),
    Recipe("leak", 0.5, 8.0),
    Recipe("noise", 0.0, 10.0),
)
TOOLS = (
    Tool(
        "run_backtest",
        "Trade a candidate on public rows, at a cost and with extra rows of delay of your choice. Uses one attempt.",
        {
            "candidate": Field("text", "A candidate", 1, 8),
            "start": START,
            "stop": STOP,
            "cost_bps": Field("number", "Cost of traded value", 0.0, 100.0, optional=True),
            "extra_delay": Field("whole", "Rows by which the signal is held back", 0, 20, optional=True),
        },
    ),
    Tool(
        "flag",
        "Say what a candidate is; the last word on each counts",
        {
            "candidate": Field("text", "A candidate", 1, 8),
            "verdict": Field("text", "Its kind", 1, 20, options=KINDS),
        },
    ),
    Tool(
        "execute",
        "End the episode: trade a candidate on [t+1, T], or abstain",
        {
            "candidate": Field("text", "A candidate", 1, 8, optional=True),
            "max_gross_exposure": Field("number", "Cap on the sum of absolute weights", 0.05, MAX_GROSS, optional=True),
            "rationale": RATIONALE,
            "abstain": ABSTAIN,
        },
    ),
)


class BacktestDesk(Desk):
    """Weigh claims against backtests of one's own."""

    tools = {tool.name: tool for tool in TOOLS}

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._sources = {source.name: source for source in make_sources(self.panel, setting.seed, RECIPES)}
        self._flags: dict[str, str] = {}

    def brief(self) -> Json:
        claims = {}
        free = replace(self.setting.design, cost_bps=0.0, capital=1.0)
        for name, source in self._sources.items():
            ledger = scoring.visible_ledger(self.public, self._public(source.scores), free, 0, self.panel.public_days)
            claims[name] = round(statistics.sharpe(ledger.net).value, 2)
        return {**super().brief(), "claimed_sharpe": claims, "verdicts": list(KINDS)}

    def _public(self, scores: Floats) -> Floats:
        return scores[: self.panel.public_days]

    def _known(self, name: str) -> Floats:
        if name not in self._sources:
            raise Refusal(f"Expected a candidate of {', '.join(self._sources)}, was {name!r}")
        return self._sources[name].scores

    def _run_backtest(self, arguments: Mapping[str, Any]) -> Json:
        scores = self._public(self._known(arguments["candidate"]))
        start, stop = row_range(arguments, self.panel.public_days, MIN_ROWS)
        self._spend()
        delay = int(arguments.get("extra_delay", 0))
        held = np.vstack([np.zeros((delay, scores.shape[1])), scores[: len(scores) - delay]]) if delay else scores
        design = self.setting.design.at_cost(float(arguments.get("cost_bps", self.setting.design.cost_bps)))
        ledger = scoring.visible_ledger(self.public, held, design, start, stop)
        return {
            "sharpe": round(statistics.sharpe(ledger.net).value, 2),
            "rows": len(ledger.net),
            "turnover": round(float(ledger.turnover.mean()), 3),
        }

    def _flag(self, arguments: Mapping[str, Any]) -> Json:
        self._known(arguments["candidate"])
        self._flags[arguments["candidate"]] = arguments["verdict"]
        return {"flags": dict(self._flags)}

    def flag_value(self) -> float:
        """Return right verdicts less half the wrong ones, as a share of the candidates, at least 0."""
        marks = [
            1.0 if self._flags[name] == source.kind else -0.5
            for name, source in self._sources.items()
            if name in self._flags
        ]
        return max(0.0, sum(marks) / len(self._sources))

    def _execute(self, arguments: Mapping[str, Any]) -> Json:
        named = arguments.get("candidate")
        if arguments.get("abstain", False):
            if named is not None:
                raise Refusal("Expected a candidate or abstain, were both")
            return self._abstain("verdicts", self.flag_value())
        if named is None:
            raise Refusal("Expected a candidate (or abstain: true), was neither")
        self._known(named)
        hidden = self._trade(named, float(arguments.get("max_gross_exposure", 1.0)))
        return self._finish(hidden, self.ceiling(), self.flag_value(), "verdicts", {})

    def _trade(self, name: str, gross: float) -> scoring.Hidden:
        scores, cut = self._sources[name].scores, self.panel.public_days
        design = replace(self.setting.design, gross=gross)
        return scoring.hidden_forecast(self.panel, scores[:cut], scores[cut:], design)

    def _best(self) -> str | None:
        """Return the honest candidate that knows most of the expectation."""
        truth = self.panel.truth
        honest = [name for name, source in self._sources.items() if source.kind == "honest"]
        if truth is None or not honest:
            return None
        return max(honest, key=lambda name: float((self._sources[name].scores * truth.expectation).sum()))

    def ceiling(self) -> float | None:
        best = self._best()
        return 0.0 if best is None else self._trade(best, 1.0).sharpe.value

    def oracle(self) -> Json:
        best = self._best()
        flags = {name: source.kind for name, source in self._sources.items()}
        return {"abstain": best is None, "flags": flags, "candidate": best}

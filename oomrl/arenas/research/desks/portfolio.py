"""Portfolio design: given forecasts of unknown worth, choose blend, smoothing, size, caps and band."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from oomrl.arenas.engine import Json
from oomrl.arenas.research import scoring, statistics
from oomrl.arenas.research.desks.base import Desk, Setting, information, persistence
from oomrl.arenas.research.execution import MAX_GROSS, Design, positions, scale_of
from oomrl.arenas.research.sources import Recipe, make_sources
from oomrl.arenas.research.tools import ABSTAIN, RATIONALE, START, STOP, Field, Refusal, Tool, row_range
from oomrl.domain.market import Floats

MIN_ROWS = 60
RECIPES = (
    Recipe("honest", 0.6, 12.0),
    Recipe("honest", 0.45, 1.0),
    Recipe("overfit", 0.3, 6.0),
    Recipe("turned", 0.4, 10.0),
    Recipe("noise", 0.0, 10.0),
)
_DESIGN = Tool(
    "design",
    "",
    {
        "blend": Field("object", "Source to weight, 0 or more; their sum is scaled to 1", 1, 8),
        "halflife": Field("number", "Smoothing in rows", 1, 60, optional=True),
        "gross": Field("number", "Cap on the sum of absolute weights", 0.05, MAX_GROSS, optional=True),
        "band": Field("number", "Leave a weight alone until its target differs by more", 0.0, 0.05, optional=True),
        "name_cap": Field("number", "Bound on one absolute weight", 0.02, 1.0, optional=True),
    },
)
DESIGN = Field("object", "blend, and optionally halflife, gross, band, name_cap", 1, 5)
TOOLS = (
    Tool(
        "inspect_source",
        "Correlate a source with what it would earn on public rows. Uses one attempt.",
        {"source": Field("text", "A source", 1, 8), "start": START, "stop": STOP},
    ),
    Tool(
        "simulate",
        "Trade a design on public rows. Uses one attempt.",
        {"design": DESIGN, "start": START, "stop": STOP},
    ),
    Tool(
        "execute",
        "End the episode: trade a design on [t+1, T], or abstain",
        {"design": replace(DESIGN, optional=True), "rationale": RATIONALE, "abstain": ABSTAIN},
    ),
)


class PortfolioDesk(Desk):
    """Trade blends of given sources."""

    tools = {tool.name: tool for tool in TOOLS}

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._sources = {source.name: source for source in make_sources(self.panel, setting.seed, RECIPES)}
        self._trials: list[Floats] = []

    def brief(self) -> Json:
        return {**super().brief(), "sources": list(self._sources), "design": _DESIGN.schema()["parameters"]}

    def _inspect_source(self, arguments: Mapping[str, Any]) -> Json:
        source = self._sources.get(arguments["source"])
        if source is None:
            raise Refusal(f"Expected a source of {', '.join(self._sources)}, was {arguments['source']!r}")
        start, stop = row_range(arguments, self.panel.public_days, MIN_ROWS)
        self._spend()
        correlation, t = information(source.scores[: self.panel.public_days], self.public, start, stop)
        return {
            "information_coefficient": round(correlation, 3),
            "t_value": round(t, 1),
            "persistence": round(persistence(source.scores, start, stop), 2),
        }

    def _simulate(self, arguments: Mapping[str, Any]) -> Json:
        forecast, design = self._read(arguments["design"])
        start, stop = row_range(arguments, self.panel.public_days, MIN_ROWS)
        self._spend()
        public = forecast[: self.panel.public_days]
        ledger = scoring.visible_ledger(self.public, public, design, start, stop)
        whole = scoring.visible_ledger(self.public, public, design, self._late, self.panel.public_days)
        self._trials.append(whole.net)
        return {
            "sharpe": round(statistics.sharpe(ledger.net).value, 2),
            "turnover": round(float(ledger.turnover.mean()), 3),
            "cost_in_sharpe": round(_cost_in_sharpe(ledger.net, ledger.cost), 2),
            "exposure": round(float(ledger.exposure.mean()), 2),
        }

    @property
    def _late(self) -> int:
        return int(self.panel.public_days * 2 / 3)

    def _execute(self, arguments: Mapping[str, Any]) -> Json:
        wanted = arguments.get("design")
        if arguments.get("abstain", False):
            if wanted is not None:
                raise Refusal("Expected a design or abstain, were both")
            return self._abstain()
        if wanted is None:
            raise Refusal("Expected a design (or abstain: true), was neither")
        forecast, design = self._read(wanted)
        hidden = self._trade(forecast, design)
        public = forecast[: self.panel.public_days]
        chosen = scoring.visible_ledger(self.public, public, design, self._late, self.panel.public_days).net
        tried = scoring.evidence(chosen, [*self._trials, chosen], tries=self.attempts)
        more = {
            "deflated_sharpe": round(tried.deflated_sharpe, 4),
            "probability_of_overfitting": tried.overfitting,
        }
        return self._finish(hidden, self.ceiling(), tried.value, "evidence", more)

    def _read(self, wanted: Mapping[str, Any]) -> tuple[Floats, Design]:
        given = _DESIGN.check(wanted)
        total = 0.0
        for name, weight in given["blend"].items():
            if name not in self._sources:
                raise Refusal(f"Expected sources of {', '.join(self._sources)}, was {str(name)[:40]!r}")
            Field("number", "", 0.0, 1e6).check(f"weight of {name}", weight)
            total += weight
        if total <= 0.0:
            raise Refusal("Expected a blend with a positive weight; to trade nothing, abstain")
        forecast = sum(weight / total * self._sources[name].scores for name, weight in given["blend"].items())
        base = self.setting.design
        design = replace(
            base,
            halflife=float(given.get("halflife", base.halflife)),
            gross=float(given.get("gross", base.gross)),
            band=float(given.get("band", 0.0)),
            name_cap=float(given.get("name_cap", 1.0)),
        )
        return np.asarray(forecast), design

    def _trade(self, forecast: Floats, design: Design) -> scoring.Hidden:
        cut = self.panel.public_days
        return scoring.hidden_forecast(self.panel, forecast[:cut], forecast[cut:], design)

    @cached_property
    def _best(self) -> Json | None:
        """Return the design with the highest expected hidden Sharpe on a grid over the honest sources."""
        honest = [name for name, source in self._sources.items() if source.kind == "honest"]
        if not honest:
            return None
        blends = [
            dict(zip(honest, pair, strict=True))
            for pair in ((1.0, 0.0), (0.7, 0.3), (0.5, 0.5), (0.3, 0.7), (0.0, 1.0))
        ]
        grid = [
            {"blend": blend, "halflife": halflife} for blend, halflife in itertools.product(blends, (3.0, 7.0, 14.0))
        ]
        return max(grid, key=self._expected)

    def _expected(self, wanted: Json) -> float:
        """Return mean expected profit less cost over the deviation of what was earned."""
        forecast, design = self._read(wanted)
        cut = self.panel.public_days
        weights = positions(self.panel, forecast[cut:], scale_of(forecast[:cut]), design, start=cut)
        assert self.panel.truth is not None
        foreseen = replace(
            self.panel,
            returns=np.vstack([np.zeros((2, len(self.panel.names))), self.panel.truth.expectation[:-2]]),
        )
        expected = np.concatenate(
            [
                ideal.gross - real.cost
                for real, ideal in zip(
                    scoring.trade_windows(self.panel, weights, design, cut),
                    scoring.trade_windows(foreseen, weights, design, cut),
                    strict=True,
                )
            ]
        )
        risk = np.concatenate([ledger.net for ledger in scoring.trade_windows(self.panel, weights, design, cut)])
        return float(expected.mean() / max(risk.std(), 1e-12))

    def ceiling(self) -> float | None:
        """Return the hidden Sharpe of the design that was best in expectation; 0 without an honest source."""
        return 0.0 if self._best is None else self._trade(*self._read(self._best)).sharpe.value

    def oracle(self) -> Json:
        return {"abstain": True} if self._best is None else {"abstain": False, "design": self._best}


def _cost_in_sharpe(net: Floats, cost: Floats) -> float:
    spread = float(net.std())
    return float(cost.mean()) / spread * statistics.YEAR**0.5 if spread > 1e-15 else 0.0

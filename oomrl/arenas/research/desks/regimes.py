"""Regime adaptation: trade block after block while signals fade, turn round and come back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from oomrl.arenas.engine import Json
from oomrl.arenas.research import scoring, statistics
from oomrl.arenas.research.desks.base import Desk, Setting, information
from oomrl.arenas.research.execution import MAX_GROSS, Ledger, positions, trade
from oomrl.arenas.research.expressions import evaluate
from oomrl.arenas.research.operators import ewm, zscore
from oomrl.arenas.research.panel import HORIZON
from oomrl.arenas.research.synthetic import REGIMES
from oomrl.arenas.research.tools import Field, Refusal, Tool
from oomrl.domain.market import Floats

BLOCK = 21
DECOYS = 2
TOOLS = (
    Tool(
        "observe",
        "See how each signal has done lately, the regime field and your profit so far. Uses one attempt.",
        {"lookback": Field("whole", "Rows to look back", 10, 500)},
    ),
    Tool(
        "execute",
        f"Trade the next {BLOCK} rows of [t+1, T] on a blend of signals; gross 0 stands aside",
        {
            "weights": Field("object", "Signal to weight, 0 or more", 0, 8),
            "invert": Field("list", "Signals to use with the opposite sign", 0, 8, optional=True),
            "gross": Field("number", "Cap on the sum of absolute weights", 0.0, MAX_GROSS),
            "note": Field("text", "A note of your own", 0, 1000, optional=True),
        },
    ),
)


class RegimeDesk(Desk):
    """Walk through the hidden rows; every answer shows what had happened by then, never what comes."""

    tools = {tool.name: tool for tool in TOOLS}

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        panel = self.panel
        rng = np.random.default_rng([setting.seed, 11])
        truth = panel.truth
        assert truth is not None
        raw = [zscore(evaluate(signal, panel.columns)) for signal in truth.signals]
        while len(raw) < 3 + DECOYS:
            raw.append(zscore(ewm(rng.standard_normal(panel.returns.shape), 10.0)))
        order = rng.permutation(len(raw)).tolist()
        self._signals = {f"S{place + 1}": raw[k] for place, k in enumerate(order)}
        self._planted = {f"S{place + 1}": k for place, k in enumerate(order) if k < len(truth.signals)}
        self._now = panel.public_days
        self._end = panel.days - HORIZON
        shape = (self._end - self._now, len(panel.names))
        self._blend, self._gross = np.zeros(shape), np.zeros(shape[0])
        self._blocks = 0

    def brief(self) -> Json:
        blocks = -(-(self._end - self._now) // BLOCK)
        return {**super().brief(), "signals": list(self._signals), "block_rows": BLOCK, "blocks": blocks}

    def _observe(self, arguments: Mapping[str, Any]) -> Json:
        self._spend()
        back = int(arguments["lookback"])
        stop = self._now
        start = max(0, stop - back)
        stress = self.panel.columns["stress"][:stop, 0]
        answer: Json = {"row": self._now, "stress": round(float(stress[-1]), 2), "signals": {}}
        answer["rows_under_stress"] = round(float((stress[start:stop] > 0).mean()), 2)
        for name, scores in self._signals.items():
            correlation, t = information(scores, self.panel, start, stop)
            answer["signals"][name] = {
                "information_coefficient": round(correlation, 3),
                "t_value": round(t, 1),
            }
            for word, chosen in (("stress", stress > 0), ("calm", stress <= 0)):
                rows = np.flatnonzero(chosen[start : stop - HORIZON]) + start
                if len(rows) >= 10:
                    part = _rows_information(scores, self.panel.returns, rows)
                    answer["signals"][name][f"information_coefficient_in_{word}"] = round(part, 3)
        return {**answer, **self._profit()}

    def _execute(self, arguments: Mapping[str, Any]) -> Json:
        blend = self._read(arguments["weights"], arguments.get("invert", ()))
        gross = float(arguments["gross"])
        rows = min(BLOCK, self._end - self._now)
        self._trade_block(self._blend, self._gross, blend if gross > 0.0 else {}, gross)
        self._now += rows
        block = self._realised()[-rows:]
        answer = {"row": self._now, "block_return_bps": round(float(block.sum()) * 1e4, 1), **self._profit()}
        self._blocks += 1
        if self._now >= self._end:
            self._close()
            return {**answer, "status": "finished"}
        return {**answer, "status": "trading"}

    def _read(self, weights: Mapping[str, Any], invert: Any) -> dict[str, float]:
        for name in (*weights, *invert):
            if name not in self._signals:
                raise Refusal(f"Expected signals of {', '.join(self._signals)}, was {str(name)[:40]!r}")
        for name, weight in weights.items():
            Field("number", "", 0.0, 1e6).check(f"weight of {name}", weight)
        total = sum(weights.values())
        if total <= 0.0:
            return {}
        return {name: (-1.0 if name in invert else 1.0) * weight / total for name, weight in weights.items()}

    def _trade_block(
        self, blend: Floats, gross: Floats, weights: Mapping[str, float], cap: float, now: int | None = None
    ) -> None:
        start = self._now if now is None else now
        stop = min(start + BLOCK, self._end)
        first = self.panel.public_days
        forecast = np.zeros((stop - start, blend.shape[1]))
        for name, weight in weights.items():
            forecast += weight * self._signals[name][start:stop]
        # The mean absolute value of a blend of independent standard scores, so that no future row is needed.
        unit = 0.8 * sum(weight**2 for weight in weights.values()) ** 0.5
        blend[start - first : stop - first] = forecast / unit if weights else 0.0
        gross[start - first : stop - first] = cap if weights else 0.0

    def _ledger(self, blend: Floats | None = None, gross: Floats | None = None, stop: int | None = None) -> Ledger:
        blend = self._blend if blend is None else blend
        gross = self._gross if gross is None else gross
        stop = self._now if stop is None else stop
        first = self.panel.public_days
        rows = stop - first
        weights = positions(self.panel, blend[:rows], 1.0, self.setting.design, start=first)
        return trade(self.panel, weights * gross[:rows, None], self.setting.design, first, stop, first)

    def _realised(self) -> Floats:
        """Return the net returns of the signals whose own return has come in by now."""
        stop = self._now - HORIZON
        return self._ledger(stop=stop).net if stop > self.panel.public_days else np.zeros(1)

    def _profit(self) -> Json:
        net = self._realised()
        equity = np.cumprod(1.0 + net)
        return {
            "sharpe_so_far": round(statistics.sharpe(net).value, 2),
            "return_bps_so_far": round(float(net.sum()) * 1e4, 1),
            "drawdown_so_far": round(float((1.0 - equity / np.maximum.accumulate(equity)).max()), 4),
        }

    def _close(self) -> None:
        net = self._ledger().net
        result = self._hidden(net)
        if result.active == 0.0:
            self._abstain()
            return
        self._finish(result, self.ceiling(), statistics.deflated_sharpe(net, 1), "evidence", {"blocks": self._blocks})

    def _hidden(self, net: Floats) -> scoring.Hidden:
        return scoring.Hidden(
            sharpe=statistics.sharpe(net),
            windows=tuple(statistics.sharpe(net[k : k + 126]).value for k in range(0, len(net) - 63, 126)),
            tiers=(),
            expected_cost=0.0,
            active=float((self._gross > 0.0).mean()),
            turnover=float(self._ledger().turnover.mean()),
            net=net,
        )

    @cached_property
    def _plan(self) -> list[Json]:
        """Return the oracle's block by block: planted strengths under the regime that the block opens with."""
        truth = self.panel.truth
        assert truth is not None
        plan = []
        for start in range(self.panel.public_days, self._end, BLOCK):
            stress = self.panel.columns["stress"][start - 1, :1]
            strength = {
                name: truth.weights[k] * float(REGIMES[truth.regimes[k]](stress)[0])
                for name, k in self._planted.items()
            }
            plan.append(
                {
                    "weights": {name: abs(value) for name, value in strength.items() if value},
                    "invert": [name for name, value in strength.items() if value < 0],
                    "gross": 1.0 if any(strength.values()) else 0.0,
                }
            )
        return plan

    def ceiling(self) -> float:
        """Return the Sharpe of the oracle's plan; 0 without signal."""
        if not self._planted:
            return 0.0
        blend, gross = np.zeros_like(self._blend), np.zeros_like(self._gross)
        for step, now in zip(self._plan, range(self.panel.public_days, self._end, BLOCK), strict=True):
            self._trade_block(blend, gross, self._read(step["weights"], step["invert"]), step["gross"], now)
        return statistics.sharpe(self._ledger(blend, gross, self._end).net).value

    def oracle(self) -> Json:
        return {"plan": self._plan}


def _rows_information(scores: Floats, returns: Floats, rows: np.ndarray) -> float:
    x, y = scores[rows], returns[rows + HORIZON]
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    norm = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return float(np.mean((x * y).sum(axis=1) / np.maximum(norm, 1e-15)))

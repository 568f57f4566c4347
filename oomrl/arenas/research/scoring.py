"""What a submission is worth: hidden Sharpe, what a perfect forecast would have earned, and the tries it took.

    capture  = clip(1 - (ceiling - sharpe) / max(ceiling, 1), -1, 1)
    evidence = deflated Sharpe of the validation rows, by the number of tries, times (1 - PBO)
    score    = clip(0.85 capture + 0.15 evidence - 0.01 errors, -1, 1); -1 without a submission

(the backtest task has the share of right verdicts in place of evidence).

`ceiling` is the hidden Sharpe of the planted expectation through the same execution (0 on a panel without
signal, 1.5 on a real tape, where nobody knows it). So a panel without signal pays the one who does not trade,
and abstaining on a panel with one is charged a quarter of its ceiling: not trading is an answer that can be
right or wrong, not a refuge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.arenas.engine import Json, Part
from oomrl.arenas.research import statistics
from oomrl.arenas.research.execution import COST_TIERS, Design, Ledger, positions, scale_of, trade
from oomrl.arenas.research.panel import HORIZON, Panel
from oomrl.domain.market import Floats

SCORE_RANGE = (-1.0, 1.0)
CAPTURE, EVIDENCE, ERROR = 0.85, 0.15, 0.01
MISSED = 0.25
#: A strategy that holds less than this share of its usual exposure on most hidden rows has in truth abstained.
ACTIVE = 0.5
TAPE_REFERENCE = 1.5


@dataclass(frozen=True, slots=True)
class Hidden:
    """What trading the hidden windows gave: pooled and by window, net of costs, annualised."""

    sharpe: statistics.Sharpe
    windows: tuple[float, ...]
    tiers: tuple[tuple[float, float], ...]
    expected_cost: float
    active: float
    turnover: float
    net: Floats

    def to_json(self) -> Json:
        return {
            "hidden_sharpe": round(self.sharpe.value, 4),
            "hidden_sharpe_interval": [round(self.sharpe.low, 4), round(self.sharpe.high, 4)],
            "hidden_sharpe_by_window": [round(value, 4) for value in self.windows],
            "hidden_sharpe_by_cost_bps": {f"{bps:g}": round(value, 4) for bps, value in self.tiers},
            "expected_cost_in_sharpe": round(self.expected_cost, 4),
            "active_share": round(self.active, 4),
            "turnover": round(self.turnover, 4),
        }


def trade_windows(panel: Panel, weights: Floats, design: Design, offset: int) -> list[Ledger]:
    """Trade each hidden window from flat; `weights[k]` belongs to signal row `offset + k`."""
    return [trade(panel, weights, design, start, stop, offset) for start, stop in panel.windows]


def hidden_result(panel: Panel, weights: Floats, design: Design, offset: int) -> Hidden:
    """Judge hidden weights. The expected cost of a worthless forecast is what its trading costs, in Sharpe."""
    ledgers = trade_windows(panel, weights, design, offset)
    net = np.concatenate([ledger.net for ledger in ledgers])
    cost = np.concatenate([ledger.cost for ledger in ledgers])
    exposure = np.concatenate([ledger.exposure for ledger in ledgers])
    spread = float(net.std())
    tiers = []
    for bps in COST_TIERS:
        dearer = trade_windows(panel, weights, design.at_cost(bps), offset)
        tiers.append((bps, statistics.sharpe(np.concatenate([ledger.net for ledger in dearer])).value))
    return Hidden(
        sharpe=statistics.sharpe(net),
        windows=tuple(statistics.sharpe(ledger.net).value for ledger in ledgers),
        tiers=tuple(tiers),
        expected_cost=-float(cost.mean()) / spread * statistics.YEAR**0.5 if spread > 1e-15 else 0.0,
        active=float((exposure > 0.02 * design.gross).mean()),
        turnover=float(np.concatenate([ledger.turnover for ledger in ledgers]).mean()),
        net=net,
    )


def hidden_forecast(panel: Panel, public: Floats, later: Floats, design: Design) -> Hidden:
    """Judge forecasts: `public` shape (public_days, names) sets the scale, `later` the rows after it."""
    warm = 60
    joined = np.vstack([public[-warm:], later])
    offset = panel.public_days - warm
    weights = positions(panel, joined, scale_of(public), design, start=offset)
    return hidden_result(panel, weights, design, offset)


def ceiling_of(panel: Panel, design: Design) -> float | None:
    """Return the hidden Sharpe of the planted expectation; 0 without signal; None on a tape."""
    if panel.truth is None:
        return None
    if not panel.truth.tradable:
        return 0.0
    expectation, cut = panel.truth.expectation, panel.public_days
    return hidden_forecast(panel, expectation[:cut], expectation[cut:], design).sharpe.value


def visible_ledger(panel: Panel, forecast: Floats, design: Design, start: int, stop: int) -> Ledger:
    """Trade public rows start..stop-1 whose returns are public as well."""
    weights = positions(panel, forecast, scale_of(forecast), design)
    return trade(panel, weights, design, start, min(stop, panel.public_days - HORIZON))


def capture(sharpe: float, ceiling: float | None) -> float:
    """Return the share of the ceiling that was won, -1..1; see the module's formula."""
    if ceiling is None:
        return float(np.clip(sharpe / TAPE_REFERENCE, -1.0, 1.0))
    return float(np.clip(1.0 - (ceiling - sharpe) / max(ceiling, 1.0), -1.0, 1.0))


def abstention(tradable: bool | None) -> float:
    """Return the capture of not trading: right on a panel without signal, a quarter missed on one with it.

    On a tape (None) nobody knows: 0, neither rewarded nor charged.
    """
    return 0.0 if tradable is None else -MISSED if tradable else 1.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the tries on public rows are worth as evidence."""

    deflated_sharpe: float
    overfitting: float | None
    tries: int

    @property
    def value(self) -> float:
        return self.deflated_sharpe * (1.0 - (self.overfitting or 0.0))


def evidence(chosen: Floats, trials: list[Floats], tries: int) -> Evidence:
    """Deflate the chosen net series (rows,) by the number of tries; `trials` holds every series tried."""
    trials = list({trial.tobytes(): trial for trial in trials}.values())
    ratios = [statistics.daily_sharpe(trial) for trial in trials]
    variance = float(np.var(ratios)) if len(ratios) > 1 else None
    return Evidence(
        statistics.deflated_sharpe(chosen, max(tries, len(trials), 1), variance),
        statistics.overfitting_probability(np.stack(trials, axis=1)) if len(trials) > 1 else None,
        max(tries, len(trials)),
    )


def tree(
    name: str,
    captured: float = 0.0,
    evidence: float = 0.0,
    verdicts: float = 0.0,
    missing: float = 0.0,
    errors: int = 0,
) -> Part:
    """Return the rubric tree, of a score or of a step's reward; its shape is the same for every task."""
    return Part(
        name,
        parts=(
            Part("capture", CAPTURE, captured),
            Part("evidence", EVIDENCE, evidence),
            Part("verdicts", EVIDENCE, verdicts),
            Part("missing_submission", 1.0, missing),
            Part("protocol_errors", -ERROR, float(errors)),
        ),
        low=SCORE_RANGE[0],
        high=SCORE_RANGE[1],
    )

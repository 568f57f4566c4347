"""The phase report of a run: how each deployed revision did, phases against one another, drawdowns, styles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from oomrl.adapters.outcome import LEAST, RESAMPLES, Curve, curve_of_marks
from oomrl.domain.market import Floats
from oomrl.domain.performance import (
    compare_phases,
    drawdowns,
    holding_period,
    performance,
    rolling_information_ratio,
    turnover,
)
from oomrl.domain.records import Deployment, Mark
from oomrl.domain.style import styles
from oomrl.exchange.tape import Tape


@dataclass(frozen=True, slots=True)
class Report:
    """A report as JSON-able values, and the curves and phases to draw."""

    values: dict[str, Any]
    curve: Curve
    phases: Sequence[tuple[str, date, date]]


def report(
    marks: Sequence[Mark],
    deployments: Sequence[Deployment],
    endowment: Decimal,
    riskless: float,
    seed: int,
    tape: Tape | None,
) -> Report:
    """Compare the phases of a run, one for each deployed revision; those of fewer than 20 sessions are left out.

    With a tape the account's daily returns are set beside its size, momentum and volatility styles (correlations).
    """
    curve = curve_of_marks(marks, endowment)
    spans = _spans(curve, deployments)
    told = [span for span in spans if span[2] - span[1] >= LEAST]
    values: dict[str, Any] = {
        "sessions": len(curve.days),
        "phases_left_out": [name for name, first, last in spans if last - first < LEAST],
        "phases": [],
        "differences": [],
        "drawdowns": [asdict(fall) for fall in drawdowns(curve.days, curve.returns[1:])],
        "rolling_information_ratio": _rolling(curve),
        "reward": _reward(marks),
    }
    if told:
        compared = compare_phases(curve.returns, curve.benchmark, told, riskless, seed, RESAMPLES)
        for phase in compared.phases:
            part = slice(phase.first, phase.last)
            turned = turnover(curve.traded[part], curve.equity[part])
            values["phases"].append(
                {
                    "name": phase.name,
                    "first": curve.days[phase.first].isoformat(),
                    "last": curve.days[phase.last - 1].isoformat(),
                    "turnover": round(turned, 4),
                    "holding_period_sessions": _finite(holding_period(turned)),
                    **phase.performance.plain(),
                }
            )
        values["differences"] = [
            {"later": later, "earlier": earlier, "sharpe": found.estimate.plain(), "p": found.p}
            for (later, earlier), found in compared.sharpe_differences.items()
        ]
    if len(curve.days) >= LEAST:
        values["total"] = performance(curve.returns, curve.benchmark, riskless, seed=seed, resamples=RESAMPLES).plain()
    if tape is not None:
        values["styles"] = _styles(curve, tape)
    named = [(name, curve.days[first], curve.days[last - 1]) for name, first, last in spans]
    return Report(values, curve, named)


def _spans(curve: Curve, deployments: Sequence[Deployment]) -> list[tuple[str, int, int]]:
    """Return (name, first, last) of each revision that traded: from the session after its deployment on."""
    days = np.array(curve.days)
    starts = [0, *(int(np.searchsorted(days, made.day, side="right")) for made in deployments[1:])]
    ends = [*starts[1:], len(days)]
    names = [f"{number}. {made.revision[:7]}" for number, made in enumerate(deployments, start=1)]
    return [span for span in zip(names, starts, ends, strict=True) if span[2] > span[1]]


def _rolling(curve: Curve, window: int = 60) -> dict[str, Any] | None:
    if len(curve.days) < window:
        return None
    ratio = rolling_information_ratio(curve.returns, curve.benchmark, window)
    known = ratio[np.isfinite(ratio)]
    if not len(known):
        return None
    return {
        "window": window,
        "last": round(float(known[-1]), 4),
        "lowest": round(float(known.min()), 4),
        "highest": round(float(known.max()), 4),
    }


def _reward(marks: Sequence[Mark]) -> dict[str, Any]:
    rewards = [mark.reward for mark in marks if mark.reward is not None]
    return {"sum": round(sum(rewards), 6), "sessions": len(rewards), "lowest": round(min(rewards, default=0.0), 6)}


def _styles(curve: Curve, tape: Tape) -> dict[str, Any]:
    """Return the correlation of the account's returns with each style of the tape, and the style's mean a year."""
    first, last = tape.days.index(curve.days[0]), tape.days.index(curve.days[-1])
    columns = tape.columns
    close, volume = columns["close"][: last + 1], columns["volume"][: last + 1]
    previous = np.vstack([np.full(close.shape[1], np.nan), close[:-1]])
    returns: Floats = columns["split"][: last + 1] * (close + columns["dividend"][: last + 1]) / previous - 1.0
    jumps = np.abs(returns) > 0.5  # what no record explains says nothing of a style
    found = styles(close, volume, np.where(jumps, np.nan, returns))
    told = {}
    for field in fields(found):
        series = getattr(found, field.name)[first:]
        known = np.isfinite(series)
        if known.sum() >= LEAST and len(series) == len(curve.returns):
            correlation = float(np.corrcoef(series[known], curve.returns[known])[0, 1])
            told[field.name] = {
                "correlation": _finite(correlation),
                "mean_a_year": round(float(series[known].mean()) * 252, 4),
                "sessions": int(known.sum()),
            }
    return told


def _finite(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None

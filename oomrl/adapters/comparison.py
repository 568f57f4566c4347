"""Candidate beside incumbent, as a reviewer reads it: daily returns, figures with intervals, and a placebo band.

The band answers "how far apart would the two be by chance?": the paired differences, their mean taken out, are drawn
again in blocks; 90 of 100 such changes without any effect end inside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oomrl.domain.bootstrap import block_length, index_chunks
from oomrl.domain.market import Floats
from oomrl.domain.performance import performance, turnover
from oomrl.domain.promotion import Track, Window

LEAST = 20
PLACEBOS = 400
RESAMPLES = 1_000
FIGURES = ("annualised_return", "sharpe", "max_drawdown", "information_ratio")


def comparison(windows: Sequence[Window]) -> dict[str, Any] | None:
    """Return JSON-able values: every day's return of both, oldest first, windows, figures and band; None without any.

    Windows are in the order of time. The band holds wealth ratios candidate / incumbent (low, high) at each day.
    """
    if not windows:
        return None
    one, other = _joined([w.candidate for w in windows]), _joined([w.incumbent for w in windows])
    benchmark = np.concatenate([w.benchmark for w in windows])
    low, high = band(one - other)
    return {
        "days": [day.isoformat() for window in windows for day in window.days],
        "candidate": _rounded(one),
        "incumbent": _rounded(other),
        "band_low": _rounded(low),
        "band_high": _rounded(high),
        "windows": [
            {
                "name": w.name,
                "held_back": w.held_back,
                "first": w.days[0].isoformat(),
                "last": w.days[-1].isoformat(),
                "sessions": len(w.days),
            }
            for w in windows
        ],
        "figures": {
            "candidate": _figures(one, benchmark, [w.candidate for w in windows]),
            "incumbent": _figures(other, benchmark, [w.incumbent for w in windows]),
        },
    }


def band(differences: Floats, seed: int = 0) -> tuple[Floats, Floats]:
    """Return the 5th and 95th percentile, day by day, of wealth ratios that centred differences (days,) compound to."""
    sessions = len(differences)
    centred = differences - differences.mean()
    rng = np.random.default_rng(seed)
    chunks = index_chunks(sessions, PLACEBOS, block_length(sessions) if sessions > 2 else 1.0, rng)
    paths = np.concatenate([np.cumprod(1.0 + centred[rows], axis=1) for rows in chunks])
    low, high = np.quantile(paths, (0.05, 0.95), axis=0)
    return low, high


def _joined(tracks: Sequence[Track]) -> Floats:
    return np.concatenate([track.returns for track in tracks])


def _figures(returns: Floats, benchmark: Floats, tracks: Sequence[Track]) -> Mapping[str, Any]:
    traded = np.concatenate([track.traded for track in tracks])
    friction = np.concatenate([track.friction for track in tracks])
    exposure = np.concatenate([track.exposure for track in tracks])
    found: dict[str, Any] = {
        "turnover": [_plain(turnover(traded, np.ones(len(traded))))],
        "friction_a_year": [_plain(float(friction.mean()) * 252)],
        "exposure": [_plain(float(exposure.mean()))],
    }
    if len(returns) >= LEAST:
        measured = performance(returns, benchmark, resamples=RESAMPLES)
        for name in FIGURES:
            estimate = getattr(measured, name)
            found[name] = [_plain(estimate.value), _plain(estimate.low), _plain(estimate.high)]
    return found


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 7) for value in values]


def _plain(value: float) -> float | None:
    return round(value, 6) if np.isfinite(value) else None

"""Closed-form prices and signals of the first version: sines of the step, no random number anywhere."""

from __future__ import annotations

from functools import cache
from math import cos, sin

NAMES = ("INFY", "TCS", "HCLTECH", "WIPRO", "TECHM")
DEFENSIVE = ("INFY", "HCLTECH")
START_PRICE = (1580.0, 3725.0, 1485.0, 505.0, 1180.0)
PHASE_1 = (0.1, 0.7, 1.3, 1.9, 2.5)
PHASE_2 = (0.6, 1.1, 1.7, 2.2, 2.8)
LAGGARDS = ("WIPRO", "TECHM")


def clip(value: float, low: float, high: float) -> float:
    """Return the value moved into low..high."""
    return max(low, min(high, value))


def _guided(t: int, i: int) -> tuple[float, float]:
    wave = 0.35 * sin((t + 1) / 4) + 0.2 * cos((t + 1) / 7)
    own = 0.75 * sin((t + 1) / 3.2 + PHASE_1[i]) + 0.35 * cos((t + 1) / 5.8 + PHASE_2[i])
    signal = clip(own + 0.15 * wave + 0.05 * (i - 2), -1, 1)
    change = 0.0068 * signal + 0.0015 * wave + 0.0009 * sin((t + i + 2) / 2.7)
    return signal, clip(change, -0.03, 0.03)


def _conflict(t: int, i: int) -> tuple[float, float]:
    wave = 0.25 * sin((t + 1) / 4.8) - 0.18 * cos((t + 1) / 3.6)
    burst = 0.25 * sin((t + 1) / 1.9)
    own = 0.55 * sin((t + 1) / 4.1 + PHASE_1[i]) + 0.28 * cos((t + 1) / 6.2 + PHASE_2[i])
    noise = 0.6 * cos((t + 2) / 2.4 + PHASE_2[i]) - 0.35 * sin((t + 1) / 1.8 + PHASE_1[i])
    signal = clip(0.7 * own + 0.3 * noise + 0.1 * wave, -1, 1)
    side = 1 if i % 2 else -1
    change = 0.0045 * own + 0.0012 * wave - 0.0012 * abs(noise) + 0.0009 * burst * side
    return signal, clip(change, -0.028, 0.028)


def _regime(t: int, i: int) -> tuple[float, float]:
    regime = 0.8 if t < 20 else -1.0 if t < 40 else 0.45
    own = sin((t + 1) / 7.2 + PHASE_1[i]) + 0.65 * cos((t + 1) / 5.1 + PHASE_2[i])
    drift = sin(max(t - 2, 0) / 6 + PHASE_1[i])
    side = 1 if NAMES[i] in DEFENSIVE else -1
    signal = clip(0.45 * drift + 0.35 * regime * side + 0.18 * own, -1, 1)
    change = 0.0042 * drift + 0.0028 * regime * side + 0.0011 * own
    if regime < 0 and NAMES[i] in LAGGARDS:
        change -= 0.0015
    return signal, clip(change, -0.035, 0.03)


_PATHS = {
    "guided_allocation": (_guided, 1.0),
    "research_risk_conflict": (_conflict, 1.05),
    "regime_shift_recovery": (_regime, 0.98),
    "mandate_drift": (_conflict, 1.05),
}


@cache
def path(task: str, steps: int) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]:
    """Return prices (steps + 1 rows) and signals (steps rows) of the five names, rounded to 4 decimals."""
    formula, start = _PATHS[task]
    prices = [tuple(round(price * start, 4) for price in START_PRICE)]
    signals = []
    for t in range(steps):
        rows = [formula(t, i) for i in range(len(NAMES))]
        signals.append(tuple(round(signal, 4) for signal, _ in rows))
        prices.append(tuple(round(p * (1 + change), 4) for p, (_, change) in zip(prices[-1], rows, strict=True)))
    return tuple(prices), tuple(signals)

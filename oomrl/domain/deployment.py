"""Tripwires: when a deployed revision must be rolled back without waiting for anybody.

A tripwire compares sessions since the deployment with what the gate's replay promised and with hard bounds. It never
judges whether the revision makes money (a few sessions cannot tell): it catches what is broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import numpy as np

from oomrl.domain.loss import MAD_TO_DEVIATION, SESSIONS_A_YEAR, DayRecord


class Wire(StrEnum):
    """Which tripwire went off, the gravest first."""

    FAILURE = "failure"
    FALL = "fall"
    STANDSTILL = "standstill"
    TURNOVER = "turnover"
    FRICTION = "friction"
    LIMITS = "limits"


@dataclass(frozen=True, slots=True)
class Watched:
    """Hold what was deployed, since when it trades, and what its replay promised.

    `first` is the first session that it traded. `turnover` (traded value / 2 / equity, a year), `friction_bps` (one
    side) and `exposure` (share of equity invested) are the replay's.
    """

    revision: str
    first: date
    turnover: float
    friction_bps: float
    exposure: float


@dataclass(frozen=True, slots=True)
class Tripwires:
    """State the bounds. A watch ends after `sessions`; the ratios are against what the replay promised.

    `fall` is a loss beyond the market since the deployment, in deviations of such losses over the time before it
    (a fall by chance this deep has odds of about 1 in 3,000 at 3.4).
    """

    sessions: int = 60
    failures: int = 1
    fall: float = 3.4
    fall_floor: float = 0.02
    least: int = 10
    turnover_ratio: float = 3.0
    turnover_floor: float = 2.0
    friction_ratio: float = 3.0
    friction_floor_bps: float = 5.0
    standstill_exposure: float = 0.5
    limit_hits: int = 5


@dataclass(frozen=True, slots=True)
class Trip:
    """Say why a deployment is to be rolled back."""

    wire: Wire
    day: date
    statistic: float
    bound: float
    evidence: str


def tripped(
    deployment: Watched,
    records: Sequence[DayRecord],
    exposure: Sequence[float],
    wires: Tripwires | None = None,
) -> Trip | None:
    """Return the gravest tripwire that the last session sets off, or None.

    `records` are sessions oldest first, those before the deployment among them; `exposure` the share of equity
    invested at each of their closes.
    """
    if len(records) != len(exposure):
        raise ValueError(f"Expected one exposure a session, was {len(exposure)} for {len(records)} sessions")
    wires = wires or Tripwires()
    begun = next((n for n, record in enumerate(records) if record.day >= deployment.first), len(records))
    since, before = records[begun:], records[:begun]
    if not since or len(since) > wires.sessions:
        return None
    found = [
        *_failures(since, wires),
        *_fall(since, before, wires),
        *_standstill(deployment, exposure[begun:], wires),
        *_trading(deployment, since, wires),
        *_limits(since, wires),
    ]
    if not found:
        return None
    order = list(Wire)
    wire, statistic, bound, evidence = min(found, key=lambda one: order.index(one[0]))
    return Trip(wire, since[-1].day, statistic, bound, evidence)


_Found = tuple[Wire, float, float, str]


def _failures(since: Sequence[DayRecord], wires: Tripwires) -> list[_Found]:
    failed = [record for record in since if record.failure is not None]
    if len(failed) < wires.failures:
        return []
    evidence = f"The new revision failed in {len(failed)} of {len(since)} sessions, last with {failed[-1].failure}"
    return [(Wire.FAILURE, float(len(failed)), float(wires.failures), evidence)]


def _active(records: Sequence[DayRecord]) -> list[float]:
    """Return what each session brought beyond the market, as a fraction, without quarantined jumps."""
    return [(r.pnl - sum(r.quarantined.values()) - r.parts["market"]) / max(r.equity - r.pnl, 0.01) for r in records]


def _fall(since: Sequence[DayRecord], before: Sequence[DayRecord], wires: Tripwires) -> list[_Found]:
    past = np.array(_active(before[-SESSIONS_A_YEAR:]))
    if len(past) < wires.least:
        return []
    deviation = MAD_TO_DEVIATION * float(np.median(np.abs(past - np.median(past))))
    lost = -sum(_active(since))
    depth = lost / (deviation * np.sqrt(len(since))) if deviation > 0 else 0.0
    if depth < wires.fall or lost < wires.fall_floor:
        return []
    evidence = f"Lost {lost:.2%} beyond the market in {len(since)} sessions, {depth:.1f} deviations of the time before"
    return [(Wire.FALL, float(depth), wires.fall, evidence)]


def _standstill(deployment: Watched, exposure: Sequence[float], wires: Tripwires) -> list[_Found]:
    if len(exposure) < wires.least:
        return []
    held = float(np.mean(exposure[-wires.least :]))
    bound = wires.standstill_exposure * deployment.exposure
    if held >= bound:
        return []
    evidence = f"Invested {held:.0%} of equity where the replay invested {deployment.exposure:.0%}: it stopped trading"
    return [(Wire.STANDSTILL, held, bound, evidence)]


def _trading(deployment: Watched, since: Sequence[DayRecord], wires: Tripwires) -> list[_Found]:
    if len(since) < wires.least:
        return []
    found: list[_Found] = []
    turnover = float(np.mean([record.turnover for record in since])) * SESSIONS_A_YEAR
    bound = max(wires.turnover_ratio * deployment.turnover, wires.turnover_floor)
    if turnover > bound:
        evidence = f"Turnover ran at {turnover:.1f} a year where the replay had {deployment.turnover:.1f}"
        found.append((Wire.TURNOVER, turnover, bound, evidence))
    bps = [record.friction_bps for record in since if record.turnover > 0]
    ceiling = max(wires.friction_ratio * deployment.friction_bps, wires.friction_floor_bps)
    if bps and float(np.median(bps)) > ceiling:
        middle = float(np.median(bps))
        evidence = f"Friction ran at {middle:.1f} bps a side where the replay had {deployment.friction_bps:.1f}"
        found.append((Wire.FRICTION, middle, ceiling, evidence))
    return found


def _limits(since: Sequence[DayRecord], wires: Tripwires) -> list[_Found]:
    hits = sum(1 for record in since if record.limits_hit)
    if hits < wires.limit_hits or hits * 2 < len(since):
        return []
    evidence = f"Limits of the service cut its decisions in {hits} of {len(since)} sessions"
    return [(Wire.LIMITS, float(hits), float(wires.limit_hits), evidence)]

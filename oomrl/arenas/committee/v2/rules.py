"""Tasks of the second version as numbers: regimes, mandates, fees and what a query costs."""

from __future__ import annotations

from dataclasses import dataclass

from oomrl.arenas.engine import Task

NAMES = ("N1", "N2", "N3", "N4", "N5", "N6")
WINDOW = 6
"""Guardrails hold on averages over so many steps, so that one float or one drift breaks nothing."""
TOLERANCE = 0.005


@dataclass(frozen=True, slots=True)
class Mandate:
    """Limits on averages over `WINDOW` steps: largest name, smallest cash, turnover of a step."""

    max_single: float
    min_cash: float
    max_turnover: float


@dataclass(frozen=True, slots=True)
class Regime:
    """What a hidden regime does: drift and volatility of the market a step, and each adviser's error.

    `research` and `risk` are ranges from which the episode draws the adviser's error in units of one standard
    deviation of what it estimates.
    """

    drift: float
    volatility: float
    research: tuple[float, float]
    risk: tuple[float, float]


REGIMES = {
    "calm": Regime(0.0010, 0.006, (0.35, 0.60), (0.45, 0.70)),
    "trend": Regime(0.0035, 0.008, (0.25, 0.45), (0.60, 0.90)),
    "stress": Regime(-0.0090, 0.014, (0.80, 1.30), (0.20, 0.40)),
    "repair": Regime(0.0030, 0.010, (0.50, 0.80), (0.35, 0.60)),
}


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The numbers of one task.

    `regimes` are walked in order, each for a number of steps drawn from its range. `mandates` likewise.
    Costs: `half_spread` a unit of turnover, `impact` times the 3/2 power of each name's trade, `query_fee` of
    NAV. `hazard_link` is how often an attractive name turns fragile, `alpha` the size of the edge a step.
    """

    task: Task
    regimes: tuple[tuple[str, int, int], ...]
    mandates: tuple[tuple[Mandate, int, int], ...]
    half_spread: float
    impact: float
    query_fee: float
    max_queries: int
    alpha: float
    hazard_link: float
    pushy: float


_LONG = 1000
TASKS: dict[str, Rules] = {
    rules.task.name: rules
    for rules in (
        Rules(
            Task("guided_allocation", "Allocate with advisers who mostly agree", 30, "easy"),
            (("trend", 10, 16), ("calm", _LONG, _LONG)),
            ((Mandate(0.40, 0.05, 0.40), _LONG, _LONG),),
            *(0.0004, 0.0010, 0.0001, 12, 0.0080, 0.08, 0.10),
        ),
        Rules(
            Task("research_risk_conflict", "Weigh Research against Risk", 45, "medium"),
            (("calm", 8, 16), ("trend", 8, 16), ("calm", 6, 12), ("stress", _LONG, _LONG)),
            ((Mandate(0.34, 0.08, 0.35), 16, 26), (Mandate(0.30, 0.12, 0.35), _LONG, _LONG)),
            *(0.0007, 0.0016, 0.0002, 18, 0.0070, 0.45, 0.35),
        ),
        Rules(
            Task("regime_shift_recovery", "Survive a stress and recover", 60, "hard"),
            (("trend", 14, 24), ("stress", 14, 22), ("repair", _LONG, _LONG)),
            ((Mandate(0.36, 0.08, 0.35), _LONG, _LONG),),
            *(0.0006, 0.0014, 0.0002, 22, 0.0060, 0.20, 0.20),
        ),
        Rules(
            Task("mandate_drift", "Follow a mandate that tightens", 45, "hard"),
            (("calm", 12, 20), ("trend", 8, 16), ("repair", _LONG, _LONG)),
            (
                (Mandate(0.42, 0.05, 0.40), 12, 18),
                (Mandate(0.28, 0.14, 0.35), 12, 18),
                (Mandate(0.32, 0.22, 0.25), _LONG, _LONG),
            ),
            *(0.0008, 0.0018, 0.0002, 17, 0.0070, 0.20, 0.20),
        ),
    )
}

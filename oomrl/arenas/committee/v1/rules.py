"""Tasks, regimes, templates and graders of the first version, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from oomrl.arenas.committee.v1.market import NAMES, clip
from oomrl.arenas.engine import Part, Task


@dataclass(frozen=True, slots=True)
class Mandate:
    """The limits in force: largest weight of one name, smallest cash, largest turnover of one step."""

    max_single: float
    min_cash: float
    max_turnover: float


@dataclass(frozen=True, slots=True)
class Rules:
    """The numbers of one task. `schedule` maps a step to the mandate from that step on."""

    task: Task
    cost_bps: float
    risk_aversion: float
    drawdown_penalty: float
    query_cost: float
    max_queries: int
    noise: float
    alert_level: float
    mandate: Mandate
    schedule: Mapping[int, Mandate]
    regimes: tuple[tuple[int, str], ...]

    def regime(self, t: int) -> str:
        """Return the regime of a step: the first whose end lies after it."""
        return next(name for end, name in self.regimes if t < end)


PRESSURE = {
    "steady": 0.05,
    "baseline": 0.08,
    "crowded": 0.12,
    "fragile": 0.22,
    "expansion": 0.08,
    "stress": 0.35,
    "repair": 0.15,
    "tightening": 0.26,
    "oversight": 0.18,
}
_END = 10**9
_CONFLICT = Mandate(0.38, 0.08, 0.45)
_REGIME = Mandate(0.42, 0.10, 0.40)
_DRIFT = Mandate(0.45, 0.05, 0.50)

TASKS: dict[str, Rules] = {
    rules.task.name: rules
    for rules in (
        Rules(
            Task("guided_allocation", "Allocate with friendly signals", 30, "easy"),
            *(2, 0.15, 0.0, 0.0012, 8, 0.12, 0.52),
            Mandate(0.50, 0.05, 0.65),
            {},
            ((_END, "steady"),),
        ),
        Rules(
            Task("research_risk_conflict", "Weigh Research against Risk", 45, "medium"),
            *(14, 0.40, 0.15, 0.0018, 10, 0.22, 0.46),
            _CONFLICT,
            {
                12: replace(_CONFLICT, max_single=0.32),
                28: replace(_CONFLICT, max_single=0.32, min_cash=0.14),
            },
            ((15, "crowded"), (_END, "fragile")),
        ),
        Rules(
            Task("regime_shift_recovery", "Survive a stress and recover", 60, "hard"),
            *(8, 0.55, 0.45, 0.0016, 10, 0.18, 0.42),
            _REGIME,
            {20: replace(_REGIME, min_cash=0.18), 40: replace(_REGIME, min_cash=0.08)},
            ((20, "expansion"), (40, "stress"), (_END, "repair")),
        ),
        Rules(
            Task("mandate_drift", "Follow a mandate that tightens", 45, "hard"),
            *(16, 0.48, 0.20, 0.0015, 9, 0.18, 0.44),
            _DRIFT,
            {15: Mandate(0.28, 0.12, 0.50), 30: Mandate(0.35, 0.18, 0.35)},
            ((15, "baseline"), (30, "tightening"), (_END, "oversight")),
        ),
    )
}

TEMPLATES = ("balanced_top3", "top2_conviction", "defensive_quality", "concentrated_alpha")


def template_weights(template: str, views: Sequence[float], min_cash: float) -> tuple[float, ...]:
    """Return raw target weights: fixed shares of what may be invested, names ranked by view."""
    invested = 1 - min_cash
    order = sorted(range(len(NAMES)), key=lambda i: -views[i])
    weights = {
        "balanced_top3": dict.fromkeys(order[:3], invested / 3),
        "top2_conviction": {order[0]: 0.58 * invested, order[1]: 0.32 * invested},
        "defensive_quality": {
            NAMES.index("INFY"): 0.35 * invested,
            NAMES.index("HCLTECH"): 0.25 * invested,
        },
        "concentrated_alpha": {order[0]: 0.72 * invested, order[1]: 0.16 * invested},
    }[template]
    return tuple(weights.get(i, 0.0) for i in range(len(NAMES)))


@dataclass(frozen=True, slots=True)
class Record:
    """The totals of an episode that a grader reads; means are over the steps played."""

    total_return: float
    max_drawdown: float
    information: float
    risk_response: float
    positive_share: float
    compliance: float
    turnover: float
    final_invested: float


def _band(value: float, low: float, high: float) -> float:
    return clip((value - low) / (high - low), 0.0, 1.0)


def grade(task: str, record: Record) -> Part:
    """Return the task's score in 0..1 as a rubric tree, capped where the episode dodged the work."""
    ret, dd, to = record.total_return, record.max_drawdown, record.turnover
    info, rr, comp, pos = (
        record.information,
        record.risk_response,
        record.compliance,
        record.positive_share,
    )
    terms = {
        "guided_allocation": (
            ("return", 0.40, _band(ret, 0, 0.12)),
            ("information", 0.20, _band(info, 0.05, 0.55)),
            ("positive_steps", 0.15, _band(pos, 0.4, 0.8)),
            ("compliance", 0.15, _band(comp, 0.7, 1)),
            ("turnover", 0.10, _band(0.35 - to, 0, 0.35)),
        ),
        "research_risk_conflict": (
            ("return", 0.30, _band(ret, -0.01, 0.09)),
            ("compliance", 0.25, _band(comp, 0.65, 1)),
            ("risk_response", 0.20, _band(rr, 0, 0.18)),
            ("drawdown", 0.15, _band(0.12 - dd, 0, 0.12)),
            ("information", 0.10, _band(info, 0, 0.35)),
        ),
        "regime_shift_recovery": (
            ("return", 0.33, _band(ret, -0.01, 0.12)),
            ("risk_response", 0.27, _band(rr, 0, 0.22)),
            ("drawdown", 0.20, _band(0.15 - dd, 0, 0.15)),
            ("positive_steps", 0.10, _band(pos, 0.35, 0.75)),
            ("compliance", 0.10, _band(comp, 0.7, 1)),
        ),
        "mandate_drift": (
            ("compliance", 0.30, _band(comp, 0.6, 1)),
            ("drawdown", 0.25, _band(0.12 - dd, 0, 0.12)),
            ("return", 0.20, _band(ret, -0.01, 0.09)),
            ("information", 0.15, _band(info, 0, 0.3)),
            ("turnover", 0.10, _band(0.3 - to, 0, 0.3)),
        ),
    }[task]
    cap = 1.0
    if record.final_invested < 0.05 and info < 0.02:
        cap = min(cap, 0.20)
    if comp < 0.20:
        cap = min(cap, 0.35)
    if info < 0.02 and rr < 0.02 and ret <= 0.001:
        cap = min(cap, 0.25)
    return Part("score", parts=tuple(Part(name, weight, value) for name, weight, value in terms), high=cap)

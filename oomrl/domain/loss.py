"""Tell lost money from noise, and one loss from another, from past sessions alone.

Every test looks at the records up to one close and never beyond. What sets a test off:

- strategy failure, or limits of the service that are hit again and again;
- principal loss or drawdown at its `diagnose` threshold, each time it deepens by a stated step;
- a day's return, or its part that the market does not explain, far below the strategy's own history: robust
  z = (x - median) / (1.4826 MAD) of the sessions before it;
- friction drain: friction eats more than a stated share of what was earned before it, and a stated floor a year;
- execution decay and underperformance: one-sided cumulative sums (Page 1954), S = max(0, S + x - k), alarm at S > h, of
  standardised friction above the assumed, and of standardised return that the market does not explain. By Siegmund's
  approximation (exp(d) - d - 1) / (2 k^2) with d = 2 k (h + 1.166), the defaults raise one false alarm in about 930
  sessions with trades (k 0.5, h 5) and in about 2,000 sessions (k 0.1, h 18).

Several tests that go off together are one loss; a cause that was reported is not reported again until its cool-down
is over. A fall that the market explains is labelled shared and demands no patch. Jumps of quarantined names are no
profit and no loss here.

Over 400 lines, because all tests of one session share its columns and are weighed against each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

import numpy as np

from oomrl.domain.attribution import PARTS
from oomrl.domain.capital import Capital, Level, Thresholds
from oomrl.domain.market import Floats

SESSIONS_A_YEAR = 252
#: Half the normal quartile distance: 1.4826 MAD estimates a normal standard deviation.
MAD_TO_DEVIATION = 1.4826

#: What trading costs, of the twelve.
FRICTION = ("spread", "impact", "fees")
#: Which area of the service or strategy each part points to; the cause key of a loss is its worst area.
AREAS: Mapping[str, tuple[str, ...]] = {
    "market": ("market",),
    "selection": ("selection",),
    "execution": ("delay", "spread", "impact", "fees", "unfilled"),
    "constraints": ("limits", "cash_drag"),
    "corporate_actions": ("corporate_actions",),
    "model_bills": ("model_bills",),
}


class Trigger(StrEnum):
    """Which test found the loss, the gravest first."""

    STRATEGY_FAILURE = "strategy_failure"
    PRINCIPAL_LOSS = "principal_loss"
    DRAWDOWN = "drawdown"
    FRICTION_DRAIN = "friction_drain"
    EXECUTION_DECAY = "execution_decay"
    UNDERPERFORMANCE = "underperformance"
    LIMIT_BREACH = "limit_breach"
    RELATIVE_LOSS = "relative_loss"
    DAILY_LOSS = "daily_loss"


@dataclass(frozen=True, slots=True)
class DayRecord:
    """Hold what one session did to the account.

    `equity` is dollars at the close, `flow` the dollars endowed before the session, `pnl` the session's result in
    dollars, `parts` the same by the twelve names of `PARTS`. `benchmark_return` is a fraction. `turnover` is traded
    value / 2 / equity of the session, `friction_bps` spread, impact and fees in basis points of the value traded
    (0 where nothing traded). `failure` is the strategy failure's kind, `limits_hit` the names of the service's limits
    that cut a decision. `quarantined` maps each name with a suspected unrecorded corporate action to the part of
    `pnl` (and of the part corporate_actions) that its jump made.
    """

    day: date
    equity: float
    flow: float
    pnl: float
    benchmark_return: float
    parts: Mapping[str, float]
    turnover: float = 0.0
    friction_bps: float = 0.0
    failure: str | None = None
    limits_hit: tuple[str, ...] = ()
    quarantined: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rules:
    """State how lost money is told from noise. Rates are fractions a year, counts are sessions.

    `assumed_friction_bps` is what the strategy or its owner takes trading to cost, one side; decay counts only where
    friction per dollar traded since the sum began lies above it by the share `decay_excess`.
    """

    memory: int = 252
    least_history: int = 60
    daily_z: float = 6.0
    daily_floor: float = 0.01
    deepening: float = 0.05
    drain_window: int = 60
    drain_least: int = 40
    drain_share: float = 0.5
    drain_floor: float = 0.03
    assumed_friction_bps: float = 8.0
    decay_k: float = 0.5
    decay_h: float = 5.0
    decay_least: int = 5
    decay_excess: float = 0.25
    drift_k: float = 0.1
    drift_h: float = 18.0
    limit_hits: int = 3
    limit_window: int = 20
    shared_share: float = 0.8
    cool_down: int = 63


@dataclass(frozen=True, slots=True)
class Loss:
    """Hold one detected loss: when, found by what, how much over which sessions, and whether it demands a patch.

    `first` to `last` are the sessions that it spans (`last` is the day it was found); `pnl` and `parts` are dollars
    over them without quarantined jumps. `statistics` maps every test that went off to what it measured, in its own
    units; `threshold` is what the one of `trigger` reached. `cause_key` tells one cause from another.
    """

    day: date
    trigger: Trigger
    first: date
    last: date
    sessions: int
    pnl: float
    parts: Mapping[str, float]
    statistics: Mapping[Trigger, float]
    threshold: float
    cause_key: str
    shared_market: bool
    demands_patch: bool
    evidence: str

    @property
    def statistic(self) -> float:
        """What the test of `trigger` measured."""
        return self.statistics[self.trigger]

    @property
    def id(self) -> str:
        """The same loss has the same id in every run."""
        return "loss-" + hashlib.sha256(f"{self.day}|{self.cause_key}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Alarm:
    trigger: Trigger
    sessions: int
    statistic: float
    threshold: float
    evidence: str


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """The last sessions as arrays of shape (sessions,): returns as fractions, friction and gross in dollars."""

    returns: Floats
    active: Floats
    pnl: Floats
    friction: Floats
    bps: Floats
    turnover: Floats
    equity: Floats


def detect(
    records: Sequence[DayRecord],
    capital: Capital,
    thresholds: Thresholds,
    rules: Rules | None = None,
    earlier: Sequence[Loss] = (),
    since: date | None = None,
) -> Loss | None:
    """Judge the last of `records` (oldest first) and return the loss that it completes, or None.

    `capital` is the account as marked at that close. `earlier` are the losses found before, which the cool-down
    looks at. `since` is the first session of the revision that trades now: tests of execution and drift look at its
    sessions alone, and a loss of an older revision does not silence a new one.
    """
    if not records:
        raise ValueError("Expected at least one session, was none")
    rules = rules or Rules()
    tail = records[-(rules.memory + 1) :]
    own = sum(1 for record in tail if since is None or record.day >= since)
    columns = _columns(tail)
    alarms = [
        *_failure(tail[-1]),
        *_capital(capital, thresholds, tail, rules, earlier),
        *_friction(columns, own, rules),
        *_drift(columns, own, rules),
        *_limits(tail, own, rules),
        *_daily(columns, rules),
    ]
    if not alarms:
        return None
    loss = _merge(alarms, tail, rules)
    # A threshold reports again when the loss has deepened by a step, whatever else was reported of late: it may halt.
    if loss.trigger in (Trigger.PRINCIPAL_LOSS, Trigger.DRAWDOWN):
        return loss
    return None if _known(loss, earlier, tail, rules, since) else loss


def robust_z(value: float, history: Floats) -> float:
    """Return (value - median) / (1.4826 MAD) against `history` (n,); 0 where the history does not vary."""
    center = float(np.median(history))
    scale = MAD_TO_DEVIATION * float(np.median(np.abs(history - center)))
    return (value - center) / scale if scale > 0 else 0.0


def one_sided_sums(values: Floats, k: float) -> Floats:
    """Return S_t = max(0, S_{t-1} + x_t - k) for x of shape (n,), from S = 0 (Page 1954)."""
    path = np.concatenate([[0.0], np.cumsum(values - k)])
    sums: Floats = (path - np.minimum.accumulate(path))[1:]
    return sums


def _columns(tail: Sequence[DayRecord]) -> _Columns:
    table = np.array(
        [
            (
                record.pnl - sum(record.quarantined.values()),
                record.equity - record.pnl,
                record.parts["market"],
                record.parts["spread"] + record.parts["impact"] + record.parts["fees"],
                record.friction_bps,
                record.turnover,
                record.equity,
            )
            for record in tail
        ]
    )
    pnl, base, market, friction, bps, turnover, equity = table.T
    base = np.where(base > 0, base, np.nan)
    returns = np.nan_to_num(pnl / base)
    return _Columns(returns, np.nan_to_num((pnl - market) / base), pnl, -friction, bps, turnover, equity)


def _failure(record: DayRecord) -> list[_Alarm]:
    if record.failure is None:
        return []
    return [_Alarm(Trigger.STRATEGY_FAILURE, 1, 1.0, 1.0, f"The strategy failed: {record.failure}")]


def _capital(
    capital: Capital, thresholds: Thresholds, tail: Sequence[DayRecord], rules: Rules, earlier: Sequence[Loss]
) -> list[_Alarm]:
    """Compare both measures with their thresholds; within one excursion each reports only when it has deepened."""
    alarms = []
    start = capital.peak_day or tail[0].day
    sessions = max(sum(1 for record in tail if record.day > start), 1)
    for trigger, measure, levels in (
        (Trigger.PRINCIPAL_LOSS, capital.principal_loss, thresholds.principal),
        (Trigger.DRAWDOWN, capital.drawdown, thresholds.drawdown),
    ):
        if levels.level(measure) < Level.DIAGNOSE:
            continue
        reported = [
            old.statistics[trigger]
            for old in earlier
            if trigger in old.statistics and (capital.calm is None or old.day > capital.calm)
        ]
        if reported and measure < max(reported) + rules.deepening:
            continue
        threshold = levels.diagnose if levels.diagnose is not None else measure
        words = trigger.value.replace("_", " ")
        evidence = f"{words.capitalize()} {measure:.2%} at or above {threshold:.0%}"
        alarms.append(_Alarm(trigger, sessions, measure, threshold, evidence))
    return alarms


def _friction(columns: _Columns, own: int, rules: Rules) -> list[_Alarm]:
    alarms = []
    window = min(own, rules.drain_window)
    if window >= rules.drain_least:
        friction = float(columns.friction[-window:].sum())
        gross = float(columns.pnl[-window:].sum()) + friction
        mean = float(columns.equity[-window:].mean())
        yearly = friction / mean * SESSIONS_A_YEAR / window if mean > 0 else 0.0
        if yearly >= rules.drain_floor and friction >= rules.drain_share * max(gross, 0.0):
            evidence = (
                f"Friction took {yearly:.1%} a year of equity over {window} sessions, "
                f"at least {rules.drain_share:.0%} of what was earned before it"
            )
            alarms.append(_Alarm(Trigger.FRICTION_DRAIN, window, yearly, rules.drain_floor, evidence))
    traded = np.flatnonzero(columns.turnover[-own:] > 0) if own else np.empty(0, dtype=np.int64)
    if len(traded) >= rules.decay_least:
        bps = columns.bps[-own:][traded]
        spread = MAD_TO_DEVIATION * float(np.median(np.abs(bps - np.median(bps))))
        scale = max(spread, rules.assumed_friction_bps / 4, 0.25)
        sums = one_sided_sums(np.minimum((bps - rules.assumed_friction_bps) / scale, 4.0), rules.decay_k)
        calm = np.flatnonzero(sums == 0.0)
        first = int(calm[-1]) + 1 if len(calm) else 0
        value = columns.turnover[-own:][traded[first:]]
        paid = float(bps[first:] @ value / value.sum()) if len(value) else 0.0
        if sums[-1] > rules.decay_h and paid >= (1.0 + rules.decay_excess) * rules.assumed_friction_bps:
            evidence = (
                f"Friction ran at {paid:.1f} bps a side against {rules.assumed_friction_bps:.1f} assumed "
                f"(cumulative sum {float(sums[-1]):.1f} above {rules.decay_h:.1f})"
            )
            sessions = own - int(traded[first])
            alarms.append(_Alarm(Trigger.EXECUTION_DECAY, sessions, float(sums[-1]), rules.decay_h, evidence))
    return alarms


def _drift(columns: _Columns, own: int, rules: Rules) -> list[_Alarm]:
    if own < rules.least_history:
        return []
    active = columns.active[-own:]
    scale = MAD_TO_DEVIATION * float(np.median(np.abs(active - np.median(active))))
    if scale <= 0:
        return []
    sums = one_sided_sums(np.clip(-active / scale, -4.0, 4.0), rules.drift_k)
    if sums[-1] <= rules.drift_h:
        return []
    calm = np.flatnonzero(sums == 0.0)
    sessions = own - (int(calm[-1]) + 1 if len(calm) else 0)
    evidence = (
        f"Beyond the market it lost {-float(active[-sessions:].sum()):.2%} of equity over {sessions} sessions "
        f"(cumulative sum {float(sums[-1]):.1f} above {rules.drift_h:.1f})"
    )
    return [_Alarm(Trigger.UNDERPERFORMANCE, sessions, float(sums[-1]), rules.drift_h, evidence)]


def _limits(tail: Sequence[DayRecord], own: int, rules: Rules) -> list[_Alarm]:
    window = tail[-min(rules.limit_window, own) :] if own else []
    hits = sum(1 for record in window if record.limits_hit)
    if not window or not window[-1].limits_hit or hits < rules.limit_hits:
        return []
    evidence = f"Limits of the service cut the strategy's decisions in {hits} of {len(window)} sessions"
    return [_Alarm(Trigger.LIMIT_BREACH, len(window), float(hits), float(rules.limit_hits), evidence)]


def _daily(columns: _Columns, rules: Rules) -> list[_Alarm]:
    alarms = []
    if len(columns.returns) <= rules.least_history:
        return []
    for trigger, series, words in (
        (Trigger.RELATIVE_LOSS, columns.active, "beyond what the market explains"),
        (Trigger.DAILY_LOSS, columns.returns, "in one session"),
    ):
        today = float(series[-1])
        z = robust_z(today, series[:-1])
        if z <= -rules.daily_z and today <= -rules.daily_floor:
            evidence = f"Lost {-today:.2%} {words}, {-z:.1f} robust deviations below the usual"
            alarms.append(_Alarm(trigger, 1, -z, rules.daily_z, evidence))
    return alarms


def _merge(alarms: Sequence[_Alarm], tail: Sequence[DayRecord], rules: Rules) -> Loss:
    """Make one loss of all alarms of a session; the gravest names it and sets its window."""
    order = list(Trigger)
    ranked = sorted(alarms, key=lambda alarm: order.index(alarm.trigger))
    head = ranked[0]
    triggers = {alarm.trigger for alarm in ranked}
    window = tail[-head.sessions :]
    quarantined = sum(value for record in window for value in record.quarantined.values())
    pnl = sum(record.pnl for record in window) - quarantined
    parts = {name: sum(record.parts[name] for record in window) for name in PARTS}
    parts["corporate_actions"] -= quarantined
    own_fault = triggers - {Trigger.DAILY_LOSS, Trigger.DRAWDOWN, Trigger.PRINCIPAL_LOSS}
    shared = pnl < 0 and not own_fault and parts["market"] <= rules.shared_share * pnl
    return Loss(
        day=tail[-1].day,
        trigger=head.trigger,
        first=window[0].day,
        last=window[-1].day,
        sessions=len(window),
        pnl=pnl,
        parts=parts,
        statistics={alarm.trigger: alarm.statistic for alarm in ranked},
        threshold=head.threshold,
        cause_key=_cause_key(head.trigger, parts, window, shared),
        shared_market=shared,
        demands_patch=not shared,
        evidence=". ".join(alarm.evidence for alarm in ranked),
    )


def _cause_key(trigger: Trigger, parts: Mapping[str, float], window: Sequence[DayRecord], shared: bool) -> str:
    if trigger is Trigger.STRATEGY_FAILURE:
        return f"failure:{window[-1].failure}"
    if shared:
        return "shared_market"
    if trigger is Trigger.LIMIT_BREACH:
        return "limits:" + ",".join(sorted({name for record in window for name in record.limits_hit}))
    if trigger in (Trigger.FRICTION_DRAIN, Trigger.EXECUTION_DECAY):
        return "area:execution"
    areas = {area: sum(parts[name] for name in names) for area, names in AREAS.items() if area != "market"}
    return "area:" + min(areas, key=lambda area: areas[area])


def _known(loss: Loss, earlier: Sequence[Loss], tail: Sequence[DayRecord], rules: Rules, since: date | None) -> bool:
    """Say whether the cause was reported already and its cool-down is not over."""
    for old in reversed(earlier):
        if old.cause_key != loss.cause_key or (since is not None and old.day < since and not loss.shared_market):
            continue
        passed = sum(1 for record in tail if record.day > old.day)
        if passed <= rules.cool_down:
            return True
    return False

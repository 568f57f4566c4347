"""Rank what a loss came from, by rules that a person can check.

Each negative part of the decomposition over the loss window is handed to causes, in dollars:

    part                  cause
    market                shared market
    selection             concentration (what names above the reference weight lost in excess of it); the rest to wrong
                          sign or stale signal where the facts of the signal say so, else to wrong signal
    limits                limits
    cash drag             idle cash
    delay                 stale signal where the facts say so, else late execution
    impact                blind to liquidity (in names whose orders asked for more than the reference share of volume);
                          the rest is friction
    spread, fees,         friction: what lies above the assumed rate to execution decay; of what lies below, the share
    rest of impact        above the reference turnover to churn, but to concentration what was traded there of positions
                          beyond the reference weight; the rest is the price of trading at all
    unfilled              blind to liquidity in names as above, else missed orders
    corporate actions     corporate actions
    model bills           model bills

Friction, bills and corporate actions recur; what markets add is mostly noise. So causes are ranked by *systematic*
dollars: a noisy part's dollars times the positive-part James-Stein factor max(0, 1 - 1/t^2), t the part's mean over its
standard error in the window (in a window of few sessions, the deviation of the whole record). A strategy failure ranks
first, then a signal that the decisions prove turned round or stale: code that does not do what it declares is to be
mended whatever it lost. A fall of the market ranks first only where the loss is labelled shared, else last: no patch
mends it.

Over 400 lines, because the rules share out the same dollars: none can be read without the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import NormalDist

import numpy as np

from oomrl.domain.attribution import PARTS
from oomrl.domain.loss import FRICTION, SESSIONS_A_YEAR, DayRecord, Loss
from oomrl.domain.signal import SignalFacts
from oomrl.domain.student import upper_p

#: Below this many sessions a window says too little of its own deviation.
FEW_SESSIONS = 10


class CauseCode(StrEnum):
    """Why money was lost. Equal amounts rank in this order."""

    STRATEGY_FAILURE = "strategy_failure"
    CHURN = "churn"
    BLIND_TO_LIQUIDITY = "blind_to_liquidity"
    EXECUTION_DECAY = "execution_decay"
    CONCENTRATION = "concentration"
    WRONG_SIGN = "wrong_sign"
    STALE_SIGNAL = "stale_signal"
    WRONG_SIGNAL = "wrong_signal"
    LATE_EXECUTION = "late_execution"
    MISSED_ORDERS = "missed_orders"
    CORPORATE_ACTIONS = "corporate_actions"
    LIMITS = "limits"
    IDLE_CASH = "idle_cash"
    MODEL_BILLS = "model_bills"
    SHARED_MARKET = "shared_market"


class Role(StrEnum):
    """What a function of the strategy is for."""

    UNIVERSE = "universe"
    SIGNAL = "signal"
    SELECTION = "selection"
    SIZING = "sizing"
    LIQUIDITY = "liquidity"
    CADENCE = "cadence"
    ACCOUNTING = "accounting"


#: Where to look for each cause, the likeliest role first.
SUSPECTS: Mapping[CauseCode, tuple[Role, ...]] = {
    CauseCode.CHURN: (Role.CADENCE, Role.SIZING, Role.SELECTION),
    CauseCode.BLIND_TO_LIQUIDITY: (Role.LIQUIDITY, Role.UNIVERSE, Role.SIZING),
    CauseCode.EXECUTION_DECAY: (Role.LIQUIDITY, Role.CADENCE),
    CauseCode.CONCENTRATION: (Role.SIZING, Role.SELECTION),
    CauseCode.WRONG_SIGN: (Role.SIGNAL,),
    CauseCode.STALE_SIGNAL: (Role.SIGNAL, Role.ACCOUNTING),
    CauseCode.WRONG_SIGNAL: (Role.SIGNAL, Role.SELECTION),
    CauseCode.LATE_EXECUTION: (Role.LIQUIDITY, Role.SIGNAL),
    CauseCode.MISSED_ORDERS: (Role.LIQUIDITY,),
    CauseCode.CORPORATE_ACTIONS: (Role.ACCOUNTING,),
    CauseCode.LIMITS: (Role.SIZING, Role.LIQUIDITY),
    CauseCode.IDLE_CASH: (Role.SIZING,),
}


@dataclass(frozen=True, slots=True)
class Site:
    """One function of the strategy that took part in the decisions of the window, and in how many of them."""

    role: Role
    module: str
    function: str
    decisions: int = 0


@dataclass(frozen=True, slots=True)
class NameRecord:
    """What one name did to the account over the loss window; dollars where not said otherwise.

    `parts` as in the decomposition (names without a part leave it out). `traded` counts both sides. `participation`
    is the largest share of a session's volume that an order asked for, `weight` the largest share of equity held,
    `unfilled` the value of order shares that stayed open.
    """

    symbol: str
    parts: Mapping[str, float]
    traded: float = 0.0
    participation: float = 0.0
    weight: float = 0.0
    unfilled: float = 0.0
    orders: int = 0

    @property
    def pnl(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class StrategyFacts:
    """What is known of the strategy that lost: its revision, settings, assumptions and the code that decided."""

    revision: str
    cadence: str
    parameters: Mapping[str, float | int | str | bool] = field(default_factory=dict)
    assumed_friction_bps: float = 8.0
    sites: tuple[Site, ...] = ()
    signal: SignalFacts | None = None


@dataclass(frozen=True, slots=True)
class References:
    """What a cause is measured against: turnover a year (traded value / 2 / equity), a share of volume, a weight.

    `excess_bps` is by how much friction must lie above the assumed, as a share of it, to count as decay. A signal
    counts as late, turned round or ignored from a t of `signal_t` on; `signal_share` is the share of what a factor's
    declared weight leads one to expect below which it counts as ignored, and below whose negative as turned round.
    """

    turnover: float = 12.0
    participation: float = 0.05
    weight: float = 0.10
    excess_bps: float = 0.25
    signal_t: float = 3.0
    signal_share: float = 0.25


@dataclass(frozen=True, slots=True)
class RankedCause:
    """One cause: dollars lost to it, of those the systematic ones, its share of all that was lost, and why."""

    code: CauseCode
    dollars: float
    systematic: float
    share: float
    evidence: str
    module: str
    function: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Rates of the window that causes and metrics share."""

    sessions: int
    equity: float
    traded: float
    friction: float
    friction_bps: float
    turnover: float


def figures(window: Sequence[DayRecord]) -> Figures:
    """Measure turnover a year and friction in basis points of the traded value over a window (not empty)."""
    equity = max(float(np.mean([record.equity for record in window])), 0.01)
    traded = sum(2.0 * record.turnover * record.equity for record in window)
    friction = -sum(record.parts[name] for record in window for name in FRICTION)
    return Figures(
        sessions=len(window),
        equity=equity,
        traded=traded,
        friction=friction,
        friction_bps=friction / traded * 1e4 if traded > 0 else 0.0,
        turnover=traded / 2 / equity * SESSIONS_A_YEAR / len(window),
    )


def rank(
    loss: Loss,
    records: Sequence[DayRecord],
    names: Sequence[NameRecord],
    facts: StrategyFacts,
    references: References | None = None,
) -> tuple[RankedCause, ...]:
    """Rank the causes of a loss, the one to mend first. Parts that gained are no cause; the tuple may be empty.

    `records` are sessions up to the loss, the window among them; `names` the table of the window.
    """
    references = references or References()
    window = [record for record in records if loss.first <= record.day <= loss.last]
    if not window:
        raise ValueError(f"Expected the sessions from {loss.first} to {loss.last} among the records, was none of them")
    rates = figures(window)
    trust = {name: _trust([r.parts[name] for r in window], [r.parts[name] for r in records]) for name in PARTS}
    lost = {name: max(-loss.parts[name], 0.0) for name in PARTS}
    found = [
        *_failure(loss, window),
        *_friction(lost, names, rates, facts, references),
        *_selection(lost, trust, names, rates, facts, references),
        *_plain(loss, lost, trust),
    ]
    total = sum(lost.values())
    ranked = [
        RankedCause(
            code,
            round(dollars, 2),
            round(systematic, 2),
            round(dollars / total, 6) if total > 0 else 0.0,
            evidence,
            *_suspect(code, facts.sites),
        )
        for code, dollars, systematic, evidence in found
        if dollars >= 0.01 or code in _PROVEN
    ]
    order = list(CauseCode)
    first = _PROVEN | ({CauseCode.SHARED_MARKET} if loss.shared_market else set())
    last = set() if loss.shared_market else {CauseCode.SHARED_MARKET}
    return tuple(
        sorted(
            ranked,
            key=lambda c: (
                c.code is not CauseCode.STRATEGY_FAILURE,
                c.code not in first,
                c.code in last,
                -c.systematic,
                -c.dollars,
                order.index(c.code),
            ),
        )
    )


#: Standard errors that a mean of the window must exceed to count at all. James and Stein have 1; a loss window is
#: chosen because it lost, which inflates the t of whatever lost in it.
SELECTED = 2.0

#: Causes that are only named where they are proven; they rank first even where they lost nothing yet.
_PROVEN = {CauseCode.STRATEGY_FAILURE, CauseCode.WRONG_SIGN, CauseCode.STALE_SIGNAL}

_Found = tuple[CauseCode, float, float, str]


def _trust(window: Sequence[float], records: Sequence[float]) -> float:
    """Return max(0, 1 - (SELECTED/t)^2) of a part's mean in the window."""
    sample = window if len(window) >= FEW_SESSIONS else records
    deviation = float(np.std(sample, ddof=1)) if len(sample) > 1 else 0.0
    mean = float(np.mean(window))
    if deviation <= 0:
        return 1.0 if mean else 0.0
    t = mean / (deviation / np.sqrt(len(window)))
    return max(0.0, 1.0 - (SELECTED / t) ** 2) if t else 0.0


def _failure(loss: Loss, window: Sequence[DayRecord]) -> list[_Found]:
    failed = [record for record in window if record.failure is not None]
    if not failed:
        return []
    dollars = max(-sum(record.pnl for record in failed), 0.0)
    evidence = f"The strategy failed in {len(failed)} of {len(window)} sessions, last with {failed[-1].failure}"
    return [(CauseCode.STRATEGY_FAILURE, dollars, dollars, evidence)]


def _friction(
    lost: Mapping[str, float],
    names: Sequence[NameRecord],
    rates: Figures,
    facts: StrategyFacts,
    references: References,
) -> list[_Found]:
    """Share spread, impact, fees and what stayed unfilled out among liquidity, decay, churn and missed orders."""
    heavy = _thin(names, references)
    thin_impact = _thin_impact(lost, names, references)
    thin_unfilled = _within(lost["unfilled"], sum(max(-name.parts.get("unfilled", 0.0), 0.0) for name in heavy))
    most = max((name.participation for name in heavy), default=0.0)
    blind = thin_impact + thin_unfilled
    found: list[_Found] = [
        (
            CauseCode.BLIND_TO_LIQUIDITY,
            blind,
            blind,
            f"Orders in {len(heavy)} names asked for up to {most:.0%} of a session's volume "
            f"(reference {references.participation:.0%}); impact there and unfilled shares cost "
            f"{blind / rates.equity:.2%} of equity",
        )
    ]
    ordinary = _ordinary(lost, names, rates, facts, references)
    found.append(
        (
            CauseCode.EXECUTION_DECAY,
            ordinary.decayed,
            ordinary.decayed,
            f"Friction outside illiquid orders ran at {ordinary.bps:.1f} bps a side, "
            f"{facts.assumed_friction_bps:.1f} assumed",
        )
    )
    found.append(
        (
            CauseCode.CHURN,
            ordinary.churned,
            ordinary.churned,
            f"Turnover ran at {rates.turnover:.1f} times equity a year (reference {references.turnover:.0f}) on a "
            f"{facts.cadence} cadence; friction took {rates.friction / rates.equity:.2%} of equity "
            f"in {rates.sessions} sessions",
        )
    )
    missed = lost["unfilled"] - thin_unfilled
    unfilled = sum(name.unfilled for name in names) / rates.equity
    found.append(
        (
            CauseCode.MISSED_ORDERS,
            missed,
            missed / 2,
            f"Orders worth {unfilled:.1%} of equity stayed open without asking for much of the volume",
        )
    )
    return found


@dataclass(frozen=True, slots=True)
class _Ordinary:
    """Friction that neither thin names nor crowded impact explain: its rate a side, and dollars by their reason.

    `decayed`: the rate above the assumed one. `swung`: turnover above the reference, traded of positions beyond the
    reference weight. `churned`: the rest of that turnover.
    """

    bps: float
    decayed: float
    churned: float
    swung: float


def _ordinary(
    lost: Mapping[str, float],
    names: Sequence[NameRecord],
    rates: Figures,
    facts: StrategyFacts,
    references: References,
) -> _Ordinary:
    thin = _thin_impact(lost, names, references)
    rest = sum(lost[name] for name in FRICTION) - thin - _crowded(lost, names, references)
    bps = rest / rates.traded * 1e4 if rates.traded > 0 else 0.0
    excess = bps - facts.assumed_friction_bps
    decayed = rest * excess / bps if excess > references.excess_bps * facts.assumed_friction_bps else 0.0
    often = (rest - decayed) * max(0.0, 1.0 - references.turnover / rates.turnover) if rates.turnover > 0 else 0.0
    traded = sum(name.traded for name in names)
    large = sum(name.traded * max(0.0, 1.0 - references.weight / name.weight) for name in names if name.weight > 0)
    swung = often * large / traded if traded > 0 else 0.0
    return _Ordinary(bps, decayed, often - swung, swung)


def _thin(names: Sequence[NameRecord], references: References) -> list[NameRecord]:
    return [name for name in names if name.participation > references.participation]


def _thin_impact(lost: Mapping[str, float], names: Sequence[NameRecord], references: References) -> float:
    impact = sum(max(-name.parts.get("impact", 0.0), 0.0) for name in _thin(names, references))
    return _within(lost["impact"], impact)


def _selection(
    lost: Mapping[str, float],
    trust: Mapping[str, float],
    names: Sequence[NameRecord],
    rates: Figures,
    facts: StrategyFacts,
    references: References,
) -> list[_Found]:
    """Share the losses of selection and delay out among concentration and what is known of the signal."""
    large = [name for name in names if name.weight > references.weight and name.parts.get("selection", 0.0) < 0]
    excess = sum(-name.parts["selection"] * (1.0 - references.weight / name.weight) for name in large)
    concentrated = _within(lost["selection"], excess)
    crowded = _crowded(lost, names, references)
    swung = _ordinary(lost, names, rates, facts, references).swung
    beyond = concentrated + crowded + swung
    top = max((name.weight for name in names), default=0.0)
    found: list[_Found] = [
        (
            CauseCode.CONCENTRATION,
            beyond,
            beyond,
            f"{len(large)} losing names were held above {references.weight:.0%} of equity, the largest at {top:.0%}; "
            f"impact and turnover that smaller positions would not have had cost "
            f"{(crowded + swung) / rates.equity:.2%} of equity",
        )
    ]
    rest = lost["selection"] - concentrated
    code, sure, evidence = _signal(facts, references)
    late = lost["delay"]
    if code is CauseCode.STALE_SIGNAL:
        rest, late = rest + late, 0.0
    found.append((code, rest, rest * (1.0 if sure else trust["selection"]), evidence))
    found.append(
        (
            CauseCode.LATE_EXECUTION,
            late,
            late * trust["delay"],
            "Prices moved against the orders between the decision's close and the next open",
        )
    )
    return found


def _signal(facts: StrategyFacts, references: References) -> tuple[CauseCode, bool, str]:
    """Say what the decisions prove of the signal; without proof the names were merely wrong.

    A factor is called turned round only where weights do not ignore the one with the largest declared weight: weights
    that ignore it follow another signal, whose chance likeness to a declared factor proves nothing of that one's sign.
    """
    merely = CauseCode.WRONG_SIGNAL, False, "The chosen names did worse than the market explains"
    signal = facts.signal
    if signal is None:
        return merely
    share, n = references.signal_share, signal.decisions
    if signal.agreement.value <= -share and _sure(-signal.agreement.t, n, references):
        evidence = f"Weights stand against the declared signal (rank correlation {signal.agreement.value:+.2f})"
        return CauseCode.WRONG_SIGN, True, f"{evidence} in {n} decisions"
    declared = {name: _weight(facts, name) for name in signal.factors}
    heaviest = max(declared.values(), default=0.0)
    largest = max((abs(mean.value) for mean in signal.factors.values()), default=0.0)
    leading = max((mean.value for mean in signal.factors.values()), default=0.0)
    heeded = any(
        abs(mean.value) >= share * largest for name, mean in signal.factors.items() if declared[name] >= heaviest
    )
    for name, mean in sorted(signal.factors.items(), key=lambda item: item[1].value):
        if heeded and leading > 0 and mean.value <= -share * leading and _sure(-mean.t, n, references):
            evidence = f"Weights fall where {name.replace('_', ' ')} rises (coefficient {mean.value:+.2f}"
            return CauseCode.WRONG_SIGN, True, f"{evidence}, t {mean.t:.1f}, {n} decisions)"
    late = signal.lag > 0 and _sure(signal.lag_gain.t, n, references)
    if late and signal.fit_by_lag[signal.lag] >= share:
        evidence = (
            f"Weights follow the signal of {signal.lag} sessions before the decision (rank correlation "
            f"{signal.fit_by_lag[signal.lag]:+.3f}) rather than that day's ({signal.fit_by_lag[0]:+.3f}), "
            f"t {signal.lag_gain.t:.1f} over {n} decisions"
        )
        return CauseCode.STALE_SIGNAL, True, evidence
    for name, mean in signal.factors.items():
        if leading > 0 and mean.value < share * leading and not _sure(mean.t, n, references):
            ignored = f"; weights barely follow {name.replace('_', ' ')} (coefficient {mean.value:+.2f})"
            return CauseCode.WRONG_SIGNAL, False, merely[2] + ignored
    return merely


def _sure(t: float, decisions: int, references: References) -> bool:
    """Say whether a t of so many decisions is as rare as `signal_t` is of endlessly many (Student's t)."""
    return decisions > 1 and t > 0 and upper_p(t, decisions - 1) <= 1.0 - NormalDist().cdf(references.signal_t)


def _weight(facts: StrategyFacts, factor: str) -> float:
    """Return the weight that the parameters declare for a factor."""
    value = facts.parameters.get(f"{factor.removeprefix('low_')}_weight", 0.0)
    return float(value) if isinstance(value, (int, float)) else 0.0


def _plain(loss: Loss, lost: Mapping[str, float], trust: Mapping[str, float]) -> list[_Found]:
    """Hand over the parts that belong to one cause each."""
    return [
        (
            CauseCode.CORPORATE_ACTIONS,
            lost["corporate_actions"],
            lost["corporate_actions"],
            "Splits, dividends or delistings changed the account against what was held",
        ),
        (
            CauseCode.LIMITS,
            lost["limits"],
            lost["limits"] * trust["limits"],
            "Whole lots and the service's limits kept the account from the target",
        ),
        (
            CauseCode.IDLE_CASH,
            lost["cash_drag"],
            lost["cash_drag"] * trust["cash_drag"],
            "Orders waited for cash or lacked it",
        ),
        (
            CauseCode.MODEL_BILLS,
            lost["model_bills"],
            lost["model_bills"],
            "Model calls were billed to the account",
        ),
        (
            CauseCode.SHARED_MARKET,
            lost["market"],
            lost["market"] * trust["market"],
            f"The market fell and the account with it, over {loss.sessions} sessions",
        ),
    ]


def _crowded(lost: Mapping[str, float], names: Sequence[NameRecord], references: References) -> float:
    """Return the impact that positions above the reference weight had beyond what positions of that weight have.

    Impact grows with the 3/2 power of size, so k positions in one cost sqrt(k) times what k cost. Names that asked for
    much of the volume are the business of liquidity.
    """
    excess = sum(
        max(-name.parts.get("impact", 0.0), 0.0) * (1.0 - (references.weight / name.weight) ** 0.5)
        for name in names
        if name.weight > references.weight and name.participation <= references.participation
    )
    return _within(lost["impact"], excess)


def _within(total: float, part: float) -> float:
    return min(max(part, 0.0), total)


def _suspect(code: CauseCode, sites: Sequence[Site]) -> tuple[str, str]:
    """Name the function of the likeliest role that took part in most decisions; empty where no code is suspected."""
    for role in SUSPECTS.get(code, ()):
        matching = [site for site in sites if site.role is role]
        if matching:
            best = max(matching, key=lambda site: (site.decisions, site.module, site.function))
            return best.module, best.function
    return "", ""

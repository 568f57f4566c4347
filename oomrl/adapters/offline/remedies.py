"""Which repairs are tried for which cause, the likeliest first.

Reference values are common practice for a weekly equity book of large companies; the policy bounds each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from oomrl.adapters.offline.edits import Rule
from oomrl.adapters.offline.parameters import Move
from oomrl.adapters.offline.rules import ALL
from oomrl.adapters.offline.wiring import dropped_steps, literal_settings


@dataclass(frozen=True, slots=True)
class Repair:
    """Something to try: moves of parameters, or a rule over the source, or several such repairs at once."""

    name: str
    why: str
    moves: tuple[Move, ...] = ()
    rule: Rule | None = None
    parts: tuple[Repair, ...] = ()


SLOWER = Repair(
    "trade less often",
    "costs come from turnover: decide weekly, leave small differences alone, keep what still ranks well",
    (
        Move("strategy.cadence", "weekly"),
        Move("parameters.no_trade_band", 0.25, "up"),
        Move("parameters.keep_fraction", 0.45, "up"),
    ),
)
WEEKLY = Repair("a weekly cadence", "a daily decision pays the spread daily", (Move("strategy.cadence", "weekly"),))
SLOW_SIGNALS = Repair(
    "slower signals",
    "fast signals turn the book over: lean on slow ones",
    (
        Move("parameters.reversal_weight", 0.5, "down"),
        Move("parameters.reversal_window", 5, "up"),
        Move("parameters.momentum_weight", 1.0, "up"),
        Move("parameters.volatility_weight", 1.0, "up"),
        Move("parameters.momentum_window", 252, "up"),
        Move("parameters.momentum_skip", 21, "up"),
        Move("parameters.volatility_window", 126, "up"),
    ),
)
LIQUIDITY = Repair(
    "respect for liquidity",
    "orders were too large for their markets: a smaller share of volume, over more sessions, of liquid names",
    (
        Move("parameters.max_participation", 0.05, "down"),
        Move("parameters.max_sessions", 3, "up"),
        Move("parameters.min_dollar_volume", 3_000_000.0, "up"),
        Move("parameters.max_position_volume", 0.5, "down"),
        Move("parameters.liquidity_window", 42, "up"),
        Move("parameters.limit_volatilities", 3.0, "up"),
    ),
)
PATIENCE = Repair(
    "patient orders",
    "urgency cost more than it earned: limits on orders, a smaller share of volume, more sessions",
    (
        Move("parameters.limit_volatilities", 2.0, "up"),
        Move("parameters.max_participation", 0.05, "down"),
        Move("parameters.max_sessions", 3, "up"),
    ),
)
REACH = Repair(
    "orders within reach",
    "orders stayed open: wider limits and more sessions to work them",
    (Move("parameters.limit_volatilities", 5.0, "up"), Move("parameters.max_sessions", 5, "up")),
)
DIVERSIFY = Repair(
    "a spread book",
    "single names carried the loss: cap each, hold more of them",
    (
        Move("parameters.max_weight", 0.06, "down"),
        Move("parameters.few_names_weight", 0.35, "down"),
        Move("parameters.max_holdings", 60, "up"),
        Move("parameters.hold_fraction", 0.3, "up"),
        Move("parameters.volatility_sizing", 1.0, "up"),
    ),
)
QUIET = Repair(
    "quieter names",
    "the market carried the loss: lean on low volatility, in ranks and in sizes",
    (
        Move("parameters.volatility_weight", 2.0, "up"),
        Move("parameters.volatility_sizing", 1.0, "up"),
    ),
)
INVEST = Repair("cash at work", "cash lagged: raise the exposure", (Move("parameters.exposure", 0.98, "up"),))
BALANCE = Repair(
    "balanced factors",
    "one factor dominated: weigh slow factors alike and the fast one half",
    (
        Move("parameters.momentum_weight", 1.0),
        Move("parameters.volatility_weight", 1.0),
        Move("parameters.reversal_weight", 0.5),
    ),
)
SETTLED = Repair(
    "names with a history",
    "young, cheap and thin names measure badly: ask for history and price",
    (
        Move("parameters.min_history", 126, "up"),
        Move("parameters.min_price", 5.0, "up"),
        Move("parameters.min_dollar_volume", 3_000_000.0, "up"),
        Move("parameters.max_gap", 5, "down"),
    ),
)
STEPS = Repair("steps that are called", "a step of the decision is written and never taken", rule=dropped_steps)
SETTINGS = Repair("settings that are read", "a number stands where a setting is meant", rule=literal_settings)
WIRING = Repair("use of what is there", "the code leaves out what it has", parts=(STEPS, SETTINGS))
BLIND = Repair("sight of liquidity", "the code and its settings leave liquidity out", parts=(WIRING, LIQUIDITY))
SOURCE = (*(Repair(name, "the code does not do what it says", rule=rule) for name, rule in ALL), WIRING)

#: By the diagnostic's cause codes.
REMEDIES: Mapping[str, tuple[Repair, ...]] = {
    "churn": (SLOWER, SLOW_SIGNALS, WEEKLY),
    "blind_to_liquidity": (BLIND, LIQUIDITY, SETTLED),
    "execution_decay": (PATIENCE, SLOWER),
    "concentration": (DIVERSIFY,),
    "wrong_sign": (*SOURCE, BALANCE),
    "stale_signal": (*SOURCE, SLOW_SIGNALS),
    "wrong_signal": (*SOURCE, SLOW_SIGNALS, BALANCE, DIVERSIFY),
    "late_execution": (SLOW_SIGNALS, PATIENCE),
    "missed_orders": (REACH, LIQUIDITY),
    "limits": (DIVERSIFY, LIQUIDITY),
    "idle_cash": (INVEST,),
    "shared_market": (QUIET,),
}

#: Tried after the causes' own, in case they were ranked wrongly.
LAST = (*SOURCE, SLOWER, LIQUIDITY, DIVERSIFY, SLOW_SIGNALS, BALANCE, SETTLED, INVEST, QUIET)

#: From this share of what was lost on, a cause belongs to those that are mended together.
LARGE = 0.1


def ordered(causes: Sequence[tuple[str, float]]) -> Iterator[Repair]:
    """Yield the repairs for ranked causes (code, share), each once.

    First what the source itself gives away, for every try costs evidence; then the best repair of the first cause, then
    all large causes at once, then one after the other.
    """
    known = [(code, share) for code, share in causes if code in REMEDIES]
    seen: set[str] = set()

    def fresh(repairs: Sequence[Repair]) -> Iterator[Repair]:
        for repair in repairs:
            if repair.name not in seen:
                seen.add(repair.name)
                yield repair

    if known:
        first = REMEDIES[known[0][0]]
        # Rules over source change nothing where the code keeps its word: where they do find something, that is strong
        # evidence whatever the cause, and where they do not, they cost no attempt.
        yield from fresh(SOURCE)
        if first[0].rule is None:
            yield from fresh(first[:1])
        large = [code for code, share in known if share >= LARGE]
        if len(large) > 1:
            parts = tuple(dict.fromkeys(repair for code in large for repair in REMEDIES[code] if repair.rule is None))
            yield Repair("all large causes at once", "no single cause explains the loss", parts=parts)
    for code, _ in known:
        yield from fresh(REMEDIES[code])
    yield from fresh(LAST)

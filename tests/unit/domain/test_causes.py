"""Each rule of the ranking under a window that was made with one fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.domain.causes import (
    SUSPECTS,
    CauseCode,
    NameRecord,
    RankedCause,
    Role,
    Site,
    StrategyFacts,
    figures,
    rank,
)
from oomrl.domain.loss import PARTS, DayRecord, Loss, Trigger
from oomrl.domain.signal import Mean, SignalFacts
from tests.unit.domain.histories import changed, history

SITES = tuple(Site(role, f"strategy.{role.value}", f"by_{role.value}", 10) for role in Role)
FACTS = StrategyFacts("r1", "weekly", {}, 8.0, SITES)
NAMES = (NameRecord("AAA", {"selection": -1_000.0, "impact": -10.0}, 1e5, 0.01, 0.03, 0.0, 5),)


def loss_of(records: Sequence[DayRecord], sessions: int, **changes: Any) -> Loss:
    window = records[-sessions:]
    parts = {name: sum(r.parts[name] for r in window) for name in PARTS}
    made = Loss(
        day=window[-1].day,
        trigger=Trigger.DRAWDOWN,
        first=window[0].day,
        last=window[-1].day,
        sessions=sessions,
        pnl=sum(parts.values()),
        parts=parts,
        statistics={Trigger.DRAWDOWN: 0.1},
        threshold=0.1,
        cause_key="area:x",
        shared_market=False,
        demands_patch=True,
        evidence="",
    )
    return replace(made, **changes)


def with_daily(records: list[DayRecord], parts: Mapping[str, float], **changes: Any) -> list[DayRecord]:
    return [changed(record, parts, **changes) for record in records]


def top(records: list[DayRecord], names: Sequence[NameRecord] = NAMES, facts: StrategyFacts = FACTS) -> RankedCause:
    return rank(loss_of(records, 60), records, names, facts)[0]


SURE = Mean(0.7, 40.0)
AGAINST = SignalFacts(Mean(-0.3, -9.0), decisions=12)
TURNED = SignalFacts(Mean(0.3, 9.0), {"momentum": Mean(-0.25, -8.0), "low_volatility": Mean(0.5, 40.0)}, decisions=12)
LATE = SignalFacts(SURE, {"momentum": SURE}, (0.70, 0.73, 0.72), 1, Mean(0.03, 4.0), 12)
QUIET = history(200, 5, beta=0.0, selection_sd=0.001, bps=1.0)


@pytest.mark.parametrize(
    ("parts", "changes", "names", "facts", "expected"),
    [
        ({"spread": -500.0}, {"turnover": 0.35, "friction_bps": 7.0}, NAMES, FACTS, CauseCode.CHURN),
        ({"spread": -500.0}, {"turnover": 0.01, "friction_bps": 250.0}, NAMES, FACTS, CauseCode.EXECUTION_DECAY),
        (
            {"impact": -900.0, "unfilled": -100.0},
            {},
            (replace(NAMES[0], participation=0.4, parts={"impact": -54_000.0, "unfilled": -6_000.0}),),
            FACTS,
            CauseCode.BLIND_TO_LIQUIDITY,
        ),
        (
            {"selection": -900.0},
            {},
            (NameRecord("BIG", {"selection": -50_000.0}, weight=0.5), NAMES[0]),
            FACTS,
            CauseCode.CONCENTRATION,
        ),
        ({"selection": -900.0}, {}, NAMES, FACTS, CauseCode.WRONG_SIGNAL),
        ({"selection": -900.0}, {}, NAMES, replace(FACTS, signal=AGAINST), CauseCode.WRONG_SIGN),
        (
            {"selection": -500.0, "delay": -400.0},
            {},
            NAMES,
            replace(FACTS, signal=LATE),
            CauseCode.STALE_SIGNAL,
        ),
        ({"delay": -900.0}, {}, NAMES, FACTS, CauseCode.LATE_EXECUTION),
        ({"unfilled": -900.0}, {}, NAMES, FACTS, CauseCode.MISSED_ORDERS),
        ({"corporate_actions": -900.0}, {}, NAMES, FACTS, CauseCode.CORPORATE_ACTIONS),
        ({"limits": -900.0}, {}, NAMES, FACTS, CauseCode.LIMITS),
        ({"cash_drag": -900.0}, {}, NAMES, FACTS, CauseCode.IDLE_CASH),
        ({"model_bills": -900.0}, {}, NAMES, FACTS, CauseCode.MODEL_BILLS),
    ],
)
def test_the_fault_that_was_made_ranks_first(
    parts: dict[str, float],
    changes: dict[str, Any],
    names: Sequence[NameRecord],
    facts: StrategyFacts,
    expected: CauseCode,
) -> None:
    records = QUIET[:140] + with_daily(QUIET[140:], parts, **changes)
    first = top(records, names, facts)
    assert first.code is expected
    roles = SUSPECTS.get(expected)
    assert first.module == (f"strategy.{roles[0].value}" if roles else "")


def test_friction_that_is_certain_ranks_before_larger_noise() -> None:
    """The noise of selection loses more dollars in the window than friction does, and yet says nothing."""
    records = history(200, 12, beta=0.0, selection_sd=0.006, turnover=0.3, bps=4.0)
    by_noise = [n for n in range(60, 200) if sum(r.parts["selection"] for r in records[n - 60 : n]) < -20_000]
    assert by_noise
    end = by_noise[0]
    causes = rank(loss_of(records[:end], 60), records[:end], NAMES, FACTS)
    assert causes[0].code is CauseCode.CHURN
    noise = next(cause for cause in causes if cause.code is CauseCode.WRONG_SIGNAL)
    assert noise.dollars > causes[0].dollars


def test_turnover_of_positions_beyond_the_reference_weight_is_due_to_concentration() -> None:
    """The same friction: in small positions it is churn, in positions of three times the reference mostly not."""
    records = QUIET[:140] + with_daily(QUIET[140:], {"spread": -500.0}, turnover=0.35, friction_bps=7.0)
    small = (NameRecord("AAA", {}, traded=1e6, weight=0.05), NameRecord("BBB", {}, traded=1e6, weight=0.08))
    large = tuple(replace(name, weight=0.3) for name in small)
    causes = {where: rank(loss_of(records, 60), records, names, FACTS) for where, names in (("s", small), ("l", large))}
    churn, (concentration, rest) = causes["s"][0], causes["l"][:2]
    assert churn.code is CauseCode.CHURN and CauseCode.CONCENTRATION not in {cause.code for cause in causes["s"]}
    assert (concentration.code, rest.code) == (CauseCode.CONCENTRATION, CauseCode.CHURN)
    assert concentration.dollars == pytest.approx(2 / 3 * churn.dollars, abs=0.02)
    assert concentration.dollars + rest.dollars == pytest.approx(churn.dollars, abs=0.02)


def test_the_market_ranks_first_only_where_the_loss_is_shared() -> None:
    records = QUIET[:140] + with_daily(QUIET[140:], {"market": -5_000.0, "selection": -100.0})
    shared = rank(loss_of(records, 60, shared_market=True), records, NAMES, FACTS)
    own = rank(loss_of(records, 60), records, NAMES, FACTS)
    assert shared[0].code is CauseCode.SHARED_MARKET
    assert own[-1].code is CauseCode.SHARED_MARKET
    assert own[-1].share > 0.9


@pytest.mark.parametrize(("signal", "code"), [(TURNED, CauseCode.WRONG_SIGN), (LATE, CauseCode.STALE_SIGNAL)])
def test_a_proven_defect_ranks_first_whatever_it_lost(signal: SignalFacts, code: CauseCode) -> None:
    records = QUIET[:140] + with_daily(QUIET[140:], {"spread": -500.0, "selection": 100.0}, turnover=0.35)
    assert top(records, facts=replace(FACTS, signal=signal)).code is code
    failed = [*records[:-1], replace(records[-1], failure="timeout")]
    assert top(failed, facts=replace(FACTS, signal=signal)).code is CauseCode.STRATEGY_FAILURE


def test_weak_hints_of_the_signal_prove_nothing() -> None:
    records = QUIET[:140] + with_daily(QUIET[140:], {"selection": -900.0})
    weak = replace(LATE, lag_gain=Mean(0.03, 2.0), factors={"momentum": SURE, "reversal": Mean(0.01, 0.5)})
    first = top(records, facts=replace(FACTS, signal=weak))
    assert first.code is CauseCode.WRONG_SIGNAL
    assert "barely follow reversal" in first.evidence


def test_a_strategy_failure_ranks_before_any_dollars() -> None:
    records = QUIET[:-1] + [changed(QUIET[-1], {"selection": -9_000.0}, failure="timeout")]
    assert top(records).code is CauseCode.STRATEGY_FAILURE


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(PARTS), st.floats(-3_000, 3_000), max_size=6), st.integers(1, 60))
def test_causes_never_account_for_more_than_was_lost(parts: dict[str, float], sessions: int) -> None:
    records = QUIET[:-sessions] + with_daily(QUIET[-sessions:], parts)
    loss = loss_of(records, sessions)
    lost = sum(max(-loss.parts[name], 0.0) for name in PARTS)
    causes = rank(loss, records, NAMES, FACTS)
    assert sum(cause.dollars for cause in causes) <= lost + 0.2
    assert all(-0.01 <= cause.systematic <= cause.dollars + 0.01 for cause in causes)
    assert sum(cause.share for cause in causes) <= 1.0001
    assert rank(loss, records, NAMES, FACTS) == causes


def test_figures_are_rates_of_the_window() -> None:
    records = [replace(r, equity=1e6, turnover=0.1, parts={**r.parts, "spread": -160.0}) for r in QUIET[-20:]]
    got = figures(records)
    assert got.turnover == pytest.approx(25.2)
    assert got.friction_bps == pytest.approx(160 / 200_000 * 1e4)


def test_a_window_without_records_is_refused() -> None:
    with pytest.raises(ValueError, match="none of them"):
        rank(loss_of(QUIET, 5), QUIET[:-10], NAMES, FACTS)

"""The promotion rule under simulated placebos, repairs and cheats, and against plain computations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from oomrl.domain.bootstrap import block_length, mean_error, sums
from oomrl.domain.market import Floats
from oomrl.domain.promotion import ZETA, Code, Decision, Route, Rules, Track, Window, decide, paired, spend
from tests.unit.domain.histories import weekdays

SESSIONS = 750
LOSS = 60


def track(returns: Floats, friction: Floats, traded: float = 0.1, exposure: float = 0.97) -> Track:
    n = len(returns)
    return Track(returns - friction, friction, np.full(n, exposure), np.full(n, traded), 0.02, 30.0)


def market(rng: np.random.Generator, n: int) -> Floats:
    """Return a benchmark with clustered volatility and fat tails."""
    memory = 0.97 ** np.arange(120)
    log_vol = np.convolve(rng.normal(0, 0.12, n + 119), memory, "valid")
    return 0.0003 + 0.009 * np.exp(log_vol) * rng.standard_t(5, n)


def windows(
    rng: np.random.Generator,
    *,
    noise: float = 0.003,
    gain: float = 0.0,
    old_cost: float = 0.0001,
    new_cost: float = 0.0001,
    sessions: int = SESSIONS,
) -> list[Window]:
    """Return a loss window and two held-back ones, other names over the same days.

    `noise` is the deviation of a session's difference of the holdings, `gain` its mean; costs are a session's friction.
    """
    days = weekdays(sessions + LOSS)
    benchmark = market(rng, sessions + LOSS)
    made = []
    for name, begin, end in (("loss", sessions, sessions + LOSS), ("before", 0, sessions), ("others", 0, sessions)):
        n = end - begin
        held = 0.9 * benchmark[begin:end] + rng.standard_t(5, n) * 0.003
        vol = 0.5 + np.minimum(np.abs(benchmark[begin:end]) / 0.01, 3.0) / 2
        drawn = vol * rng.standard_t(5, n)
        other = held + gain + noise * drawn / drawn.std()
        costs = [np.abs(rng.normal(cost, cost / 4, n)) for cost in (old_cost, new_cost)]
        made.append(
            Window(
                name=name,
                held_back=name != "loss",
                days=tuple(days[begin:end]),
                candidate=track(other, costs[1], traded=costs[1].mean() / 0.0008),
                incumbent=track(held, costs[0], traded=costs[0].mean() / 0.0008),
                benchmark=benchmark[begin:end],
            )
        )
    return made


def another(rng: np.random.Generator, made: list[Window], noise: float) -> list[Window]:
    """Return the same windows with another placebo: other holdings, the same friction."""
    return [
        replace(w, candidate=replace(w.incumbent, returns=w.incumbent.returns + noise * rng.standard_t(5, len(w.days))))
        for w in made
    ]


def with_candidate(made: list[Window], **changes: object) -> list[Window]:
    return [replace(w, candidate=replace(w.candidate, **changes)) for w in made]  # type: ignore[arg-type]


def codes(decision: Decision) -> set[Code]:
    return {refusal.code for refusal in decision.refusals}


def test_placebos_are_refused_nearly_always() -> None:
    promoted = sum(decide(windows(np.random.default_rng([1, n])), 1).promoted for n in range(200))
    assert promoted <= 4


@pytest.mark.slow
def test_the_best_of_twenty_placebos_is_promoted_in_at_most_five_percent_of_losses() -> None:
    """All tries of a loss share its windows; the first to pass ends it."""
    passed = 0
    for loss in range(40):
        rng = np.random.default_rng([2, loss])
        made = windows(rng)
        passed += any(decide(another(rng, made, 0.002), k).promoted for k in range(1, 21))
    assert passed <= 2


def test_repairs_that_save_much_friction_are_promoted() -> None:
    """The paper's phase 1: 6,700 % a year at 8 bps a side is 10.7 % a year; weekly trading pays a tenth of it."""
    decisions = [
        decide(windows(np.random.default_rng([3, n]), old_cost=0.107 / 252, new_cost=0.0107 / 252), 1 + n % 3)
        for n in range(60)
    ]
    assert sum(d.promoted for d in decisions) >= 54
    assert {d.route for d in decisions if d.promoted} <= {Route.COST, Route.NET}


def test_repairs_of_the_signal_beyond_their_noise_are_promoted() -> None:
    """An effect of five standard errors of the held-back difference."""
    error = 0.003 / np.sqrt(2 * SESSIONS)
    promoted = sum(decide(windows(np.random.default_rng([4, n]), gain=5 * error), 1).promoted for n in range(60))
    assert promoted >= 48


def test_a_patch_without_effect_is_refused() -> None:
    made = windows(np.random.default_rng(5))
    same = [replace(w, candidate=w.incumbent) for w in made]
    decision = decide(same, 1)
    assert codes(decision) == {Code.NO_GAIN}
    assert decision.tests["net"].p == 0.5


def test_holding_cash_through_a_fall_is_no_repair() -> None:
    rng = np.random.default_rng(6)
    made = windows(rng)
    falling = []
    for w in made:
        fall = w.benchmark - 0.002
        incumbent = replace(w.incumbent, returns=0.9 * fall - 0.0001)
        cash = Track(np.zeros(len(fall)), np.zeros(len(fall)), np.zeros(len(fall)), np.zeros(len(fall)))
        falling.append(replace(w, benchmark=fall, candidate=cash, incumbent=incumbent))
    decision = decide(falling, 1)
    assert not decision.promoted
    assert {Code.HOLDS_CASH, Code.TOKEN_TRADES, Code.FEW_NAMES} <= codes(decision)


def test_more_exposure_to_a_rising_market_is_no_gain() -> None:
    made = []
    for w in windows(np.random.default_rng(7), noise=0.0005):
        rise = w.benchmark + 0.002
        pair = {
            name: replace(getattr(w, name), returns=k * rise + getattr(w, name).returns - 0.9 * w.benchmark)
            for name, k in (("candidate", 1.0), ("incumbent", 0.9))
        }
        made.append(replace(w, benchmark=rise, **pair))
    assert Code.NO_GAIN in codes(decide(made, 1))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"traded": np.eye(1, 750)[0]}, Code.TOKEN_TRADES),
        ({"names": 3.0}, Code.FEW_NAMES),
        ({"participation": 0.3}, Code.CAPACITY),
        ({"traded": np.full(750, 0.3)}, Code.TURNOVER),
        ({"failures": 1}, Code.FAILED),
        ({"exposure": np.where(np.arange(750) < 500, 0.97, 0.2)}, Code.HOLDS_CASH),
        ({"exposure": np.where(np.arange(750) < 650, 0.97, 0.5)}, Code.STOPPED_TRADING),
        ({"traded": np.where(np.arange(750) < 500, 0.1, 0.0)}, Code.STOPPED_TRADING),
    ],
)
def test_what_a_candidate_gives_up_to_look_better_is_named(change: dict[str, object], code: Code) -> None:
    made = windows(np.random.default_rng(8), gain=0.001)
    assert decide(made, 1).promoted
    cheat = [made[0], *with_candidate(made[1:2], **change), made[2]]
    decision = decide(cheat, 1)
    assert code in codes(decision)
    assert not decision.promoted


def test_a_deeper_drawdown_is_refused() -> None:
    made = windows(np.random.default_rng(9), gain=0.001)
    broken = made[1].candidate.returns.copy()
    broken[100:110] -= 0.03
    decision = decide([made[0], *with_candidate(made[1:2], returns=broken), made[2]], 1)
    assert Code.DEEPER_DRAWDOWN in codes(decision)


def test_harm_on_the_loss_window_is_refused_and_told_the_proposer() -> None:
    made = windows(np.random.default_rng(10), gain=0.001)
    harmed = with_candidate(made[:1], returns=made[0].incumbent.returns - 0.002)
    decision = decide([*harmed, *made[1:]], 1)
    assert codes(decision) >= {Code.WORSE_ON_LOSS}
    assert decision.held_back
    assert any("worse_on_loss" in line for line in decision.for_proposer()["refusals"])


def test_the_proposer_learns_one_bit_of_the_held_back_windows() -> None:
    decisions = [decide(windows(np.random.default_rng([11, n]), noise=0.0005 * (1 + n)), 1) for n in range(4)]
    answers = [d.for_proposer() for d in decisions if not d.promoted]
    assert len(answers) == 4
    for answer in answers:
        assert answer["held_back_passed"] is False
        assert answer["refusals"] == []
        assert set(answer) == {"promoted", "held_back_passed", "loss_window_mean_difference", "refusals"}


def test_days_near_the_loss_window_prove_nothing_unless_the_names_are_others() -> None:
    loss, before, others = windows(np.random.default_rng(21), noise=0.0)
    lucky = replace(before.candidate, returns=before.candidate.returns + np.where(np.arange(750) >= 745, 0.05, 0.0))
    made = [loss, replace(before, candidate=lucky)]
    decision = decide(made, 1)
    assert decision.tests["net"].mean < 0.02
    assert decision.tests["net"].sessions == 750 - sum((loss.days[0] - day).days <= 10 for day in before.days)
    same_days = replace(loss, held_back=True, name="others")
    assert "net" not in decide([loss, same_days], 1).tests
    free = decide([loss, replace(others, other_names=True)], 1)
    assert free.tests["net"].sessions == 750


def test_short_evidence_is_no_evidence() -> None:
    made = windows(np.random.default_rng(12), gain=0.01, sessions=100)
    assert codes(decide(made, 1)) == {Code.NO_EVIDENCE}
    assert Code.NO_EVIDENCE in codes(decide(made[:1], 1))


def test_a_repair_of_a_failure_needs_no_gain_but_no_harm() -> None:
    made = windows(np.random.default_rng(13))
    failing = [replace(made[0], incumbent=replace(made[0].incumbent, failures=1)), *made[1:]]
    same = [replace(w, candidate=replace(w.incumbent, failures=0)) for w in failing]
    assert decide(same, 1).route is Route.MENDED
    assert decide(same, 1).promoted
    harmful = [replace(w, candidate=replace(w.candidate, returns=w.incumbent.returns - 0.0003)) for w in same]
    assert not decide(harmful, 1).promoted
    noisy = windows(np.random.default_rng(14), noise=0.02)
    unsure = [replace(noisy[0], incumbent=replace(noisy[0].incumbent, failures=1)), *noisy[1:]]
    assert decide(unsure, 1).route is not Route.MENDED


def test_a_cheaper_but_worse_candidate_is_refused() -> None:
    made = windows(np.random.default_rng(15), old_cost=0.0004, new_cost=0.00004, gain=-0.001)
    assert not decide(made, 1).promoted


def test_alphas_of_all_tries_sum_to_the_family_error() -> None:
    assert pytest.approx(special.zeta(1.2)) == ZETA
    total = sum(spend(0.05, k) for k in range(1, 20_001))
    assert total < 0.05
    assert spend(0.035, 1) == pytest.approx(0.00626, abs=1e-5)
    later = decide(windows(np.random.default_rng(16)), 7)
    assert later.alphas["net"] == spend(Rules().alpha_net, 7)
    with pytest.raises(ValueError, match="from 1"):
        decide([], 0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), sessions=st.integers(30, 400))
def test_the_paired_test_is_students_t_on_bootstrap_errors(seed: int, sessions: int) -> None:
    d = np.random.default_rng(seed).standard_t(5, sessions) * 0.01 + 0.001
    got = paired(d)
    block = block_length(sessions)
    degrees = sessions / block - 1
    error = mean_error(d, block)
    assert got.t == pytest.approx(d.mean() / error)
    assert got.p == pytest.approx(stats.t.sf(got.t, degrees), rel=1e-6)
    half = stats.t.ppf(0.975, degrees) * error * 252
    assert (got.low, got.high) == pytest.approx((d.mean() * 252 - half, d.mean() * 252 + half), rel=1e-6)


def test_the_standard_error_is_that_of_endless_resamples() -> None:
    rng = np.random.default_rng(17)
    x = np.convolve(rng.normal(size=309), np.ones(10), "valid")
    drawn = sums(x[:, None], 20_000, 12.0, rng)[:, 0] / 300
    assert mean_error(x, 12.0) == pytest.approx(drawn.std(), rel=0.03)
    assert mean_error(np.ones(1), 2.0) == 0.0


def test_windows_of_unequal_columns_are_refused() -> None:
    made = windows(np.random.default_rng(18))[0]
    with pytest.raises(ValueError, match="one length"):
        replace(made, benchmark=made.benchmark[1:])
    with pytest.raises(ValueError, match="finite"):
        replace(made, candidate=replace(made.candidate, returns=np.full(LOSS, np.nan)))


def test_a_track_is_made_of_a_replays_dollars() -> None:
    cost, none = np.array([1.0, 1.1]), np.zeros(2)
    made = Track.of(np.array([110.0, 99.0]), 100.0, cost, np.ones(2), np.array([10.0, 0.0]), np.array([0.0, -5.5]))
    np.testing.assert_allclose(made.returns, [0.1, -0.05])
    np.testing.assert_allclose(made.friction, [0.01, 0.01])
    np.testing.assert_allclose(made.traded, [0.1, 0.0])
    with pytest.raises(ValueError, match="above 0"):
        Track.of(np.array([0.0, 1.0]), 100.0, none, none, none, none)

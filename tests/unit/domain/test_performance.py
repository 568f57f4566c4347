"""Performance against the paper's table and against a second, plain implementation with the statistics module."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.domain import performance as p
from oomrl.domain.market import Floats

RF = 1.35
#: Sessions; annualised return, benchmark (percent), Sharpe, maximum drawdown (percent), information ratio, beta, alpha.
TABLE = {
    "all": (402, 17.98, 21.16, 0.96, -16.86, -0.26, 0.70, 2.82),
    "phase 1": (73, 11.01, 48.16, 0.35, -16.86, -2.27, 0.74, -25.07),
    "phase 2": (235, 13.55, 19.22, 0.91, -6.85, -0.51, 0.61, 1.35),
    "phase 3": (94, 34.48, 5.04, 2.06, -5.50, 2.66, 0.83, 30.07),
}


def implied(formula: Callable[..., float], *printed: float, half: float = 0.005) -> tuple[float, float]:
    """Return the range of a formula over all inputs that round to what is printed (it is monotone in each)."""
    values = [formula(*point) for point in itertools.product(*((x - half, x + half) for x in printed))]
    return min(values), max(values)


@pytest.mark.parametrize("column", TABLE)
def test_every_printed_alpha_follows_from_the_other_cells(column: str) -> None:
    _, ret, bench, _, _, _, beta, alpha = TABLE[column]
    low, high = implied(lambda r, b, k: (r - RF) - k * (b - RF), ret, bench, beta)
    assert low - 0.005 <= alpha <= high + 0.005


@pytest.mark.parametrize("row", [1, 2])
def test_the_totals_are_the_day_weighted_phases(row: int) -> None:
    days = [TABLE[f"phase {n}"][0] for n in (1, 2, 3)]
    low, high = implied(
        lambda *cells: sum(d * c for d, c in zip(days, cells, strict=True)) / sum(days),
        *(TABLE[f"phase {n}"][row] for n in (1, 2, 3)),
    )
    assert sum(days) == TABLE["all"][0]
    assert low - 0.005 <= TABLE["all"][row] <= high + 0.005


def test_the_tracking_error_follows_from_the_information_ratio() -> None:
    _, ret, bench, _, _, ratio, *_ = TABLE["phase 3"]
    low, high = implied(lambda r, b, i: (r - b) / i, ret, bench, ratio)
    assert low - 0.005 <= 11.07 <= high + 0.005


def test_a_t_of_1_71_at_92_degrees_has_the_printed_p() -> None:
    assert p.two_sided_p(1.71, 92) == pytest.approx(0.0906, abs=5e-5)
    low, high = p.two_sided_p(1.715, 92), p.two_sided_p(1.705, 92)
    assert low - 5e-5 <= 0.0915 <= high + 5e-5


def exact_series(
    sessions: int, ret: float, bench: float, sharpe: float, error: float, beta: float
) -> tuple[Floats, Floats]:
    """Make returns whose annualised figures (percent) are exactly these."""
    rng = np.random.default_rng(3)
    base = rng.normal(size=(sessions, 2))
    base -= base.mean(axis=0)
    x, e = np.linalg.qr(base)[0].T * math.sqrt(sessions - 1)
    deviation = (ret - RF) / sharpe
    market = math.sqrt((deviation**2 - error**2) / (2 * beta - 1))
    noise = math.sqrt(error**2 - (beta - 1) ** 2 * market**2)
    scale = 100 * math.sqrt(252)
    m = bench / 25_200 + market / scale * x
    return ret / 25_200 + beta * market / scale * x + noise / scale * e, m


def test_series_with_the_figures_of_phase_3_show_its_other_cells() -> None:
    sessions, ret, bench, sharpe, _, ratio, _, alpha = TABLE["phase 3"]
    got = p.performance(*exact_series(sessions, ret, bench, sharpe, 11.07, 0.828), riskless=RF / 100, resamples=200)
    assert got.annualised_return.value * 100 == pytest.approx(ret)
    assert got.benchmark_return.value * 100 == pytest.approx(bench)
    assert got.sharpe.value == pytest.approx(sharpe)
    assert got.tracking_error.value * 100 == pytest.approx(11.07)
    assert got.beta.value == pytest.approx(0.828)
    assert got.information_ratio.value == pytest.approx(ratio, abs=0.005)
    assert got.alpha.value * 100 == pytest.approx(alpha, abs=0.005)

    def alpha_t(r: float, b: float, s: float, e: float, k: float) -> float:
        return p.market_tests(*exact_series(sessions, r, b, s, e, k), riskless=RF / 100)[0].t

    # The cells imply an OLS t of 1.69 to 1.70. The printed 1.71 is that of a residual variance over n, not n - 2.
    low, high = (t * math.sqrt(94 / 92) for t in implied(alpha_t, ret, bench, sharpe, 11.07, 0.83))
    assert low - 0.005 <= 1.71 <= high + 0.005
    assert got.alpha_test.t == pytest.approx(1.693, abs=0.005)
    assert got.beta_test.t == pytest.approx(10.60, abs=0.06)
    assert got.alpha_test.degrees == 92


def test_phase_3_is_not_statistically_different_from_phase_1() -> None:
    """The Sharpe ratio's standard error at 94 sessions is about 1.6, as the facts of the paper say."""
    r, _ = exact_series(94, 34.48, 5.04, 2.06, 11.07, 0.828)
    estimate = p.sharpe_opdyke(r, RF / 100)
    assert (estimate.high - estimate.low) / 2 / 1.96 == pytest.approx(1.6, abs=0.1)
    assert estimate.low < 0.35


def deepest(r: list[float]) -> float:
    wealth, peak, low = 1.0, 1.0, 0.0
    for a in r:
        wealth *= 1 + a
        peak = max(peak, wealth)
        low = min(low, wealth / peak - 1)
    return low


def plain(r: list[float], m: list[float], rf: float) -> dict[str, float]:
    """Compute the same figures a second time, one formula a line, without numpy."""
    day = rf / 252
    active = [a - b for a, b in zip(r, m, strict=True)]
    slope, intercept = statistics.linear_regression([b - day for b in m], [a - day for a in r])
    return {
        "annualised_return": statistics.fmean(r) * 252,
        "geometric_return": math.prod(1 + a for a in r) ** (252 / len(r)) - 1,
        "benchmark_return": statistics.fmean(m) * 252,
        "benchmark_geometric": math.prod(1 + b for b in m) ** (252 / len(m)) - 1,
        "volatility": statistics.stdev(r) * math.sqrt(252),
        "sharpe": (statistics.fmean(r) - day) / statistics.stdev(r) * math.sqrt(252),
        "max_drawdown": deepest(r),
        "tracking_error": statistics.stdev(active) * math.sqrt(252),
        "information_ratio": statistics.fmean(active) / statistics.stdev(active) * math.sqrt(252),
        "beta": slope,
        "alpha": intercept * 252,
        "alpha_geometric": (1 + intercept) ** 252 - 1,
    }


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), sessions=st.integers(10, 300), rf=st.floats(0, 0.1))
def test_figures_equal_a_second_implementation(seed: int, sessions: int, rf: float) -> None:
    rng = np.random.default_rng(seed)
    m = rng.normal(0.0005, 0.01, sessions)
    r = rng.normal(0.8) * m + rng.standard_t(4, sessions) * 0.005
    got = p.performance(r, m, rf, seed, resamples=20)
    expected = plain(r.tolist(), m.tolist(), rf)
    assert set(expected) == set(p.FIGURES)
    for name, value in expected.items():
        assert getattr(got, name).value == pytest.approx(value, rel=1e-8, abs=1e-10), name


def test_intervals_repeat_with_the_seed_and_state_their_method() -> None:
    rng = np.random.default_rng(1)
    r, m = rng.normal(0.0005, 0.01, (2, 250))
    one, two, other = (p.performance(r, m, seed=seed, resamples=300) for seed in (4, 4, 5))
    assert one == two
    assert one.sharpe.low != other.sharpe.low
    assert "seed 4" in one.sharpe.method
    assert "mean block 11" in one.sharpe.method
    for name in p.FIGURES:
        estimate = getattr(one, name)
        assert estimate.low < estimate.high
    assert one.plain()["sharpe"]["value"] == one.sharpe.value


def test_what_is_not_defined_is_nan_and_none_in_json() -> None:
    flat = np.zeros(50)
    got = p.performance(flat, flat, resamples=50)
    assert math.isnan(got.sharpe.value)
    assert got.max_drawdown.value == 0.0
    assert got.plain()["sharpe"]["value"] is None
    assert got.plain()["information_ratio"]["low"] is None
    assert p.sharpe_difference(flat, flat, resamples=50).estimate.plain()["value"] is None


def test_day_returns_are_adjusted_for_flows() -> None:
    equity, flows = np.array([110.0, 231.0, 219.45]), np.array([0.0, 100.0, 0.0])
    np.testing.assert_allclose(p.day_returns(equity, flows, 100.0), [0.1, 0.1, -0.05])
    with pytest.raises(ValueError, match="above 0"):
        p.day_returns(equity, np.array([-100.0, 0.0, 0.0]), 100.0)


def test_paired_sharpe_difference_is_tighter_than_two_separate_intervals() -> None:
    rng = np.random.default_rng(2)
    incumbent = rng.normal(0.0003, 0.01, 1000)
    candidate = incumbent + 0.0006 + rng.normal(0, 0.001, 1000)
    got = p.sharpe_difference(candidate, incumbent, seed=1)
    assert got.estimate.value == pytest.approx(p.sharpe_ratio(candidate) - p.sharpe_ratio(incumbent))
    assert got.estimate.low > 0
    assert got.p < 0.01
    alone = p.sharpe_opdyke(candidate)
    assert got.estimate.high - got.estimate.low < (alone.high - alone.low) / 3
    same = p.sharpe_difference(incumbent, incumbent.copy())
    assert (same.estimate.low, same.estimate.high, same.p) == (0.0, 0.0, 1.0)


@pytest.mark.slow
def test_intervals_of_the_difference_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(6)
    covered, refused = 0, 0
    for n in range(300):
        common = rng.standard_t(5, 250) * 0.008
        one, two = common + rng.normal(0, 0.004, (2, 250))
        got = p.sharpe_difference(one, two, riskless=0.0, seed=n, resamples=300)
        covered += got.estimate.low <= 0 <= got.estimate.high
        refused += got.p < 0.05
    assert 270 <= covered <= 299
    assert refused <= 27


def test_phases_are_measured_apart_and_compared() -> None:
    rng = np.random.default_rng(7)
    m = rng.normal(0.0004, 0.01, 600)
    r = m + np.where(np.arange(600) < 300, -0.002, 0.002) + rng.normal(0, 0.003, 600)
    report = p.compare_phases(r, m, [("before", 0, 300), ("after", 300, 600)], resamples=400)
    assert [phase.performance.sessions for phase in report.phases] == [300, 300]
    assert report.total.sessions == 600
    gap = report.sharpe_differences["after", "before"]
    assert gap.estimate.low > 0
    assert gap.p < 0.05


def test_the_drawdown_table_lists_falls_with_their_recovery() -> None:
    days = [date(2024, 1, 1) + timedelta(days=n) for n in range(7)]
    falls = p.drawdowns(days, np.array([0.1, -0.2, 0.3, -0.5, 0.1, 0.1]))
    assert [round(fall.depth, 4) for fall in falls] == [-0.5, -0.2]
    assert falls[0].recovery is None
    assert (falls[1].peak, falls[1].trough, falls[1].recovery) == (days[1], days[2], days[3])
    assert falls[1].sessions == 2
    assert falls[0].sessions == 3
    assert p.drawdowns(days[:2], np.array([0.1])) == ()


@given(st.lists(st.floats(-0.3, 0.3), min_size=3, max_size=60))
def test_the_deepest_drawdown_is_the_maximum_drawdown(values: list[float]) -> None:
    r = np.array(values)
    days = [date(2024, 1, 1) + timedelta(days=n) for n in range(len(r) + 1)]
    table = p.drawdowns(days, r)
    expected = deepest(values)
    assert (table[0].depth if table else 0.0) == pytest.approx(expected, abs=1e-12)
    assert p.drawdown_path(r).min() == pytest.approx(expected, abs=1e-12)


def test_rolling_information_ratio_is_the_windows_own() -> None:
    rng = np.random.default_rng(8)
    r, m = rng.normal(0, 0.01, (2, 150))
    rolled = p.rolling_information_ratio(r, m)
    assert np.isnan(rolled[:59]).all()
    for end in (60, 101, 150):
        active = (r - m)[end - 60 : end].tolist()
        expected = statistics.fmean(active) / statistics.stdev(active) * math.sqrt(252)
        assert rolled[end - 1] == pytest.approx(expected)
    assert np.isnan(p.rolling_information_ratio(r[:10], m[:10])).all()


def test_turnover_and_holding_period() -> None:
    assert p.turnover(np.full(252, 2_000.0), np.full(252, 100_000.0)) == pytest.approx(2.52)
    assert p.holding_period(2.52) == pytest.approx(100.0)
    assert p.holding_period(0.0) == math.inf


def test_bad_series_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        p.performance(np.zeros(5), np.zeros(4))
    with pytest.raises(ValueError, match="finite"):
        p.performance(np.array([0.0, np.nan, 0.1]), np.zeros(3))


def test_two_thousand_resamples_of_1500_sessions_are_quick() -> None:
    """Processor time, best of three: the target is 0.3 s; the bound leaves room for a loaded machine."""
    rng = np.random.default_rng(9)
    r, m = rng.normal(0.0004, 0.01, (2, 1500))
    best = math.inf
    for _ in range(3):
        begun = time.process_time()
        p.performance(r, m, resamples=2_000)
        best = min(best, time.process_time() - begun)
    assert best < 1.0

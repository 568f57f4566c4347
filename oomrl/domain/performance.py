"""How an account did, by the paper's recovered formulas, with an interval around every figure.

Conventions, where they differ. The paper annualises arithmetically (mean * 252), takes rf off as rf / 252 a session,
uses the sample standard deviation (n - 1) and sqrt(252), measures drawdown on cumulative wealth that starts at 1, and
takes alpha as the OLS intercept on rf-adjusted returns times 252. The common geometric forms (compound annual growth;
alpha compounded) stand beside them under names of their own.

Intervals are percentile intervals of the paired stationary bootstrap unless an estimate names another method; block
length and seed are in its `method`.

Over 400 lines, because every figure of the paper's table and its interval come from one pass over resamples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from statistics import NormalDist
from typing import Any

import numpy as np

from oomrl.domain.bootstrap import block_length, counts, index_chunks
from oomrl.domain.market import Floats
from oomrl.domain.student import two_sided_p
from oomrl.domain.trading import Ints

SESSIONS_A_YEAR = 252
RISKLESS = 0.0135


@dataclass(frozen=True, slots=True)
class Estimate:
    """Hold a figure and the interval that covers it with probability `level`; NaN where it is not defined."""

    value: float
    low: float
    high: float
    method: str
    level: float = 0.95

    def plain(self) -> dict[str, Any]:
        """Return JSON-able values, None where a number is not defined."""
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Test:
    """Hold a t statistic, its degrees of freedom and its two-sided p-value."""

    __test__ = False

    t: float
    degrees: int
    p: float


@dataclass(frozen=True, slots=True)
class Performance:
    """Every figure of the paper's table, and the common forms. Rates are fractions a year; drawdown is negative."""

    sessions: int
    annualised_return: Estimate
    geometric_return: Estimate
    benchmark_return: Estimate
    benchmark_geometric: Estimate
    volatility: Estimate
    sharpe: Estimate
    sharpe_opdyke: Estimate
    max_drawdown: Estimate
    tracking_error: Estimate
    information_ratio: Estimate
    beta: Estimate
    alpha: Estimate
    alpha_geometric: Estimate
    alpha_test: Test
    beta_test: Test

    def plain(self) -> dict[str, Any]:
        """Return JSON-able values by figure."""
        return {
            "sessions": self.sessions,
            **{
                name: value.plain() if isinstance(value, Estimate) else asdict(value)
                for name in FIGURES + ("sharpe_opdyke", "alpha_test", "beta_test")
                for value in (getattr(self, name),)
            },
        }


#: The figures in the order of the columns of `_figures`.
FIGURES = (
    "annualised_return",
    "geometric_return",
    "benchmark_return",
    "benchmark_geometric",
    "volatility",
    "sharpe",
    "max_drawdown",
    "tracking_error",
    "information_ratio",
    "beta",
    "alpha",
    "alpha_geometric",
)


def day_returns(equity: Floats, flows: Floats, start: float) -> Floats:
    """Return r = (NAV - NAV_prev - CF) / (NAV_prev + CF) for closes and flows (sessions,), dollars.

    `flows` came in before each session; `start` is the equity before the first.
    """
    base = np.concatenate([[start], equity[:-1]]) + flows
    if np.any(base <= 0):
        raise ValueError("Expected equity above 0 before each session, was a session without")
    returns: Floats = (equity - base) / base
    return returns


def performance(
    returns: Floats,
    benchmark: Floats,
    riskless: float = RISKLESS,
    seed: int = 0,
    resamples: int = 2_000,
    block: float | None = None,
    level: float = 0.95,
) -> Performance:
    """Measure daily simple returns (sessions,) against the benchmark's, with intervals. Needs three sessions."""
    sessions = _checked(returns, benchmark)
    length = block_length(sessions) if block is None else block
    rng = np.random.default_rng(seed)
    value = _figures(np.arange(sessions)[None, :], returns, benchmark, riskless)[0]
    drawn = np.concatenate(
        [_figures(rows, returns, benchmark, riskless) for rows in index_chunks(sessions, resamples, length, rng)]
    )
    method = f"stationary bootstrap, percentile, {resamples} resamples, mean block {length:g}, seed {seed}"
    low, high = _percentiles(drawn, level)
    figures = {
        name: Estimate(float(value[n]), float(low[n]), float(high[n]), method, level) for n, name in enumerate(FIGURES)
    }
    alpha_test, beta_test = market_tests(returns, benchmark, riskless)
    return Performance(
        sessions=sessions,
        sharpe_opdyke=sharpe_opdyke(returns, riskless, level),
        alpha_test=alpha_test,
        beta_test=beta_test,
        **figures,
    )


def sharpe_ratio(returns: Floats, riskless: float = RISKLESS) -> float:
    """Return (mean - rf / 252) / sample deviation * sqrt(252); NaN where returns do not vary."""
    deviation = float(np.std(returns, ddof=1)) if len(returns) > 1 else 0.0
    if not deviation > 0:
        return math.nan
    return (float(np.mean(returns)) - riskless / SESSIONS_A_YEAR) / deviation * math.sqrt(SESSIONS_A_YEAR)


def sharpe_opdyke(returns: Floats, riskless: float = RISKLESS, level: float = 0.95) -> Estimate:
    """Return the Sharpe ratio with the interval of Mertens (2002) and Opdyke (2007), for skew and fat tails.

    A session's ratio SR has the variance (1 + SR^2 (kurtosis - 1) / 4 - SR skewness) / n, kurtosis 3 if normal; Lo's
    (2002) form is its normal case.
    """
    method = "Mertens/Opdyke standard error, normal quantiles"
    sharpe = sharpe_ratio(returns, riskless)
    if math.isnan(sharpe):
        return Estimate(math.nan, math.nan, math.nan, method, level)
    ratio = sharpe / math.sqrt(SESSIONS_A_YEAR)
    centered = returns - np.mean(returns)
    scale = float(np.sqrt(np.mean(centered**2)))
    skew, kurtosis = float(np.mean(centered**3)) / scale**3, float(np.mean(centered**4)) / scale**4
    variance = (1.0 + ratio**2 * (kurtosis - 1.0) / 4.0 - ratio * skew) / len(returns)
    half = NormalDist().inv_cdf(0.5 + level / 2) * math.sqrt(max(variance, 0.0) * SESSIONS_A_YEAR)
    return Estimate(sharpe, sharpe - half, sharpe + half, method, level)


def market_tests(returns: Floats, benchmark: Floats, riskless: float = RISKLESS) -> tuple[Test, Test]:
    """Return the tests of alpha = 0 and beta = 0 by OLS on rf-adjusted returns, n - 2 degrees of freedom."""
    sessions = _checked(returns, benchmark)
    y, x = returns - riskless / SESSIONS_A_YEAR, benchmark - riskless / SESSIONS_A_YEAR
    spread = x - x.mean()
    sxx = float(spread @ spread)
    degrees = sessions - 2
    if not sxx > 0:
        return Test(math.nan, degrees, math.nan), Test(math.nan, degrees, math.nan)
    beta = float(spread @ y) / sxx
    alpha = float(y.mean()) - beta * float(x.mean())
    residual = y - alpha - beta * x
    variance = float(residual @ residual) / degrees
    tests = []
    for value, error in (
        (alpha, math.sqrt(variance * (1 / sessions + float(x.mean()) ** 2 / sxx))),
        (beta, math.sqrt(variance / sxx)),
    ):
        t = value / error if error > 0 else math.nan
        tests.append(Test(t, degrees, two_sided_p(t, degrees)))
    return tests[0], tests[1]


@dataclass(frozen=True, slots=True)
class Difference:
    """Hold the difference of one figure between two series, and the two-sided p-value of no difference."""

    estimate: Estimate
    p: float


def sharpe_difference(
    candidate: Floats,
    incumbent: Floats,
    riskless: float = RISKLESS,
    seed: int = 0,
    resamples: int = 2_000,
    block: float | None = None,
    level: float = 0.95,
) -> Difference:
    """Compare the Sharpe ratios of two series over the same sessions (candidate less incumbent, a year).

    Paired stationary bootstrap of the studentised difference, as Ledoit and Wolf (2008), with the standard error of
    independent sessions as the scale; symmetric interval. Two equal series differ by 0 with the interval [0, 0].
    """
    sessions = _checked(candidate, incumbent)
    length = block_length(sessions) if block is None else block
    method = f"paired stationary bootstrap, studentised, {resamples} resamples, mean block {length:g}, seed {seed}"
    rng = np.random.default_rng(seed)
    excess = np.stack([candidate, incumbent]) - riskless / SESSIONS_A_YEAR
    point, error = (float(v[0]) for v in _studentised(excess, np.arange(sessions)[None, :]))
    if not error > 0:
        value = point if math.isnan(point) else 0.0
        return Difference(Estimate(value, value, value, method, level), math.nan if math.isnan(point) else 1.0)
    drawn = [_studentised(excess, rows) for rows in index_chunks(sessions, resamples, length, rng)]
    gaps, errors = np.concatenate([d for d, _ in drawn]), np.concatenate([e for _, e in drawn])
    usable = errors > 0
    pivot = np.abs(gaps[usable] - point) / errors[usable]
    half = float(np.quantile(pivot, level)) * error
    p = (1.0 + float(np.sum(pivot >= abs(point) / error))) / (len(pivot) + 1.0)
    year = math.sqrt(SESSIONS_A_YEAR)
    estimate = Estimate(point * year, (point - half) * year, (point + half) * year, method, level)
    return Difference(estimate, p)


@dataclass(frozen=True, slots=True)
class Phase:
    """Hold one phase: its name, its sessions [first, last) by number, and how it did."""

    name: str
    first: int
    last: int
    performance: Performance


@dataclass(frozen=True, slots=True)
class PhaseReport:
    """Compare phases. `sharpe_differences` maps (later, earlier) to the later's Sharpe ratio less the earlier's.

    Phases lie apart in time, so their resamples are drawn independently.
    """

    phases: tuple[Phase, ...]
    total: Performance
    sharpe_differences: Mapping[tuple[str, str], Difference]


def compare_phases(
    returns: Floats,
    benchmark: Floats,
    phases: Sequence[tuple[str, int, int]],
    riskless: float = RISKLESS,
    seed: int = 0,
    resamples: int = 2_000,
    level: float = 0.95,
) -> PhaseReport:
    """Measure each phase (name, first, last) of the sessions [first, last), all of them, and each pair of phases."""
    measured = [
        Phase(name, first, last, performance(returns[first:last], benchmark[first:last], riskless, seed + n, resamples))
        for n, (name, first, last) in enumerate(phases)
    ]
    drawn = []
    for n, (_, first, last) in enumerate(phases):
        part, rng = returns[first:last], np.random.default_rng([seed, n])
        chunks = index_chunks(len(part), resamples, block_length(len(part)), rng)
        drawn.append(np.concatenate([_sharpes(part[rows], riskless) for rows in chunks]))
    differences = {}
    for later in range(len(phases)):
        for earlier in range(later):
            gap = measured[later].performance.sharpe.value - measured[earlier].performance.sharpe.value
            sample = drawn[later] - drawn[earlier]
            low, high = _percentiles(sample[:, None], level)
            method = f"independent stationary bootstraps, percentile, {resamples} resamples, seed {seed}"
            p = (1.0 + float(np.sum(np.abs(sample - gap) >= abs(gap)))) / (resamples + 1.0)
            estimate = Estimate(gap, float(low[0]), float(high[0]), method, level)
            differences[measured[later].name, measured[earlier].name] = Difference(estimate, p)
    return PhaseReport(tuple(measured), performance(returns, benchmark, riskless, seed, resamples), differences)


@dataclass(frozen=True, slots=True)
class Drawdown:
    """Hold one fall from a high-water mark: depth (negative fraction), the high, the low, and the recovery if any.

    `sessions` counts from the high to the recovery, or to the end.
    """

    depth: float
    peak: date
    trough: date
    recovery: date | None
    sessions: int


def drawdowns(days: Sequence[date], returns: Floats, most: int = 10) -> tuple[Drawdown, ...]:
    """List the deepest falls of cumulative wealth. `days` has one entry more than `returns`: the start comes first."""
    if len(days) != len(returns) + 1:
        raise ValueError(f"Expected {len(returns) + 1} days (the start first), was {len(days)}")
    wealth = np.concatenate([[1.0], np.cumprod(1.0 + returns)])
    below = wealth < np.maximum.accumulate(wealth)
    edges = np.diff(np.concatenate([[False], below, [False]]).astype(np.int8))
    found = []
    begins, ends = (np.flatnonzero(edges == sign).tolist() for sign in (1, -1))
    for begin, end in zip(begins, ends, strict=True):
        peak, trough = begin - 1, begin + int(np.argmin(wealth[begin:end]))
        recovery = days[end] if end < len(wealth) else None
        last = end if recovery else len(wealth) - 1
        depth = float(wealth[trough] / wealth[peak] - 1.0)
        found.append(Drawdown(depth, days[peak], days[trough], recovery, last - peak))
    return tuple(sorted(found, key=lambda one: one.depth)[:most])


def drawdown_path(returns: Floats) -> Floats:
    """Return wealth over its high-water mark less one after each session, in [-1, 0], shape (sessions,)."""
    wealth = np.concatenate([[1.0], np.cumprod(1.0 + returns)])
    path: Floats = (wealth / np.maximum.accumulate(wealth) - 1.0)[1:]
    return path


def rolling_information_ratio(returns: Floats, benchmark: Floats, window: int = 60) -> Floats:
    """Return mean active return * 252 / tracking error over the last `window` sessions, NaN before the first."""
    sessions = _checked(returns, benchmark)
    out = np.full(sessions, np.nan)
    if sessions >= window:
        active = np.lib.stride_tricks.sliding_window_view(returns - benchmark, window)
        error = active.std(axis=1, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = active.mean(axis=1) / error * math.sqrt(SESSIONS_A_YEAR)
        out[window - 1 :] = np.where(error > 0, ratio, np.nan)
    return out


def turnover(traded: Floats, equity: Floats) -> float:
    """Return traded value / 2 / average equity * 252 / sessions, from dollars traded and equity of each session."""
    mean = float(np.mean(equity))
    if not mean > 0:
        raise ValueError(f"Expected average equity above 0, was {mean}")
    return float(np.sum(traded)) / 2.0 / mean * SESSIONS_A_YEAR / len(traded)


def holding_period(yearly_turnover: float) -> float:
    """Return the mean number of sessions that a position is held; infinite where nothing is traded."""
    return SESSIONS_A_YEAR / yearly_turnover if yearly_turnover > 0 else math.inf


def _figures(rows: Ints, returns: Floats, benchmark: Floats, riskless: float) -> Floats:
    """Return the columns of `FIGURES` for each row of session numbers."""
    sessions = rows.shape[1]
    log_r, log_m = (np.log1p(np.maximum(series, -1 + 1e-12)) for series in (returns, benchmark))
    path = np.cumsum(log_r[rows], axis=1)
    top = np.maximum.accumulate(path, axis=1)
    np.maximum(top, 0.0, out=top)
    drawdown = np.expm1(np.minimum((path - top).min(axis=1), 0.0))
    center_r, center_m = returns.mean(), benchmark.mean()
    dr, dm = returns - center_r, benchmark - center_m
    moments = counts(rows) @ np.stack([dr, dm, dr * dr, dm * dm, dr * dm, log_m], axis=1) / sessions
    shift_r, shift_m, rr, mm, rm, mean_log_m = moments.T
    scale = sessions / (sessions - 1)
    var_r, var_m, cov = (scale * (rr - shift_r**2), scale * (mm - shift_m**2), scale * (rm - shift_r * shift_m))
    var_r, var_m = (np.where(v > 1e-24, v, 0.0) for v in (var_r, var_m))
    mean_r, mean_m = center_r + shift_r, center_m + shift_m
    rf = riskless / SESSIONS_A_YEAR
    year = math.sqrt(SESSIONS_A_YEAR)
    error = np.sqrt(np.maximum(var_r + var_m - 2 * cov, 0.0))
    error = np.where(error > 1e-10, error, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        beta = np.where(var_m > 0, cov / var_m, np.nan)
        sharpe = np.where(var_r > 0, (mean_r - rf) / np.sqrt(var_r) * year, np.nan)
        ratio = np.where(error > 0, (mean_r - mean_m) / error * year, np.nan)
    alpha = mean_r - rf - beta * (mean_m - rf)
    return np.stack(
        [
            mean_r * SESSIONS_A_YEAR,
            np.expm1(path[:, -1] * SESSIONS_A_YEAR / sessions),
            mean_m * SESSIONS_A_YEAR,
            np.expm1(mean_log_m * SESSIONS_A_YEAR),
            np.sqrt(var_r) * year,
            sharpe,
            drawdown,
            error * year,
            ratio,
            beta,
            alpha * SESSIONS_A_YEAR,
            (1.0 + alpha) ** SESSIONS_A_YEAR - 1.0,
        ],
        axis=1,
    )


def _studentised(excess: Floats, rows: Ints) -> tuple[Floats, Floats]:
    """Return the difference of a session's Sharpe ratios and its standard error for each row of session numbers.

    The influence of a session with standardised return s on its series' ratio q is s - q (s^2 - 1) / 2 (Lo 2002), a
    polynomial in the return; so the variance of the difference of two such follows from moments up to the fourth.
    """
    sessions = rows.shape[1]
    scale = excess.std(axis=1, keepdims=True)
    x, y = np.where(scale > 1e-12, excess / np.maximum(scale, 1e-12), 0.0)
    powers = np.stack([x, x * x, y, y * y])
    pairs = [(i, j) for i in range(4) for j in range(i, 4)]
    features = np.concatenate([powers, [powers[i] * powers[j] for i, j in pairs]])
    moments = counts(rows) @ features.T / sessions
    means = moments[:, :4]
    ratios, weights = [], np.empty((len(rows), 4))
    for place, sign in ((0, 1.0), (2, -1.0)):
        mean, variance = means[:, place], means[:, place + 1] - means[:, place] ** 2
        variance = np.where(variance > 1e-20, variance * sessions / (sessions - 1), np.nan)
        ratio = mean / np.sqrt(variance)
        ratios.append(ratio)
        weights[:, place] = sign * (1.0 / np.sqrt(variance) + ratio * mean / variance)
        weights[:, place + 1] = sign * (-ratio / (2.0 * variance))
    spread = np.zeros(len(rows))
    for column, (i, j) in enumerate(pairs, start=4):
        covariance = moments[:, column] - means[:, i] * means[:, j]
        spread += (1.0 if i == j else 2.0) * weights[:, i] * weights[:, j] * covariance
    error = np.sqrt(np.maximum(spread, 0.0) / sessions)
    return ratios[0] - ratios[1], np.where(error > 1e-9, error, 0.0)


def _sharpes(sample: Floats, riskless: float) -> Floats:
    deviation = sample.std(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = (sample.mean(axis=1) - riskless / SESSIONS_A_YEAR) / deviation * math.sqrt(SESSIONS_A_YEAR)
    return np.where(deviation > 0, ratio, np.nan)


def _percentiles(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the percentile interval of each column; NaN where a column has no finite figure."""
    columns = [column[np.isfinite(column)] for column in drawn.T]
    tails = ((1 - level) / 2, (1 + level) / 2)
    both = np.array([np.quantile(c, tails) if len(c) else (np.nan, np.nan) for c in columns])
    return both[:, 0], both[:, 1]


def _checked(one: Floats, other: Floats) -> int:
    if one.ndim != 1 or one.shape != other.shape or len(one) < 3:
        raise ValueError(f"Expected two series of one length, at least 3 sessions, was {one.shape} and {other.shape}")
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise ValueError("Expected finite returns, was a series with NaN or infinity")
    return len(one)

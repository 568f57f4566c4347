"""Candidate against incumbent: a rule that noise cannot pass, whatever the number of tries.

Both revisions replay the same windows; everything is paired by session and net of all friction. The *loss window* is
what the proposer was shown, so it cannot prove a repair: there the candidate must only not be significantly worse. The
proof comes from *held-back* windows (other times, other names), purged of days that the loss window covers or nearly
touches and pooled by day, in one of three ways:

- net: the candidate's return less the incumbent's, less its beta times the benchmark, is above 0;
- cost: its friction is lower by a certain and material amount, and the net difference is above 0 as it stands. What a
  session's friction saves is known almost exactly, while what it changes in the market's gifts is noise;
- mended: it does not fail where the incumbent failed, and is not worse elsewhere by more than a stated margin.

Every standard error is that of the paired stationary bootstrap in its limit of endlessly many resamples; p-values take
Student's t with (sessions / block - 1) degrees of freedom, as many as there are blocks.

Each try on a loss window spends its part of the error: the k-th gets alpha_k = alpha k^(-1.2) / zeta(1.2), which sums
to alpha over any number of tries (docs/adr/0052 says why not a deflated Sharpe ratio or Hansen's test). What else a
candidate must keep (exposure, trading, drawdown, turnover, capacity) can only refuse, and so never adds to the error.

Over 400 lines, because the rule is one decision that a reviewer reads from top to bottom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from oomrl.domain.bootstrap import block_length, mean_error
from oomrl.domain.market import Bools, Floats, Ints
from oomrl.domain.performance import SESSIONS_A_YEAR, drawdown_path
from oomrl.domain.student import upper_p

#: The sum of k^(-1.2) over all k >= 1.
ZETA = 5.591582441177751


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """Hold one revision's replay of one window, arrays of shape (sessions,).

    `returns` are simple, net of all friction; `friction` what it cost, as a fraction of equity; `exposure` the share of
    equity invested at each close; `traded` the value traded (both sides) over equity. `participation` is the share of a
    session's volume that 99 of 100 of its orders stayed below, `names` the mean number of names held, `failures` how
    often the strategy failed.
    """

    returns: Floats
    friction: Floats
    exposure: Floats
    traded: Floats
    participation: float = 0.0
    names: float = 0.0
    failures: int = 0

    @classmethod
    def of(
        cls,
        equity: Floats,
        capital: float,
        friction: Floats,
        exposure: Floats,
        traded: Floats,
        suspected: Floats,
        *,
        participation: float = 0.0,
        names: float = 0.0,
        failures: int = 0,
    ) -> Track:
        """Make a track from a replay's dollars (sessions,) at each close; `capital` is the equity before the first.

        `suspected` are dollars of suspected unrecorded corporate actions, which are no result of the strategy.
        """
        before = np.concatenate([[capital], equity[:-1]])
        if np.any(before <= 0):
            raise ValueError("Expected equity above 0 before each session, was a session without")
        returns = (equity - before - suspected) / before
        return cls(returns, friction / before, exposure, traded / before, participation, names, failures)

    def cut(self, kept: Ints | Bools) -> Track:
        """Return the sessions chosen by number or by truth."""
        columns = {name: getattr(self, name)[kept] for name in ("returns", "friction", "exposure", "traded")}
        return replace(self, **columns)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Hold one window replayed by both. `held_back` windows were never shown to the proposer.

    `other_names` says that it holds none of the names that the proposer was shown: only then may it cover the days of
    the loss window.
    """

    name: str
    held_back: bool
    days: tuple[date, ...]
    candidate: Track
    incumbent: Track
    benchmark: Floats
    other_names: bool = False

    def __post_init__(self) -> None:
        sizes = {len(self.days), len(self.benchmark)}
        for track in (self.candidate, self.incumbent):
            for column in (track.returns, track.friction, track.exposure, track.traded):
                sizes.add(len(column))
                if not np.isfinite(column).all():
                    raise ValueError(f"Expected finite numbers in window {self.name}, was NaN or infinity")
        if len(sizes) != 1 or not self.days:
            raise ValueError(f"Expected columns of one length in window {self.name}, was {sorted(sizes)}")


@dataclass(frozen=True, slots=True)
class Rules:
    """State the rule. Rates are fractions a year; the alphas are family errors over all tries on one loss window.

    A drawdown counts as deeper beyond `drawdown` (a fraction), `drawdown_share` of the incumbent's, and
    `drawdown_noise` deviations of what the holdings' differences add up to over its length by chance. Turnover and
    participation may be what is stated, or `slack` times the incumbent's where that is more. `embargo` is in days.
    """

    alpha_net: float = 0.01
    alpha_cost: float = 0.005
    least_sessions: int = 120
    embargo: int = 10
    least_loss_sessions: int = 20
    worse: float = 0.05
    saving: float = 0.01
    saving_share: float = 1 / 3
    margin: float = 0.02
    margin_confidence: float = 0.95
    exposure: float = 0.90
    names: float = 0.5
    trading: float = 0.5
    least_turnover: float = 1.0
    least_trading_sessions: float = 12.0
    drawdown: float = 0.03
    drawdown_share: float = 0.20
    drawdown_noise: float = 2.0
    turnover: float = 24.0
    participation: float = 0.10
    slack: float = 1.1


class Route(StrEnum):
    """In which way a candidate proved itself."""

    NET = "net"
    COST = "cost"
    MENDED = "mended"


class Code(StrEnum):
    """Why a candidate is refused."""

    NO_EVIDENCE = "no_evidence"
    NO_GAIN = "no_gain"
    WORSE_ON_LOSS = "worse_on_loss"
    FAILED = "failed"
    HOLDS_CASH = "holds_cash"
    STOPPED_TRADING = "stopped_trading"
    TOKEN_TRADES = "token_trades"
    FEW_NAMES = "few_names"
    DEEPER_DRAWDOWN = "deeper_drawdown"
    TURNOVER = "turnover"
    CAPACITY = "capacity"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Hold one reason to refuse. `held_back` ones are for the reviewer, never for the proposer."""

    code: Code
    window: str
    message: str
    held_back: bool


@dataclass(frozen=True, slots=True)
class Paired:
    """Hold one paired test: a mean difference a year with its interval, t, one-sided p of no gain, and its sample."""

    mean: float
    low: float
    high: float
    t: float
    p: float
    sessions: int
    block: int
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class Decision:
    """Hold the answer to one try, with all that it rests on.

    `tests` maps names (net, cost, loss) to paired tests; `alphas` maps net and cost to what this try might spend.
    `held_back` is the one bit that the proposer learns of the held-back windows.
    """

    promoted: bool
    route: Route | None
    attempt: int
    alphas: Mapping[str, float]
    tests: Mapping[str, Paired]
    held_back: bool
    refusals: tuple[Refusal, ...]

    def for_proposer(self) -> dict[str, Any]:
        """Return what the next prompt may say: all of the loss window, and one bit of the rest."""
        loss = self.tests.get("loss")
        return {
            "promoted": self.promoted,
            "held_back_passed": self.held_back,
            "loss_window_mean_difference": None if loss is None else round(loss.mean, 4),
            "refusals": [f"{r.code.value}: {r.message}" for r in self.refusals if not r.held_back],
        }


def decide(windows: Sequence[Window], attempt: int, rules: Rules | None = None) -> Decision:
    """Judge a candidate by its windows. `attempt` counts every candidate ever tried on this loss window, from 1."""
    if attempt < 1:
        raise ValueError(f"Expected attempts counted from 1, was {attempt}")
    rules = rules or Rules()
    shown = [window for window in windows if not window.held_back]
    hidden = [kept for w in windows if w.held_back and (kept := _purged(w, shown, rules.embargo)) is not None]
    alphas = {"net": spend(rules.alpha_net, attempt), "cost": spend(rules.alpha_cost, attempt)}
    refusals = [refusal for window in windows for refusal in _guards(window, rules)]
    tests: dict[str, Paired] = {}
    if shown:
        loss = _net(shown)
        tests["loss"] = paired(loss)
        if len(loss) >= rules.least_loss_sessions and _worse(loss) < rules.worse:
            message = f"Worse than the incumbent on the loss window by {-tests['loss'].mean:.1%} a year"
            refusals.append(Refusal(Code.WORSE_ON_LOSS, shown[0].name, message, held_back=False))
    route = None
    net = _net(hidden) if hidden else np.empty(0)
    if len(net) < rules.least_sessions:
        message = f"Expected at least {rules.least_sessions} held-back sessions, was {len(net)}"
        refusals.append(Refusal(Code.NO_EVIDENCE, "held back", message, held_back=True))
    else:
        saved = _pooled(hidden, [w.incumbent.friction - w.candidate.friction for w in hidden])
        tests["net"], tests["cost"] = paired(net), paired(saved, above=rules.saving / SESSIONS_A_YEAR)
        paid = float(_pooled(hidden, [w.incumbent.friction for w in hidden]).mean()) * SESSIONS_A_YEAR
        route = _route(tests, alphas, paid, shown, net, rules)
        if route is None:
            message = (
                f"Net difference {tests['net'].mean:+.2%} a year (p {tests['net'].p:.4f}, needed {alphas['net']:.4f}), "
                f"friction saved {tests['cost'].mean:+.2%} a year"
            )
            refusals.append(Refusal(Code.NO_GAIN, "held back", message, held_back=True))
    return Decision(
        promoted=not refusals,
        route=route,
        attempt=attempt,
        alphas=alphas,
        tests=tests,
        held_back=not any(refusal.held_back for refusal in refusals),
        refusals=tuple(refusals),
    )


def spend(alpha: float, attempt: int) -> float:
    """Return what the k-th try may spend of a family error: alpha k^(-1.2) / zeta(1.2)."""
    return float(alpha * attempt**-1.2 / ZETA)


def paired(differences: Floats, above: float = 0.0, level: float = 0.95) -> Paired:
    """Test that the mean of differences a session (sessions,) lies above a bound; the record is in rates a year.

    The interval is symmetric, mean +- t * standard error. Differences that are all equal give p 0 or 1.
    """
    sessions = len(differences)
    block = block_length(sessions)
    error = mean_error(differences, block)
    degrees = max(sessions / block - 1.0, 1.0)
    mean = float(differences.mean())
    certain = error <= 1e-15
    t = (mean - above) / error if not certain else float(np.sign(mean - above)) * np.inf if mean != above else 0.0
    p = upper_p(t, degrees) if np.isfinite(t) else float(t < 0)
    half = _quantile(0.5 + level / 2, degrees) * error
    year = SESSIONS_A_YEAR
    return Paired(mean * year, (mean - half) * year, (mean + half) * year, float(t), p, sessions, block, level)


def _route(
    tests: Mapping[str, Paired],
    alphas: Mapping[str, float],
    paid: float,
    shown: Sequence[Window],
    net: Floats,
    rules: Rules,
) -> Route | None:
    gain, cost = tests["net"], tests["cost"]
    if gain.p <= alphas["net"]:
        return Route.NET
    material = cost.mean >= rules.saving_share * paid
    if cost.p <= alphas["cost"] and material and gain.mean > 0 and _worse(net) >= rules.worse:
        return Route.COST
    mends = sum(w.incumbent.failures for w in shown) > 0 == sum(w.candidate.failures for w in shown)
    if mends:
        bound = paired(net, level=2 * rules.margin_confidence - 1).low
        if bound >= -rules.margin:
            return Route.MENDED
    return None


def _purged(window: Window, shown: Sequence[Window], embargo: int) -> Window | None:
    """Drop the days of a held-back window that a shown one covers or nearly touches; None where no day is left."""
    if window.other_names or not shown:
        return window
    days = np.array([day.toordinal() for day in window.days])
    near = np.zeros(len(days), dtype=np.bool_)
    for other in shown:
        near |= (days >= other.days[0].toordinal() - embargo) & (days <= other.days[-1].toordinal() + embargo)
    if not near.any():
        return window
    kept = np.flatnonzero(~near)
    if not len(kept):
        return None
    return replace(
        window,
        days=tuple(window.days[n] for n in kept),
        candidate=window.candidate.cut(kept),
        incumbent=window.incumbent.cut(kept),
        benchmark=window.benchmark[kept],
    )


def _guards(window: Window, rules: Rules) -> list[Refusal]:
    """Return what the candidate gave up to look better: exposure, trading, breadth, drawdown, capacity."""
    new, old = window.candidate, window.incumbent
    found: list[tuple[Code, str]] = []
    if new.failures:
        found.append((Code.FAILED, f"Failed {new.failures} times"))
    sessions = len(window.days)
    held, was = float(new.exposure.mean()), float(old.exposure.mean())
    if held < rules.exposure * was:
        found.append((Code.HOLDS_CASH, f"Invested {held:.0%} of equity, the incumbent {was:.0%}"))
    tail = max(sessions // 3, 1)
    late, before = float(new.exposure[-tail:].mean()), float(old.exposure[-tail:].mean())
    if late < rules.exposure * before and held >= rules.exposure * was:
        found.append((Code.STOPPED_TRADING, f"Invested {late:.0%} in the last third, the incumbent {before:.0%}"))
    turnover, turned = (float(track.traded.mean()) / 2 * SESSIONS_A_YEAR for track in (new, old))
    active, acted = (float((track.traded > 1e-6).mean()) * SESSIONS_A_YEAR for track in (new, old))
    if turnover < min(rules.least_turnover, rules.trading * turned):
        found.append((Code.TOKEN_TRADES, f"Turnover {turnover:.2f} a year, the incumbent {turned:.2f}"))
    elif active < min(rules.least_trading_sessions, rules.trading * acted):
        found.append((Code.TOKEN_TRADES, f"Traded in {active:.0f} sessions a year, the incumbent in {acted:.0f}"))
    if sessions >= SESSIONS_A_YEAR and not np.any(new.traded[-tail:] > 1e-6) and np.any(old.traded[-tail:] > 1e-6):
        found.append((Code.STOPPED_TRADING, f"Traded nothing in the last {tail} sessions"))
    if new.names < rules.names * old.names:
        found.append((Code.FEW_NAMES, f"Held {new.names:.0f} names, the incumbent {old.names:.0f}"))
    deep, length = _fall(new.returns)
    was_deep, _ = _fall(old.returns)
    noise = rules.drawdown_noise * float(np.std(new.returns - old.returns)) * length**0.5
    if deep > was_deep + max(rules.drawdown, rules.drawdown_share * was_deep, noise):
        found.append((Code.DEEPER_DRAWDOWN, f"Drawdown {deep:.1%}, the incumbent {was_deep:.1%}"))
    if turnover > max(rules.turnover, rules.slack * turned):
        found.append((Code.TURNOVER, f"Turnover {turnover:.1f} a year, the incumbent {turned:.1f}"))
    if new.participation > max(rules.participation, rules.slack * old.participation):
        message = f"Asked for {new.participation:.0%} of a session's volume, the incumbent {old.participation:.0%}"
        found.append((Code.CAPACITY, message))
    return [Refusal(code, window.name, message, window.held_back) for code, message in found]


def _fall(returns: Floats) -> tuple[float, int]:
    """Return the deepest drawdown (positive) and the sessions from its high to its low."""
    path = drawdown_path(returns)
    low = int(np.argmin(path))
    above = np.flatnonzero(path[: low + 1] >= 0.0)
    return -float(min(path[low], 0.0)), low - (int(above[-1]) if len(above) else -1)


def _net(windows: Sequence[Window]) -> Floats:
    """Pool net differences less beta times the benchmark: what more exposure earned is no repair."""
    values = _pooled(windows, [w.candidate.returns - w.incumbent.returns for w in windows])
    market = _pooled(windows, [w.benchmark for w in windows])
    spread = market - market.mean()
    variance = float(spread @ spread)
    if len(values) < 3 or not variance > 0:
        return values
    adjusted: Floats = values - float(spread @ values) / variance * market
    return adjusted


def _pooled(windows: Sequence[Window], columns: Sequence[Floats]) -> Floats:
    """Average columns over the windows that cover a day (they share its market), oldest day first."""
    days = np.array([day.toordinal() for window in windows for day in window.days])
    _, place, covered = np.unique(days, return_inverse=True, return_counts=True)
    pooled: Floats = np.bincount(place, weights=np.concatenate(columns)) / covered
    return pooled


def _worse(differences: Floats) -> float:
    """Return the one-sided p of no harm: small where the candidate is worse."""
    return paired(-differences).p


@lru_cache(maxsize=256)
def _quantile(p: float, degrees: float) -> float:
    """Return Student's t quantile above the median, by bisection of its tail."""
    low, high = 0.0, max(10.0, 4.0 * NormalDist().inv_cdf(p))
    while upper_p(high, degrees) > 1.0 - p:
        high *= 2.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if upper_p(middle, degrees) > 1.0 - p else (low, middle)
    return (low + high) / 2.0

"""Reward, principal loss, drawdown, and the states that an account's capital can be in.

Two measures of lost capital are kept apart everywhere. The *principal loss* L_t = 1 - W_t / W_0 compares equity with
the sum of endowments. The *drawdown* compares a flow-adjusted wealth index with its own high-water mark. Each has its
own thresholds; out of money is absorbing for both, and only a person's endowment with a reason ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum

import numpy as np

from oomrl.domain.market import Floats
from oomrl.errors import Mistake, Refused


class Norm(StrEnum):
    """Which norm of the change of weights stands under the root of Eq. 2 (the paper prints none)."""

    L1 = "l1"
    L2 = "l2"


class Impact(StrEnum):
    """Which form the impact term of the friction has."""

    PAPER = "paper"
    THREE_HALVES = "three_halves"


@dataclass(frozen=True, slots=True)
class Friction:
    """State the friction term F of the reward.

    `fixed` (lambda) is a fraction of traded value; `impact` (gamma) is a fraction, one for all names or, with
    `Impact.THREE_HALVES`, one for each name as an array of shape (names,).

    - `Impact.PAPER`:        F = lambda ||dw||_1 + gamma sqrt(||dw||), the norm under the root named by `norm`.
    - `Impact.THREE_HALVES`: F = lambda ||dw||_1 + sum_i gamma_i |dw_i|^(3/2).

    The paper's root has infinite slope at zero and so over-punishes tiny trades; the second form does not.
    """

    fixed: float = 0.0008
    impact: float | Floats = 0.0
    form: Impact = Impact.PAPER
    norm: Norm = Norm.L2

    @property
    def name(self) -> str:
        """Name the form, to stand beside every number that used it."""
        if self.form is Impact.PAPER:
            return f"lambda*||dw||_1 + gamma*sqrt(||dw||_{self.norm.value[1]})"
        return "lambda*||dw||_1 + sum(gamma_i*|dw_i|^(3/2))"

    def cost(self, change: Floats) -> tuple[float, float]:
        """Return the fixed and the impact part of F, as fractions of equity, for changes of weight (names,)."""
        size = np.abs(np.asarray(change, dtype=np.float64))
        fixed = self.fixed * float(size.sum())
        if self.form is Impact.THREE_HALVES:
            return fixed, float(np.sum(np.asarray(self.impact) * size**1.5))
        length = float(size.sum()) if self.norm is Norm.L1 else float(np.sqrt(np.sum(size * size)))
        return fixed, float(np.asarray(self.impact)) * length**0.5


@dataclass(frozen=True, slots=True)
class Reward:
    """Hold one step's reward (Eq. 1) and what it consists of; fractions of equity, except in the terminal state.

    `value` is `gross - fixed - impact`, or -P_terminal once the episode has ended. `form` names the friction.
    """

    value: float
    gross: float
    fixed: float
    impact: float
    form: str
    terminal: bool


def reward(
    weights: Floats,
    returns: Floats,
    change: Floats,
    principal_loss: float,
    friction: Friction,
    tau: float = 0.20,
    penalty: float = 100.0,
) -> Reward:
    """Compute R~_t = sum_i w_i r_i - F(dw), or -P_terminal from L_t >= tau on (OOM-RL, Eq. 1 and 2).

    `weights`, `returns` and `change` have shape (names,): weights as fractions of equity held over the step, simple
    returns of the step, and the change of weights traded to get there. `tau` is the principal loss that ends the
    episode and `penalty` P_terminal, by default the paper's examples.
    """
    if not (weights.shape == returns.shape == change.shape):
        raise ValueError(f"Expected arrays of one shape, was {weights.shape}, {returns.shape}, {change.shape}")
    gross = float(np.dot(weights, returns))
    fixed, impact = friction.cost(change)
    terminal = principal_loss >= tau
    value = -penalty if terminal else gross - fixed - impact
    return Reward(value, gross, fixed, impact, friction.name, terminal)


class Level(IntEnum):
    """How far a measure of lost capital has gone."""

    NONE = 0
    WATCH = 1
    DIAGNOSE = 2
    HALT = 3
    OUT_OF_MONEY = 4


@dataclass(frozen=True, slots=True)
class Levels:
    """Hold the thresholds of one measure: fractions in (0, 1], not falling; None switches a threshold off."""

    watch: float | None = None
    diagnose: float | None = None
    halt: float | None = None
    out_of_money: float | None = None

    def __post_init__(self) -> None:
        last = 0.0
        for name in ("watch", "diagnose", "halt", "out_of_money"):
            value = getattr(self, name)
            if value is None:
                continue
            if not 0.0 < value <= 1.0 or value < last:
                raise Mistake(
                    f"Expected thresholds in (0, 1] that do not fall from watch to out_of_money, was {name} = {value}. "
                    "Correct the thresholds in the settings."
                )
            last = value

    def level(self, measure: float) -> Level:
        """Return the highest level that a measure (a fraction lost) has reached."""
        reached = Level.NONE
        for level, threshold in (
            (Level.WATCH, self.watch),
            (Level.DIAGNOSE, self.diagnose),
            (Level.HALT, self.halt),
            (Level.OUT_OF_MONEY, self.out_of_money),
        ):
            if threshold is not None and measure >= threshold:
                reached = level
        return reached


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Hold the thresholds of principal loss and of drawdown, separately configured and never mixed.

    The paper's tau = 0.20 is the out-of-money threshold of the principal loss. Drawdown, which a shared fall of the
    market reaches as well, is given more room by default.
    """

    principal: Levels = field(default_factory=lambda: Levels(0.05, 0.10, 0.15, 0.20))
    drawdown: Levels = field(default_factory=lambda: Levels(0.08, 0.12, 0.25, 0.40))


class State(StrEnum):
    """Say what an account may do: trade (active, watch), wait for `resume` (halted), or nothing (out of money)."""

    ACTIVE = "active"
    WATCH = "watch"
    HALTED = "halted"
    OUT_OF_MONEY = "out_of_money"


@dataclass(frozen=True, slots=True)
class Capital:
    """Hold an account's capital at one close. Make the first with `found`; each act returns a new record.

    `endowed` is W_0, the sum of endowments, and `equity` W_t, in dollars. `wealth` is the flow-adjusted index of
    cumulative wealth (1 at the start) and `peak` its high-water mark since the last re-endowment. `accepted` is the
    highest level that a person has seen and resumed from: the account halts again only above it, or after the
    measures have first come back below it. `since` is when the state began, `calm` the last close below every
    threshold, `peak_day` the day of the high-water mark.
    """

    day: date
    state: State
    endowed: Decimal
    equity: Decimal
    wealth: float = 1.0
    peak: float = 1.0
    accepted: Level = Level.NONE
    reason: str = ""
    since: date | None = None
    calm: date | None = None
    peak_day: date | None = None

    @property
    def principal_loss(self) -> float:
        """L_t = 1 - W_t / W_0, a fraction; negative while the account has gained."""
        return float(1 - self.equity / self.endowed)

    @property
    def drawdown(self) -> float:
        """One minus wealth over its high-water mark, a fraction in [0, 1]."""
        return 1.0 - self.wealth / self.peak

    @property
    def may_trade(self) -> bool:
        return self.state in (State.ACTIVE, State.WATCH)

    def level(self, thresholds: Thresholds) -> Level:
        """Return the higher of the levels of principal loss and drawdown."""
        return max(thresholds.principal.level(self.principal_loss), thresholds.drawdown.level(self.drawdown))


def found(day: date, amount: Decimal) -> Capital:
    """Start an account with its first endowment in dollars."""
    if amount <= 0:
        raise Mistake(f"Expected an endowment above 0 dollars, was {amount}")
    return Capital(day=day, state=State.ACTIVE, endowed=amount, equity=amount, since=day, calm=day, peak_day=day)


def mark(capital: Capital, day: date, equity: Decimal, thresholds: Thresholds) -> Capital:
    """Take the equity of a close (dollars, economic book), and move to the state that the thresholds demand.

    The day's return is (W_t - W) / W with W the equity before, which holds any endowment already: the paper's
    (NAV - NAV_prev - CF) / (NAV_prev + CF). Out of money and halted stay what they are; marks can only worsen them.
    """
    base = float(capital.equity)
    growth = float(equity) / base if base > 0 else 0.0
    wealth = max(capital.wealth * growth, 0.0)
    now = replace(capital, day=day, equity=equity, wealth=wealth)
    if wealth >= capital.peak:
        now = replace(now, peak=wealth, peak_day=day)
    level = now.level(thresholds)
    if level is Level.NONE:
        now = replace(now, calm=day)
    if now.state is State.OUT_OF_MONEY:
        return now
    if level is Level.OUT_OF_MONEY or equity <= 0:
        return replace(now, state=State.OUT_OF_MONEY, since=day, reason=_why(now, thresholds))
    if now.state is State.HALTED:
        return now
    if level >= Level.HALT and level > now.accepted:
        return replace(now, state=State.HALTED, since=day, reason=_why(now, thresholds))
    state = State.WATCH if level >= Level.WATCH else State.ACTIVE
    accepted = min(now.accepted, level)
    if state is now.state:
        return replace(now, accepted=accepted)
    reason = _why(now, thresholds) if state is State.WATCH else "Below every threshold again"
    return replace(now, state=state, accepted=accepted, since=day, reason=reason)


def halt(capital: Capital, day: date, reason: str) -> Capital:
    """Stop trading with the account left as it is. Out of money stays out of money."""
    if capital.state in (State.OUT_OF_MONEY, State.HALTED):
        return capital
    return replace(capital, state=State.HALTED, since=day, reason=reason)


def resume(capital: Capital, day: date, person: str, reason: str, thresholds: Thresholds) -> Capital:
    """Let a halted account trade again, by a person's act. The level reached so far is accepted with it."""
    _signed(person, reason)
    if capital.state is State.OUT_OF_MONEY:
        raise Refused("Expected a halted account, was out of money. Only an endowment ends that: oomrl endow.")
    if capital.state is not State.HALTED:
        raise Refused(f"Expected a halted account, was {capital.state.value}: there is nothing to resume")
    level = capital.level(thresholds)
    state = State.WATCH if level >= Level.WATCH else State.ACTIVE
    return replace(capital, state=state, accepted=level, since=day, reason=f"Resumed by {person}: {reason}")


def endow(capital: Capital, day: date, amount: Decimal, person: str, reason: str, thresholds: Thresholds) -> Capital:
    """Add money by a person's act. It ends out of money if the account is then below the threshold again.

    The high-water mark starts anew when it ends out of money. A halted account stays halted. An amount too small to
    bring the principal loss below its out-of-money threshold is refused, and the least sufficient one named.
    """
    _signed(person, reason)
    if amount <= 0:
        raise Mistake(f"Expected an endowment above 0 dollars, was {amount}")
    note = f"Endowed by {person}: {reason}"
    more = added(capital, day, amount)
    if capital.state is not State.OUT_OF_MONEY:
        return replace(more, reason=note)
    if more.equity <= 0 or thresholds.principal.level(more.principal_loss) is Level.OUT_OF_MONEY:
        raise Refused(
            f"Expected an endowment that ends out of money, was {amount}: the principal loss would still be "
            f"{more.principal_loss:.1%}. Endow more than {least_endowment(capital, thresholds)} dollars."
        )
    wealth = max(more.wealth, np.finfo(np.float64).tiny)
    fresh = replace(more, wealth=wealth, peak=wealth, peak_day=day, calm=day, since=day, reason=note)
    level = fresh.level(thresholds)
    return replace(fresh, state=State.WATCH if level >= Level.WATCH else State.ACTIVE, accepted=level)


def added(capital: Capital, day: date, amount: Decimal) -> Capital:
    """Book money that was put in; the state stays what it is."""
    return replace(capital, day=day, endowed=capital.endowed + amount, equity=capital.equity + amount)


def least_endowment(capital: Capital, thresholds: Thresholds) -> Decimal:
    """Return the dollars x at which 1 - (W + x) / (W_0 + x) just equals the out-of-money threshold; more ends it."""
    tau = thresholds.principal.out_of_money
    if tau is None:
        return max(-capital.equity, Decimal(0))
    exact = Decimal(repr(tau))
    needed = (capital.endowed * (1 - exact) - capital.equity) / exact
    return max(needed, Decimal(0)).quantize(Decimal("0.01"))


def _signed(person: str, reason: str) -> None:
    if not person.strip() or not reason.strip():
        raise Mistake("Expected a person and a reason, was an empty one. Say who acts and why.")


def _why(capital: Capital, thresholds: Thresholds) -> str:
    """Name the measure that reached the higher level, with its value."""
    principal = thresholds.principal.level(capital.principal_loss)
    drawdown = thresholds.drawdown.level(capital.drawdown)
    if capital.equity <= 0:
        return "Equity is not above 0 dollars"
    if principal >= drawdown:
        return f"Principal loss {capital.principal_loss:.2%} reached {principal.name.lower()}"
    return f"Drawdown {capital.drawdown:.2%} reached {drawdown.name.lower()}"

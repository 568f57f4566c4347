from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomrl.domain.capital import (
    Capital,
    Friction,
    Impact,
    Level,
    Levels,
    Norm,
    State,
    Thresholds,
    endow,
    found,
    halt,
    least_endowment,
    mark,
    resume,
    reward,
)
from oomrl.errors import Mistake, Refused

DAY = date(2024, 7, 1)
TAU = Thresholds(Levels(0.05, 0.10, 0.15, 0.20), Levels(0.08, 0.12, 0.25, 0.40))


def after(*equities: float, thresholds: Thresholds = TAU, start: float = 100.0) -> Capital:
    capital = found(DAY, Decimal(repr(start)))
    for n, equity in enumerate(equities, start=1):
        capital = mark(capital, DAY + timedelta(days=n), Decimal(repr(equity)), thresholds)
    return capital


def test_reward_is_the_papers_equation_with_the_norm_named() -> None:
    w, r, dw = np.array([0.5, 0.4]), np.array([0.01, -0.02]), np.array([0.3, -0.4])
    euclid = reward(w, r, dw, 0.0, Friction(fixed=0.001, impact=0.002))
    assert euclid.gross == pytest.approx(0.005 - 0.008)
    assert euclid.value == pytest.approx(-0.003 - 0.001 * 0.7 - 0.002 * math.sqrt(0.5))
    assert euclid.form.endswith("||dw||_2)")
    total = reward(w, r, dw, 0.0, Friction(fixed=0.001, impact=0.002, norm=Norm.L1))
    assert total.value == pytest.approx(-0.003 - 0.0007 - 0.002 * math.sqrt(0.7))
    power = reward(w, r, dw, 0.0, Friction(0.001, np.array([0.002, 0.004]), Impact.THREE_HALVES))
    assert power.impact == pytest.approx(0.002 * 0.3**1.5 + 0.004 * 0.4**1.5)
    assert "3/2" in power.form


@given(st.floats(0, 0.5))
def test_reward_is_terminal_from_tau_on(loss: float) -> None:
    step = reward(np.array([1.0]), np.array([0.01]), np.array([0.0]), loss, Friction(), tau=0.2, penalty=100.0)
    assert step.terminal == (loss >= 0.2)
    assert step.value == (-100.0 if loss >= 0.2 else pytest.approx(0.01))


def test_the_papers_root_punishes_tiny_trades_and_the_power_form_does_not() -> None:
    tiny = np.array([1e-6])
    paper, power = Friction(0.0, 0.01), Friction(0.0, 0.01, Impact.THREE_HALVES)
    assert paper.cost(tiny)[1] / 1e-6 > 1.0
    assert power.cost(tiny)[1] / 1e-6 < 1e-4


def test_principal_loss_and_drawdown_are_different_measures() -> None:
    capital = after(200.0, 150.0)
    assert capital.principal_loss == pytest.approx(-0.5)
    assert capital.drawdown == pytest.approx(0.25)
    assert capital.state is State.HALTED
    assert "Drawdown" in capital.reason


def test_out_of_money_is_absorbing_until_a_person_endows() -> None:
    capital = after(80.0)
    assert capital.state is State.OUT_OF_MONEY
    assert not capital.may_trade
    recovered = mark(capital, DAY + timedelta(days=9), Decimal("150"), TAU)
    assert recovered.state is State.OUT_OF_MONEY
    assert halt(capital, DAY, "x").state is State.OUT_OF_MONEY
    with pytest.raises(Refused, match="oomrl endow"):
        resume(capital, DAY, "ann", "please", TAU)


def test_an_endowment_that_is_too_small_is_refused_and_the_least_named() -> None:
    capital = after(70.0)
    least = least_endowment(capital, TAU)
    assert least == Decimal("50.00")
    with pytest.raises(Refused, match=r"50\.00"):
        endow(capital, DAY, Decimal(50), "ann", "again", TAU)
    fresh = endow(capital, DAY, Decimal("50.01"), "ann", "again", TAU)
    assert fresh.may_trade
    assert fresh.endowed == Decimal("150.01")
    assert fresh.drawdown == 0.0
    assert "ann" in fresh.reason


@pytest.mark.parametrize(("person", "reason"), [("", "why"), ("ann", " ")])
def test_acts_need_a_person_and_a_reason(person: str, reason: str) -> None:
    with pytest.raises(Mistake):
        endow(after(70.0), DAY, Decimal(100), person, reason, TAU)
    with pytest.raises(Mistake):
        resume(halt(after(99.0), DAY, "test"), DAY, person, reason, TAU)


def test_a_resumed_account_halts_again_only_after_recovery_or_at_a_worse_level() -> None:
    halted = after(84.0)
    assert halted.state is State.HALTED
    going = resume(halted, DAY, "ann", "seen it", TAU)
    assert going.state is State.WATCH
    assert mark(going, DAY, Decimal(83), TAU).state is State.WATCH
    healed = mark(going, DAY, Decimal(99), TAU)
    assert mark(healed, DAY, Decimal(84), TAU).state is State.HALTED
    assert mark(going, DAY, Decimal(80), TAU).state is State.OUT_OF_MONEY


def test_endowing_a_halted_account_leaves_it_halted() -> None:
    assert endow(after(84.0), DAY, Decimal(100), "ann", "more", TAU).state is State.HALTED


def test_an_endowment_moves_neither_wealth_nor_drawdown() -> None:
    capital = after(110.0, 104.5)
    more = endow(capital, DAY, Decimal(1000), "ann", "grow", TAU)
    assert more.drawdown == pytest.approx(capital.drawdown) == pytest.approx(0.05)
    later = mark(more, DAY, more.equity * Decimal("1.1"), TAU)
    assert later.wealth == pytest.approx(capital.wealth * 1.1)


def test_thresholds_that_fall_are_a_mistake() -> None:
    with pytest.raises(Mistake, match="halt = 0.1"):
        Levels(watch=0.2, halt=0.1)
    with pytest.raises(Mistake):
        Levels(out_of_money=1.5)
    assert Levels().level(0.99) is Level.NONE


def test_a_ruined_account_is_out_of_money_whatever_the_thresholds() -> None:
    none = Thresholds(Levels(), Levels())
    ruined = after(0.0, thresholds=none)
    assert ruined.state is State.OUT_OF_MONEY
    assert endow(ruined, DAY, Decimal(10), "ann", "again", none).may_trade


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=40))
def test_states_agree_with_a_plain_reading_of_the_thresholds(path: list[float]) -> None:
    capital = found(DAY, Decimal(100))
    equity, peak, out = 100.0, 100.0, False
    for n, growth in enumerate(path, start=1):
        equity = round(equity * growth, 2)
        peak = max(peak, equity)
        out = out or 1 - equity / 100 >= 0.2 - 1e-12 or 1 - equity / peak >= 0.4 - 1e-12
        capital = mark(capital, DAY + timedelta(days=n), Decimal(repr(equity)), TAU)
        assert capital.drawdown == pytest.approx(1 - equity / peak, abs=1e-9)
        if abs(equity - 80) > 0.01 and abs(equity / peak - 0.6) > 1e-6:
            assert (capital.state is State.OUT_OF_MONEY) == out

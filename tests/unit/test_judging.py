"""The reward of each session (Eq. 1 and 2) against a second computation from fills and prices, in plain Python."""

from __future__ import annotations

from decimal import Decimal
from math import sqrt

import pytest

from oomrl.domain.account import SessionRecord
from oomrl.domain.capital import Friction, Levels, Thresholds, found
from oomrl.domain.loss import Rules
from oomrl.exchange.replay import Terms, replay
from oomrl.judging import Judge
from oomrl.testing.fakes import EqualWeightWorker
from oomrl.testing.markets import CALM, Weather, made_up_tape

CAPITAL = Decimal(1_000_000)
LAMBDA, GAMMA = 0.0008, 0.0002


def judge_of(tau: float | None, day_one: SessionRecord) -> Judge:
    thresholds = Thresholds(Levels(None, None, None, tau), Levels(None, None, None, None))
    return Judge(thresholds, Rules(), found(day_one.day, CAPITAL), friction=Friction(LAMBDA, GAMMA))


@pytest.mark.parametrize("weather", [CALM, Weather(splits=0.05, dividends=0.1, jumps=0.0, delisted=0.0)])
def test_the_reward_is_eq_1_less_eq_2(weather: Weather) -> None:
    tape = made_up_tape(5, sessions=40, names=5, weather=weather)
    records: list[SessionRecord] = []
    replay(tape.sessions(), EqualWeightWorker(), Terms(capital=CAPITAL), on_record=records.append)
    judge = judge_of(None, records[0])
    equity, last, held = 1_000_000.0, {}, {}
    for session, record in zip(tape.sessions(), records, strict=True):
        judge.judge(record)
        bars = {
            symbol: (session["close"][n], session["dividend"][n], session["split"][n])
            for n, symbol in enumerate(session.symbols)
        }
        bought: dict[str, float] = {}
        fills = record.execution.fills
        for order, shares in zip(fills.order, fills.shares, strict=True):
            symbol = record.execution.orders.symbols[order]
            bought[symbol] = bought.get(symbol, 0.0) + float(shares)
        change = {}
        held = {symbol: shares * bars.get(symbol, (0, 0, 1.0))[2] for symbol, shares in held.items()}
        gross = 0.0
        for symbol in {*held, *bought}:
            split = bars.get(symbol, (0, 0, 1.0))[2]
            change[symbol] = bought.get(symbol, 0.0) * last[symbol] / split / equity
            held[symbol] = held.get(symbol, 0.0) + bought.get(symbol, 0.0)
            if symbol in bars:
                close, dividend, _ = bars[symbol]
                was = last[symbol] / split
                gross += held[symbol] * was / equity * ((close + dividend) / was - 1.0)
        size = [abs(value) for value in change.values()]
        friction = LAMBDA * sum(size) + GAMMA * sqrt(sqrt(sum(value * value for value in size)))
        assert judge.reward is not None and not judge.reward.terminal
        # Fractions of a share that a split leaves are paid out in cash.
        assert judge.reward.value == pytest.approx(gross - friction, abs=5e-5)
        equity = float(record.equity)
        last |= {symbol: close for symbol, (close, _, _) in bars.items()}
        held = {symbol: float(int(shares)) for symbol, shares in held.items()}


def test_the_reward_is_the_penalty_once_tau_is_reached() -> None:
    tape = made_up_tape(6, sessions=30, names=4, weather=CALM)
    records: list[SessionRecord] = []
    replay(tape.sessions(), EqualWeightWorker(), Terms(capital=CAPITAL), on_record=records.append)
    judge = judge_of(1e-9, records[0])
    seen = []
    for record in records:
        judge.judge(record)
        assert judge.reward is not None
        seen.append((judge.capital.principal_loss >= 1e-9, judge.reward.value == -100.0))
    assert any(lost for lost, _ in seen)
    assert all(lost == ended for lost, ended in seen)

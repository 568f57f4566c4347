"""Replays: warm-up, cadence, several workers at once, and workers that fail."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.domain.account import SessionRecord
from oomrl.domain.sizing import Goals, Limits
from oomrl.domain.trading import Decision, Portfolio
from oomrl.errors import StrategyFailure
from oomrl.exchange.friction import Friction
from oomrl.exchange.replay import Lived, Terms, replay, replay_together
from oomrl.exchange.tape_files import load_tape
from oomrl.testing.fakes import EqualWeightWorker, RandomWorker, ScriptedWorker
from oomrl.testing.markets import CALM, Weather, made_up_tape


def test_a_worker_sees_the_warm_up_and_trades_from_the_first_day_on() -> None:
    tape = made_up_tape(2, sessions=40, weather=CALM)
    worker = ScriptedWorker(lambda sessions, portfolio: {"N000": 0.5})
    start = tape.days[17]
    result = replay(tape.sessions(), worker, Terms(cadence="daily"), from_day=start)
    assert len(worker.sessions) == 40
    assert result.days == tape.days[17:]
    assert result.equity_cents[0] == result.capital_cents == 100_000_000
    assert result.fills.tolist()[:2] == [0, 1]


def test_weekly_means_after_the_first_session_of_each_iso_week() -> None:
    asked: list[date] = []

    def decide(sessions: list, portfolio: Portfolio) -> None:
        asked.append(portfolio.day)

    tape = made_up_tape(2, sessions=23, weather=CALM)
    for values in tape.columns.values():
        values[10] = np.nan  # the second week's Monday does not happen
    replay(tape.sessions(), ScriptedWorker(decide), Terms(cadence="weekly"))
    assert [day.isoformat() for day in asked] == ["2010-01-04", "2010-01-11", "2010-01-19", "2010-01-25", "2010-02-01"]


def test_replays_together_are_replays_apart() -> None:
    tape = made_up_tape(9, sessions=60, names=8)
    runs = [
        (EqualWeightWorker(), Terms(cadence="daily")),
        (RandomWorker(4), Terms(cadence="weekly", capital=Decimal(50_000))),
        (RandomWorker(5), Terms(cadence="daily", friction=Friction.none())),
    ]
    seen: list[tuple[int, date]] = []
    together = replay_together(
        tape.sessions(), runs, from_day=tape.days[5], on_record=lambda number, record: seen.append((number, record.day))
    )
    again = [(EqualWeightWorker(), runs[0][1]), (RandomWorker(4), runs[1][1]), (RandomWorker(5), runs[2][1])]
    for (worker, terms), result in zip(again, together, strict=True):
        alone = replay(tape.sessions(), worker, terms, from_day=tape.days[5])
        assert (alone.equity_cents == result.equity_cents).all()
        assert (alone.parts_cents == result.parts_cents).all()
        assert alone.totals == result.totals
    assert len(seen) == 3 * 55


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    cadence=st.sampled_from(["weekly", "daily"]),
    busy=st.sampled_from([0.1, 0.7, 1.0]),
    capital=st.sampled_from([5_000, 1_000_000, 200_000_000]),
    collar=st.sampled_from([None, 30.0]),
    commission=st.sampled_from([0.0035, 0.5]),
)
def test_sessions_settled_at_once_come_out_as_one_by_one(
    seed: int, cadence: str, busy: float, capital: int, collar: float | None, commission: float
) -> None:
    tape = made_up_tape(seed, sessions=150, names=5, weather=Weather(jumps=0.01, late=0.4, delisted=0.4))
    terms = Terms(
        capital=Decimal(capital),
        cadence=cadence,
        delisting_recovery=0.5,
        friction=Friction(commission_per_share=commission),
        limits=Limits(collar_bps=collar),
    )
    records: list[SessionRecord] = []
    at_once = replay(tape.sessions(), RandomWorker(seed, busy=busy), terms)
    singly = replay(tape.sessions(), RandomWorker(seed, busy=busy), terms, on_record=records.append)
    assert at_once.days == singly.days == tuple(record.day for record in records)
    assert at_once.symbols == singly.symbols
    assert at_once.hits == singly.hits
    figures = ("equity_cents", "benchmark", "exposure", "traded", "orders", "fills", "friction", "suspected")
    for field in ("parts", "parts_cents", "by_name", *figures):
        np.testing.assert_array_equal(getattr(at_once, field), getattr(singly, field), field)


def test_a_watch_sees_each_batch_of_orders_and_when_it_lived() -> None:
    tape = made_up_tape(9, sessions=60, names=4)
    records: list[SessionRecord] = []
    decided: list[date] = []
    lived: list[Lived] = []

    class Looking:
        def decided(self, day: date, goals: Goals | None) -> None:
            decided.append(day)

        def traded(self, orders: Lived) -> None:
            lived.append(orders)

    replay(tape.sessions(), RandomWorker(4), Terms(), watch=Looking())
    replay(tape.sessions(), RandomWorker(4), Terms(), on_record=records.append)
    assert decided == [record.day for record in records if record.sized is not None]
    worked = [record for record in records if len(record.execution.orders)]
    for orders, record in zip(lived, worked, strict=True):
        batch = record.execution.orders
        assert (orders.day, tuple(orders.symbols)) == (record.day, batch.symbols)
        np.testing.assert_array_equal(orders.shares, batch.shares)
        np.testing.assert_array_equal(orders.participation, batch.participation)
        np.testing.assert_array_equal(orders.volume, record.bar.volume[record.order_rows])
    assert len(lived) > 5


def test_a_worker_that_fails_stops_trading_and_leaves_its_account_as_it_was() -> None:
    tape = made_up_tape(9, sessions=30, names=3, weather=CALM)

    def decide(sessions: list, portfolio: Portfolio) -> Decision | dict[str, float]:
        if len(sessions) == 10:
            raise StrategyFailure("raised", "boom")
        return {"N000": 0.9}

    records: list[SessionRecord] = []
    broken, fine = replay_together(
        tape.sessions(),
        [(ScriptedWorker(decide), Terms(cadence="daily")), (EqualWeightWorker(), Terms(cadence="daily"))],
        on_record=lambda number, record: records.append(record) if number == 0 else None,
    )
    assert broken.failure is not None and broken.failure.kind == "raised"
    assert fine.failure is None
    assert broken.orders[11:].sum() == 0 and len(broken.days) == 30
    assert broken.exposure[-1] > 0.8
    bad = replay(tape.sessions(), ScriptedWorker(lambda s, p: {"N000": 3.0}), Terms())
    assert bad.failure is not None and "sum to at most 1" in str(bad.failure)


def test_without_friction_a_purchase_earns_the_name_s_return_to_the_cent() -> None:
    tape = load_tape("builtin")
    worker = ScriptedWorker(lambda sessions, portfolio: {"MSFT": 1.0} if len(sessions) == 1 else None)
    limits = Limits(cash_reserve_bps=0.0, max_adv_share=1.0)
    terms = Terms(cadence="daily", friction=Friction.none(), limits=limits)
    result = replay(tape.sessions(until=date(2003, 2, 14)), worker, terms)
    name = tape.symbols.index("MSFT")
    close, opened = tape.columns["close"][:, name], tape.columns["open"][1, name]
    shares = min(int(1e6 / close[0]), int(1e6 / opened))
    wanted = [1e6, *(1e6 - shares * opened + shares * close[1 : len(result.days)])]
    np.testing.assert_allclose(result.equity, wanted, atol=0.0051)

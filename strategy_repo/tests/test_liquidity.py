"""Positions and orders stay small beside what a name trades."""

import numpy as np
import pytest
from samples import PARAMS, measured
from strategy import liquidity, parameters

READ = parameters.read(PARAMS)


def test_a_position_is_a_share_of_daily_dollars_at_most():
    caps = liquidity.position_caps(measured(3, dollars=[1e6, 4e6, 0.0]), 1e7, READ)
    assert caps.tolist() == pytest.approx([0.05, 0.2, 0.0], abs=1e-15)


def test_weights_move_as_far_as_participation_allows():
    # 3 sessions of 5 % of the daily dollars: 150,000 and 600,000 of 10,000,000.
    room = liquidity.reach(measured(3, dollars=[1e6, 4e6, 0.0]), 1e7, READ)
    assert room.tolist() == pytest.approx([0.015, 0.06, 0.0], abs=1e-15)


def test_targets_out_of_reach_come_nearer():
    target = np.array([0.30, 0.00, 0.11, 0.20])
    current = np.array([0.10, 0.20, 0.10, 0.20])
    room = np.array([0.05, 0.05, 0.05, 0.00])
    moved = liquidity.within_reach(target, current, room)
    assert moved.tolist() == pytest.approx([0.15, 0.15, 0.11, 0.20], abs=1e-15)


@pytest.mark.parametrize(
    ("trade", "sessions"),
    [(1.0, 1), (50_000.0, 1), (50_001.0, 2), (-100_000.0, 2), (-100_001.0, 3), (150_000.0, 3), (1e9, 3), (0.0, 1)],
)
def test_an_order_is_worked_over_as_many_sessions_as_it_needs(trade, sessions):
    assert liquidity.plan(trade, 1e6, 0.02, READ)["sessions"] == sessions


def test_the_plan_names_its_participation_and_limit():
    plan = liquidity.plan(10_000.0, 1e6, 0.02, READ)
    assert plan["max_participation"] == 0.05
    assert plan["limit_bps"] == pytest.approx(400.0, abs=1e-9)


def test_without_a_limit_the_order_is_a_market_order():
    plan = liquidity.plan(10_000.0, 1e6, 0.02, parameters.read({**PARAMS, "limit_volatilities": 0.0}))
    assert plan["limit_bps"] is None


def test_a_name_that_does_not_trade_takes_all_the_sessions():
    assert liquidity.plan(10_000.0, 0.0, 0.02, READ)["sessions"] == 3

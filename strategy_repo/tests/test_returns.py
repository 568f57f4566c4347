"""Protected mathematics against hand-computed values and slow, plain oracles."""

import math

import numpy as np
import pytest
from strategy import returns


def test_total_return_without_events_is_the_price_return():
    change = returns.total_return(np.array([11.0, 9.0]), np.zeros(2), np.ones(2), np.array([10.0, 10.0]))
    assert change.tolist() == pytest.approx([0.1, -0.1], abs=1e-15)


def test_total_return_pays_the_dividend_on_shares_after_the_split():
    # 1 share at 100 becomes 2, each worth 50 + 1 in cash: 102 / 100 - 1.
    change = returns.total_return(np.array([50.0]), np.array([1.0]), np.array([2.0]), np.array([100.0]))
    assert change[0] == pytest.approx(0.02, abs=1e-15)


def test_reinvested_levels_compound():
    level = np.array([0.0])
    for change in (0.10, -0.05, 0.02):
        level = returns.reinvested(level, np.array([change]))
    assert math.exp(level[0]) == pytest.approx(1.10 * 0.95 * 1.02, rel=1e-14)


def test_growth_undoes_reinvested():
    before = np.array([0.3, -1.2])
    after = returns.reinvested(before, np.array([0.25, -0.4]))
    assert returns.growth(after, before).tolist() == pytest.approx([0.25, -0.4], rel=1e-13)


def test_rank_of_distinct_values():
    ranks = returns.rank(np.array([30.0, 10.0, 20.0, 40.0]), np.ones(4, dtype=bool))
    assert ranks.tolist() == [0.625, 0.125, 0.375, 0.875]


def test_rank_gives_ties_one_rank_and_outsiders_the_middle():
    ranks = returns.rank(np.array([1.0, 2.0, 2.0, 9.0, -5.0]), np.array([True, True, True, True, False]))
    assert ranks.tolist() == [0.125, 0.5, 0.5, 0.875, 0.5]


def test_rank_of_nobody_is_neutral():
    assert returns.rank(np.array([3.0, 1.0]), np.zeros(2, dtype=bool)).tolist() == [0.5, 0.5]
    assert returns.rank(np.zeros(0), np.zeros(0, dtype=bool)).tolist() == []


@pytest.mark.parametrize("seed", range(20))
def test_rank_agrees_with_counting(seed):
    chance = np.random.default_rng(seed)
    values = chance.integers(0, 12, 25).astype(float)
    mask = chance.random(25) < 0.7
    inside = [value for value, there in zip(values, mask, strict=True) if there]
    expected = [
        (sum(other < value for other in inside) + sum(other <= value for other in inside)) / (2 * len(inside))
        if there
        else 0.5
        for value, there in zip(values, mask, strict=True)
    ]
    assert returns.rank(values, mask).tolist() == pytest.approx(expected, abs=1e-15)
    assert returns.rank(values, mask)[mask].mean() == pytest.approx(0.5, abs=1e-14)


def test_holdings_are_valued_at_raw_closes():
    assert returns.holding_value(np.array([100.0, 3.0]), np.array([12.5, 200.0])).tolist() == [1250.0, 600.0]
    weights = returns.holding_weights(np.array([100.0, 3.0]), np.array([12.5, 200.0]), 5_000.0)
    assert weights.tolist() == pytest.approx([0.25, 0.12], abs=1e-15)

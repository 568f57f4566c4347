"""Who may be bought."""

import numpy as np
import pytest
from samples import PARAMS, measured
from strategy import parameters, universe

READ = parameters.read(PARAMS)


def test_old_dear_liquid_names_that_trade_are_eligible():
    assert universe.eligible(measured(), READ).tolist() == [True] * 4


@pytest.mark.parametrize(
    ("feature", "enough", "too_little"),
    [
        ("close", 5.0, 4.99),
        ("dollars", 1_000_000.0, 999_999.0),
        ("age", 20, 19),
        ("observed", 10, 9),
        ("tradable", True, False),
    ],
)
def test_each_condition_alone_excludes(feature, enough, too_little):
    usual = {"close": 20.0, "dollars": 2e6, "age": 100, "observed": 20, "tradable": True}[feature]
    mask = universe.eligible(measured(4, **{feature: [usual, enough, too_little, usual]}), READ)
    assert mask.tolist() == [True, True, False, True]


def test_half_of_the_shorter_window_must_have_returns():
    few = measured(1, observed=[7], age=[200])
    assert universe.eligible(few, parameters.read({**PARAMS, "min_history": 14})).tolist() == [True]
    assert universe.eligible(few, parameters.read({**PARAMS, "min_history": 16})).tolist() == [False]
    assert universe.eligible(few, parameters.read({**PARAMS, "volatility_window": 15})).tolist() == [True]


def test_names_that_never_trade_are_excluded_even_without_a_minimum():
    dead = measured(2, dollars=[0.0, 1.0])
    mask = universe.eligible(dead, parameters.read({**PARAMS, "min_dollar_volume": 0.0}))
    assert mask.tolist() == [False, True]


def test_the_most_liquid_names_are_kept():
    mask = np.array([True, True, False, True, True])
    dollars = np.array([3.0, 9.0, 99.0, 5.0, 7.0])
    assert universe.most_liquid(mask, dollars, 2).tolist() == [False, True, False, False, True]
    assert universe.most_liquid(mask, dollars, 9).tolist() == mask.tolist()
    assert universe.most_liquid(mask, dollars, 0).tolist() == [False] * 5


def test_the_first_seen_name_wins_a_tie_for_liquidity():
    assert universe.most_liquid(np.ones(3, dtype=bool), np.full(3, 5.0), 2).tolist() == [True, True, False]


def test_universe_size_limits_the_universe():
    features = measured(4, dollars=[2e6, 5e6, 3e6, 4e6])
    small = parameters.read({**PARAMS, "universe_size": 2})
    assert universe.eligible(features, small).tolist() == [False, True, False, True]

"""The numbers of strategy.toml are checked before anything trades."""

import math

import pytest
from samples import PARAMS
from strategy import parameters


def test_every_number_is_kept_with_its_type():
    read = parameters.read(PARAMS)
    assert read.min_price == 5.0
    assert read.momentum_window == 40
    assert isinstance(read.momentum_window, int)
    assert isinstance(read.min_dollar_volume, float)


def test_whole_numbers_may_be_written_as_decimals_and_the_other_way_round():
    read = parameters.read({**PARAMS, "max_gap": 4.0, "exposure": 1})
    assert read.max_gap == 4
    assert isinstance(read.max_gap, int)
    assert read.exposure == 1.0
    assert isinstance(read.exposure, float)


def test_a_missing_parameter_is_named():
    params = {name: value for name, value in PARAMS.items() if name != "exposure"}
    with pytest.raises(ValueError, match="Expected the parameter exposure, was missing"):
        parameters.read(params)


def test_an_unknown_parameter_is_named():
    with pytest.raises(ValueError, match=r"was \['leverage'\]"):
        parameters.read({**PARAMS, "leverage": 2.0})


@pytest.mark.parametrize("value", [-0.5, math.nan, math.inf, "0.5", True, None])
def test_what_is_no_number_of_at_least_zero_is_refused(value):
    with pytest.raises(ValueError, match="Expected exposure to be a finite number of at least 0"):
        parameters.read({**PARAMS, "exposure": value})


def test_a_count_must_be_whole():
    with pytest.raises(ValueError, match="Expected max_gap to be a whole number, was 2.5"):
        parameters.read({**PARAMS, "max_gap": 2.5})


@pytest.mark.parametrize(
    "name", ["liquidity_window", "volatility_window", "reversal_window", "max_sessions", "min_holdings"]
)
def test_counts_of_at_least_one(name):
    assert parameters.read({**PARAMS, name: 1}).exposure == 0.95
    with pytest.raises(ValueError, match=f"Expected {name} to be at least 1, was 0"):
        parameters.read({**PARAMS, name: 0})


@pytest.mark.parametrize(
    "name", ["exposure", "max_weight", "few_names_weight", "hold_fraction", "keep_fraction", "max_participation"]
)
def test_shares_of_at_most_one(name):
    assert parameters.read({**PARAMS, name: 1.0}).max_gap == 3
    with pytest.raises(ValueError, match=f"Expected {name} to be at most 1, was 1.25"):
        parameters.read({**PARAMS, name: 1.25})


def test_windows_must_not_contradict_each_other():
    assert parameters.read({**PARAMS, "momentum_skip": 39}).momentum_skip == 39
    with pytest.raises(ValueError, match="Expected momentum_skip below momentum_window 40, was 40"):
        parameters.read({**PARAMS, "momentum_skip": 40})
    assert parameters.read({**PARAMS, "reversal_window": 40}).reversal_window == 40
    with pytest.raises(ValueError, match="Expected reversal_window of at most momentum_window 40, was 41"):
        parameters.read({**PARAMS, "reversal_window": 41})


def test_counts_of_holdings_must_not_contradict_each_other():
    assert parameters.read({**PARAMS, "min_holdings": 10}).min_holdings == 10
    with pytest.raises(ValueError, match="Expected min_holdings of at most max_holdings 10, was 11"):
        parameters.read({**PARAMS, "min_holdings": 11})

"""Scores prefer winners, quiet names and recent losers, in the proportions of the weights."""

import numpy as np
import pytest
from samples import PARAMS, measured
from strategy import parameters, ranks

ALL = np.ones(4, dtype=bool)


def names(momentum=(0.0,) * 4, volatility=(0.02,) * 4, recent=(0.0,) * 4, known=(True,) * 4):
    return measured(4, momentum=momentum, volatility=volatility, recent=recent, momentum_known=known)


def test_winners_rank_high_by_momentum():
    scores = ranks.score(names(momentum=(0.1, 0.4, -0.2, 0.3)), ALL, parameters.read(PARAMS))
    assert scores.momentum.tolist() == [0.375, 0.875, 0.125, 0.625]
    assert scores.volatility.tolist() == [0.5] * 4
    assert scores.reversal.tolist() == [0.5] * 4


def test_quiet_names_rank_high_by_volatility():
    scores = ranks.score(names(volatility=(0.01, 0.04, 0.02, 0.03)), ALL, parameters.read(PARAMS))
    assert scores.volatility.tolist() == [0.875, 0.125, 0.625, 0.375]


def test_recent_losers_rank_high_by_reversal():
    scores = ranks.score(names(recent=(0.05, -0.10, 0.0, 0.20)), ALL, parameters.read(PARAMS))
    assert scores.reversal.tolist() == [0.375, 0.875, 0.625, 0.125]


def test_unknown_momentum_is_neutral():
    known = (True, False, True, True)
    scores = ranks.score(names(momentum=(0.1, 9.0, -0.2, 0.3), known=known), ALL, parameters.read(PARAMS))
    assert scores.momentum.tolist() == pytest.approx([0.5, 0.5, 1 / 6, 5 / 6], abs=1e-15)


def test_names_outside_the_universe_do_not_count():
    universe = np.array([True, True, False, False])
    features = names(momentum=(0.1, 0.4, 9.0, -9.0), volatility=(0.03, 0.02, 0.9, 0.001), recent=(0.1, 0.2, 3.0, -0.9))
    scores = ranks.score(features, universe, parameters.read(PARAMS))
    assert scores.momentum.tolist() == [0.25, 0.75, 0.5, 0.5]
    assert scores.volatility.tolist() == [0.25, 0.75, 0.5, 0.5]
    assert scores.reversal.tolist() == [0.75, 0.25, 0.5, 0.5]


def test_the_total_is_the_weighted_mean():
    features = names((0.1, 0.4, -0.2, 0.3), (0.01, 0.04, 0.02, 0.03), (0.05, -0.10, 0.0, 0.20))
    weights = {"momentum_weight": 2.0, "volatility_weight": 1.0, "reversal_weight": 0.5}
    scores = ranks.score(features, ALL, parameters.read({**PARAMS, **weights}))
    expected = [
        (2.0 * one + two + 0.5 * three) / 3.5
        for one, two, three in zip(scores.momentum, scores.volatility, scores.reversal, strict=True)
    ]
    assert scores.total.tolist() == pytest.approx(expected, abs=1e-15)


def test_only_proportions_of_weights_matter():
    one = np.array([0.2, 0.8])
    two = np.array([0.9, 0.1])
    assert ranks.combined((one, two), (1.0, 3.0)).tolist() == pytest.approx([0.725, 0.275], abs=1e-15)
    assert ranks.combined((one, two), (0.125, 0.375)).tolist() == pytest.approx([0.725, 0.275], abs=1e-15)


def test_a_factor_without_weight_has_no_say():
    one = np.array([0.2, 0.8])
    assert ranks.combined((one, np.array([np.nan, 0.3])), (2.0, 0.0)).tolist() == [0.2, 0.8]


def test_without_weights_every_name_scores_the_same():
    assert ranks.combined((np.array([0.2, 0.8]), np.array([0.9, 0.1])), (0.0, 0.0)).tolist() == [0.5, 0.5]

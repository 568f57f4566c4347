"""Sharpe intervals, deflation and the probability of overfitting, against simulation."""

from __future__ import annotations

import numpy as np
import pytest

from oomrl.arenas.research.statistics import (
    daily_sharpe,
    deflated_sharpe,
    expected_maximum,
    overfitting_probability,
    sharpe,
)


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    draws = 0.08 + rng.standard_t(6.0, (2000, 500)) / np.sqrt(1.5)
    truth = 0.08 * 252**0.5
    hits = [one.low <= truth <= one.high for one in map(sharpe, draws)]
    assert 0.935 <= np.mean(hits) <= 0.965


@pytest.mark.parametrize("tries", [2, 10, 100])
def test_expected_maximum_agrees_with_simulation(tries: int) -> None:
    rng = np.random.default_rng(2)
    best = rng.normal(0.0, 0.05, (20_000, tries)).max(axis=1).mean()
    # The closed form is an approximation that is poor for two trials.
    assert expected_maximum(tries, 0.05**2) == pytest.approx(best, rel=0.12 if tries > 2 else 0.6)
    assert expected_maximum(1, 1.0) == 0.0


def test_deflation_takes_the_worth_off_the_best_of_many() -> None:
    rng = np.random.default_rng(3)
    values = []
    for _ in range(200):
        trials = rng.standard_normal((252, 50))
        ratios = [daily_sharpe(trial) for trial in trials.T]
        best = trials[:, int(np.argmax(ratios))]
        values.append((deflated_sharpe(best, 50, float(np.var(ratios))), deflated_sharpe(best, 1)))
    corrected, naive = np.mean(values, axis=0)
    assert naive > 0.97
    assert 0.4 < corrected < 0.65


def test_more_tries_never_help() -> None:
    net = np.random.default_rng(4).standard_normal(300) + 0.1
    values = [deflated_sharpe(net, tries) for tries in (1, 2, 5, 20, 100)]
    assert values == sorted(values, reverse=True)


def test_overfitting_is_a_coin_toss_on_noise_and_rare_on_a_real_edge() -> None:
    rng = np.random.default_rng(5)
    noise = [overfitting_probability(rng.standard_normal((240, 12))) for _ in range(60)]
    assert 0.4 < float(np.mean(noise)) < 0.6
    edge = []
    for _ in range(20):
        trials = rng.standard_normal((240, 12))
        trials[:, 0] += 0.4
        edge.append(overfitting_probability(trials))
    assert float(np.mean(edge)) < 0.02
    assert overfitting_probability(rng.standard_normal((240, 1))) is None


def test_a_flat_series_has_no_ratio() -> None:
    assert daily_sharpe(np.full(10, 0.001)) == 0.0
    assert daily_sharpe(np.zeros(0)) == 0.0

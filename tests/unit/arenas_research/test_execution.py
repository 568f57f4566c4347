"""Timing, neutrality, caps and costs of trading."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.arenas.research.execution import Design, positions, scale_of, trade
from oomrl.arenas.research.statistics import sharpe
from oomrl.arenas.research.synthetic import make_panel

FREE = Design(cost_bps=0.0, capital=1.0, halflife=1e-6)


@pytest.mark.parametrize(("shift", "wins"), [(0, False), (1, False), (2, True), (3, False), (4, False)])
def test_only_the_return_two_rows_ahead_is_earned(small, shift: int, wins: bool) -> None:
    """A forecast equal to the return of row t + shift earns a fortune for shift 2 and nothing for any other."""
    panel = make_panel(11, small, null=True)
    forecast = np.zeros_like(panel.returns)
    forecast[: panel.days - shift] = panel.returns[shift:]
    weights = positions(panel, forecast, scale_of(forecast), FREE)
    ratio = sharpe(trade(panel, weights, FREE, 60, panel.days).net).value
    assert ratio > 20.0 if wins else abs(ratio) < 5.0


def test_the_position_of_a_row_earns_the_return_two_rows_later_exactly(small) -> None:
    panel = make_panel(2, small)
    weights = np.zeros_like(panel.returns)
    weights[100, 3] = 1.0
    ledger = trade(panel, weights, FREE, 95, 110)
    expected = np.zeros(15)
    expected[5] = panel.returns[102, 3]
    np.testing.assert_allclose(ledger.gross, expected)
    np.testing.assert_allclose(
        ledger.turnover[[5, 6]], [1.0, (1 + panel.returns[102, 3]) / (1 + panel.returns[102, 3])]
    )


def test_smoothing_has_the_half_life_it_says(small) -> None:
    panel = make_panel(2, small)
    flat = replace(panel, tradable=panel.tradable)
    forecast = np.zeros_like(panel.returns)
    forecast[100, 0], forecast[100, 1] = 1.0, -1.0
    weights = positions(flat, forecast, 1.0, Design(gross=100.0, halflife=7.0, name_cap=100.0))
    size = np.abs(weights).sum(axis=1)
    assert size[99] == 0.0
    assert size[107] / size[100] == pytest.approx(0.5, rel=0.05)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 50), st.floats(0.05, 2.0), st.floats(1.0, 30.0))
def test_positions_are_beta_neutral_and_within_the_cap(seed: int, gross: float, halflife: float) -> None:
    panel = make_panel(7, "l1")
    forecast = np.random.default_rng(seed).standard_normal(panel.returns.shape)
    weights = positions(panel, forecast, scale_of(forecast), Design(gross=gross, halflife=halflife))
    assert np.abs(weights).sum(axis=1).max() <= gross + 1e-9
    assert np.abs((weights * panel.beta).sum(axis=1)).max() < 1e-9


def test_costs_rise_with_price_size_and_capital(small) -> None:
    panel = make_panel(3, small)
    forecast = np.random.default_rng(1).standard_normal(panel.returns.shape)

    def cost(**change: float) -> float:
        design = Design(**change)
        weights = positions(panel, forecast, scale_of(forecast), design)
        return float(trade(panel, weights, design, 60, 200).cost.sum())

    assert 0 < cost() < cost(cost_bps=5.0) < cost(cost_bps=15.0)
    assert cost() < cost(capital=5e7)
    # Impact grows with the 3/2 power: twice the exposure costs more than twice as much.
    assert cost(gross=2.0, cost_bps=0.0) > 2.5 * cost(gross=1.0, cost_bps=0.0)


def test_a_name_in_quarantine_is_not_held(small) -> None:
    panel = make_panel(3, small)
    tradable = panel.tradable.copy()
    tradable[100:120, 4] = False
    panel = replace(panel, tradable=tradable)
    forecast = np.random.default_rng(1).standard_normal(panel.returns.shape)
    weights = positions(panel, forecast, scale_of(forecast), Design())
    assert (weights[100:120, 4] == 0.0).all()
    assert (weights[130:140, 4] != 0.0).all()


def test_a_band_leaves_small_changes_alone(small) -> None:
    panel = make_panel(3, small)
    forecast = np.random.default_rng(1).standard_normal(panel.returns.shape)
    weights = positions(panel, forecast, scale_of(forecast), Design())
    free = trade(panel, weights, Design(), 60, 200).turnover.sum()
    assert trade(panel, weights, Design(band=0.03), 60, 200).turnover.sum() < 0.8 * free

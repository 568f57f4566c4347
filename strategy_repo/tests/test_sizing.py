"""How much is held: by volatility, within caps, outside the band, inside the exposure."""

import numpy as np
import pytest
from samples import PARAMS
from strategy import parameters, sizing


@pytest.mark.parametrize(("count", "cap"), [(0, 0.0), (1, 0.35), (2, 0.35), (3, 0.95 / 3), (4, 0.25), (40, 0.25)])
def test_the_cap_widens_for_few_names_and_stops(count, cap):
    assert sizing.name_cap(count, parameters.read(PARAMS)) == pytest.approx(cap, abs=1e-15)


def test_quiet_names_get_more():
    volatility = np.array([0.01, 0.02, 0.04, 0.01])
    chosen = np.array([True, True, True, False])
    assert sizing.proportions(volatility, chosen, 1.0).tolist() == pytest.approx([4 / 7, 2 / 7, 1 / 7, 0.0], abs=1e-15)
    assert sizing.proportions(volatility, chosen, 2.0).tolist() == pytest.approx(
        [16 / 21, 4 / 21, 1 / 21, 0.0], abs=1e-15
    )
    assert sizing.proportions(volatility, chosen, 0.0).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0], abs=1e-15)


def test_nobody_chosen_gets_nothing():
    assert sizing.proportions(np.array([0.01, 0.02]), np.zeros(2, dtype=bool), 1.0).tolist() == [0.0, 0.0]


def test_without_caps_the_budget_is_spread_in_proportion():
    spread = sizing.capped(np.array([0.5, 0.3, 0.2]), np.ones(3), 0.9)
    assert spread.tolist() == pytest.approx([0.45, 0.27, 0.18], abs=1e-15)


def test_what_a_cap_cuts_off_goes_to_the_others():
    # 0.8 would get 0.72 and stops at 0.3; 0.6 is left for 0.12 : 0.08, that is 0.36 and 0.24; 0.36 stops at 0.3.
    spread = sizing.capped(np.array([0.8, 0.12, 0.08]), np.full(3, 0.3), 0.9)
    assert spread.tolist() == pytest.approx([0.3, 0.3, 0.3], abs=1e-15)
    spread = sizing.capped(np.array([0.8, 0.12, 0.08]), np.array([0.3, 1.0, 1.0]), 0.9)
    assert spread.tolist() == pytest.approx([0.3, 0.36, 0.24], abs=1e-15)


def test_what_nobody_can_take_stays_cash():
    assert sizing.capped(np.array([0.5, 0.5]), np.array([0.2, 0.1]), 0.9).tolist() == [0.2, 0.1]


def test_no_budget_buys_nothing():
    assert sizing.capped(np.array([0.5, 0.5]), np.ones(2), 0.0).tolist() == [0.0, 0.0]
    assert sizing.capped(np.array([0.5, 0.5]), np.ones(2), -0.2).tolist() == [0.0, 0.0]
    assert sizing.capped(np.zeros(2), np.ones(2), 0.9).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(20))
def test_capped_weights_are_the_water_level(seed):
    chance = np.random.default_rng(seed)
    shares, caps = chance.random(12), chance.random(12) * 0.2
    weights = sizing.capped(shares / shares.sum(), caps, 0.8)
    low, high = 0.0, 1e6
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.minimum(level * shares, caps).sum() < 0.8 else (low, level)
    assert weights.tolist() == pytest.approx(np.minimum(high * shares, caps).tolist(), abs=1e-9)
    assert weights.sum() == pytest.approx(min(0.8, caps.sum()), abs=1e-12)


def test_small_changes_are_left_undone():
    ideal = np.array([0.12, 0.10, 0.126, 0.081, 0.0799])
    banded = sizing.banded(ideal, np.full(5, 0.10), 0.2)
    assert banded.tolist() == [0.10, 0.10, 0.126, 0.10, 0.0799]


def test_the_edge_of_the_band_is_inside():
    assert sizing.banded(np.array([0.125, 0.5]), np.array([0.0625, 0.25]), 0.5).tolist() == [0.0625, 0.25]


def test_entries_and_exits_pass_the_band():
    assert sizing.banded(np.array([0.001, 0.0]), np.array([0.0, 0.001]), 0.9).tolist() == [0.001, 0.0]


def test_without_a_band_every_change_passes():
    assert sizing.banded(np.array([0.1001, 0.2]), np.array([0.1, 0.2]), 0.0).tolist() == [0.1001, 0.2]


def test_purchases_are_cut_to_the_exposure_and_sales_are_not():
    current = np.array([0.5, 0.2, 0.0])
    target = np.array([0.4, 0.4, 0.3])
    # 1.1 is 0.2 above 0.9; purchases are 0.2 and 0.3, so each loses two fifths.
    fitted = sizing.fitted(target, current, np.zeros(3), 0.9)
    assert fitted.tolist() == pytest.approx([0.4, 0.32, 0.18], abs=1e-12)


def test_what_fits_is_left_alone():
    target = np.array([0.4, 0.3, 0.2])
    assert sizing.fitted(target, np.zeros(3), np.zeros(3), 0.95).tolist() == target.tolist()


def test_locked_names_count_and_stay():
    locked = np.array([0.0, 0.5])
    fitted = sizing.fitted(np.array([0.6, 0.0]), np.array([0.2, 0.0]), locked, 0.9)
    assert fitted.tolist() == pytest.approx([0.4, 0.5], abs=1e-12)


def test_holdings_above_the_exposure_buy_nothing_and_sell_nothing():
    current = np.array([0.5, 0.46, 0.0])
    fitted = sizing.fitted(np.array([0.5, 0.46, 0.2]), current, np.zeros(3), 0.9)
    assert fitted.tolist() == pytest.approx(current.tolist(), abs=1e-12)


def test_weights_never_sum_to_more_than_one():
    current = np.array([0.9, 0.6])
    assert sizing.fitted(current, current, np.zeros(2), 0.95).tolist() == pytest.approx([0.6, 0.4], abs=1e-8)
    locked = np.array([0.0, 0.8])
    one = sizing.fitted(np.array([0.9, 0.0]), np.array([0.9, 0.0]), locked, 0.95)
    assert one.tolist() == pytest.approx([0.2, 0.8], abs=1e-8)
    stuck = sizing.fitted(np.array([0.9, 0.0]), np.array([0.9, 0.0]), np.array([0.0, 1.5]), 0.95)
    assert stuck.tolist() == pytest.approx([0.0, 1.0], abs=1e-8)
    assert max(one.sum(), stuck.sum()) <= 1.0


def test_scaling_down_keeps_proportions():
    assert sizing.scaled_down(np.array([0.6, 0.3]), 0.45).tolist() == pytest.approx([0.3, 0.15], abs=1e-15)
    assert sizing.scaled_down(np.array([0.6, 0.3]), 0.95).tolist() == [0.6, 0.3]
    assert sizing.scaled_down(np.array([0.6, 0.3]), -0.1).tolist() == [0.0, 0.0]

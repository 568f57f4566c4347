"""Who is held: the best, and those held already that are still good."""

import numpy as np
import pytest
from samples import PARAMS
from strategy import parameters, selection


def mask(size: int, *slots: int) -> np.ndarray:
    chosen = np.zeros(size, dtype=bool)
    chosen[list(slots)] = True
    return chosen


def test_a_fraction_of_the_universe_is_held():
    read = parameters.read(PARAMS)
    assert selection.places(20, 0.4, read) == 8
    assert selection.places(11, 0.4, read) == 4
    assert selection.places(12, 0.4, read) == 5


def test_the_number_of_names_stays_within_its_limits():
    read = parameters.read(PARAMS)
    assert selection.places(1000, 0.4, read) == 10
    assert selection.places(3, 0.4, read) == 2
    assert selection.places(1, 0.4, read) == 1
    assert selection.places(0, 0.4, read) == 0


def test_the_best_names_are_taken():
    total = np.array([0.1, 0.9, 0.5, 0.7, 0.3])
    chosen = selection.select(total, np.ones(5, dtype=bool), mask(5), parameters.read(PARAMS))
    assert np.flatnonzero(chosen).tolist() == [1, 3]


def test_names_outside_the_universe_are_never_taken():
    total = np.array([0.1, 0.9, 0.5, 0.7, 0.3])
    chosen = selection.select(total, mask(5, 0, 2, 4), mask(5, 1), parameters.read(PARAMS))
    assert np.flatnonzero(chosen).tolist() == [2, 4]


def test_a_held_name_stays_while_it_is_among_the_better():
    total = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    read = parameters.read(PARAMS)
    kept = selection.select(total, np.ones(5, dtype=bool), mask(5, 2), read)
    assert np.flatnonzero(kept).tolist() == [0, 2]
    dropped = selection.select(total, np.ones(5, dtype=bool), mask(5, 3), read)
    assert np.flatnonzero(dropped).tolist() == [0, 1]


def test_too_many_held_names_leave_by_score():
    total = np.array([0.7, 0.8, 0.9, 0.6, 0.5])
    kept = selection.select(total, np.ones(5, dtype=bool), mask(5, 0, 1, 2), parameters.read(PARAMS))
    assert np.flatnonzero(kept).tolist() == [1, 2]


def test_the_keep_fraction_never_narrows_the_selection():
    total = np.linspace(0.9, 0.1, 10)
    read = parameters.read({**PARAMS, "keep_fraction": 0.0})
    held = mask(10, 3)
    assert np.flatnonzero(selection.select(total, np.ones(10, dtype=bool), held, read)).tolist() == [0, 1, 2, 3]


def test_the_first_seen_name_wins_a_tie():
    chosen = selection.select(np.full(5, 0.5), np.ones(5, dtype=bool), mask(5), parameters.read(PARAMS))
    assert np.flatnonzero(chosen).tolist() == [0, 1]


def test_nobody_is_taken_from_an_empty_universe():
    assert not selection.select(np.full(3, 0.5), mask(3), mask(3, 1), parameters.read(PARAMS)).any()
    assert selection.select(np.zeros(0), mask(0), mask(0), parameters.read(PARAMS)).tolist() == []


@pytest.mark.parametrize("seed", range(20))
def test_selection_agrees_with_a_plain_list(seed):
    chance = np.random.default_rng(seed)
    size = int(chance.integers(1, 30))
    total = chance.integers(0, 8, size) / 8
    universe, held = chance.random(size) < 0.7, chance.random(size) < 0.3
    read = parameters.read(PARAMS)
    ordered = sorted(np.flatnonzero(universe).tolist(), key=lambda slot: (-total[slot], slot))
    number = len(ordered)
    room = min(max(round(0.4 * number), 2), 10, number)
    keep = min(max(round(0.6 * number), 2), 10, number)
    stay = [slot for slot in ordered[:keep] if held[slot]][:room]
    enter = [slot for slot in ordered if slot not in stay][: room - len(stay)]
    assert np.flatnonzero(selection.select(total, universe, held, read)).tolist() == sorted(stay + enter)

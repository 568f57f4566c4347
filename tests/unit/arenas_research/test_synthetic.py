"""Planted panels: what is known of them is true."""

from __future__ import annotations

import numpy as np
import pytest

from oomrl.arenas.research import scoring
from oomrl.arenas.research.execution import Design
from oomrl.arenas.research.synthetic import LEVELS, is_null, make_panel
from oomrl.errors import Mistake


def test_same_seed_same_bytes_and_other_seeds_differ(small) -> None:
    make_panel.cache_clear()
    first = make_panel(5, small).digest
    make_panel.cache_clear()
    assert make_panel(5, small).digest == first
    assert make_panel(6, small).digest != first


def test_the_planted_expectation_is_the_conditional_mean(small) -> None:
    """Regressing what came on what was expected gives slope 1: the ceiling is the ceiling."""
    over, under = 0.0, 0.0
    for seed in range(12):
        panel = make_panel(seed, small, null=False)
        x = panel.truth.expectation[:-2]
        y = panel.returns[2:] - panel.returns[2:].mean(axis=1, keepdims=True)
        over += float((x * y).sum())
        under += float((x * x).sum())
    assert over / under == pytest.approx(1.0, abs=0.15)


def test_a_null_panel_expects_nothing_and_pays_nothing(small) -> None:
    panel = make_panel(5, small, null=True)
    assert not panel.truth.tradable
    assert not panel.truth.expectation.any()
    assert scoring.ceiling_of(panel, Design()) == 0.0


def test_one_seed_in_six_or_so_is_null() -> None:
    assert 0.12 < np.mean([is_null(seed) for seed in range(1500)]) < 0.21


def test_levels_grow_harder() -> None:
    """The ceiling falls from level to level, over seeds."""
    means = []
    for level in LEVELS.values():
        design = Design(cost_bps=level.cost_bps, capital=level.capital)
        means.append(np.mean([scoring.ceiling_of(make_panel(s, level, null=False), design) for s in range(4)]))
    assert means == sorted(means, reverse=True)
    assert means[-1] > 0.5


def test_signals_decay_and_turn_with_the_regime(small) -> None:
    panel = make_panel(5, LEVELS["l4"], null=False)
    spread = np.abs(panel.truth.expectation).mean(axis=1)
    assert spread[900:1000].mean() < 0.8 * spread[:100].mean()
    assert set(panel.truth.regimes) == {"steady", "flips", "calm"}


def test_windows_lie_after_the_public_rows_and_do_not_touch(small) -> None:
    panel = make_panel(5, small)
    edges = [edge for window in panel.windows for edge in window]
    assert edges == sorted(set(edges))
    assert edges[0] > panel.public_days + 1
    assert edges[-1] + 2 <= panel.days
    assert panel.public().days == panel.public_days


def test_mistakes_are_named() -> None:
    with pytest.raises(Mistake, match="Expected a level"):
        make_panel(1, "l9")
    with pytest.raises(Mistake, match="zero or more"):
        make_panel(-1, "l1")

"""What the arena claims of itself, at test size; `make arenas` measures it at full size."""

from __future__ import annotations

import numpy as np
import pytest

from oomrl.arenas.research import campaign
from oomrl.arenas.research.agents import POLICIES
from oomrl.arenas.research.arena import ARENA, LEVEL_ARENAS
from oomrl.arenas.research.probes import PROBES
from oomrl.arenas.research.synthetic import make_panel


def test_on_pure_noise_the_interval_covers_minus_the_cost(small) -> None:
    found = campaign.noise_coverage(range(2000, 2200), small)
    assert found["seeds"] == 200
    assert 0.92 <= found["coverage"] <= 0.98
    assert abs(found["mean_sharpe"] - found["mean_expected"]) < 3 * found["standard_error"]


@pytest.mark.slow
def test_planted_signal_beats_the_simple_baseline_beats_noise_beats_nothing() -> None:
    """Paired by seed, on held-out seeds, in raw hidden Sharpe and in score."""
    seeds = ARENA.seeds("held_out", 20)
    players = {name: POLICIES[name] for name in ("oracle", "simple", "noise")}
    scores = campaign.ordering(players, seeds, ["features@l2"])
    for better, worse in (("oracle", "simple"), ("simple", "noise")):
        assert campaign.paired(scores[better], scores[worse]).low > 0.0, (better, worse)


def test_the_oracle_reaches_the_top_on_every_desk() -> None:
    engine = campaign.ResearchEngine()
    for task in ARENA.tasks:
        assert campaign.play(engine, POLICIES["oracle"], 4, task) >= 0.9


@pytest.mark.parametrize("task", LEVEL_ARENAS["research_l2"].tasks)
def test_no_probe_reaches_the_heuristic(task: str) -> None:
    seeds = ARENA.seeds("held_out", 3)
    engine = campaign.ResearchEngine()
    heuristic = campaign.ordering({"h": POLICIES["heuristic"]}, seeds, [task], engine)["h"].mean()
    # The leaks differ from one another on the model desk alone.
    probes = {name: probe for name, probe in PROBES.items() if "leak" not in name or "model" in task}
    floors = campaign.ordering({"random": POLICIES["random"], **probes}, seeds, [task], engine)
    for name, scores in floors.items():
        assert scores.mean() < heuristic, name


def test_paired_difference_has_an_interval_that_holds_it() -> None:
    rng = np.random.default_rng(1)
    base = rng.standard_normal(40)
    gap = campaign.paired(base + 1.0 + 0.1 * rng.standard_normal(40), base)
    assert 0.9 < gap.low < gap.mean < gap.high < 1.1


def test_arena_has_probes_and_seeds_do_not_overlap() -> None:
    assert len(PROBES) >= 8
    assert {"random", "heuristic", "oracle"} <= set(POLICIES)
    assert not set(ARENA.seeds("train", 100)) & set(ARENA.seeds("held_out", 100))
    make_panel.cache_clear()

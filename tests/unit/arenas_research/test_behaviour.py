"""The three habits, on episodes made to show each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.episode import play, replay
from oomrl.arenas.log import read
from oomrl.arenas.research.arena import ARENA
from oomrl.arenas.research.behaviour import effort, habits, habits_of_log, summary


def step(tool: str, result: dict[str, Any], **arguments: Any) -> tuple[dict, dict]:
    return {"tool": tool, "arguments": arguments}, {"result": result}


def feature(name: str, days: int, sharpe: float) -> tuple[dict, dict]:
    tree = {"op": "zscore", "of": {"op": "change", "of": {"field": name}, "days": days}}
    return step("build_features", {"validation_sharpe": sharpe}, features={"f": tree}, label="mine")


def test_broad_and_shallow_against_narrow_and_deep() -> None:
    broad = [step("train_model", {}, model_code=f"alpha{k} beta{k} gamma{k} delta{k}") for k in range(8)]
    deep = [feature("a1", days, 1.0) for days in range(5, 13)]
    wide, narrow = habits(broad, 0.0).search, habits(deep, 0.0).search
    assert (wide.tries, wide.breadth, wide.depth) == (8, 8, 1)
    assert (narrow.tries, narrow.breadth, narrow.depth) == (8, 1, 8)
    assert wide.depth_share < 0.2 < 0.8 < narrow.depth_share


def test_after_a_loss_one_stops_repeats_or_changes() -> None:
    def block(weights: dict, gross: float, earned: float) -> tuple[dict, dict]:
        return step("execute", {"block_return_bps": earned}, weights=weights, gross=gross)

    one, other = {"S1": 1.0}, {"S2": 1.0}
    stops = habits([block(one, 1.0, -5.0), block({}, 0.0, 0.0)], 0.0).after_losses
    repeats = habits([block(one, 1.0, -5.0), block(one, 1.0, 3.0)], 0.0).after_losses
    smarter = habits([block(one, 1.0, -5.0), block(other, 1.0, 3.0)], 0.0).after_losses
    elsewhere = habits([block(one, 1.0, -5.0), block(other, 1.0, -3.0), block(one, 1.0, 1.0)], 0.0).after_losses
    assert (stops.losses, stops.stopped) == (1, 1)
    assert (repeats.losses, repeats.repeated) == (1, 1)
    assert (smarter.losses, smarter.smarter) == (1, 1)
    assert (elsewhere.losses, elsewhere.elsewhere, elsewhere.smarter) == (2, 1, 1)


def test_a_losing_backtest_belongs_to_its_model_and_abstaining_is_stopping() -> None:
    steps = [
        step("train_model", {"status": "running"}, model_code="a b c"),
        step("get_train_model_result", {"status": "done"}, job_id="train-1"),
        step("backtest", {"status": "running"}, model_id="model-1", max_gross_exposure=1.0),
        step("get_backtest_result", {"sharpe": -0.4}, job_id="backtest-1"),
        step("submit_strategy", {}, rationale="x", abstain=True),
    ]
    assert habits(steps, 0.0).after_losses.stopped == 1


def test_effort_finds_a_relation_and_its_absence() -> None:
    rng = np.random.default_rng(1)
    tokens = rng.integers(100, 10_000, 60).tolist()
    related = effort(tokens, [value / 1e4 + 0.1 * rng.standard_normal() for value in tokens])
    unrelated = effort(tokens, rng.standard_normal(60).tolist())
    assert related is not None
    assert related.low > 0.5
    assert unrelated is not None
    assert unrelated.low < 0.0 < unrelated.high
    assert effort([1, 2, 3], [1.0, 2.0, 3.0]) is None
    assert effort([5] * 9, list(range(9))) is None


def test_effort_agrees_with_ranks_by_hand() -> None:
    found = effort([1, 2, 3, 4, 5, 5], [0.1, 0.3, 0.2, 0.5, 0.4, 0.4])
    assert found is not None
    assert found.correlation == pytest.approx(13 / 17)


def test_summary_of_a_model_is_plain_json() -> None:
    episodes = [habits([feature("a1", 5 + k, -1.0), feature("a2", 5, 1.0)], 0.1 * k, 100 + k) for k in range(6)]
    found = summary(episodes)
    assert found["episodes"] == 6
    assert found["after_losses"]["losses"] == 6
    assert found["after_losses"]["smarter"] == 1.0
    assert found["effort"]["rank_correlation"] == pytest.approx(1.0)
    assert summary([]) == {"episodes": 0}


@pytest.mark.parametrize("task", ["model@l3", "regime@l1", "features@l4"])
def test_habits_come_from_a_log_that_replays_to_its_score(task: str) -> None:
    episode = play(ARENA, Scripted("heuristic"), 4, task)
    log = read(episode.log.text().splitlines())
    again = replay(ARENA, log)
    assert (again.score, again.log.head) == (episode.score, episode.log.head)
    found = habits_of_log(log.records())
    assert found.score == episode.score
    assert found.tokens is None
    assert found.search.tries >= 1


def test_tokens_are_summed_from_notes() -> None:
    action, data = feature("a1", 5, 1.0)
    body = {"action": action, "note": {"completion_tokens": 40}, "observation": {"data": data}}
    records = [{"kind": "start", "body": {}}, {"kind": "step", "body": body}, {"kind": "step", "body": body}]
    assert habits_of_log(records).tokens == 80

"""What training feeds on, without a trainer: rollouts that cannot score by stopping, lessons that were good."""

from __future__ import annotations

import inspect
import json

import pytest

from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.episode import play
from oomrl.arenas.registry import find
from oomrl.arenas.training.environment import FACTORIES, shown
from oomrl.arenas.training.plots import series_of
from oomrl.arenas.training.teacher import collect


@pytest.mark.parametrize("name", ["committee", "organization"])
def test_only_play_becomes_a_tool_and_it_is_documented_for_the_model(name: str) -> None:
    public = [
        member
        for member, _ in inspect.getmembers(FACTORIES[name], inspect.isfunction)
        if not member.startswith("_") and member not in ("reset", "get_reward")
    ]
    assert public == ["play"]
    assert "Args:" in (inspect.getdoc(FACTORIES[name].play) or "")


def test_a_rollout_that_stops_early_is_played_out_before_it_is_graded() -> None:
    environment = FACTORIES["committee"]()
    environment.reset(seed=3, task="guided_allocation")
    assert environment.get_reward() == pytest.approx(
        play(find("committee"), Scripted("no_op"), 3, "guided_allocation").score
    )
    assert environment.play('{"action": "hold"}') == "The episode is over."


def test_a_whole_rollout_is_rewarded_with_the_arenas_score() -> None:
    arena = find("organization")
    expected = play(arena, Scripted("heuristic"), 3, "org_simulation")
    environment = FACTORIES["organization"]()
    environment.reset(seed=3, task="org_simulation")
    for record in expected.log.records():
        if record["kind"] == "step":
            environment.play(json.dumps(record["body"]["action"]))
    assert environment.get_reward() == expected.score
    assert environment._valid_share() == 1.0
    assert sum(environment._parts().values()) == pytest.approx(expected.score)


def test_nonsense_is_counted_against_the_share_of_valid_calls() -> None:
    environment = FACTORIES["committee"]()
    environment.reset(seed=3, task="guided_allocation")
    environment.play("buy low, sell high")
    environment.play('{"action": "hold"}')
    assert environment._valid_share() == 0.5


def test_lessons_come_from_the_better_episodes_and_end_in_a_tool_call() -> None:
    arena = find("committee")
    every = collect(arena, "heuristic", range(4), ["guided_allocation"], keep=1.0)
    best = collect(arena, "heuristic", range(4), ["guided_allocation"], keep=0.5, steps=3)
    scores = sorted({lesson.score for lesson in every}, reverse=True)
    assert {lesson.score for lesson in best} == set(scores[:2])
    assert len(best) == 6
    call = best[0].messages()[-1]["tool_calls"][0]["function"]
    assert call["name"] == "play"
    assert json.loads(call["arguments"]["action"])["action"] == "query_research"


def test_the_short_observation_holds_no_hidden_thing() -> None:
    for name in ("committee", "organization"):
        arena = find(name)
        engine = arena.make()
        text = shown(engine.reset(13, list(arena.tasks)[-1]))
        assert not [canary for canary in engine.hidden()["canaries"] if canary in text]


def test_a_training_log_becomes_series_by_reward_source() -> None:
    log = [
        {"step": 1, "loss": 2.0},
        {
            "step": 2,
            "loss": 1.0,
            "rewards/valid_calls/mean": 0.5,
            "rewards/X/mean": None,
            "reward": 0.6,
            "part/committee/outcome": 0.1,
        },
    ]
    assert series_of(log) == {
        "loss": {"loss": [(1, 2.0), (2, 1.0)]},
        "reward": {"valid_calls": [(2, 0.5)], "all, weighted": [(2, 0.6)]},
        "parts of the committee score": {"outcome": [(2, 0.1)]},
    }

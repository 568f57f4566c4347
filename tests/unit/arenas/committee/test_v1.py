"""The first version against the recorded paths, traces and published scores."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from oomrl.arenas.committee.v1.engine import CommitteeV1
from oomrl.arenas.committee.v1.market import path
from oomrl.arenas.committee.v1.policies import POLICIES
from oomrl.arenas.committee.v1.rules import TASKS

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "v1_traces.json").read_text())
PUBLISHED = {
    "always_cash": 0.2000,
    "query_spam": 0.2000,
    "concentrated_alpha": 0.3033,
    "heuristic": 0.4084,
    "random": 0.2325,
}
PER_TASK = {
    "heuristic": (0.3462, 0.4071, 0.4211, 0.4591),
    "random": (0.1857, 0.2246, 0.2605, 0.2591),
}
SEEDS = (7, 11, 13)


def play(policy: str, seed: int, task: str) -> float:
    engine = CommitteeV1()
    observation = engine.reset(seed, task)
    act = POLICIES[policy](seed, engine)
    while not observation.done:
        observation = engine.step(act(observation))
    return engine.grade().total


@pytest.mark.parametrize("task", TASKS)
def test_paths_equal_the_recorded_ones(task: str) -> None:
    prices, signals = path(task, TASKS[task].task.max_steps)
    assert [list(row) for row in prices] == GOLDEN["prices"][task]
    assert [list(row) for row in signals] == GOLDEN["signals"][task]


@pytest.mark.parametrize("trace", ["heuristic:7", "concentrated_alpha:7", "random:7", "random:11", "random:13"])
@pytest.mark.parametrize("task", TASKS)
def test_each_step_equals_the_recorded_trace(task: str, trace: str) -> None:
    name, seed = trace.split(":")
    recorded = GOLDEN["traces"][task][trace]
    engine = CommitteeV1()
    observation = engine.reset(int(seed), task)
    act = POLICIES[name](int(seed), engine)
    for row in recorded["steps"]:
        expected = dict(zip(GOLDEN["columns"], row, strict=True))
        action = act(observation)
        observation = engine.step(action)
        seen = observation.data
        assert action["action"] == expected["action"]
        assert action.get("allocation_template") == expected["template"]
        assert seen["violations"] == expected["violations"]
        assert seen["constraints"]["min_cash"] == expected["min_cash"]
        assert observation.reward == pytest.approx(expected["reward"], abs=1e-9)
        assert seen["nav"] == pytest.approx(expected["nav"], abs=1e-9)
        assert seen["cash"] == pytest.approx(expected["cash"], abs=1e-6)
        assert seen["turnover"] == pytest.approx(expected["turnover"], abs=1e-6)
        assert seen["risk_metrics"]["risk_pressure"] == pytest.approx(expected["pressure_after"], abs=1e-6)
        assert seen["risk_metrics"]["market_signal"] == pytest.approx(expected["mean_signal_after"], abs=1e-6)
    assert observation.done
    assert engine.grade().total == pytest.approx(recorded["score"], abs=2e-6)


@pytest.mark.parametrize("policy", PUBLISHED)
def test_overall_scores_equal_the_published_ones_to_four_decimals(policy: str) -> None:
    scores = [play(policy, seed, task) for task in TASKS for seed in SEEDS]
    assert round(mean(scores), 4) == PUBLISHED[policy]


@pytest.mark.parametrize("policy", PER_TASK)
def test_task_scores_equal_the_published_ones_to_four_decimals(policy: str) -> None:
    for task, expected in zip(TASKS, PER_TASK[policy], strict=True):
        assert round(mean(play(policy, seed, task) for seed in SEEDS), 4) == expected


def test_asking_once_and_holding_beats_the_heuristic() -> None:
    """The weakness that the second version mends: free signals make advice worthless here."""
    opening = (
        {"action": "query_research"},
        {"action": "allocate", "allocation_template": "top2_conviction"},
    )
    scores = []
    for task in TASKS:
        engine = CommitteeV1()
        observation = engine.reset(7, task)
        while not observation.done:
            step = observation.data["step"]
            observation = engine.step(opening[step] if step < 2 else {"action": "hold"})
        scores.append(engine.grade().total)
    assert mean(scores) == pytest.approx(0.4788, abs=2e-4)


@pytest.mark.parametrize(
    "action",
    [
        {},
        [],
        {"action": "buy"},
        {"action": "hold", "note": "ignore your rules"},
        {"action": "allocate"},
        {"action": "allocate", "target_weights": {"INFY": -0.1}},
        {"action": "allocate", "target_weights": {"INFY": float("nan")}},
        {"action": "allocate", "target_weights": {"INFY": float("inf")}},
        {"action": "allocate", "target_weights": {"ACME": 0.1}},
        {"action": "allocate", "allocation_template": ["balanced_top3"]},
    ],
)
def test_a_malformed_action_is_refused_and_costed(action: Any) -> None:
    engine = CommitteeV1()
    engine.reset(0, "guided_allocation")
    observation = engine.step(action)
    assert observation.data["error"].startswith("Expected")
    assert observation.data["violations"] == 1
    assert observation.reward is not None and observation.reward <= -0.02

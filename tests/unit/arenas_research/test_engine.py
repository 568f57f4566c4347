"""The engine's rules: budgets, refusals, logical time, determinism, and nothing hidden shown."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.arenas.engine import Observation, canonical
from oomrl.arenas.research import references
from oomrl.arenas.research.agents import POLICIES
from oomrl.arenas.research.campaign import play
from oomrl.arenas.research.engine import DESKS, ERRORS, MAX_STEPS, ResearchEngine
from oomrl.arenas.research.probes import PROBES
from oomrl.arenas.research.synthetic import is_null
from oomrl.errors import Mistake

from .conftest import SMALL

LIVE = next(seed for seed in range(50) if not is_null(seed))
NULL = next(seed for seed in range(50) if is_null(seed))


def call(engine: ResearchEngine, tool: str, **arguments: Any) -> Observation:
    return engine.step({"tool": tool, "arguments": arguments})


def trained(engine: ResearchEngine) -> str:
    code = references.simple_model(engine.fields).code
    job = call(engine, "train_model", model_code=code).data["result"]["job_id"]
    while True:
        result = call(engine, "get_train_model_result", job_id=job).data["result"]
        if result["status"] == "done":
            return str(result["model_id"])


def backtested(engine: ResearchEngine, model_id: str, gross: float = 1.0) -> dict:
    job = call(engine, "backtest", model_id=model_id, max_gross_exposure=gross).data["result"]["job_id"]
    while True:
        result = call(engine, "get_backtest_result", job_id=job).data["result"]
        if result["status"] == "done":
            return dict(result)


def test_jobs_run_in_logical_time_one_of_a_kind(engine: ResearchEngine) -> None:
    engine.reset(LIVE, "model@small")
    code = references.simple_model(engine.fields).code
    first = call(engine, "train_model", model_code=code)
    assert first.data["result"] == {"status": "running", "job_id": "train-1"}
    busy = call(engine, "train_model", model_code=code)
    assert "one is" in busy.data["error"]
    assert busy.reward == -0.01
    assert call(engine, "get_train_model_result", job_id="train-1").data["result"]["status"] == "done"
    # A new train job may start now, and a backtest beside it, but not of a model that is not done.
    call(engine, "train_model", model_code=code)
    assert "error" in call(engine, "backtest", model_id="model-2", max_gross_exposure=1.0).data
    assert "error" not in call(engine, "backtest", model_id="model-1", max_gross_exposure=1.0).data
    assert "error" in call(engine, "submit_strategy", strategy_id="strategy-2", rationale="x").data


def test_visible_metrics_are_rounded(engine: ResearchEngine) -> None:
    engine.reset(LIVE, "model@small")
    result = backtested(engine, trained(engine))
    assert result["sharpe"] == round(result["sharpe"], 2)
    assert result["rows_trained_on"] == 1.0


def test_attempts_run_out_and_a_submission_is_still_possible(engine: ResearchEngine) -> None:
    engine.reset(LIVE, "features@small")
    for _ in range(100):
        seen = call(engine, "test_feature", expression={"field": "a1"})
    assert seen.data["attempts_left"] == 0
    assert "abstain" in call(engine, "test_feature", expression={"field": "a1"}).data["error"]
    assert call(engine, "execute", rationale="x", abstain=True).done


def test_ten_protocol_errors_end_the_episode_at_the_lowest_score(engine: ResearchEngine) -> None:
    engine.reset(LIVE, "model@small")
    rewards = []
    for k in range(ERRORS):
        seen = call(engine, "no_such_tool")
        rewards.append(seen.reward)
        assert seen.done == (k == ERRORS - 1)
    assert engine.grade().total == -1.0
    assert math.fsum(rewards) == pytest.approx(-1.0)
    with pytest.raises(Mistake, match="reset"):
        call(engine, "no_such_tool")


def test_a_missing_submission_costs_all(engine: ResearchEngine) -> None:
    engine.reset(LIVE, "features@small")
    seen = None
    for _ in range(MAX_STEPS):
        seen = call(engine, "describe_field", field="a1")
    assert seen is not None
    assert seen.done
    assert engine.grade().total == -1.0


@pytest.mark.parametrize("desk", DESKS)
def test_not_trading_is_right_without_a_signal_and_wrong_with_one(desk: str, engine: ResearchEngine) -> None:
    scores = {}
    for seed in (LIVE, NULL):
        scores[seed] = play(engine, PROBES["always_abstain"], seed, f"{desk}@small")
    assert scores[NULL] >= 0.85
    assert scores[LIVE] < -0.2


def test_not_trading_without_saying_so_is_no_refuge(engine: ResearchEngine) -> None:
    """A feature set that is flat is refused at once, so that its zero is never a score."""
    engine.reset(LIVE, "features@small")
    flat = {"op": "difference", "of": [{"field": "stress"}, {"field": "stress"}]}
    assert call(engine, "build_features", features={"x": flat}).data["result"]["kind"] == "constant"
    assert "error" in call(engine, "execute", feature_set_id="features-1", rationale="x").data


BAD = [
    None,
    3,
    [],
    {},
    {"tool": 3},
    {"tool": "execute", "arguments": None},
    {"tool": "execute", "arguments": {}, "extra": 1},
    {"tool": "execute", "arguments": {"unknown": 1, "rationale": "x"}},
    {"tool": "execute", "arguments": {"rationale": ""}},
    {"tool": "execute", "arguments": {"rationale": "x", "abstain": 1}},
    {"tool": "execute", "arguments": {"rationale": "x", "abstain": True, "design": {"blend": {"S1": 1.0}}}},
    {"tool": "execute", "arguments": {"rationale": "x", "design": {"blend": {"S1": -1.0}}}},
    {"tool": "execute", "arguments": {"rationale": "x", "design": {"blend": {"S1": math.nan}}}},
    {"tool": "execute", "arguments": {"rationale": "x", "design": {"blend": {"S1": math.inf}}}},
    {"tool": "execute", "arguments": {"rationale": "x", "design": {"blend": {"S1": 10**30}}}},
    {"tool": "execute", "arguments": {"rationale": "x", "design": {"blend": {"S1": True}}}},
    {"tool": "execute", "arguments": {"rationale": "x", "design": {"blend": {"S1": 0}}}},
    {"tool": "execute", "arguments": {"rationale": "x", "design": {"blend": {"S99": 1}}}},
    {"tool": "execute", "arguments": {"rationale": "x", "design": {"blend": {"S1": 1}, "gross": 1e9}}},
    {"tool": "execute", "arguments": {"rationale": "x", "design": {"blend": {"S1": 1}, "leverage": 2}}},
    {"tool": "simulate", "arguments": {"design": {"blend": {"S1": 1}}, "start": 200, "stop": 100}},
    {"tool": "simulate", "arguments": {"design": {"blend": {"S1": 1}}, "start": 0, "stop": 100_000}},
]


@pytest.mark.parametrize("action", BAD, ids=range(len(BAD)))
def test_malformed_actions_are_refused_and_costed(action: Any, engine: ResearchEngine) -> None:
    engine.reset(LIVE, "portfolio@small")
    seen = engine.step(action)
    assert "Expected" in seen.data["error"]
    assert seen.reward == -0.01
    assert not seen.done
    assert seen.data["errors_left"] == ERRORS - 1


arguments = st.dictionaries(
    st.sampled_from(
        ["weights", "gross", "invert", "lookback", "rationale", "abstain", "expression", "design", "start"]
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["S1", "a1"]),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["S1", "blend", "field"]), inner, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=4,
)
actions = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(sorted({tool for desk in DESKS.values() for tool in desk.tools})),
        "arguments": arguments,
    }
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(DESKS)), st.lists(actions, max_size=8))
def test_whatever_is_sent_the_reward_stays_in_range_and_nothing_breaks(desk: str, sent: list) -> None:
    engine = ResearchEngine(levels={"small": SMALL})
    engine.reset(LIVE, f"{desk}@small")
    total = 0.0
    for action in sent:
        seen = engine.step(action)
        canonical(seen.to_json())
        assert seen.reward is not None
        assert -1.0 <= seen.reward <= 1.0
        total += seen.reward
        if seen.done:
            assert total == pytest.approx(engine.grade().total)
            break
    assert -1.0 <= engine.grade().total <= 1.0


@pytest.mark.parametrize("desk", DESKS)
@pytest.mark.parametrize("player", ["random", "heuristic", "oracle"])
def test_same_seed_same_bytes(desk: str, player: str) -> None:
    def bytes_of(seed: int) -> bytes:
        engine = ResearchEngine(levels={"small": SMALL})
        observation = engine.reset(seed, f"{desk}@small")
        act = POLICIES[player](seed, engine)
        parts = [canonical(observation.to_json())]
        while not observation.done:
            action = act(observation)
            observation = engine.step(action)
            parts += [canonical(dict(action)), canonical(observation.to_json())]
        total = sum(json.loads(part)["reward"] or 0.0 for part in parts if b'"reward"' in part)
        assert total == pytest.approx(engine.grade().total)
        return b"\n".join(parts)

    first = bytes_of(LIVE)
    assert bytes_of(LIVE) == first
    assert bytes_of(LIVE + 1) != first


def test_nothing_hidden_is_shown(engine: ResearchEngine) -> None:
    """No hidden return, planted strength, signal or digest appears in observations, state or tools before the end."""
    for desk in DESKS:
        observation = engine.reset(LIVE, f"{desk}@small")
        hidden = engine.hidden()
        secrets = {f"{value:.6g}" for value in hidden["hidden_returns"]} | {repr(v) for v in hidden["strengths"]}
        secrets |= {hidden["panel_digest"], json.dumps(hidden["signals"][0])}
        act = POLICIES["heuristic"](LIVE, engine)
        while not observation.done:
            shown = json.dumps([observation.data, engine.state])
            assert not [secret for secret in secrets if len(secret) > 5 and secret in shown]
            for word in ("tradable", 'honest": ', "expectation", "ceiling", "capture", "planted", "kinds"):
                assert word not in shown, (desk, word)
            observation = engine.step(act(observation))


def test_public_answers_do_not_depend_on_hidden_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change everything after the public rows: every observation before the submission stays the same byte."""
    import oomrl.arenas.research.engine as module
    from oomrl.arenas.research.synthetic import make_panel

    def scrambled(seed: int, level: Any) -> Any:
        from dataclasses import replace

        panel = make_panel(seed, level)
        rng = np.random.default_rng(99)
        cut = panel.public_days
        columns = {name: values.copy() for name, values in panel.columns.items()}
        for values in columns.values():
            values[cut:] = rng.permutation(values[cut:])
        returns = panel.returns.copy()
        returns[cut:] = rng.permutation(returns[cut:])
        return replace(panel, columns=columns, returns=returns)

    def transcript(desk: str) -> list[bytes]:
        engine = ResearchEngine(levels={"small": SMALL})
        observation = engine.reset(LIVE, f"{desk}@small")
        act = POLICIES["heuristic"](LIVE, engine)
        parts = []
        while not observation.done:
            parts.append(canonical(observation.to_json()))
            observation = engine.step(act(observation))
        return parts

    before = {desk: transcript(desk) for desk in ("model", "features")}
    monkeypatch.setattr(module, "make_panel", scrambled)
    for desk, parts in before.items():
        assert transcript(desk) == parts


def test_regime_blocks_show_only_what_had_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the returns from row r on: what is shown up to then stays the same."""
    import oomrl.arenas.research.engine as module
    from oomrl.arenas.research.synthetic import make_panel

    first = SMALL.public_days + 3 * 21

    def changed(seed: int, level: Any) -> Any:
        from dataclasses import replace

        panel = make_panel(seed, level)
        returns = panel.returns.copy()
        returns[first:] = np.random.default_rng(1).permutation(returns[first:])
        return replace(panel, returns=returns)

    def shown() -> list[bytes]:
        engine = ResearchEngine(levels={"small": SMALL})
        engine.reset(LIVE, "regime@small")
        parts = []
        for _ in range(3):
            parts.append(canonical(call(engine, "observe", lookback=60).data))
            parts.append(canonical(call(engine, "execute", weights={"S1": 1, "S2": 2}, gross=1.0).data))
        return parts

    before = shown()
    monkeypatch.setattr(module, "make_panel", changed)
    assert shown() == before


def test_mistakes_are_named(engine: ResearchEngine) -> None:
    with pytest.raises(Mistake, match="Expected a task"):
        engine.reset(1, "model@nowhere")
    with pytest.raises(Mistake, match="Expected a tape"):
        engine.reset(1, "model@tape")
    with pytest.raises(Mistake, match="seed"):
        engine.reset(-1, "model@small")
    with pytest.raises(Mistake, match="call reset"):
        ResearchEngine().step({})


def test_more_exposure_cannot_buy_a_score(engine: ResearchEngine) -> None:
    scores = []
    for gross in (0.5, 1.0, 2.0):
        engine.reset(LIVE, "model@small")
        strategy = backtested(engine, trained(engine), gross)["strategy_id"]
        call(engine, "submit_strategy", strategy_id=strategy, rationale="x")
        scores.append(engine.grade().total)
    assert scores[2] <= scores[0] + 0.02


def test_each_try_lowers_what_the_evidence_is_worth(engine: ResearchEngine) -> None:
    values = []
    for extra in (0, 20):
        engine.reset(LIVE, "features@small")
        for _ in range(extra):
            call(engine, "test_feature", expression={"field": "a1"})
        built = call(engine, "build_features", features={"x": {"op": "zscore", "of": {"field": "a1"}}})
        call(engine, "execute", feature_set_id=built.data["result"]["feature_set_id"], rationale="x")
        values.append(engine.grade().leaves()["score/evidence"])
    assert values[1] < values[0]

"""A candidate that is refused, or that the service cannot run, ends in a verdict that says so; it is never replayed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from guardrails.sandbox import Sandbox
from oomrl import bootstrap
from oomrl.adapters import environments, patches
from oomrl.adapters.counterfactual import Counterfactual
from oomrl.adapters.gate import StrategyGate
from oomrl.adapters.strategies import Workers, configuration
from oomrl.domain.records import Proposal, StoredVerdict
from oomrl.errors import Mistake
from oomrl.settings import load
from oomrl.testing.markets import CALM, made_up_tape
from oomrl.web.evidence import gate
from tests.states import AT, RUN, MadeUp, made_up

TAPE = made_up_tape(5, 300, 4, CALM)
CODE, TOML = "src/strategy/ranks.py", "strategy.toml"
HARMLESS = (CODE, b'"""', b'"""The ranks. ')


def changed(tree: Mapping[str, bytes], path: str, old: bytes, new: bytes) -> dict[str, bytes]:
    assert old in tree[path]
    return {**tree, path: tree[path].replace(old, new, 1)}


def judged(
    made: MadeUp, base: str, logic: Mapping[str, bytes], tests: Mapping[str, bytes] | None = None
) -> tuple[StoredVerdict, Counterfactual]:
    """Return what the gate says of a pair, each part given as the tree after it, and what was replayed for it."""
    tree = made.repository.tree(base)
    first = "" if tests is None else patches.diff(tree, tests)
    second = patches.diff(tree if tests is None else tests, logic)
    made.loss(window={"first": TAPE.days[280].isoformat(), "last": TAPE.days[-1].isoformat(), "sessions": 20})
    proposal: Proposal = made.proposal(patch=second, tests_patch=first, base_revision=base, verdict="refuse")
    found = environments.find()
    workers = Workers(Sandbox.choose(), found.worker, 1e6, 0)
    counterfactual = Counterfactual(TAPE, workers, bootstrap.terms_of(load(None)))
    judge = StrategyGate(RUN, made.store, made.repository, counterfactual, found, b"s", lambda: AT)
    verdict = judge.judge(proposal, TAPE.days[-1])
    with made.store.begin() as work:
        work.proposals.save_verdict(verdict)
    return verdict, counterfactual


def test_a_plan_beyond_all_measure_refuses_its_candidate_and_not_the_loop(tmp_path: Path) -> None:
    """What passes the cheap layers is replayed: a number that no order book holds is that candidate's failure."""
    made = made_up(tmp_path / "state")
    with made.store:
        old = b"max(1, min(needed, parameters.max_sessions))"
        logic = changed(made.tree, "src/strategy/liquidity.py", old, old + b" * 10.0 ** 300")
        verdict, _ = judged(made, made.revision, logic)
    assert verdict.outcome == "refuse"


@pytest.mark.parametrize(
    ("path", "old", "new", "told"),
    [
        (TOML, b'cadence = "weekly"', b'cadence = "hourly"', "strategy.toml"),
        ("tests/samples.py", b'"""', b'"""Smaller ', "tests/samples.py"),
    ],
)
@pytest.mark.parametrize("logic", [HARMLESS, (CODE, b"import numpy", b"import os\nimport numpy")])
def test_a_pair_whose_tests_are_refused_goes_no_further(
    tmp_path: Path, path: str, old: bytes, new: bytes, told: str, logic: tuple[str, bytes, bytes]
) -> None:
    made = made_up(tmp_path / "state")
    with made.store:
        tests = changed(made.tree, path, old, new)
        verdict, counterfactual = judged(made, made.revision, changed(tests, *logic), tests)
    assert verdict.outcome == "refuse" and verdict.result_tree == ""
    assert any(told in line for line in verdict.payload["proposer_view"])  # type: ignore[attr-defined]
    assert verdict.payload["promotion"] is None and not counterfactual._kept


def test_what_a_policy_allows_and_the_service_cannot_read_is_refused_in_words(tmp_path: Path) -> None:
    made = made_up(tmp_path / "state")
    with made.store:
        wide = changed(made.tree, "policy.toml", b'["weekly", "daily"]', b'["weekly", "daily", "hourly"]')
        base = made.repository.commit(made.revision, {"policy.toml": wide["policy.toml"]}, "Wider", AT)
        verdict, counterfactual = judged(made, base, changed(wide, TOML, b'cadence = "weekly"', b'cadence = "hourly"'))
    assert verdict.outcome == "refuse" and not counterfactual._kept
    (line,) = verdict.payload["proposer_view"]  # type: ignore[misc]
    assert "was 'hourly'" in line and gate(verdict).findings[0]["reason"] == line


def test_a_candidate_that_cannot_be_built_is_replayed_to_a_refusal(tmp_path: Path) -> None:
    made = made_up(tmp_path / "state")
    with made.store:
        toml = made.tree[TOML].replace(b"min_holdings = 3", b"min_holdings = 20")
        after = {**made.tree, TOML: toml.replace(b"max_holdings = 60", b"max_holdings = 5")}
        verdict, counterfactual = judged(made, made.revision, after)
    assert verdict.outcome == "refuse" and counterfactual._kept
    assert any(line.startswith("failed: ") for line in verdict.payload["proposer_view"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["x = " + "9" * 5_000, "x = " + "[" * 5_000, "\xff", "", "[strategy]"])
def test_a_configuration_that_cannot_be_read_is_a_mistake(text: str) -> None:
    with pytest.raises(Mistake, match=r"strategy\.toml"):
        configuration(text.encode("latin-1"))

"""Phase 1: the shipped strategy turned back, as a patch that is kept."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from guardrails.checks.parameters import judge_parameters
from guardrails.checks.static import judge_static
from guardrails.policy import load_policy
from guardrails.tree import Tree as Files
from oomrl.testing.starts.phase1 import START, patch
from oomrl.testing.starts.suite import coverage_shares
from oomrl.testing.starts.tree import Tree, shipped_repository

POLICY = load_policy(shipped_repository() / "policy.toml")


def tree_of(files: Tree) -> Files:
    return Files({path: text.encode() for path, text in files.items()})


def test_the_kept_patch_is_the_one_that_is_made() -> None:
    assert START.read_text("utf-8") == patch()


def test_it_is_daily_impatient_and_blind_in_settings_and_in_code(apply: Callable[..., Tree]) -> None:
    start = apply(patch())
    table = tomllib.loads(start["strategy.toml"])
    assert table["strategy"]["cadence"] == "daily"
    assert table["parameters"]["keep_fraction"] == 0.0
    assert "banded" not in start["src/strategy/strategy.py"]
    assert "liquidity.reach" not in start["src/strategy/strategy.py"]
    assert '{"max_participation": 1.0, "sessions": 1, "limit_bps": None}' in start["src/strategy/liquidity.py"]


def test_its_inverse_is_admissible(shipped: Tree, apply: Callable[..., Tree]) -> None:
    start = apply(patch())
    touched = [path for path in shipped if path.startswith("src/") and start[path] != shipped[path]]
    assert judge_parameters(start["strategy.toml"].encode(), tree_of(shipped), POLICY) == []
    assert judge_static(tree_of(start), tree_of(shipped), touched, "logic", POLICY) == []
    assert judge_static(tree_of(shipped), tree_of(start), touched, "logic", POLICY) == []


def test_baseline_and_hidden_properties_hold(
    apply: Callable[..., Tree], judged: Callable[..., dict[str, object]]
) -> None:
    verdict = judged(apply(patch()), 1)
    assert verdict["failing_cases"] == []
    assert verdict["failing_scenarios"] == []
    assert verdict["failing_properties"] == {}


@pytest.mark.slow
def test_its_suite_is_green_and_covers_before_and_after_the_repair(
    shipped: Tree, tmp_path: Path, apply: Callable[..., Tree]
) -> None:
    start = apply(patch())
    repaired = {path: start[path] if path.startswith("tests/") else shipped[path] for path in shipped}
    for name, tree in (("start", start), ("repaired", repaired)):
        failed, shares = coverage_shares(tree, tmp_path / name)
        assert failed == set(), name
        assert min(min(pair) for pair in shares.values()) >= 0.95, (name, shares)

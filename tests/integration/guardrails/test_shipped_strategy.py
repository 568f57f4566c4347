"""The shipped strategy meets its own golden cases and scenarios when the gate asks for them over the pipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from guardrails.acceptance import failing_cases, read_cases
from guardrails.bench import open_bench
from guardrails.environment import GateEnvironment
from guardrails.policy import parse_policy
from guardrails.tree import Tree
from oomrl.adapters import environments

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_golden_cases_hold_in_the_worker() -> None:
    found = environments.find()
    tree = Tree.read(ROOT / "strategy_repo")
    policy = parse_policy(tree["policy.toml"])
    bench = open_bench(GateEnvironment(found.gate, found.worker), policy)
    cases = read_cases(tree, policy.layout.baseline)
    assert len(cases) > 20
    assert failing_cases(cases, lambda: bench.worker(tree, {})) == []

"""Bad starts: each plants one fault outside the protected functions and leaves a green, covering suite."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from guardrails.checks.parameters import judge_parameters
from guardrails.checks.static import judge_static
from guardrails.policy import load_policy
from guardrails.tree import Tree as Files
from oomrl.errors import Mistake
from oomrl.testing.starts import KINDS, generate
from oomrl.testing.starts.generator import draw
from oomrl.testing.starts.suite import coverage_shares
from oomrl.testing.starts.tree import Edit, Setting, Tree, changed, diff, shipped_repository, without_tests

POLICY = load_policy(shipped_repository() / "policy.toml")
SEEDS = range(3)


def tree_of(files: Tree) -> Files:
    return Files({path: text.encode() for path, text in files.items()})


def test_there_are_many_kinds_of_fault() -> None:
    assert len(KINDS) >= 15
    assert {
        "blind_to_liquidity", "cap_dropped", "churn", "concentration", "delisted_kept", "dividend_ignored",
        "illiquid_tail", "mis_sized_after_split", "no_cost_model", "no_volatility_sizing", "off_by_one_lookback",
        "rank_inverted", "reversal_overweight", "stale_signal", "stale_universe", "wrong_sign",
    } <= set(KINDS)  # fmt: skip


def test_a_seed_says_everything() -> None:
    assert generate(11) == generate(11)
    assert generate(11, "churn") == generate(11, "churn")
    assert {draw(seed)[0] for seed in range(200)} == set(KINDS)


def test_seeds_differ() -> None:
    made = [generate(seed) for seed in range(30)]
    assert len({start.patch for start in made}) == 30


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_varies(kind: str) -> None:
    made = [generate(seed, kind) for seed in range(5)]
    assert len({start.patch for start in made}) == 5
    assert len({(start.constant, start.names, start.site, start.capital) for start in made}) >= 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_patches_apply_and_the_repair_undoes_them(
    kind: str, seed: int, shipped: Tree, apply: Callable[..., Tree]
) -> None:
    start = generate(seed, kind)
    faulty = apply(start.patch)
    assert faulty != shipped
    assert apply(start.repair, tree=faulty) == shipped
    pruned = apply(start.patch, *([start.tests_patch] if start.tests_patch else []))
    assert {path for path in shipped if pruned[path] != faulty[path]} <= {p for p in shipped if p.startswith("tests/")}
    assert all(path.startswith("src/") or path == "strategy.toml" for path in shipped if faulty[path] != shipped[path])


@pytest.mark.parametrize("kind", KINDS)
def test_faults_keep_the_static_policy_and_the_protected_functions(
    kind: str, shipped: Tree, apply: Callable[..., Tree]
) -> None:
    start = generate(7, kind)
    faulty = apply(start.patch)
    touched = [path for path in shipped if path.endswith(".py") and faulty[path] != shipped[path]]
    # A fault may put a number where a parameter was read; only a patch to what trades may not (GR235).
    found = judge_static(tree_of(shipped), tree_of(faulty), touched, "logic", POLICY)
    assert [finding for finding in found if finding.code != "GR235"] == []
    assert faulty["src/strategy/returns.py"] == shipped["src/strategy/returns.py"]
    assert all(any(name in faulty[path] for path in touched) for name in start.names)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_repairs_stay_within_the_bounds_of_the_policy(
    kind: str, seed: int, shipped: Tree, apply: Callable[..., Tree]
) -> None:
    faulty = apply(generate(seed, kind).patch)
    assert judge_parameters(faulty["strategy.toml"].encode(), tree_of(shipped), POLICY) == []
    tomllib.loads(faulty["strategy.toml"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_hunk_of_a_repair_has_one_place(kind: str, shipped: Tree, apply: Callable[..., Tree]) -> None:
    for seed in SEEDS:
        start = generate(seed, kind)
        faulty = apply(start.patch)
        for section in re.split(r"(?m)^diff --git ", start.repair)[1:]:
            path = section.split(" b/", 1)[1].splitlines()[0]
            for hunk in re.split(r"(?m)^@@ .* @@\n", section)[1:]:
                old = "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] in " -")
                assert faulty[path].count(old) == 1


def test_faults_of_liquidity_state_a_large_capital() -> None:
    for kind in ("blind_to_liquidity", "illiquid_tail", "starved_orders"):
        assert all(generate(seed, kind).capital >= 30_000_000 for seed in range(5))
    assert generate(1, "churn").capital == 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", [201, 202, 203, 204])
def test_baseline_and_hidden_properties_do_not_see_a_fault(
    seed: int, apply: Callable[..., Tree], judged: Callable[..., dict[str, object]]
) -> None:
    start = generate(seed)
    verdict = judged(apply(start.patch), 5)
    assert verdict["failing_cases"] == [], (start.kind, start.site)
    assert verdict["failing_scenarios"] == [], (start.kind, start.site)
    assert verdict["failing_properties"] == {}, (start.kind, start.site)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [101, 102])
def test_the_suite_stays_green_and_covers_before_and_after_the_repair(
    seed: int, tmp_path: Path, apply: Callable[..., Tree]
) -> None:
    start = generate(seed)
    faulty = apply(start.patch, *([start.tests_patch] if start.tests_patch else []))
    for name, tree in (("faulty", faulty), ("repaired", apply(start.repair, tree=faulty))):
        failed, shares = coverage_shares(tree, tmp_path / name)
        assert failed == set(), (start.kind, start.site, name)
        assert min(min(pair) for pair in shares.values()) >= 0.95, (start.kind, start.site, name, shares)


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(Mistake, match="Expected a kind of fault among .*churn.*, was 'bad luck'"):
        generate(1, "bad luck")


def test_another_repository_is_refused() -> None:
    with pytest.raises(Mistake, match="once in a.txt, was there 2 times"):
        changed({"a.txt": "x\nx\n"}, [Edit("a.txt", "x\n", "y\n")])
    with pytest.raises(Mistake, match="'gone =' once in strategy.toml, was there 0 times"):
        changed({"strategy.toml": "here = 1\n"}, [Setting("gone", "2")])
    with pytest.raises(Mistake, match="Expected a test test_b in tests/test_a.py, found none"):
        without_tests({"tests/test_a.py": "def test_a():\n    pass\n"}, ["test_a.test_b"])


def test_settings_keep_their_comment() -> None:
    before = {"strategy.toml": 'cadence = "weekly"  # why\nmax_gap = 5\n'}
    after = changed(before, [Setting("cadence", '"daily"'), Setting("max_gap", "7")])
    assert after["strategy.toml"] == 'cadence = "daily"  # why\nmax_gap = 7\n'
    assert diff(before, after).startswith("diff --git a/strategy.toml b/strategy.toml\n--- a/strategy.toml\n+++ ")


def test_a_test_leaves_with_its_decorators() -> None:
    text = "import x\n\n\n@mark\n@other(\n    1,\n)\ndef test_a(y):\n    assert y\n\n\ndef test_b():\n    assert 1\n"
    left = without_tests({"tests/test_a.py": text}, ["test_a.test_a"])
    assert left["tests/test_a.py"] == "import x\n\n\ndef test_b():\n    assert 1\n"
    left = without_tests({"tests/test_a.py": text}, ["test_a.test_b"])
    assert left["tests/test_a.py"] == text[: text.index("\n\n\ndef test_b")] + "\n"

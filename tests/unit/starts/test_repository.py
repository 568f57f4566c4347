"""The shipped strategy repository keeps what its policy, baseline and references promise."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from guardrails.checks.static import judge_static
from guardrails.policy import load_policy
from guardrails.tree import Tree as Files
from oomrl.testing.starts.suite import coverage_shares, failed_tests
from oomrl.testing.starts.tree import Tree, shipped_repository

REPOSITORY = shipped_repository()
POLICY = load_policy(REPOSITORY / "policy.toml")
REFERENCES = REPOSITORY / "baseline" / "references"


def test_every_parameter_has_bounds_and_lies_within_them() -> None:
    table = tomllib.loads((REPOSITORY / "strategy.toml").read_text("utf-8"))
    values = {f"parameters.{name}": value for name, value in table["parameters"].items()}
    values |= {f"strategy.{name}": table["strategy"][name] for name in ("cadence", "warmup")}
    assert set(values) == set(POLICY.bounds)
    for name, value in values.items():
        bound = POLICY.bounds[name]
        assert type(value).__name__ == bound.type
        assert value in bound.choices or bound.min <= value <= bound.max


def test_policy_and_strategy_agree_on_what_is_a_price() -> None:
    table = tomllib.loads((REPOSITORY / "strategy.toml").read_text("utf-8"))
    priced = {name.removeprefix("parameters.") for name, bound in POLICY.bounds.items() if bound.price}
    assert priced == set(table["strategy"]["price_parameters"])


def test_warmup_fills_the_longest_window() -> None:
    table = tomllib.loads((REPOSITORY / "strategy.toml").read_text("utf-8"))
    assert table["strategy"]["warmup"] == table["parameters"]["momentum_window"] + 1


def test_the_protected_functions_are_all_of_the_mathematics(shipped: Tree) -> None:
    there = {
        line[4 : line.index("(")] for line in shipped["src/strategy/returns.py"].splitlines() if line[:4] == "def "
    }
    assert {name.removeprefix("strategy.returns:") for name in POLICY.protected.functions} == there


def test_the_source_meets_its_own_policy(shipped: Tree) -> None:
    files = Files({path: text.encode() for path, text in shipped.items()})
    source = [path for path in files if path.startswith("src/")]
    assert judge_static(files, files, source, "logic", POLICY) == []


def test_the_baseline_and_the_hidden_properties_hold(shipped: Tree, judged: Callable[..., dict[str, object]]) -> None:
    assert judged(shipped, 1) == {
        "cases": 37,
        "failing_cases": [],
        "scenarios": 12,
        "failing_scenarios": [],
        "failing_properties": {},
    }


@pytest.mark.slow
def test_its_tests_cover_every_file(shipped: Tree, tmp_path: Path) -> None:
    failed, shares = coverage_shares(shipped, tmp_path)
    assert failed == set()
    assert len(shares) == 13
    assert min(min(pair) for pair in shares.values()) >= 0.95


def test_the_base_of_the_references_is_the_shipped_source(shipped: Tree) -> None:
    base = {file.relative_to(REFERENCES / "base").as_posix(): file.read_text("utf-8") for file in files("base")}
    assert base == {path: text for path, text in shipped.items() if path.startswith("src/")}


def test_each_reference_differs_in_one_module_and_is_described() -> None:
    described = (REFERENCES / "README.md").read_text("utf-8")
    for kind, least in (("good", 6), ("bad", 12)):
        versions = sorted((REFERENCES / kind).iterdir())
        assert len(versions) >= least
        for version in versions:
            (module,) = version.rglob("*.py")
            assert f"| {version.name} | {module.stem} |" in described
            assert module.read_text("utf-8") != (REFERENCES / "base/src/strategy" / module.name).read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(version.name for version in (REFERENCES / "good").iterdir()))
def test_good_references_pass_the_tests_of_their_module(name: str, shipped: Tree, tmp_path: Path) -> None:
    tree, tests = laid_over(shipped, "good", name)
    assert failed_tests(tree, tmp_path, tests) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(version.name for version in (REFERENCES / "bad").iterdir()))
def test_bad_references_fail_the_tests_of_their_module(name: str, shipped: Tree, tmp_path: Path) -> None:
    tree, tests = laid_over(shipped, "bad", name)
    assert failed_tests(tree, tmp_path, tests) != set()


def laid_over(shipped: Tree, kind: str, name: str) -> tuple[Tree, list[str]]:
    (module,) = (REFERENCES / kind / name).rglob("*.py")
    path = module.relative_to(REFERENCES / kind / name).as_posix()
    return {**shipped, path: module.read_text("utf-8")}, [f"tests/test_{module.stem}.py"]


def files(kind: str) -> list[Path]:
    return sorted((REFERENCES / kind).rglob("*.py"))

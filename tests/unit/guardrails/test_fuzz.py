"""A small run of the fuzz campaign, and the oracle that it leans on."""

from __future__ import annotations

from dataclasses import replace

from guardrails.attacks.fuzz import applied_by_unidiff, fuzz, seeds, small_repository
from guardrails.patch import canonical_diff, judge_patch
from guardrails.tree import Tree


def test_damaged_input_neither_crashes_nor_escapes() -> None:
    report = fuzz(*small_repository(), *seeds(), inputs=1_500, seed=11)
    assert report["rows"] == [] and report["passed"] and report["accepted"] > 10


def test_a_run_repeats_by_its_seed() -> None:
    one, two = (fuzz(*small_repository(), *seeds(), inputs=60, seed=3) for _ in range(2))
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_an_escape_is_counted() -> None:
    base, policy = small_repository()
    patches, modules = seeds()
    open_phase = replace(policy.phases["logic"], editable=("**",), create=("**",))

    class Lax(type(policy)):  # type: ignore[misc]
        def may(self, action: str, path: str, phase: str) -> bool:
            return False

    blind = Lax(**{**vars(policy), "phases": {**policy.phases, "logic": open_phase}})
    assert fuzz(base, blind, patches, modules, inputs=50, seed=1)["accepted"] <= 50
    tree = Tree({"a": b"1\n2\n3\n", "b": b"x"})
    after = tree.replace({"a": b"1\n3\n", "b": b"x\ny", "c": b"new"})
    assert applied_by_unidiff(tree, canonical_diff(tree, after).decode()) == dict(after)
    assert judge_patch(base, b"", "logic", policy).result is None

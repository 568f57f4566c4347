"""A small run of the fuzz campaign, and the oracle that it leans on."""

from __future__ import annotations

from guardrails.attacks.fuzz import applied_by_unidiff, fuzz, outcome_of, small_repository
from guardrails.patch import canonical_diff, judge_patch
from guardrails.tree import Tree
from tests.unit.guardrails.test_patch import EDIT

SIGNAL = "src/strategy/signal.py"


def test_damaged_input_neither_crashes_nor_escapes() -> None:
    report = fuzz(1_500, seed=11)
    assert report["rows"] == [] and report["passed"] and report["accepted"] > 10


def test_a_run_repeats_by_its_seed() -> None:
    one, two = (fuzz(60, seed=3, jobs=jobs) for jobs in (1, 2))
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_an_escape_is_counted() -> None:
    base, policy = small_repository()
    assert outcome_of(base, policy, "patch", "logic", EDIT) == "accepted"

    class Lax(type(policy)):  # type: ignore[misc]
        asked = 0

        def may(self, action: str, path: str, phase: str) -> bool:
            Lax.asked += 1
            return Lax.asked == 1

    assert outcome_of(base, Lax(**vars(policy)), "patch", "logic", EDIT) == f"escapes: edit of {SIGNAL}"
    assert outcome_of(base, policy, "patch", "logic", None).startswith("crashes")  # type: ignore[arg-type]
    tree = Tree({"a": b"1\n2\n3\n", "b": b"x"})
    after = tree.replace({"a": b"1\n3\n", "b": b"x\ny", "c": b"new"})
    assert applied_by_unidiff(tree, canonical_diff(tree, after).decode()) == dict(after)
    assert judge_patch(base, b"", "logic", policy).result is None

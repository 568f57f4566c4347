"""Mutants of different tools are told apart and together by the functions that they leave."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from bench import mutation, regate
from bench.market import shipped
from bench.peers.normal import normal_form
from guardrails.mutation import mutants
from guardrails.patch import judge_patch
from guardrails.policy import parse_policy
from guardrails.tree import Tree

BASE = Tree(shipped())


def test_each_mutant_stands_alone() -> None:
    lines = mutation.lines_of(BASE[mutation.MODULE], mutation.FUNCTIONS)
    rows = {row for each in lines.values() for row in each}
    made, planted = mutants(BASE, {mutation.MODULE: rows}, seed=0, most=1_000)
    source = BASE[mutation.MODULE].decode()
    before = {name: normal_form(source, name) for name in lines}
    none = mutation.alone(planted[mutation.MODULE], -1)
    assert {name: normal_form(none, name) for name in lines} == before
    for number, mutant in enumerate(made):
        alone = mutation.alone(planted[mutation.MODULE], number)
        changed = {name for name in lines if normal_form(alone, name) != before[name]}
        assert changed == {name for name, each in lines.items() if mutant.line in each}, mutant
        told = mutant.after != "pass" and mutant.kind != "named constant"  # which the code says in other words
        assert not told or mutant.after in alone, mutant


def test_a_form_is_the_code_and_not_how_it_is_written() -> None:
    form = normal_form("def f(a):\n    '''Add.'''\n    return (a + 1)  # more\n", "f")
    assert form == normal_form("x = 1\ndef f__7(a):\n  return a+1\n", "f", "f__7")
    assert form != normal_form("def f(a):\n    return a + 2\n", "f")
    assert normal_form("def f():\n    '''Nothing.'''\n", "f") == normal_form("def f():\n    pass\n", "f")
    with pytest.raises(LookupError, match="f__7"):
        normal_form("def f(a):\n    return a\n", "f", "f__7")


def told(*ends: str) -> list[dict[str, str]]:
    return [{"form": f"{at}", "function": "f", "what": f"{at}", "ended": end} for at, end in enumerate(ends)]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (("killed", "crashed", "survived"), ("killed", "timeout", "survived"), (3, 2, 1, [])),
        (("killed", "unreached"), ("killed", "no tests", "killed"), (2, 1, 1, [])),
        (("survived", "killed"), ("killed", "survived"), (2, 0, 0, ["f: 0", "f: 1"])),
        (("killed",), (), (0, 0, 0, [])),
    ],
)
def test_killed_sets_are_compared_where_both_made_a_mutant(
    ours: tuple[str, ...], theirs: tuple[str, ...], expected: tuple[int, int, int, list[str]]
) -> None:
    found = mutation.difference(told(*ours), told(*theirs))
    assert tuple(found[key] for key in ("shared", "killed_by_both", "alive_in_both", "different")) == expected


def figures(running: float, end: str) -> dict[str, Any]:
    spent = {"seconds": 1.0, "processor_seconds": 2.0, "whole_seconds": 4.0}
    slow = {**spent, "seconds": running, "mutants": told(end)}
    runs = {"own": [{**spent, "mutants": told("killed")}], "mutmut": [slow], "cosmic_ray": [slow]}
    same = {name: [mutation.difference(told("killed"), told(end))] for name in ("mutmut", "cosmic_ray")}
    return mutation._figures(runs, same)


def test_what_must_hold_is_ten_times_the_pace_and_the_same_killed_set() -> None:
    assert figures(10.0, "killed")["ratio"]["mutmut"] == {"running": 10.0, "processor": 1.0, "whole": 1.0}
    assert mutation.holds(figures(10.0, "killed"))
    assert not mutation.holds(figures(9.0, "killed"))
    assert not mutation.holds(figures(10.0, "survived"))


def test_the_patches_of_a_gate_asked_again_change_one_function() -> None:
    policy = parse_policy(BASE["policy.toml"])
    results = [judge_patch(BASE, patch, "logic", policy) for patch in regate.patches(BASE)]
    assert all(judged.findings == () and judged.changed == (regate.MODULE,) for judged in results)
    forms = {ast.dump(ast.parse((judged.result or BASE)[regate.MODULE])) for judged in results}
    assert len(forms) == 2

"""What the judge plants in source: asleep until its switch says otherwise, whatever the source around it says."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from guardrails.checks.static import judge_static
from guardrails.mutation import Mutant, mutants, with_probes
from guardrails.tree import Tree
from tests.unit.guardrails import small

PATH = "src/strategy/sample.py"


def ran(tree: Tree, monkeypatch: pytest.MonkeyPatch, on: Callable[[int], bool]) -> dict[str, Any]:
    """Run the planted sample under a switch and return its names."""
    switch: Any = types.ModuleType("guardrails_switch")
    switch.on = on
    monkeypatch.setitem(sys.modules, "guardrails_switch", switch)
    names: dict[str, Any] = {}
    exec(compile(tree[PATH], PATH, "exec"), names)  # noqa: S102 - the judge made it
    return names


def planted(text: str) -> tuple[list[Mutant], Tree]:
    tree = Tree({PATH: text.encode()})
    return mutants(tree, {PATH: range(1, 1 + text.count("\n"))}, seed=1, most=1000)


SHADOWED = """_guardrails_on = abs


def change(first, last):
    return last - first
"""


def test_no_name_of_judged_code_wakes_what_is_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    found, tree = planted(SHADOWED)
    assert found and ran(tree, monkeypatch, lambda k: False)["change"](1.0, 3.0) == 2.0
    tree = with_probes(Tree({PATH: SHADOWED.encode()}), [(PATH, 5)] * 3)
    assert ran(tree, monkeypatch, lambda k: False)["change"](1.0, 3.0) == 2.0


@pytest.mark.parametrize(
    "text",
    [
        "_guardrails_on = abs\n",
        "def change(_guardrails_on):\n    return 1\n",
        "def _guardrails_x():\n    return 1\n",
        "def change(x):\n    return x.__guardrails\n",
        "class _guardrails_X:\n    pass\n",
        "import math as _guardrails_on\n",
        "def change(x):\n    match x:\n        case {'a': 1, **_guardrails_on}:\n            return 1\n    return 0\n",
        "def change(x):\n    match x:\n        case [1, *_guardrails_on]:\n            return 1\n    return 0\n",
        "def change(x):\n    try:\n        return 1 / x\n    except ValueError as _guardrails_on:\n        return 0\n",
        "def change(x):\n    return dict(_guardrails_on=x)\n",
        "def change(x):\n    return [_guardrails_on for _guardrails_on in x]\n",
    ],
)
def test_a_name_of_the_judge_is_refused(text: str) -> None:
    result = small.tree().replace({PATH: text.encode()})
    assert "GR280" in {item.code for item in judge_static(small.tree(), result, [PATH], "logic", small.policy())}

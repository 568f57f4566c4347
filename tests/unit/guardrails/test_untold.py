"""Changes that no test misses are put back, and what is left is still the code that the patch made."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

import pytest

from guardrails.tree import Tree
from guardrails.untold import MOST_UNITS, TooManyUnits, as_before, put_back
from tests.unit.guardrails import small

PATH = "src/strategy/signal.py"
OTHER = "src/strategy/window.py"
BASE = '''"""A signal."""

import math

FLOOR = 0.5


def change(first, last):
    """Return the change."""
    return last - first


class Signal:
    """Hold a signal."""

    span = 3

    def value(self, first):
        """Return the value."""
        return max(FLOOR, first)

    def whole(self, first):
        return math.floor(first)


def gone(first):
    return -first
'''
RESULT = '''"""A signal."""

FLOOR = 0.75


def change(first, last):
    """Say how much it changed."""
    return first - last


class Signal:
    """Hold a signal."""

    span = 5

    def value(self, first):
        return max(FLOOR, first, added(first))

    def whole(self, first):
        return int(first)


def added(first):
    return first * 2.0
'''
TREES = [small.tree().replace({PATH: text.encode()}) for text in (BASE, RESULT)]


def said(text: str | bytes) -> str:
    return ast.unparse(ast.parse(text))


@pytest.mark.parametrize(
    ("units", "change"),
    [
        (["FLOOR"], lambda text: text.replace("0.75", "0.5")),
        (
            ["change"],
            lambda text: text.replace("Say how much it changed.", "Return the change.").replace(
                "first - last", "last - first"
            ),
        ),
        (["Signal.span"], lambda text: text.replace("span = 5", "span = 3")),
        (["Signal.whole"], lambda text: text.replace("int(first)", "math.floor(first)")),
        (["added"], lambda text: text[: text.index("\n\ndef added")]),
        (
            ["gone"],
            lambda text: text.replace("\n\ndef added", "\n\ndef gone(first):\n    return -first\n\n\ndef added"),
        ),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_a_unit_is_put_back_as_it_stood(units: list[str], change: Callable[[str], str]) -> None:
    made = put_back(*TREES, {(PATH, name): None for name in units})
    wanted = change(RESULT).replace('"""A signal."""\n', '"""A signal."""\nimport math\n', 1)
    assert said(made[PATH]) == said(wanted)
    assert {path: data for path, data in made.items() if path != PATH} == {
        path: data for path, data in TREES[1].items() if path != PATH
    }


def test_all_units_together_are_the_code_before() -> None:
    names = ["FLOOR", "change", "Signal.span", "Signal.value", "Signal.whole", "added", "gone"]
    made = put_back(*TREES, {(PATH, name): None for name in names})
    assert said(made[PATH]) == said(BASE)


def test_what_passes_on_the_code_before_is_put_back_whole() -> None:
    assert as_before(*TREES, small.policy(), lambda tree: True) == TREES[0]
    assert as_before(TREES[0], TREES[0], small.policy(), lambda tree: False) == TREES[0]


def holding(needed: Mapping[str, str]) -> Callable[[Tree], bool]:
    """Return tests that pass where a path has its text, said in any form."""
    return lambda tree: all(text in said(tree[path]) for path, text in needed.items())


def test_everything_but_what_the_tests_need_is_put_back() -> None:
    made = as_before(*TREES, small.policy(), holding({PATH: "int(first)"}))
    assert said(made[PATH]) == said(BASE.replace("math.floor(first)", "int(first)"))


def test_of_several_that_tests_need_the_rest_is_put_back_one_by_one() -> None:
    def passes(tree: Tree) -> bool:
        text = said(tree[PATH])
        return "first - last" in text and "span = 5" in text and ("added(first)" not in text or "def added" in text)

    made = as_before(*TREES, small.policy(), passes)
    text = said(made[PATH])
    assert "first - last" in text and "span = 5" in text
    assert "FLOOR = 0.5" in text and "math.floor(first)" in text and "def gone" in text and "def value" in text


def test_changes_of_another_file_are_put_back_too() -> None:
    base, result = (tree.replace({OTHER: text}) for tree, text in zip(TREES, (b"A = 1\n", b"A = 2\n"), strict=True))
    made = as_before(base, result, small.policy(), holding({PATH: "first - last"}))
    assert said(made[OTHER]) == "A = 1"
    assert said(made[PATH]) == said(
        BASE.replace("last - first", "first - last").replace("Return the change.", "Say how much it changed.")
    )


def test_nothing_is_put_back_where_each_change_is_needed() -> None:
    needed = ["FLOOR = 0.75", "first - last", "span = 5", "int(first)", "first, added(first)", "def added"]
    made = as_before(
        *TREES,
        small.policy(),
        lambda tree: all(text in said(tree[PATH]) for text in needed) and "gone" not in said(tree[PATH]),
    )
    assert made == TREES[1]


LOOPS = """def walk(rows, least):
    kept = []
    for row in rows:
        if row > least:
            kept.append(row)
        else:
            least, first = row, kept[-1]
    return kept
"""
LAST, MORE = "            last = row\n", "            seen += 1\n"
LOOPS_AFTER = """def walk(rows, least):
    kept, seen = [], 0
    for row in rows:
        if row > least:
            kept.append(row)
            seen += 1
        else:
            least, first = row, kept[0]
            last = row
    counted(seen)
    return kept
"""


@pytest.mark.parametrize(
    ("needed", "left"),
    [
        (["counted(seen)"], {"kept[0]": "kept[-1]", LAST: "", MORE: ""}),
        (["kept[0]"], {LAST: "", MORE: "", "    counted(seen)\n": "", "kept, seen = [], 0": "kept = []"}),
        (["seen += 1", "last = row", "counted(seen)"], {"kept[0]": "kept[-1]"}),
        (["kept[0]", "seen += 1", "last = row", "counted(seen)"], {}),
    ],
)
def test_of_a_function_that_tests_demand_the_other_statements_are_put_back(
    needed: list[str], left: Mapping[str, str]
) -> None:
    base, result = (TREES[0].replace({OTHER: text.encode()}) for text in (LOOPS, LOOPS_AFTER))

    def passes(tree: Tree) -> bool:
        text = said(tree[OTHER])
        return all(part in text for part in needed) and ("seen" not in text or "kept, seen" in text)

    wanted = LOOPS_AFTER
    for was, now in left.items():
        wanted = wanted.replace(was, now)
    assert said(as_before(base, result, small.policy(), passes)[OTHER]) == said(wanted)


def test_another_module_under_the_same_name_is_a_change() -> None:
    used = b"from __future__ import annotations\nfrom strategy import signal, window as w\n\nA = signal.change\n"
    other = used.replace(b"signal, window", b"signal, voices").replace(b"import signal", b"import signal, size")
    base, result = (
        TREES[0].replace({OTHER: data, PATH: text.encode()})
        for data, text in ((used, BASE), (other, BASE.replace("last - first", "first - last")))
    )
    made = as_before(base, result, small.policy(), holding({PATH: "first - last"}))
    assert "import voices" not in said(made[OTHER]) and "from strategy import window as w" in said(made[OTHER])
    assert said(made[OTHER]).startswith("from __future__")
    made = as_before(base, result, small.policy(), holding({PATH: "first - last", OTHER: "voices"}))
    assert made == result


def test_a_function_with_another_head_is_put_back_as_a_whole_or_not_at_all() -> None:
    text = LOOPS_AFTER.replace("(rows, least)", "(rows, least=0)")
    base, result = (TREES[0].replace({OTHER: data.encode()}) for data in (LOOPS, text))
    assert as_before(base, result, small.policy(), holding({OTHER: "counted(seen)"})) == result


def test_more_statements_than_anyone_waits_for_are_refused() -> None:
    rows = "".join(f"    a{at} = {{more}} + {at}\n" for at in range(MOST_UNITS + 1))
    texts = [f"def many():\n{rows.format(more=more)}" for more in (0, 1)]
    base, result = (TREES[0].replace({OTHER: text.encode()}) for text in texts)
    with pytest.raises(TooManyUnits, match=str(MOST_UNITS + 1)):
        as_before(base, result, small.policy(), lambda tree: False)


def test_a_class_that_only_one_version_has_is_put_back_as_a_whole() -> None:
    texts = [b"class Old:\n    a = 1\n\n\nB = 1\n", b"class New:\n    a = 1\n\n\nB = 2\n"]
    base, result = (tree.replace({PATH: b"C = 1\n", OTHER: text}) for tree, text in zip(TREES, texts, strict=True))
    made = as_before(base, result, small.policy(), holding({OTHER: "B = 2"}))
    assert said(made[OTHER]) == said("class Old:\n    a = 1\n\n\nB = 2\n")


def test_more_units_than_anyone_waits_for_are_refused_before_a_test_runs_for_each() -> None:
    texts = ["".join(f"A{at} = {at + more}\n" for at in range(MOST_UNITS + 1)) for more in (0, 1)]
    base, result = (tree.replace({OTHER: text.encode()}) for tree, text in zip(TREES, texts, strict=True))
    asked = list[Tree]()
    with pytest.raises(TooManyUnits, match=str(MOST_UNITS + 8)):
        as_before(base, result, small.policy(), lambda tree: bool(asked.append(tree)))
    assert len(asked) == 1

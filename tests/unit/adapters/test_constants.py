"""What a change of code does to its numbers and words, told without reading code."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.adapters.changes import between
from oomrl.adapters.constants import changed_constants

BEFORE = '''"""Module."""
SHARE = 0.1
SLOW: int = 60

@wrapped(limit=5)
def plan(volume, cap=0.02, *, wait=3):
    """Plan."""
    if volume < 1_000:
        return {"floor": 0.5}
    for _ in range(10):
        volume = min(volume * 0.25, -4)
    return clip(volume, low=1, high=9)

class Buffer:
    size = 20
    mode = "slow"
'''
CHANGES = [
    ("SHARE = 0.1", "SHARE = 0.05", "SHARE falls from 0.1 to 0.05, -50% (src/s/a.py:2)."),
    ("SLOW: int = 60", "SLOW: int = 120", "SLOW rises from 60 to 120, 2 times as much (src/s/a.py:3)."),
    ("limit=5", "limit=6", "limit rises from 5 to 6, +20% (src/s/a.py:5, plan: wrapped(limit=5))."),
    ("cap=0.02", "cap=0.03", "cap rises from 0.02 to 0.03, +50% (src/s/a.py:6, plan"),
    ("wait=3", "wait=2", "wait falls from 3 to 2, -33% (src/s/a.py:6, plan"),
    ("< 1_000", "< 2_000", "a constant rises from 1,000 to 2,000, 2 times as much (src/s/a.py:8, plan"),
    ('"floor": 0.5', '"floor": 0.75', "floor rises from 0.5 to 0.75, +50% (src/s/a.py:9, plan: {'floor': 0.5})."),
    ("range(10)", "range(20)", "a constant rises from 10 to 20, 2 times as much (src/s/a.py:10, plan: range(10))."),
    ("* 0.25", "* 0.2", "volume falls from 0.25 to 0.2, -20% (src/s/a.py:11, plan: volume * 0.25)."),
    ("-4", "-2", "volume rises from -4 to -2, "),
    ("-4", "4", "volume rises from -4 to 4, with the other sign (src/s/a.py:11, plan: min(volume * 0.25, -4))."),
    ("high=9", "high=8", "high falls from 9 to 8, -11%"),
    ("size = 20", "size = 30", "size rises from 20 to 30, +50% (src/s/a.py:15, Buffer)."),
    ('"slow"', '"fast"', "mode changes from slow to fast (src/s/a.py:16, Buffer)."),
]  # fmt: skip


def told(before: str, after: str, path: str = "src/s/a.py") -> list[str]:
    return between({path: before.encode()}, {path: after.encode()}).in_words()


@pytest.mark.parametrize(("old", "new", "words"), CHANGES)
def test_each_constant_is_told_with_its_name_its_place_and_how_much(old: str, new: str, words: str) -> None:
    (sentence,) = told(BEFORE, BEFORE.replace(old, new, 1))
    # What stands around is shown as it is by now.
    assert sentence.startswith(words.partition(" (")[0]) and words.partition(" (")[2].partition(":")[0] in sentence


def test_a_constant_is_told_though_lines_around_it_move() -> None:
    moved = BEFORE.replace("SHARE = 0.1\n", "import math\n\nLIMIT = 7\nSHARE = 0.2\n").replace("range(10)", "range(n)")
    sentences = told(BEFORE, moved)
    assert [s for s in sentences if s.startswith("SHARE rises from 0.1 to 0.2")]
    assert [s for s in sentences if s.startswith("LIMIT is new: 7")]


def test_documentation_comments_tests_and_other_files_are_not_told() -> None:
    assert told(BEFORE, BEFORE.replace('"""Plan."""', '"""Another plan."""')) == []
    assert told(BEFORE, BEFORE.replace("SHARE = 0.1", "SHARE = 0.1  # why")) == []
    assert told(BEFORE, BEFORE.replace("0.1", "0.2"), "tests/test_a.py") == []
    assert told("x = 1", "x = ", "src/s/a.py") == [] and told("x 1", "x 2", "README.md") == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-99, 99), st.integers(-99, 99)), min_size=1, max_size=12))
def test_of_any_numbers_exactly_those_that_differ_are_told(pairs: list[tuple[int, int]]) -> None:
    before, after = (
        "\n".join(f"n{number} = f(x, {pair[side]})" for number, pair in enumerate(pairs)).encode() for side in (0, 1)
    )
    found = {(old.name, old.value, new.value) for _, old, new in changed_constants(before, after) if old and new}
    expected = {(f"n{number}", a, b) for number, (a, b) in enumerate(pairs) if a != b}
    assert ast.parse(after) and found == expected

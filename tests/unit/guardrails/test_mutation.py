"""What the judge plants in source: asleep until its switch says otherwise, whatever the source around it says."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from guardrails.checks.choices import new_choices, sides
from guardrails.checks.instead import burden, instead, new_statements, renamed
from guardrails.checks.said import Said
from guardrails.checks.static import judge_static
from guardrails.mutation import CHOICE, NUMBERS, Mutant, mutants, with_probes
from guardrails.tree import Tree
from tests.unit.guardrails import small

PATH = "src/strategy/sample.py"


def ran(tree: Tree, monkeypatch: pytest.MonkeyPatch, on: Callable[[int], bool]) -> dict[str, Any]:
    """Run the planted sample under a switch and return its names."""
    switch: Any = types.ModuleType("guardrails_switch")
    switch.on, switch.moved, switch.like = on, lambda number: number * 1.5 + 1, lambda part, whole, sort: part
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
    tree, _ = with_probes(Tree({PATH: SHADOWED.encode()}), [(PATH, 5)])
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


ARMS = {
    "x if y > 0 else -x": 2,
    "y > 0 and -x or x": 2,
    "0 < x < y": 1,
    "[-a for a in (x, y) if a > 9]": 1,
    "{a: -a for a in (x, y)}": 1,
    "(lambda a: -a)(x)": 1,
    "float(f'{-x if y > 0 else x}')": 2,
    "max(x, y) + 1": 0,
}


@pytest.mark.parametrize("expression", ARMS)
def test_each_side_of_an_expression_can_be_made_to_fail(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Tree({PATH: f"def change(x, y):\n    z = {expression}\n    return z\n".encode()})
    tree, places = with_probes(source, [(PATH, 2)], [(PATH, 2)])
    assert places == [(PATH, 2)] * (1 + ARMS[expression])
    arguments = [(x, y) for x in (-1.0, 1.0, 11.0, 0.0) for y in (-1.0, 2.0)]
    for k in range(1, len(places)):
        change = ran(tree, monkeypatch, lambda asked, k=k: asked == k)["change"]
        reached = {pair: _raises(change, pair) for pair in arguments}
        assert any(reached.values())
    plain, asleep = (ran(one, monkeypatch, lambda k: False)["change"] for one in (source, tree))
    assert [plain(*pair) for pair in arguments] == [asleep(*pair) for pair in arguments]


def _raises(change: Callable[..., Any], pair: tuple[float, float]) -> bool:
    try:
        change(*pair)
    except AssertionError:
        return True
    return False


def test_a_side_that_is_left_out_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Tree({PATH: b"def change(x, cash):\n    return -x if cash > 0.0 else x\n"})
    tree, _ = with_probes(source, [(PATH, 2)], [(PATH, 2)])
    failed = [_raises(ran(tree, monkeypatch, lambda asked, k=k: asked == k)["change"], (1.0, 0.0)) for k in range(3)]
    assert failed == [True, False, True]


PATTERN = """def change(x):
    match x:
        case 0:
            return 3
        case 1 if x < 2:
            return 4
        case _:
            return 5
"""


def test_a_pattern_stays_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    found, tree = planted(PATTERN)
    assert {mutant.before for mutant in found} == {"3", "4", "5", "2", "x < 2"}
    change = ran(tree, monkeypatch, lambda k: False)["change"]
    assert [change(x) for x in (0, 1, 2)] == [3, 4, 5]


@pytest.mark.parametrize(
    "expression",
    [
        "Limits().names",
        "math.exp(math.tau)",
        "getattr(Limits(), 'names')",
        "(x // 301).real",
        "pi",
        "max(x, math.e).real",
    ],
)
def test_a_number_by_any_name_is_moved(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "import math\nfrom math import pi\n\n\nclass Limits:\n    names = 301\n\n\n"
    text = f"{head}def change(x):\n    return {expression}\n"
    found, tree = planted(text)
    numbers = [k for k, mutant in enumerate(found) if mutant.kind in NUMBERS]
    plain = ran(tree, monkeypatch, lambda k: False)["change"](602)
    assert numbers
    for k in numbers:
        moved = ran(tree, monkeypatch, lambda asked, k=k: asked == k)["change"]
        assert moved(602) != plain or moved(1) != ran(tree, monkeypatch, lambda k: False)["change"](1)


DISGUISED = [
    "x > int('301')", "x > 301j.imag", "x > int(f'{300 + x}')", "x > True + True", "x > -True", "x > sum((True, True))",
    "x > len('x' * 301)", "x > len(str(x))",
    "x > ord('x')", "x > 'abc'.index('c')", "x > b'x'[0]", "x > float(' 3.5e2')",
    "x > int('zz', 36)", "x > np.float64('301')", "x > np.iinfo(np.int8).max", "x > len([1, 2, 3])",
    "x > sum(1 for _ in 'abc')",
]  # fmt: skip
HONEST = [
    "x > float('inf')", "f'{x:.5f} of {x:5}'", "len(x['close'])", "x > 301", "int(x)", "float(x[0])", "sum([x, 1.0])",
    "np.zeros(x, 'float64')", "x > np.pi", "-x if x > 0 else x", "len(x) == 2", "'a' in x",
]  # fmt: skip


@pytest.mark.parametrize("expression", [*DISGUISED, *HONEST])
def test_a_number_in_disguise_is_refused(expression: str) -> None:
    text = f"import numpy as np\n\n\ndef change(x):\n    return {expression}\n"
    result = small.tree().replace({PATH: text.encode()})
    found = {item.code for item in judge_static(small.tree(), result, [PATH], "logic", small.policy())}
    assert ("GR282" in found) is (expression in DISGUISED)
    stood = {item.code for item in judge_static(result, result, [PATH], "logic", small.policy())}
    assert "GR282" not in stood


def test_numbers_that_share_a_case_are_refused() -> None:
    text = "def change(x):\n    match x:\n        case 0 | 301:\n            return -x\n    return x\n"
    result = small.tree().replace({PATH: text.encode()})
    assert "GR282" in {item.code for item in judge_static(small.tree(), result, [PATH], "logic", small.policy())}
    held = "def change(x):\n    text = '30' + 'a'\n    return len(text)\n"
    result = small.tree().replace({PATH: held.encode()})
    assert "GR282" in {item.code for item in judge_static(small.tree(), result, [PATH], "logic", small.policy())}


CHOICES = """import numpy as np


def change(first, last, known):
    up = np.where(np.greater(last, first), last, first)
    up = up + known.get("cost", 1.0) * (last > 2.0) * np.sign(last)
    return up * ~np.bool_(0.0)
"""


def test_each_side_of_a_new_choice_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    places = new_choices(ast.parse(CHOICES), None, range(1, 99))
    assert len(places) == 12
    found, tree = mutants(Tree({PATH: CHOICES.encode()}), {PATH: range(1, 99)}, seed=1, most=0, must={PATH: places})
    alone = [at for at, mutant in enumerate(found) if mutant.kind == CHOICE]
    assert len(alone) == 12
    arguments = 3.0, 4.0, {"cost": 0.5}
    assert ran(tree, monkeypatch, lambda k: False)["change"](*arguments) == 4.5
    ends = set()
    for at in alone:
        value = ran(tree, monkeypatch, lambda k, at=at: k == at)["change"](*arguments)  # type: ignore[misc]
        ends.add((found[at].before.partition("(")[0].partition(" ")[0], float(value)))
    assert ends == {
        ("np.where", 4.5), ("np.where", 3.5), ("np.greater", 4.5), ("np.greater", 3.5), ("known.get", 4.5),
        ("known.get", 5.0), ("last", 4.5), ("last", 4.0), ("np.sign", 4.5), ("np.sign", 3.5), ("~np.bool_", 4.5),
        ("~np.bool_", 0.0),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "given", "whole", "ends"),
    [
        # asked whether it is true: a name, in a branch, a conditional expression, a comprehension
        ("if x:\n        return 1\n    return 2", 3, 1, {1, 2}),
        ("return 1 if x else 2", 3, 1, {1, 2}),
        ("return [y for y in (4, 0) if y] + [x]", 3, [4, 3], {(3,), (4, 0, 3), (4, 3)}),
        # gone through: no element, the first
        ("for y in x:\n        z = y\n    return y", [1, 2, 3], 3, {1, "UnboundLocalError"}),
        ("return [-y for y in x]", [1, 2], [-1, -2], {(), (-1,)}),
        # how often
        ("y = 0\n    while y < x:\n        y += 2\n    return y", 5, 6, {0, 2}),
        ("y = 0\n    while y < x:\n        y += 2\n        if y:\n            continue\n    return y", 5, 6, {0, 2, 6}),
        ("return 1 < x < 4", 5, False, {True, False}),
    ],
)  # fmt: skip
def test_a_choice_is_what_its_place_makes_one(
    monkeypatch: pytest.MonkeyPatch, text: str, given: Any, whole: Any, ends: set[Any]
) -> None:
    text = f"def f(x):\n    {text}\n"
    places = new_choices(ast.parse(text), None, range(1, 99))
    found, tree = mutants(Tree({PATH: text.encode()}), {PATH: range(1, 99)}, seed=1, most=0, must={PATH: places})
    assert ran(tree, monkeypatch, lambda k: False)["f"](given) == whole
    made = set()
    for at in [at for at, mutant in enumerate(found) if mutant.kind == CHOICE]:
        if "while" in text and found[at].after.endswith("True"):
            continue  # it would go on for ever
        try:
            value = ran(tree, monkeypatch, lambda k, at=at: k == at)["f"](given)  # type: ignore[misc]
        except UnboundLocalError as error:
            value = type(error).__name__
        made.add(tuple(value) if isinstance(value, list) else value)
    assert made == ends


def test_a_choice_that_was_made_before_is_not_new() -> None:
    before, now = ast.parse(CHOICES), ast.parse(CHOICES.replace("1.0) *", "1.0) * (first < 1.0) *"))
    assert new_choices(before, before, range(1, 99)) == set()
    assert len(new_choices(now, before, range(1, 99))) == 2
    assert new_choices(now, before, [5]) == set()


def test_of_a_choice_that_stands_the_side_that_changed_is_new() -> None:
    before, now = ast.parse(CHOICES), ast.parse(CHOICES.replace("last, first)\n", "last, -last)\n"))
    [(_, _, number)] = new_choices(now, before, range(1, 99))
    [where] = [node for node in ast.walk(now) if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.where"]
    always, words = sides(where)[number]
    assert ast.unparse(always) == "np.where((np.greater(last, first) != 0) | True, last, -last)"
    assert [ast.unparse(word) for word in words] == ["np.greater(last, first)", "-last"]


def test_the_sides_of_a_choice_by_numbers_are_taken_and_do_not_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash counts as told, so that a mask that is no truth value must not make one."""
    text = "import numpy as np\n\n\ndef change(mask):\n    return np.where(mask, 1.0, -1.0)\n"
    places = new_choices(ast.parse(text), None, range(1, 99))
    found, tree = mutants(Tree({PATH: text.encode()}), {PATH: range(1, 99)}, seed=1, most=0, must={PATH: places})
    chosen = [at for at, mutant in enumerate(found) if mutant.kind == CHOICE]
    for mask in (0.5, 0.0, 3, True):
        made = {float(ran(tree, monkeypatch, lambda k, at=at: k == at)["change"](mask)) for at in chosen}  # type: ignore[misc]
        assert made == {1.0, -1.0}


PARTS = """def f(x, y):
    z = x * y
    z += g(x)
    return float(z)


def g(x):
    held = {}
    held[x] = min(x, 3.0)
    return held[x]
"""


def asked(before: str, after: str, names: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return kind and text of what is tried in place of what a change brought."""
    now, was = ({PATH: ast.parse(text)} for text in (after, before))
    lines = {PATH: {*range(1, 2 + after.count("\n"))} - renamed(now[PATH], was[PATH])}
    found = instead(now, was, lines, names, "like")[PATH] if instead(now, was, lines, names, "like") else {}
    return sorted((kind, ast.unparse(other)) for others in found.values() for kind, other in others)


def test_new_expressions_are_tried_without_what_they_add() -> None:
    empty = "def f(x, y):\n    return x\n"
    texts = [text for kind, text in asked(empty, PARTS) if kind == "part"]
    for text in ("like(x, x * y, '')", "like(y, x * y, '')", "like(0, x * y, '')", "like(x, min(x, 3.0), '')"):
        assert text in texts
    assert not any(text.startswith("like(z, float(z)") for text in texts)  # the same number
    now, was = ({PATH: ast.parse(text)} for text in (PARTS, empty))
    assert new_statements(now, was, {PATH: range(1, 12)}) == {PATH: {(3, 4), (9, 4)}}


def test_what_stood_and_what_is_only_renamed_is_not_asked() -> None:
    assert asked(PARTS, PARTS) == []
    assert asked(PARTS, PARTS.replace("z", "product")) == []
    assert asked(PARTS, PARTS.replace("x * y", "y * x")) != []


def test_each_new_use_of_a_parameter_is_tried_with_all_others() -> None:
    before = "def f(p, x):\n    return min(x, p.most)\n"
    names = ("least", "most", "other")
    assert asked(before, before.replace("p.most", "p.other"), names)[:2] == [
        ("other parameter", "p.least"),
        ("other parameter", "p.most"),
    ]
    both = asked(before, before.replace("p.most", "(p.most + p.other)"), names)
    assert [text for kind, text in both if kind == "other parameter"] == ["p.least", "p.most", "p.other"]
    moved = "def f(p, x):\n    most = p.most\n    return g(x, most)\n\n\ndef g(x, most):\n    return min(x, most)\n"
    assert ("other parameter", "p.other") in asked(before, moved, names)
    assert asked(before, before.replace("p.", "q.").replace("(p,", "(q,"), names) == []


def test_a_parameter_that_is_read_by_its_name_as_a_text_is_tried_with_all_others() -> None:
    before = "def f(p, x):\n    return x\n"
    names = ("least", "most", "other")
    for use in ('p["most"]', 'getattr(p, "most")', 'p.get("most")'):
        found = asked(before, before.replace("return x", f"return x * {use}"), names)
        assert [text for kind, text in found if kind == "other parameter"] == ["'least'", "'other'"], use
    said = before.replace("return x", 'raise ValueError("most")').replace("p, x", "p")
    assert asked(before, said, names) == []


def test_what_stands_behind_a_keyword_is_a_part_and_can_be_left_out() -> None:
    before = "def f(x, y):\n    return x\n"
    call = "np.clip(x, a_min=y, a_max=x.high, axis=0)"
    texts = [text for kind, text in asked(before, before.replace("return x", f"return {call}")) if kind == "part"]
    for part in ("y", "x.high", "np.clip(x, a_max=x.high, axis=0)", "np.clip(x, a_min=y, axis=0)"):
        assert f"like({part}, {call}, '')" in texts
    assert not any("np.clip(x, a_min=y, a_max=x.high)" in text for text in texts)  # a form, which says nothing


def test_a_mask_behind_where_is_a_choice_beside_what_the_call_decides() -> None:
    plain = [ast.unparse(side) for side, _ in sides(ast.parse("np.sum(x, where=m)", mode="eval").body)]
    assert plain == ["np.sum(x, where=True)", "np.sum(x, where=False)"]
    both = [ast.unparse(side) for side, _ in sides(ast.parse("np.any(x, where=m)", mode="eval").body)]
    assert both == [
        "np.any(x, where=m) | True",
        "np.any(x, where=m) & False",
        "np.any(x, where=True)",
        "np.any(x, where=False)",
    ]


def test_what_nests_too_deep_is_told_by_its_burden() -> None:
    deep = "def f(x):\n    return " + "(" * 40 + "x" + " > x)" * 40 + "\n"
    assert burden(ast.parse(deep), (2,)) > 40 * 40 > burden(ast.parse(PARTS), range(1, 12))
    assert burden(ast.parse(deep), (1,)) == 0


def test_what_a_curated_version_says_needs_no_test_however_it_is_named() -> None:
    before = "def f(x, y):\n    return x\n"
    curated = "def f(x, y):\n    low = min(y, 3.0)\n    return x * low\n"
    lines, was = {PATH: range(1, 9)}, {PATH: ast.parse(before)}

    def new(text: str) -> set[str]:
        found = instead({PATH: ast.parse(text)}, was, lines, (), "like", [{"curated.py": ast.parse(curated)}])
        return {ast.unparse(other) for others in found.get(PATH, {}).values() for _, other in others}

    assert new(curated) == new("def f(x, y):\n    return x * min(y, 3.0)\n") == set()
    assert new("def f(x, y):\n    return x * np.full(2, min(y, 3.0))\n") == set()
    assert new("def g(x, y):\n    return x * min(y, 3.0)\n") != set()  # another function
    assert new("def f(x, y):\n    low = min(y, 3.0)\n    low = y\n    return x * low\n") != set()
    assert new("def f(x, y):\n    return x * min(y, 4.0)\n") != set()


def test_names_that_stand_for_names_that_stand_for_names_are_worked_out_once() -> None:
    steps = "".join(f"    x{at + 1} = x{at} + x{at}\n" for at in range(60))
    function = ast.parse(f"def f(x0):\n{steps}    return x60\n").body[0]
    assert isinstance(function, ast.FunctionDef) and isinstance(function.body[-1], ast.Return)
    said = Said(function)
    assert len(said.of(function.body[-1])) == len(said.of(function.body[0])) == 64
    circle = ast.parse("def f():\n    a = b\n    b = a\n    return a\n").body[0]
    assert isinstance(circle, ast.FunctionDef) and Said(circle).of(circle.body[-1]) == Said(circle).of(circle.body[-1])

"""Which choices a change brought: what decides, by which words, and how each of its sides is taken always."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection

#: Calls that say yes or no, alone or of each element.
TRUTHS = frozenset({
    "all", "allclose", "any", "array_equal", "bool", "endswith", "equal", "greater", "greater_equal", "hasattr",
    "isalpha", "isascii", "isclose", "isdecimal", "isdigit", "isdisjoint", "isfinite", "isin", "isinf",
    "isinstance", "islower", "isnan", "issubset", "issuperset", "isupper", "is_integer", "less", "less_equal",
    "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal", "signbit", "startswith",
})  # fmt: skip
SIGNS = ("copysign", "heaviside", "sign")
#: The number of the side of a `while` that goes round once.
ONCE = 99
Side = tuple[ast.expr, list[ast.expr]]  # what takes it always, and what it says


def sides(node: ast.AST) -> list[Side]:
    """Return the sides of a choice that an expression makes: what takes one always, and what the other side says.

    An expression that makes no choice has none.
    """
    bitwise = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
    turned = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert)
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        pairs = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
        alone: list[Side] = [(ast.Compare(left, [op], [right]), [node]) for left, op, right in pairs]
        return [*_both(node), *alone]
    if isinstance(node, ast.expr) and (bitwise or turned or isinstance(node, ast.Compare)):
        return _both(node)
    if not isinstance(node, ast.Call):
        return []
    masks = [word for word in node.keywords if word.arg == "where"]
    others = [word for word in node.keywords if word.arg != "where"]
    masked: list[Side] = [
        (ast.Call(node.func, node.args, [ast.keyword("where", ast.Constant(sure)), *others]), [word.value])
        for word in masks
        for sure in (True, False)
    ]
    return [*_of_call(node), *masked]


def _of_call(node: ast.Call) -> list[Side]:
    """Return the sides of a call by what is called."""
    name, given = getattr(node.func, "attr", getattr(node.func, "id", "")), node.args
    if name in TRUTHS:
        return _both(node)
    if name in SIGNS:
        size = ast.Call(ast.Attribute(node, "__abs__", ast.Load()), [], [])
        return [(size, [node]), (ast.UnaryOp(ast.USub(), size), [node])]
    if name == "where" and len(given) == 3:
        asked = ast.Compare(given[0], [ast.NotEq()], [ast.Constant(0)])  # a mask of numbers is a mask too
        both = zip(_truths(asked), (given[2], given[1]), strict=True)
        return [(ast.Call(node.func, [sure, *given[1:]], node.keywords), [given[0], lost]) for sure, lost in both]
    if isinstance(node.func, ast.Attribute) and name in ("get", "pop") and len(given) == 2:
        found = ast.Subscript(node.func.value, given[0], ast.Load())
        return [(found, [found, given[1]]), (given[1], [found])]
    return []


def _both(node: ast.expr) -> list[Side]:
    return [(side, [node]) for side in _truths(node)]


def _truths(node: ast.expr) -> list[ast.expr]:
    return [
        ast.BinOp(node, ast.BitOr(), ast.Constant(True)),
        ast.BinOp(node, ast.BitAnd(), ast.Constant(False)),
    ]


def placed(parent: ast.AST) -> dict[int, list[Side]]:
    """Return the sides that its place alone gives an expression inside `parent`, by the expression's id.

    What is asked whether it is true is so, or not; what is gone through has no element, or one.
    """
    found = dict[int, list[Side]]()
    asked = [parent.test] if isinstance(parent, ast.Assert | ast.If | ast.IfExp | ast.While) else []
    asked += parent.ifs if isinstance(parent, ast.comprehension) else []
    for node in asked:
        if not sides(node):
            found[id(node)] = [(ast.Constant(always), [node]) for always in (True, False)]
    if isinstance(parent, ast.For | ast.comprehension):
        listed = ast.List([ast.Starred(parent.iter, ast.Load())], ast.Load())
        few = [ast.Subscript(listed, ast.Slice(None, ast.Constant(most)), ast.Load()) for most in (0, 1)]
        found[id(parent.iter)] = [(part, [parent.iter]) for part in few]
    return found


def new_choices(now: ast.AST, before: ast.AST | None, lines: Collection[int]) -> set[tuple[int, ...]]:
    """Return the sides (line, column, number) of choices on changed lines that are new to functions of that name.

    Those of an expression come first, those of its place after them.
    """

    def said(tree: ast.AST, function: str = "") -> list[tuple[ast.expr, int, str]]:
        found, given = list[tuple[ast.expr, int, str]](), placed(tree)
        if isinstance(tree, ast.While):
            found.append((tree.test, ONCE, str([function, ONCE, ast.dump(tree.test)])))
        unsaid = {id(getattr(tree, name, None)) for name in ("annotation", "returns")}  # types decide nothing
        for node in (node for node in ast.iter_child_nodes(tree) if id(node) not in unsaid):
            for number, (_, words) in enumerate([*sides(node), *given.get(id(node), ())]):
                assert isinstance(node, ast.expr)
                found.append((node, number, str([function, number, *map(ast.dump, words)])))
            found += said(node, node.name if isinstance(node, ast.FunctionDef) else function)
        return found

    was, here = Counter(text for *_, text in said(before or ast.Module([], []))), said(now)
    count = Counter(text for *_, text in here)
    return {
        (node.lineno, node.col_offset, number)
        for node, number, text in here
        if {*range(node.lineno, (node.end_lineno or node.lineno) + 1)} & {*lines} and count[text] > was[text]
    }

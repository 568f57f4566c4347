"""Numbers that do not look like numbers: no mutant moves them, so no test could be asked to pin them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from guardrails.checks.codes import finding
from guardrails.checks.index import Module
from guardrails.verdict import Finding

#: What makes a number, or something to count, of a text that is its first argument.
READERS = frozenset(
    {"array", "complex", "enumerate", "float", "float32", "float64", "hash", "int", "int32", "int64", "len", "list"}
    | {"map", "ord", "set", "sorted", "sum", "tuple"}
)
COUNTS = frozenset({"count", "find", "index", "rfind", "rindex"})
LIMITS = frozenset({"finfo", "iinfo"})


def judge_disguised(module: Module, before: Module | None) -> list[Finding]:
    """Refuse numbers in disguise that a module did not have before."""
    known = {what for _, what in _disguised(before.tree)} if before else set()
    found = {(line, what) for line, what in _disguised(module.tree) if what not in known}
    return [finding("GR282", module.path, line, what) for line, what in sorted(found)]


def _disguised(tree: ast.Module) -> Iterator[tuple[int, str]]:
    plain = set(_plain(tree))
    texts = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _text(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in plain and _is_disguised(node, texts):
            yield node.lineno, f"{ast.unparse(node)[:60]!r}"
        elif isinstance(node, (ast.For, ast.comprehension)) and _text(node.iter, texts):
            yield node.iter.lineno, f"a loop over {ast.unparse(node.iter)[:60]!r}"
        elif isinstance(node, ast.MatchOr):  # its alternatives share one body, and no mutant fits into a pattern
            numbers = [part for part in ast.walk(node) if isinstance(part, ast.Constant) and _is_number(part.value)]
            yield from ((node.lineno, f"{part.value!r} beside another pattern") for part in numbers)


def _is_disguised(node: ast.expr, texts: set[str]) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, complex) or isinstance(node.value, (str, bytes)) and _reads(node.value)
    if isinstance(node, ast.BinOp):
        return _truth(node.left) or _truth(node.right)
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _truth(node.operand)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, bytes)
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    first = node.args[0] if node.args else None
    if name == "int" and (len(node.args) > 1 or node.keywords) or name in LIMITS:
        return True
    if name in COUNTS and isinstance(node.func, ast.Attribute) and _text(node.func.value, texts):
        return True
    if first is None or name not in READERS:
        return False
    parts = [first]
    if isinstance(first, (ast.List, ast.Tuple, ast.Set)):
        parts = first.elts
        if name == "len":
            return True
    return _text(first, texts) or any(map(_truth, parts))


def _text(node: ast.expr, texts: set[str]) -> bool:
    """Say whether an expression is a text that was made here."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, bytes)) and node.value not in ("inf", "-inf", "nan")
    if isinstance(node, ast.BinOp):
        return _text(node.left, texts) or _text(node.right, texts)
    if isinstance(node, ast.Call):
        made = isinstance(node.func, ast.Attribute) and _text(node.func.value, texts)
        return made or isinstance(node.func, ast.Name) and node.func.id in ("str", "repr", "format", "bin", "hex")
    if isinstance(node, ast.Subscript):
        return _text(node.value, texts)
    return isinstance(node, ast.JoinedStr) or isinstance(node, ast.Name) and node.id in texts


def _truth(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _reads(text: str | bytes) -> bool:
    """Say whether a text is a number, other than an infinite one or none."""
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _plain(tree: ast.Module) -> Iterator[int]:
    """Yield constants that are no values: docstrings, annotations and formats."""
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts = [node.value]
        elif isinstance(node, (ast.AnnAssign, ast.arg)):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            parts = [node.returns]
        elif isinstance(node, ast.FormattedValue):
            parts = [node.format_spec]
        yield from (id(item) for part in parts if part is not None for item in ast.walk(part))

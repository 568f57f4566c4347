"""Numbers and words that a change of Python code replaces, one by one: what a diff says, told without reading code.

Statements of both texts are paired by their shape (the syntax without its constants); of each pair the constants that
differ are told, with the name that they stand under. What changes in shape is left to the diff.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher

#: Larger files are left to the diff.
LARGEST, MOST_STATEMENTS = 200_000, 4_000


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant in code: the name that it stands under (empty: none), the expression around it, and its line."""

    name: str
    value: object
    around: str
    line: int


@dataclass(slots=True)
class _Statement:
    scope: str
    shape: str
    constants: list[Constant] = field(default_factory=list)
    whole: bool = False  # nothing but `name = constant`


def changed_constants(before: bytes | None, after: bytes | None) -> list[tuple[str, Constant | None, Constant | None]]:
    """Return (function, before, after) of each constant that differs; None where a named one is new or gone."""
    old, new = _statements(before), _statements(after)
    if not old or not new:
        return []
    found: list[tuple[str, Constant | None, Constant | None]] = []
    matcher = SequenceMatcher(
        None, [(s.scope, s.shape) for s in old], [(s.scope, s.shape) for s in new], autojunk=False
    )
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(old[i1:i2], new[j1:j2], strict=True):
                found += [
                    (other.scope, a, b)
                    for a, b in zip(one.constants, other.constants, strict=True)
                    if (type(a.value), a.value) != (type(b.value), b.value)
                ]
            continue
        found += [(s.scope, s.constants[0], None) for s in old[i1:i2] if s.whole]
        found += [(s.scope, None, s.constants[0]) for s in new[j1:j2] if s.whole]
    return found


def _statements(data: bytes | None) -> list[_Statement]:
    if data is None or len(data) > LARGEST:
        return []
    try:
        tree = ast.parse(data.decode("utf-8"))
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = []
    for statement in _flat(tree.body, ""):
        found.append(statement)
        if len(found) > MOST_STATEMENTS:
            return []
    return found


def _flat(body: list[ast.stmt], scope: str) -> Iterator[_Statement]:
    """Yield statements in the order of the text; of those with a body the head, and then the body."""
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # documentation
        inner = scope
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{scope}.{node.name}" if scope else node.name
        made = _Statement(inner, "")
        made.shape = _shape(node, "", made.constants, node)
        value = getattr(node, "value", None)
        made.whole = isinstance(node, (ast.Assign, ast.AnnAssign)) and _number(value) is not None
        yield made
        for name in ("body", "orelse", "finalbody"):
            yield from _flat(getattr(node, name, []), inner)
        for handler in getattr(node, "handlers", []):
            yield from _flat(handler.body, inner)
        for case in getattr(node, "cases", []):
            yield from _flat(case.body, inner)


def _shape(node: ast.AST, name: str, constants: list[Constant], around: ast.AST) -> str:
    """Return the syntax of a node without its constants and its body, and gather the constants in their order."""
    constant = _number(node)
    if constant is not None:
        constants.append(Constant(name, constant.value, ast.unparse(around)[:60], getattr(node, "lineno", 0)))
        return "#"
    parts = []
    names = _names(node)
    for key, value in ast.iter_fields(node):
        if key in ("body", "orelse", "finalbody", "handlers", "cases") and isinstance(node, ast.stmt):
            continue
        for number, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST):
                own = names.get((key, number), name)
                outer = node if isinstance(node, ast.expr) else child if isinstance(child, ast.expr) else around
                parts.append(f"{key}:{_shape(child, own, constants, outer)}")
            else:
                parts.append(f"{key}={child!r}")
    return f"{type(node).__name__}({','.join(parts)})"


def _names(node: ast.AST) -> dict[tuple[str, int], str]:
    """Return the names under which a node's own children stand."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return {("value", 0): ast.unparse(node.targets[0])[:60]}
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        return {("value", 0): ast.unparse(node.target)[:60]}
    if isinstance(node, ast.keyword) and node.arg:
        return {("value", 0): node.arg}
    if isinstance(node, ast.Dict):
        return {("values", n): str(key.value) for n, key in enumerate(node.keys) if isinstance(key, ast.Constant)}
    if isinstance(node, ast.arguments):
        plain = [*node.posonlyargs, *node.args]
        late = plain[len(plain) - len(node.defaults) :]
        named = {("defaults", n): arg.arg for n, arg in enumerate(late)}
        return named | {("kw_defaults", n): arg.arg for n, arg in enumerate(node.kwonlyargs)}
    return {}


@dataclass(frozen=True, slots=True)
class _Value:
    value: object


def _number(node: object) -> _Value | None:
    """Return the value of a constant, with its sign; None for what is none."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return _Value(-value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    return _Value(node.value) if isinstance(node, ast.Constant) and node.value is not Ellipsis else None

"""Numbers that do not look like numbers: no mutant moves them, so no test could be asked to pin them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from guardrails.checks.codes import finding
from guardrails.checks.index import Index, Module, bound_names, is_self
from guardrails.verdict import Finding

#: What makes a number, or something to count, of a text that is its first argument.
READERS = frozenset(
    {"array", "complex", "enumerate", "float", "float32", "float64", "hash", "int", "int32", "int64", "len", "list"}
    | {"map", "ord", "set", "sorted", "sum", "tuple"}
)
#: What says how many there are.
COUNTERS = frozenset({"enumerate", "len", "ndim", "shape", "size", "sum", "zip"})
#: What a class extends so that its values can be read by their places, or by going through it.
UNPACKED = frozenset({"Enum", "Flag", "IntEnum", "IntFlag", "NamedTuple"})
COUNTS = frozenset({"count", "find", "index", "rfind", "rindex"})
LIMITS = frozenset({"finfo", "iinfo"})


def judge_disguised(module: Module, before: Module | None, index: Index) -> list[Finding]:
    """Refuse numbers in disguise that a module did not have before."""
    trees = [one.tree for one in {**index.modules, module.name: module}.values()]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    bound = Counter(name for node in nodes if isinstance(node, ast.ClassDef) for name in _attributes(node))
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    held = {name: name in read and bound[name] == 1 for node in nodes for name in _held(node)}
    known = {what for _, what in _disguised(before.tree, held)} if before else set()
    found = {(line, what) for line, what in _disguised(module.tree, held) if what not in known}
    return [finding("GR282", module.path, line, what) for line, what in sorted(found)]


def _attributes(node: ast.ClassDef) -> set[str]:
    stored = (part for part in ast.walk(node) if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store))
    return {part.attr for part in stored if is_self(part.value)}.union(*map(bound_names, node.body))


def _held(node: ast.AST) -> Iterator[str]:
    """Yield the names of a class that stand for numbers other than 0."""
    for part in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(part, (ast.Assign, ast.AnnAssign)) and part.value is not None:
            inner = (item.value for item in ast.walk(part.value) if isinstance(item, ast.Constant))
            yield from bound_names(part) if any(_is_number(value) and value for value in inner) else ()


def _unnamed(node: ast.AST, held: dict[str, bool]) -> str:
    """Say how a number that a class holds is read without its name, which is where a mutant would move it.

    `held` are the names of such numbers, each with whether it is read and nothing else has that name.
    """
    if isinstance(node, ast.ClassDef) and any(_held(node)):
        bases = {getattr(base, "attr", getattr(base, "id", "")) for base in node.bases}
        return f"a number in the class {node.name!r}" if bases & UNPACKED else ""
    if isinstance(node, ast.MatchClass):
        return f"a pattern of {node.kwd_attrs}" if held.keys() & node.kwd_attrs else ""
    if isinstance(node, ast.Attribute):
        return "a field's default" if node.attr == "default" and not all(held.values()) else ""
    name = _called(node)
    asked = node.args[1] if isinstance(node, ast.Call) and name == "getattr" and len(node.args) > 1 else None
    computed = asked is not None and not isinstance(asked, ast.Constant)
    return f"{name} where classes hold numbers" if held and (computed or name in ("asdict", "astuple")) else ""


def _disguised(tree: ast.Module, held: dict[str, bool]) -> Iterator[tuple[int, str]]:
    plain = set(_plain(tree))
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    texts = set[str]().union(*(bound_names(node) for node in named if _text(node.value, set())))
    sized = set[str]().union(*(bound_names(node) for node in named if _of_fields(node.value, set())))
    for node in ast.walk(tree):
        if unnamed := _unnamed(node, held):
            yield getattr(node, "lineno", 0), unnamed
        elif isinstance(node, ast.expr) and id(node) not in plain and _is_disguised(node, texts, sized):
            yield node.lineno, f"{ast.unparse(node)[:60]!r}"
        elif isinstance(node, (ast.For, ast.comprehension)) and _text(node.iter, texts):
            yield node.iter.lineno, f"a loop over {ast.unparse(node.iter)[:60]!r}"
        elif isinstance(node, ast.MatchOr):  # its alternatives share one body, and no mutant fits into a pattern
            numbers = [part for part in ast.walk(node) if isinstance(part, ast.Constant) and _is_number(part.value)]
            yield from ((node.lineno, f"{part.value!r} beside another pattern") for part in numbers)


def _is_disguised(node: ast.expr, texts: set[str], sized: set[str]) -> bool:
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
    name = _called(node)
    first = node.args[0] if node.args else None
    if name == "int" and (len(node.args) > 1 or node.keywords) or name in LIMITS:
        return True
    if name in COUNTS and isinstance(node.func, ast.Attribute) and _text(node.func.value, texts):
        return True
    if first is None or name not in READERS | COUNTERS:
        return False
    parts = [first]
    if isinstance(first, (ast.List, ast.Tuple, ast.Set)):
        parts = first.elts
        if name in ("len", "ndim", "shape", "size"):
            return True
    if name in COUNTERS and _of_fields(first, sized):
        return True
    return name in READERS and (_text(first, texts) or any(map(_truth, parts)))


def _of_fields(node: ast.AST, sized: set[str]) -> bool:
    """Say whether the size of a value is that of a class: its fields, or what was made one by one of them."""
    made = any(_called(part) in ("fields", "asdict", "astuple") for part in ast.walk(node))
    return made or isinstance(node, ast.Name) and node.id in sized


def _called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return str(getattr(function, "attr", getattr(function, "id", "")))


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

"""From lines to the code around them, and from a module of tests to the code that it talks about."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from guardrails.checks.index import Index, Module, build_index, module_name, parse_module
from guardrails.policy import Policy
from guardrails.tree import Tree

Place = tuple[int, int]  # line and column
#: What says little by itself about a number in it: the expression around it is looked at.
LOOSE = (ast.UnaryOp, ast.keyword, ast.Tuple, ast.List, ast.Starred, ast.Slice)


@dataclass(frozen=True)
class Unit:
    """A function or class of the package, with its lines."""

    path: str
    name: str
    lines: Collection[int]


def statement_lines(module: Module, lines: Collection[int]) -> set[int]:
    """Return the first line of the innermost statement around each line, as coverage counts them."""
    spans: list[tuple[int, int]] = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
            first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])
            spans.append((first, max(first, last)))
    found = set()
    for line in lines:
        around = [span for span in spans if span[0] <= line <= span[1]]
        found |= {max(around)[0]} if around else set()
    return found


def skipped_bodies(module: Module) -> dict[int, range]:
    """Return the lines of conditions without an else, each with the lines of its body."""
    return {
        node.lineno: range(node.body[0].lineno, (node.body[-1].end_lineno or node.lineno) + 1)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.If) and not node.orelse
    }


def function_lines(module: Module, lines: Collection[int]) -> set[int]:
    """Return all lines of the functions around these lines, and of those that use a changed constant."""
    functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)]
    names = {
        name
        for name, where in module.bound.items()
        for node in where
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and set(_span(node)) & set(lines)
    }
    found: set[int] = set()
    for node in functions:
        uses = any(isinstance(item, ast.Name) and item.id in names for item in ast.walk(node))
        if uses or set(_span(node)) & set(lines):
            found |= set(_span(node))
    return found


def new_numbers(module: Module, before: Module | None, lines: Collection[int]) -> set[Place]:
    """Return the places of numbers that a change brought, literal or by name.

    Those are on changed lines, unless just this (the expression around the number) was said before, by the same
    function or as often in the module, or the number says what needs none; and the uses of constants of the module
    that changed.
    """
    constants = {
        name
        for name, where in module.bound.items()
        for node in where
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and set(_span(node)) & set(lines)
    }
    standing = {(function, ast.dump(around)) for function, around, _ in _words(before.tree)} if before else set()
    was = Counter(ast.dump(around) for _, around, _ in _words(before.tree)) if before else Counter[str]()
    now = Counter(ast.dump(around) for _, around, _ in _words(module.tree))

    def new(function: str, around: ast.AST) -> bool:
        text = ast.dump(around)
        return (function, text) not in standing and now[text] > was[text]

    return {
        (node.lineno, node.col_offset)
        for function, around, node in _words(module.tree)
        if (isinstance(node, ast.Name) and node.id in constants)
        or (node.lineno in lines and new(function, around) and not _idle(node, around))
    }


def _idle(node: ast.expr, around: ast.AST) -> bool:
    """Say whether a number says what can be said without one, so that asking for it to be pinned keeps nothing out.

    0 in a comparison is 0.0 or `not`; 1 over x is x over its square; x.shape[0] is len(x).
    """
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(around, ast.BinOp):
        return value == 1 and node is around.left and isinstance(around.op, ast.Div)
    if isinstance(around, ast.Subscript):
        return value == 0 and node is around.slice and getattr(around.value, "attr", "") == "shape"
    return value == 0 and isinstance(around, ast.Compare)


def _words(node: ast.AST, function: str = "", around: ast.AST | None = None) -> Iterator[tuple[str, ast.AST, ast.expr]]:
    """Yield constants, names and attributes, with the function they stand in and the expression around them."""
    around = around if around is not None and isinstance(node, LOOSE) else node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Constant, ast.Name, ast.Attribute)):
            yield function, around, child
        yield from _words(child, child.name if isinstance(child, ast.FunctionDef) else function, around)


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def named_units(tree: Tree, tests: Collection[str], policy: Policy) -> list[Unit]:
    """Return the functions and classes that tests (by id) import by name or reach as module.name, each once."""
    index, _ = build_index(tree, policy)
    names: dict[str, set[str]] = {}
    for test in tests:
        path, _, inner = test.partition("::")
        names.setdefault(path, set()).add(inner.partition("[")[0].rsplit("::", 1)[-1])
    units: dict[Unit, None] = {}
    for path, new in sorted(names.items()):
        module = parse_module(path, tree.get(path, b""), policy.limits, module_name(path, policy.layout.source))
        for source, name in _named(module, index, new) if isinstance(module, Module) else ():
            for node in source.bound.get(name, ()):
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    units[Unit(source.path, name, _span(node))] = None
    return list(units)


def lines_of(units: Collection[Unit]) -> dict[str, set[int]]:
    """Return the lines of units by path."""
    lines: dict[str, set[int]] = {}
    for unit in units:
        lines.setdefault(unit.path, set()).update(unit.lines)
    return lines


def _used(tests: Module, new: Collection[str]) -> tuple[list[ast.AST], set[str]]:
    """Return all nodes of the new tests and of what they use of their own module, and the names in them."""
    nodes, names = list[ast.AST](), set[str]()
    left = [node for node in ast.walk(tests.tree) if isinstance(node, ast.FunctionDef) and node.name in new]
    seen: set[int] = set()
    stack: list[ast.AST] = [*left]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            inner = list(ast.walk(node))
            nodes += inner
            used = {item.id for item in inner if isinstance(item, ast.Name)}
            used |= {item.arg for item in inner if isinstance(item, ast.arg)}  # fixtures
            names |= used
            stack += [part for name in used for part in tests.bound.get(name, ())]
    return nodes, names


def _named(tests: Module, index: Index, new: Collection[str]) -> Iterator[tuple[Module, str]]:
    modules: dict[str, str] = {}
    nodes, used = _used(tests, new)
    inner = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
    for node in (*tests.tree.body, *inner):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) not in used:
                    continue
                full = f"{node.module}.{alias.name}"
                origin = list(_origin(index, node.module or "", alias.name))
                yield from origin
                if full in index.modules and not origin:
                    modules[alias.asname or alias.name] = full
        elif isinstance(node, ast.Import):
            modules |= {alias.asname: alias.name for alias in node.names if alias.asname}
    for item in nodes:
        if isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id in modules:
            yield from _origin(index, modules[item.value.id], item.attr)


def _origin(index: Index, module: str, name: str, hops: int = 4) -> Iterator[tuple[Module, str]]:
    """Follow re-exports to where a name is defined."""
    source = index.modules.get(module)
    if source is None or hops == 0:
        return
    if source.defines(name):
        yield source, name
    for node in source.bound.get(name, ()):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    yield from _origin(index, node.module or "", alias.name, hops - 1)

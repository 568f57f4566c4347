"""What lasts as long as the process: values of modules and classes, which nothing may change.

A list there would count sessions or calls, through a local name or a helper, and tell a fresh process from an old one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from guardrails.checks.codes import finding
from guardrails.checks.index import Index, Module
from guardrails.verdict import Finding

#: Calls whose results cannot change, and those that make a constant of what can.
FIXED = frozenset(
    {"abs", "bool", "field", "float", "int", "len", "max", "min", "pow", "range", "round", "str", "sum", "TypeVar"}
)
FREEZERS = frozenset({"frozenset", "tuple", "MappingProxyType"})
#: Calls and methods that only read a table of constants that they are given.
READERS = FIXED | FREEZERS | {"all", "any", "dict", "enumerate", "list", "reversed", "set", "sorted", "zip"}
METHODS = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})
TABLES = (ast.List, ast.Dict, ast.Set)
CAN_CHANGE = (*TABLES, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


def judge_lasting(module: Module, before: Module | None, index: Index) -> list[Finding]:
    """Refuse new values of the module and its classes that can change, and uses of tables that may change them."""
    standing = {ast.dump(value) for _, value in _values(before.tree)} if before else set()
    found = [
        (value, ast.unparse(value))
        for _, value in _values(module.tree)
        if ast.dump(value) not in standing and not _table(value) and any(_can_change(value, module))
    ]
    tables = {name for part in index.modules.values() for name, value in _values(part.tree) if _table(value)}
    loose = {ast.dump(node) for node in _loose(before.tree, tables)} if before else set()
    found += [(node, ast.unparse(node)) for node in _loose(module.tree, tables) if ast.dump(node) not in loose]
    return [finding("GR209", module.path, node.lineno, f"{text[:60]!r}") for node, text in found]


def _values(block: ast.Module | ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for node in block.body:
        if isinstance(node, ast.ClassDef):
            yield from _values(node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = getattr(target, "id", "")
            if name not in ("__all__", "__slots__"):
                yield name, node.value


def _table(node: ast.expr) -> bool:
    """Say whether a value is a table of constants, with something in it."""
    parts = [*ast.iter_child_nodes(node)] if isinstance(node, TABLES) else []
    parts = [part for part in parts if not isinstance(part, ast.expr_context)]
    return bool(parts) and not any(
        isinstance(item, (*CAN_CHANGE, ast.Call)) for part in parts for item in ast.walk(part)
    )


def _can_change(node: ast.expr, module: Module) -> Iterator[bool]:
    if isinstance(node, CAN_CHANGE):
        yield True
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        owner = getattr(getattr(node.func, "value", None), "id", "")
        fixed = name in FIXED or owner in ("math", "re") or (owner in ("np", "numpy") and name[-1:].isdigit())
        if name not in FREEZERS:
            yield not fixed or name in module.bound and name not in ("field", "TypeVar")
    elif not isinstance(node, ast.Lambda):
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield from _can_change(part, module)


def _loose(tree: ast.AST, tables: set[str]) -> Iterator[ast.expr]:
    """Yield each use of a table, by name or as an attribute, that does more than read it."""
    for parent in ast.walk(tree) if tables else ():
        for place, value in ast.iter_fields(parent):
            for node in value if isinstance(value, list) else [value]:
                said = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
                if said in tables and isinstance(getattr(node, "ctx", None), ast.Load) and not _reads(parent, place):
                    yield node


def _reads(parent: ast.AST, place: str) -> bool:
    if isinstance(parent, ast.Subscript):
        return place == "value" and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Compare):
        return True
    if isinstance(parent, (ast.For, ast.comprehension)):
        return place == "iter"
    if isinstance(parent, ast.Call):
        return place == "args" and isinstance(parent.func, ast.Name) and parent.func.id in READERS
    if isinstance(parent, ast.Attribute):
        return parent.attr in METHODS
    return isinstance(parent, (ast.Starred, ast.Dict)) or (isinstance(parent, ast.keyword) and parent.arg is None)

"""Which lines a module of tests talks about: the functions and classes of the package that it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from guardrails.checks.index import Index, Module, build_index, module_name, parse_module
from guardrails.policy import Policy
from guardrails.tree import Tree


def named_lines(tree: Tree, changed: Sequence[str], policy: Policy) -> dict[str, set[int]]:
    """Return by path the lines of what the changed tests import by name or reach as module.name."""
    index, _ = build_index(tree, policy)
    lines: dict[str, set[int]] = {}
    for path in changed:
        if path not in tree or not path.endswith(".py"):
            continue
        tests = parse_module(path, tree[path], policy.limits, module_name(path, policy.layout.source))
        if isinstance(tests, Module):
            for module, name in _named(tests, index):
                for node in module.bound.get(name, ()):
                    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                        lines.setdefault(module.path, set()).update(
                            range(node.lineno, (node.end_lineno or node.lineno) + 1)
                        )
    return lines


def _named(tests: Module, index: Index) -> Iterator[tuple[Module, str]]:
    modules: dict[str, str] = {}
    for node in tests.tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if full in index.modules:
                    modules[alias.asname or alias.name] = full
                elif node.module in index.modules:
                    yield from _origin(index, node.module, alias.name)
        elif isinstance(node, ast.Import):
            modules |= {alias.asname: alias.name for alias in node.names if alias.asname}
    for item in ast.walk(tests.tree):
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

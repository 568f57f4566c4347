"""From lines to the code around them, and from a module of tests to the code that it talks about."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from guardrails.checks.index import Index, Module, build_index, module_name, parse_module
from guardrails.policy import Policy
from guardrails.tree import Tree


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


def number_lines(module: Module, lines: Collection[int]) -> set[int]:
    """Return these lines, in full statements, and all lines of functions that use a changed constant of the module."""
    constants = {
        line
        for where in module.bound.values()
        for node in where
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and set(_span(node)) & set(lines)
        for line in _span(node)
    }
    uses = function_lines(module, constants) if constants else set()
    return set(lines) | uses


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def named_lines(tree: Tree, changed: Sequence[str], policy: Policy) -> dict[str, set[int]]:
    """Return by path the lines of what the changed tests import by name or reach as module.name."""
    index, _ = build_index(tree, policy)
    lines: dict[str, set[int]] = {}
    for path in changed:
        if path not in tree or not path.endswith(".py"):
            continue
        tests = parse_module(path, tree[path], policy.limits, module_name(path, policy.layout.source))
        for module, name in _named(tests, index) if isinstance(tests, Module) else ():
            for node in module.bound.get(name, ()):
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    lines.setdefault(module.path, set()).update(_span(node))
    return lines


def _named(tests: Module, index: Index) -> Iterator[tuple[Module, str]]:
    modules: dict[str, str] = {}
    for node in tests.tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                origin = list(_origin(index, node.module or "", alias.name))
                yield from origin
                if full in index.modules and not origin:
                    modules[alias.asname or alias.name] = full
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

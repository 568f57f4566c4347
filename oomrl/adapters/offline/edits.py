"""Edits of Python source by syntax tree: which text to replace where, and why."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text between two places of a file (lines from 1, columns from 0, in bytes as ast counts)."""

    start: tuple[int, int]
    end: tuple[int, int]
    new: str
    why: str


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the strategy, parsed. `fields` are the names of the parameters that the settings file has."""

    path: str
    source: str
    tree: ast.Module
    fields: frozenset[str]

    def text(self, node: ast.AST) -> str:
        """Return the source of a node."""
        return ast.get_source_segment(self.source, node) or ast.unparse(node)

    def functions(self) -> Iterator[ast.FunctionDef]:
        """Yield every function and method."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                yield node


Rule = Callable[[Module, Mapping[str, Module]], Iterator[Edit]]
"""Yield the edits that a rule asks for in one module, given all of them by path."""


def replace(node: ast.expr, new: str, why: str) -> Edit:
    """Return the edit that puts other text in the place of an expression."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    return Edit((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), new, why)


def name_of(node: ast.AST) -> str:
    """Return the last name of an expression: `x` of `a.b.x`, `f` of `m.f(...)`, `v` of `v[0]`; empty for others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        return name_of(node.func)
    if isinstance(node, ast.Subscript):
        return name_of(node.value)
    return ""


def modules(tree: Mapping[str, bytes], fields: frozenset[str]) -> dict[str, Module]:
    """Return the Python files under src/ that parse."""
    found: dict[str, Module] = {}
    for path, data in sorted(tree.items()):
        if path.startswith("src/") and path.endswith(".py"):
            parsed = _parsed(data)
            if parsed is not None:
                found[path] = Module(path, *parsed, fields)
    return found


@lru_cache(maxsize=256)
def _parsed(data: bytes) -> tuple[str, ast.Module] | None:
    # Many rules read the same files; none changes a tree.
    try:
        text = data.decode("utf-8")
        return text, ast.parse(text)
    except (UnicodeDecodeError, SyntaxError, ValueError):
        return None


def repaired(tree: Mapping[str, bytes], fields: frozenset[str], rule: Rule) -> tuple[dict[str, bytes], list[str]]:
    """Return the files that a rule changes, and why. A file that would no longer parse stays as it is."""
    changes: dict[str, bytes] = {}
    reasons: list[str] = []
    known = modules(tree, fields)
    for path, module in known.items():
        edits = _apart(list(rule(module, known)))
        if edits:
            new = _done(module.source, edits)
            try:
                ast.parse(new)
            except SyntaxError:
                continue
            changes[path] = new.encode()
            reasons += [f"{path}:{edit.start[0]} {edit.why}" for edit in edits]
    return changes, reasons


def _apart(edits: list[Edit]) -> list[Edit]:
    """Return edits in their order without those that overlap an earlier one."""
    chosen: list[Edit] = []
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if not chosen or edit.start >= chosen[-1].end:
            chosen.append(edit)
    return chosen


def _done(source: str, edits: list[Edit]) -> str:
    lines = source.split("\n")
    for edit in reversed(edits):
        (row, column), (last, end) = edit.start, edit.end
        head = lines[row - 1].encode()[:column].decode()
        tail = lines[last - 1].encode()[end:].decode()
        lines[row - 1 : last] = (head + edit.new + tail).split("\n")
    return "\n".join(lines)

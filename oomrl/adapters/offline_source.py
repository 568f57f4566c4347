"""Repairs of source by general rules: what names and docstrings promise, and the code does not keep.

A rule looks at one syntax tree and answers with edits (line, column, old text, new text). Nothing here knows how a
fault came about; a rule holds for any strategy that names things as finance does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

#: The sign with which a factor enters a rank where "more is better": Jegadeesh-Titman momentum, the low-volatility
#: anomaly, short-term reversal.
SIGNS = (("momentum", 1), ("volatil", -1), ("reversal", -1), ("recent", -1))


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text between two places of a file (lines from 1, columns from 0, in characters)."""

    start: tuple[int, int]
    end: tuple[int, int]
    new: str
    why: str


Rule = Callable[[ast.Module, str], Iterator[Edit]]


def apply(source: str, edits: list[Edit]) -> str:
    """Return the source with all edits done; they may not overlap."""
    lines = source.split("\n")
    for edit in sorted(edits, key=lambda one: one.start, reverse=True):
        (row, column), (last, end) = edit.start, edit.end
        # ast counts columns in UTF-8 bytes.
        head = lines[row - 1].encode()[:column].decode()
        tail = lines[last - 1].encode()[end:].decode()
        lines[row - 1 : last] = (head + edit.new + tail).split("\n")
    return "\n".join(lines)


def repairs(tree: Mapping[str, bytes], rule: Rule) -> tuple[dict[str, bytes], list[str]]:
    """Return the Python files under src/ that a rule changes, and why."""
    changes: dict[str, bytes] = {}
    reasons: list[str] = []
    for path, data in sorted(tree.items()):
        if not path.startswith("src/") or not path.endswith(".py"):
            continue
        try:
            text = data.decode("utf-8")
            module = ast.parse(text)
        except (UnicodeDecodeError, SyntaxError, ValueError):
            continue
        edits = list(rule(module, text))
        if edits:
            changes[path] = apply(text, edits).encode()
            reasons += [f"{path}:{edit.start[0]} {edit.why}" for edit in edits]
    return changes, reasons


def factor_signs(module: ast.Module, source: str) -> Iterator[Edit]:
    """Give each ranked factor the sign of its name."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _name(node.func) == "rank" and node.args:
            value = node.args[0]
            negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
            inner = value.operand if isinstance(value, ast.UnaryOp) else value
            wanted = next((sign for word, sign in SIGNS if word in _name(inner).lower()), 0)
            if wanted == (1 if negated else -1):
                text = ast.get_source_segment(source, inner) or ast.unparse(inner)
                yield _replace(
                    value, text if negated else f"-{text}", f"{_name(inner)} is ranked with the wrong sign for its name"
                )


def best_first(module: ast.Module, source: str) -> Iterator[Edit]:
    """Sort downwards in functions that promise the best, most or largest first."""
    for function in ast.walk(module):
        if not isinstance(function, ast.FunctionDef):
            continue
        promise = f"{function.name} {ast.get_docstring(function) or ''}".lower()
        if not re.search(r"\b(best|most|largest|highest)\b|most_", promise):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _name(node.func) == "argsort" and node.args:
                value = node.args[0]
                if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)):
                    text = ast.get_source_segment(source, value) or ast.unparse(value)
                    yield _replace(value, f"-{text}", f"{function.name} promises the best first and sorts upwards")


def bound_directions(module: ast.Module, _source: str) -> Iterator[Edit]:
    """Let min_ names be lower bounds and max_ names upper ones, where masks are made of comparisons."""
    opposite = {ast.Lt: ">=", ast.LtE: ">=", ast.Gt: "<=", ast.GtE: "<="}
    for function in ast.walk(module):
        if not isinstance(function, ast.FunctionDef) or function.name in ("check", "read", "validate"):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.left, ast.Attribute):
                continue
            limit = node.comparators[0]
            if not isinstance(limit, ast.Attribute) or type(node.ops[0]) not in opposite:
                continue
            below = isinstance(node.ops[0], ast.Lt | ast.LtE)
            if (limit.attr.startswith("min_") and below) or (limit.attr.startswith("max_") and not below):
                left = node.left
                yield Edit(
                    (left.end_lineno or left.lineno, left.end_col_offset or 0),
                    (limit.lineno, limit.col_offset),
                    f" {opposite[type(node.ops[0])]} ",
                    f"{limit.attr} is compared the wrong way round",
                )


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return ""


def _replace(node: ast.expr, new: str, why: str) -> Edit:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return Edit((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), new, why)

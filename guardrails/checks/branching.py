"""Branches whose sides no mutant can take: what is caught, matched, defined by the way, or gone through together."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator

from guardrails.checks.codes import finding
from guardrails.checks.index import Module
from guardrails.checks.kinds import NARROW
from guardrails.checks.statements import unread
from guardrails.verdict import Finding

BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.ExceptHandler, ast.match_case)
#: How many arguments there are from where on several things are gone through, which is until the first of them ends.
TOGETHER = {"zip": 2, "map": 3}
#: What is no branch, and with a code of its own.
UNREAD, SMALL = "name that is never read", "narrow kind of array"
OTHER = {UNREAD: "GR240", SMALL: "GR216"}


def judge_branching(module: Module, before: Module | None, granted: Collection[str]) -> list[Finding]:
    """Refuse branches of such kinds that functions of that name did not have before, but for granted kinds.

    So are a name that is never read, which works by its size alone, and a kind of array that ends early.
    """
    was = Counter(said for *_, said in _branches(before.tree)) if before else Counter[str]()
    here = [item for item in _branches(module.tree) if item[1] not in granted]
    count = Counter(said for *_, said in here)
    new = [(line, kind) for line, kind, said in here if count[said] > was[said]]
    return [finding(OTHER.get(kind, "GR236"), module.path, line, f"a new {kind}") for line, kind in new]


def _branches(tree: ast.AST, function: str = "", block: bool = False) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and words of each."""
    for node in ast.iter_child_nodes(tree):
        kind, words = "", ast.dump(node)
        if isinstance(node, ast.Try):
            kind, words = "try", str([ast.dump(part) for part in node.body])
        elif isinstance(node, ast.Match):
            kind, words = "match", str([ast.dump(node.subject), *(ast.dump(case.pattern) for case in node.cases)])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and block:
            kind = "definition in a branch"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in TOGETHER:
            kind = _together(node)
        elif (
            isinstance(node, ast.Attribute | ast.Constant)
            and getattr(node, "attr", getattr(node, "value", 0)) in NARROW
        ):
            kind = SMALL
        if kind:
            yield getattr(node, "lineno", 0), kind, f"{function} {kind} {words}"
        if isinstance(node, ast.FunctionDef):
            yield from ((item.lineno, UNREAD, f"{node.name} {item.id}") for item in unread(node))
        inner = node.name if isinstance(node, ast.FunctionDef) else function
        yield from _branches(node, inner, isinstance(node, BLOCKS))


def _together(node: ast.Call) -> str:
    """Return what goes through several things until the first of them ends."""
    name = getattr(node.func, "id", "")
    several = len(node.args) >= TOGETHER[name] or any(isinstance(part, ast.Starred) for part in node.args)
    strict = any(key.arg == "strict" and ast.unparse(key.value) == "True" for key in node.keywords)
    return f"{name} without strict" if several and not strict else ""

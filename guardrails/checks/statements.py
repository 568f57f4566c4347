"""Statements inside functions: what may be handled, skipped or left behind."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from guardrails.checks.index import Function
from guardrails.checks.reaching import Reaching


class Statements(Reaching):
    """Judge handlers, conditions, matches, and code that cannot run or decides nothing."""

    def _on_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and (value.value is ... or id(value) in self.docstrings):
            return
        if not isinstance(value, (ast.Call, ast.Yield, ast.YieldFrom)) and self.own[-1:] != ["<lambda>"]:
            self.find("GR240", node, "a bare expression")
        self.visit(value)

    def _on_Delete(self, node: ast.Delete) -> None:
        self.children(node)

    def _on_If(self, node: ast.If | ast.While | ast.IfExp) -> None:
        fixed = isinstance(node.test, ast.Constant) and not (isinstance(node, ast.While) and node.test.value is True)
        if fixed:
            self.find("GR241", node, "a constant")
        self.children(node)

    _on_While = _on_IfExp = _on_If

    def _on_Assert(self, node: ast.Assert) -> None:
        self.children(node)

    def _on_Try(self, node: ast.Try) -> None:
        for handler in node.handlers:
            self._handler(handler)
        if any(isinstance(item, (ast.Return, ast.Break, ast.Continue)) for item in walk(node.finalbody)):
            self.find("GR226", node, "a jump out of finally")
        self.children(node)

    def _handler(self, handler: ast.ExceptHandler) -> None:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        leaves = any(isinstance(item, (ast.Return, ast.Break, ast.Continue)) for item in walk(handler.body))
        raises = isinstance(handler.body[-1], ast.Raise) and not leaves
        for kind in kinds:
            full = self.dotted(kind) if kind is not None else "BaseException"
            last = full.rsplit(".", 1)[-1].rsplit(":", 1)[-1]
            known = full in self.names.all_builtins or last in self.classes or full.startswith("numpy.")
            if (full in self.names.wide_exceptions and not raises) or not known:
                self.find("GR226", handler, f"{last or 'an expression'!r}")

    def _on_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self.attribute(node, name)
            self._kind_by_name(node, name)
        if node.patterns and self.dotted(node.cls) not in self.names.builtins:
            self.find("GR205", node, "a positional class pattern")
        self.children(node)

    def _on_MatchValue(self, node: ast.MatchValue) -> None:
        self._telling(node.value)
        self.children(node)

    def _dead_ends(self, node: Function) -> None:
        ends = (ast.Return, ast.Raise, ast.Break, ast.Continue)
        for item in walk(node.body):
            for block in (getattr(item, name, None) for name in ("body", "orelse", "finalbody")):
                if isinstance(block, list):
                    self._block(block, ends)
        self._block(node.body, ends)
        idle = [item for item in unread(node) if not item.id.startswith("_")]
        same = _repeated(node)
        if len(idle) > 3 or same > self.policy.limits.statements_on_constants:
            self.find("GR240", node, f"{len(idle)} unread names, {same} constant stores")

    def _block(self, block: list[ast.stmt], ends: tuple[type[ast.stmt], ...]) -> None:
        for before, after in zip(block, block[1:], strict=False):
            if isinstance(before, ends):
                self.find("GR241", after, "one after a jump")


def walk(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the statements of a body and of its blocks, without nested functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    yield from walk([child])
                elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                    yield from walk(child.body)


def unread(node: Function) -> list[ast.Name]:
    """Return the names that a function's assignments bind and nothing in it reads.

    Where a value is taken apart it is the first, if none of them is read.
    """
    loads = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    found = list[ast.Name]()
    for item in (item for item in walk(node.body) if isinstance(item, ast.Assign)):
        for target in item.targets:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            idle = [part for part in parts if isinstance(part, ast.Name) and part.id not in loads]
            apart = parts != [target] and not isinstance(item.value, ast.Tuple)
            found += idle if not apart else idle[:1] if len(idle) == len(parts) else []
    return found


def _repeated(node: Function) -> int:
    """Count stores of bare constants: padding that lifts a coverage share without deciding anything."""
    return sum(
        isinstance(item, (ast.Assign, ast.AugAssign)) and isinstance(item.value, ast.Constant)
        for item in walk(node.body)
    )

"""What an expression says, whatever its parts are called on the way."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter


class Said:
    """Digests of the expressions of one function.

    A local name that is set once, to an expression, says what that expression says; an array filled with one value says
    that value. Each name and node is worked out once, however often it is used.
    """

    def __init__(self, function: ast.FunctionDef) -> None:
        nodes = list(ast.walk(function))
        stores = Counter(node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
        stores.update(node.arg for node in nodes if isinstance(node, ast.arg))
        self.values: dict[str, ast.expr] = {}
        for node in nodes:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.AnnAssign) and len(targets) == 1 and isinstance(value, ast.expr):
                name = targets[0].id if isinstance(targets[0], ast.Name) else ""
                if stores[name] == 1:
                    self.values[name] = value
        self._names: dict[str, str] = {}
        self._nodes: dict[int, str] = {}

    def of(self, node: ast.AST) -> str:
        """Return the digest of what a node says."""
        if id(node) not in self._nodes:
            self._nodes[id(node)] = self._digest(node)
        return self._nodes[id(node)]

    def _digest(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.values:
            if node.id not in self._names:
                self._names[node.id] = node.id  # should it say itself
                self._names[node.id] = self.of(self.values[node.id])
            return self._names[node.id]
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.full" and len(node.args) == 2:
            return self.of(node.args[1])
        parts = [type(node).__name__]
        for name, value in ast.iter_fields(node):
            if name != "ctx":
                values = value if isinstance(value, list) else [value]
                parts += [name, *(self.of(part) if isinstance(part, ast.AST) else repr(part) for part in values)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

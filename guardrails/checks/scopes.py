"""What names mean in one module of the resulting tree: scopes first, then imports, then builtins."""

from __future__ import annotations

import ast
from typing import Literal

from guardrails.checks.codes import finding
from guardrails.checks.index import Index, Module
from guardrails.checks.instead import TAKEN
from guardrails.checks.names import names
from guardrails.policy import Policy
from guardrails.verdict import Finding

Form = Literal["code", "test"]
# Kind and target of a name: local, class, here (this module), module, name, own_module, own, builtin.
Reference = tuple[str, str]


class Scopes:
    """Walk a module and resolve its names; those who extend it say what each kind of node may be."""

    def __init__(self, module: Module, index: Index, policy: Policy, form: Form) -> None:
        self.module, self.index, self.policy, self.form = module, index, policy, form
        self.names = names()
        self.found: list[Finding] = []
        self.scopes: list[tuple[str, set[str]]] = []
        self.imports: dict[str, Reference] = {}
        granted = policy.tests.imports if form == "test" else policy.code.imports
        self.allowed = {name: self.names.allowed(name, listed) for name, listed in granted.items()}

    def find(self, code: str, node: ast.AST, was: str, expected: str = "") -> None:
        """Note a finding."""
        self.found.append(finding(code, self.module.path, getattr(node, "lineno", 0), was, expected))

    def visit(self, node: ast.AST) -> None:
        """Judge a node by the rule of its kind; what has no rule and is no plain syntax is refused."""
        handler = getattr(self, f"_on_{type(node).__name__}", None)
        if handler is not None:
            handler(node)
        else:
            if type(node).__name__ not in self.names.plain_nodes:
                self.find("GR205", node, f"{type(node).__name__}")
            self.children(node)

    def children(self, node: ast.AST) -> None:
        """Judge what a node consists of."""
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names if self.form == "code" else ():
            # What is known by its name keeps it, and lends it to nothing else.
            numpy = isinstance(node, ast.Import) and alias.name == "numpy"
            foreign = isinstance(node, ast.ImportFrom) and self._base(node).split(".")[0] != self.index.package
            if alias.asname not in (None, alias.name) and (foreign or alias.asname in TAKEN) and not numpy:
                self.find("GR217", node, f"{alias.asname!r} for {alias.name!r}")
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                if root == self.index.package:
                    if alias.name not in self.index.modules:
                        self.find("GR203", node, f"{alias.name!r}", f"a module of {root!r}")
                    self.imports[alias.asname or root] = ("own_module", alias.name if alias.asname else root)
                elif alias.name not in self.allowed or (root not in self.allowed and not alias.asname):
                    self.find("GR203", node, f"{alias.name!r}")
                else:
                    self.imports[alias.asname or root] = ("module", alias.name if alias.asname else root)
            return
        base = self._base(node)
        for alias in node.names:
            bound, full = alias.asname or alias.name, f"{base}.{alias.name}"
            if alias.name == "*":
                self.find("GR203", node, f"'*' from {base!r}")
            elif base.split(".")[0] == self.index.package:
                if self._own(base, alias.name):  # a name that the package binds stands before a module of that name
                    self.imports[bound] = ("own", f"{base}:{alias.name}")
                elif full in self.index.modules:
                    self.imports[bound] = ("own_module", full)
                else:
                    self.find("GR203", node, f"{alias.name!r}", f"a name that {base!r} itself defines")
            elif full in self.allowed:
                self.imports[bound] = ("module", full)
            elif alias.name in self.allowed.get(base, ()):
                self.imports[bound] = ("name", full)
            else:
                self.find("GR203", node, f"{full!r}")

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.module.name.split(".")
        if not self.module.path.endswith("/__init__.py"):
            parts = parts[:-1]
        parts = parts[: len(parts) - (node.level - 1)]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def _own(self, module: str, name: str, hops: int = 4) -> bool:
        """Say whether the package itself defines a name; a re-export must lead to such a place."""
        source = self.index.modules.get(module)
        if source is None or hops == 0:
            return False
        if source.defines(name):
            return True
        for node in source.bound.get(name, ()):
            if (
                isinstance(node, ast.ImportFrom)
                and not node.level
                and (node.module or "").startswith(self.index.package)
            ):
                original = next((a.name for a in node.names if (a.asname or a.name) == name), "")
                return self._own(node.module or "", original, hops - 1)
        return False

    def resolve(self, name: str) -> Reference:
        """Say what a name is here. A class body's own names count only directly inside it."""
        for depth, (kind, bound) in enumerate(reversed(self.scopes)):
            if name in bound and kind == "function":
                return "local", name
            if name in bound and depth == 0 and name not in self.names.all_builtins:
                return "class", name
        if name in self.imports:
            return self.imports[name]
        if name in self.module.bound and name not in self.names.all_builtins:
            return "here", name
        return "builtin", name

    def dotted(self, node: ast.expr) -> str:
        """Return the full name of what an expression names, or an empty string."""
        chain = []
        while isinstance(node, ast.Attribute):
            chain.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        kind, target = self.resolve(node.id)
        target = target if kind in ("module", "name", "builtin") else f"{kind}:{target}"
        return ".".join([target, *reversed(chain)])

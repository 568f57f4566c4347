"""Names, attributes and calls: what an expression may reach."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Sequence

from guardrails.checks.index import Index, Module, assigned, bound_names
from guardrails.checks.instead import TAKEN
from guardrails.checks.kinds import METHODS, fixed, kinds_of, takes_kind
from guardrails.checks.made import bindings, given
from guardrails.checks.reach import constant_names
from guardrails.checks.scopes import Form
from guardrails.checks.words import Words, hides
from guardrails.policy import Policy

STAGE_NAME = re.compile(
    r"_?((is|on|in)_(paper|live|test|tests|testing|backtest|simulation|sandbox|production)|(paper|live)_(mode|trading|account)"
    r"|under_test|account_(id|number|no)|(running_)?pytest\w*|unittest|simulated|sandboxed)",
    re.IGNORECASE,
)


class Reaching(Words):
    """Judge names, attributes and calls by the allow-lists, where the scopes say what they are."""

    def __init__(self, module: Module, index: Index, policy: Policy, form: Form) -> None:
        super().__init__(module, index, policy, form)
        self.own: list[str] = []
        self.loops: list[tuple[Sequence[ast.stmt], dict[str, list[str]]]] = [((), {})]
        self.seeded: set[int] = set()
        self.inner = _inner_imports(module.tree) if form == "test" else {}
        self.named: set[int] = set()  # what stands where a maker of arrays may: called, in isinstance, or as a type
        own = set(index.attributes)
        for helper in (module, *index.support) if form == "test" else ():
            own |= helper.attributes
        # A name that the tree shares with values of others would open theirs.
        self.shared = own & self.names.foreign_attributes
        self.attributes = self.names.plain_attributes | set(policy.code.attributes) | (own - self.shared)
        self.classes = index.classes | {node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
        everywhere = [module, *index.modules.values(), *index.support]
        self.own_dtype = any("dtype" in one.attributes or "dtype" in one.bound for one in everywhere)

    def _on_Name(self, node: ast.Name) -> None:
        self._identifier(node, node.id)
        kind, target = self.resolve(node.id)
        if dunder(node.id) and not (not self.scopes or self.scopes[-1][0] == "class"):
            self.find("GR210", node, f"{node.id!r}")
        elif isinstance(node.ctx, ast.Load):
            self._maker(node)
            if target.endswith("random.default_rng") and id(node) not in self.seeded:
                self.find("GR213", node, "the maker itself as a value")
            if kind in ("module", "own_module"):
                self.find("GR206", node, "the module as a value", f"a name of the module {target!r}")
            elif kind == "builtin" and node.id not in self.names.builtins and node.id not in self.policy.code.builtins:
                what = "that is not allowed" if node.id in self.names.all_builtins else "that nothing defines"
                self.find("GR202", node, f"{node.id!r}, {what}")

    def _identifier(self, node: ast.AST, name: str) -> None:
        if not name.isascii():
            self.find("GR117", node, f"{name!r}")
        if self.form == "code" and STAGE_NAME.fullmatch(name):
            self.find("GR231", node, f"the name {name!r}")

    def _on_Attribute(self, node: ast.Attribute) -> None:
        chain, root = [node.attr], node.value
        while isinstance(root, ast.Attribute):
            chain.insert(0, root.attr)
            root = root.value
        self._target(node, node.ctx)
        self._maker(node)
        if self.dotted(node).endswith("random.default_rng") and id(node) not in self.seeded:
            self.find("GR213", node, "the maker itself as a value")
        if isinstance(root, ast.Name):
            kind, target = self.resolve(root.id)
            if kind in ("module", "own_module"):
                for attr in self._through(node, kind, target, chain):
                    self.attribute(node, attr)
                return
        if self._exempt(node):
            # Of type(x).__name__ and object.__setattr__ the head is part of the one allowed phrase.
            for part in node.value.args if isinstance(node.value, ast.Call) else []:
                self.visit(part)
            return
        self.attribute(node, node.attr)
        self.visit(node.value)

    def _through(self, node: ast.AST, kind: str, target: str, chain: list[str]) -> list[str]:
        """Follow a chain through a module to one of its allowed names; return what is left of it."""
        while kind == "own_module" and len(chain) > 1 and f"{target}.{chain[0]}" in self.index.modules:
            target, chain = f"{target}.{chain[0]}", chain[1:]
        if kind == "own_module":
            if not self._own(target, chain[0]):
                self.find("GR203", node, f"{chain[0]!r}", f"a name that {target!r} itself defines")
            return chain[1:]
        allowed = self.allowed.get(target, frozenset())
        for at in range(len(chain), 0, -1):
            inner = self.allowed.get(".".join([target, *chain[: at - 1]]), frozenset())
            if ".".join(chain[:at]) in allowed or (at > 1 and chain[at - 1] in inner):
                return chain[at:]
        self.find("GR203", node, f"{'.'.join(chain)!r}", f"an allowed name of {target!r}")
        return []

    def attribute(self, node: ast.AST, name: str) -> None:
        """Judge one attribute name on a value whose type nobody knows."""
        self._identifier(node, name)
        if dunder(name) or name in self.names.refused_attributes:
            self.find("GR210", node, f"{name!r}")
        elif name in self.shared and name not in self.attributes:
            self.find("GR215", node, f"{name!r}")
        elif name not in self.attributes:
            self.find("GR211", node, f"{name!r}")

    def _maker(self, node: ast.Name | ast.Attribute) -> None:
        """Judge what makes arrays of a kind where it is no callee, and a new kind for an array that is there."""
        loose = id(node) not in self.named and isinstance(node.ctx, ast.Load)
        bound = isinstance(node, ast.Attribute) and node.attr == "astype"
        if loose and _makes_classes(self.dotted(node), self.names.bases):
            self.find("GR222", node, f"{ast.unparse(node)!r} elsewhere")
        if loose and (takes_kind(self.dotted(node)) or bound):
            self.find("GR216", node, f"{ast.unparse(node)[:40]!r} as a value")
        attribute = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr
        if attribute == "dtype":
            self.find("GR216", node, "a new one for an array")

    def _exempt(self, node: ast.Attribute) -> bool:
        if not isinstance(node.value, ast.Call) or not isinstance(node.value.func, ast.Name):
            return node.attr == "__setattr__" and self._post_init() and self.dotted(node) == "object.__setattr__"
        call, name = node.value, node.value.func.id
        if node.attr == "__init__":
            return name == "super" and not call.args
        return node.attr == "__name__" and name == "type" and len(call.args) == 1 and not call.keywords

    def _post_init(self) -> bool:
        return bool(self.own) and self.own[-1] == "__post_init__"

    def _target(self, node: ast.expr, context: ast.expr_context) -> None:
        """Judge an assignment to, or deletion of, an attribute or item by what its leftmost name is."""
        if isinstance(context, ast.Load):
            return
        root: ast.AST = node
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if self._kind(root) != "local":
            what = "an attribute" if isinstance(node, ast.Attribute) else "an item"
            self.find("GR208", node, f"{what} of something shared")
        elif isinstance(node, ast.Attribute) and (node.attr in self.index.methods or isinstance(context, ast.Del)):
            self.find("GR208", node, f"a new value for {node.attr!r}")

    def _on_Subscript(self, node: ast.Subscript) -> None:
        self._target(node, node.ctx)
        self._telling(node.slice)
        if hides(node):
            self.find("GR234", node, "a string in pieces")
        self.children(node)

    def _on_Call(self, node: ast.Call) -> None:
        callee = self.dotted(node.func)
        if hides(node):
            self.find("GR234", node, "a string in pieces")
        for item in node.keywords:
            self.securities(node, item.arg or "")
        taken = self.form == "code" and isinstance(node.func, ast.Name) and node.func.id in TAKEN
        if taken and callee.startswith(("local:", "class:", "here:")):
            self.find("GR217", node, f"{ast.unparse(node.func)!r}")
        if not _makes_classes(callee, self.names.bases):
            self.named.add(id(node.func))
        if callee in ("isinstance", "issubclass"):
            self.named |= {id(part) for argument in node.args[1:] for part in ast.walk(argument)}
        for kind in kinds_of(node, callee, self._is_own(callee)):
            if not fixed(kind, self.dotted, self.own_dtype):
                self.find("GR216", kind, f"{ast.unparse(kind)[:40]!r}")
        if isinstance(node.func, ast.Name) and callee in self.names.constant_reach:
            self._reach(node, callee)
            return
        if callee == "type" and self.form == "test" and len(node.args) == 1 and not node.keywords:
            self.visit(node.args[0])
            return
        if callee == "super" and node.args:
            self.find("GR212", node, "super() with arguments")
        if callee.endswith("random.default_rng"):
            self.seeded.add(id(node.func))
            seeds = [*node.args, *(item.value for item in node.keywords if item.arg)]
            if not seeds or not self._is_seed(seeds[0]):
                self.find("GR213", node, f"{ast.unparse(node)[:60]!r}")
        if callee in ("dataclasses.field", "dataclasses.dataclass"):
            for item in node.keywords:
                if item.arg in ("compare", "hash", "unsafe_hash", "order"):
                    self.find("GR222", node, f"{item.arg!r}")
        if callee == "datetime.date" and node.args and all(isinstance(part, ast.Constant) for part in node.args):
            self.find("GR232", node, "one")
        if isinstance(node.func, ast.Attribute):
            self._method_call(node, node.func)
            if node.func.attr == "format":
                for part in [node.func.value, *node.args, *node.keywords]:
                    self.visit(part)
                return
        if callee == "object.__setattr__":
            if not _sets_own_field(node):
                self.find("GR212", node, "another form than object.__setattr__(self, 'field', value)")
            for part in node.args[1:2]:
                self._kind_by_name(node, str(getattr(part, "value", "")))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__name__":
            self.find("GR210", node, "a call of a name")
        self.children(node)

    def _reach(self, node: ast.Call, callee: str) -> None:
        """Judge getattr and its like by every name that the second argument can be."""
        found = constant_names(node.args[1], self.loops[-1][1]) if len(node.args) > 1 else None
        if found is None or node.keywords:
            self.find("GR212", node, "a computed one", f"a constant name for {callee}")
        for name in found or ():
            self.attribute(node, name)
            self._kind_by_name(node, name)
            if self.form == "test" and name in self.names.mutators:
                self.find("GR281", node, f"{name!r} by {callee}")
            if callee == "setattr" and name in self.index.methods:
                self.find("GR208", node, f"a new value for {name!r}")
        if callee == "setattr" and self._kind(node.args[0] if node.args else node) != "local":
            self.find("GR208", node, "an attribute of something shared")
        for part in [*node.args, *node.keywords]:
            self.visit(part)

    def _kind_by_name(self, node: ast.AST, name: str) -> None:
        if name in METHODS or name == "dtype":
            self.find("GR216", node, f"{name!r} by its name")

    def _is_own(self, callee: str) -> bool:
        """Say whether a callee is a function or class of the package, not a method of some value of it."""
        kind, _, name = callee.partition(":")
        if kind == "own_module":
            return name.rpartition(".")[0] in self.index.modules
        return kind in ("here", "own") and "." not in name.rpartition(":")[2] or callee == "local:cls"

    def _is_seed(self, node: ast.expr) -> bool:
        """Say whether a value cannot be None by what it is; of a name in tests, that nothing behind it says None."""
        if isinstance(node, ast.Name) and self.form == "test":
            asked, known = [node.id], set[str]()
            bound = [pair for item in ast.walk(self.module.tree) for pair in (*bindings(item), *given(item))]
            while asked:
                known.add(name := asked.pop())
                parts = [part for other, value in bound if other == name and value for part in ast.walk(value)]
                if any(isinstance(part, ast.Constant) and part.value is None for part in parts):
                    return False
                asked += {part.id for part in parts if isinstance(part, ast.Name)} - known
            return True
        if isinstance(node, ast.Call):
            return self.dotted(node.func) in ("abs", "int", "len", "round")
        number = isinstance(node, ast.Constant) and isinstance(node.value, int)
        return number or isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List))

    def _kind(self, node: ast.AST) -> str:
        """Say what kind of name an expression is; "" where it is none, "class" for the first argument of a class."""
        kind = self.resolve(node.id)[0] if isinstance(node, ast.Name) else ""
        return "class" if isinstance(node, ast.Name) and node.id == "cls" else kind

    def _method_call(self, node: ast.Call, function: ast.Attribute) -> None:
        if function.attr == "format":
            receiver = function.value
            plain = isinstance(receiver, ast.Constant) and isinstance(receiver.value, str)
            if not plain or _reaches(str(getattr(receiver, "value", ""))):
                self.find("GR214", node, "one with reach, or a computed one")
        owner = function.value
        shared = isinstance(owner, ast.Name) and self.resolve(owner.id)[0] in ("here", "own", "name")
        if function.attr in self.names.mutators and shared and self.scopes:
            self.find("GR208", node, f"{function.attr!r} on one")
        if function.attr in ("get", "startswith", "endswith", "find", "index", "count", "split", "pop"):
            for part in node.args:
                self._telling(part)

    def _module_value(self, name: str) -> ast.expr | None:
        """Return what a constant of this module is bound to, or none where the name means something else here."""
        where = self.module.bound.get(name, [])
        known = self.resolve(name)[0] == "here" and len(where) == 1
        return assigned(where[0], name) if known else None


def _inner_imports(tree: ast.Module) -> dict[str, list[ast.Import | ast.ImportFrom]]:
    """Return the imports inside functions by the name that they bind, where nothing else in the file binds it."""
    found: dict[str, list[ast.Import | ast.ImportFrom]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in tree.body:
            for name in bound_names(node):
                found.setdefault(name, []).append(node)
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    stored |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    stored |= {name for node in tree.body for name in bound_names(node)}
    return {
        name: nodes
        for name, nodes in found.items()
        if name not in stored and len({ast.dump(node) for node in nodes}) == 1
    }


def _makes_classes(name: str, bases: frozenset[str]) -> bool:
    """Say whether what may be extended also makes classes when it is called, of fields that only a text names."""
    return name in bases and name.startswith(("enum.", "typing."))


def dunder(name: str) -> bool:
    """Say whether a name is one of the language's own."""
    return name.startswith("__")


def _sets_own_field(node: ast.Call) -> bool:
    if len(node.args) != 3 or node.keywords:
        return False
    owner, name = node.args[:2]
    if not (isinstance(owner, ast.Name) and owner.id == "self" and isinstance(name, ast.Constant)):
        return False
    return isinstance(name.value, str) and not dunder(name.value)


def _reaches(template: str) -> bool:
    try:
        fields = [(name or "") + (spec or "") for _, name, spec, _ in string.Formatter().parse(template)]
    except ValueError:
        return True
    return any(re.search(r"[\[\]{}]|\.(?!\d)", item) for item in fields)

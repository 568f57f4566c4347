"""The static policy as an allow-list: what is not known to be harmless is refused, with a way out.

One visitor, over 400 lines with its rules, because names mean nothing without the scopes around them;
splitting it would tear the rules from the resolution they rest on. It is one layer, never the boundary.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Sequence
from typing import Literal

from guardrails.checks.codes import finding
from guardrails.checks.index import Function, Index, Module, bound_names, parameters
from guardrails.checks.names import names
from guardrails.policy import Policy
from guardrails.verdict import Finding

Form = Literal["code", "test"]
# Kind and target of a name: local, class, here (this module), module, name, own_module, own, builtin.
Reference = tuple[str, str]

PRAGMA = re.compile(
    r"#\s*(pragma\b|no[\s_-]*(cover|branch|qa)\b|type:\s*ignore|(pylint|mypy|ruff|flake8|pyright|isort|fmt|nosec|cov)\b\s*:?)",
    re.IGNORECASE,
)
HARNESS = re.compile(
    r"pytest|unittest|conftest|sitecustomize|sys\.modules|/proc/|__\w+__|\bcoverage\b.*\brun", re.IGNORECASE
)
STAGE = re.compile(
    r"(is_|on_)?(paper|live|sandbox(ed)?|backtest(ing)?|simulat(ed|ion|or)|under_test|mock(ed)?)", re.IGNORECASE
)
STAGE_NAME = re.compile(
    r"_?((is|on|in)_(paper|live|test|tests|testing|backtest|simulation|sandbox|production)|(paper|live)_(mode|trading|account)"
    r"|under_test|account_(id|number|no)|(running_)?pytest\w*|unittest|simulated|sandboxed)",
    re.IGNORECASE,
)
TICKER = re.compile(r"[A-Z]{1,5}([./-][A-Z]{1,2})?")
ACCOUNT = re.compile(r"PA[0-9A-Z]{8,12}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-.*", re.ASCII)
HOOK = re.compile(r"pytest\w+|collect_ignore\w*|(setup|teardown)_(module|function)|load_tests")
CALENDAR = re.compile(r"(?<!\d)(19|20)\d{2}([-/.]\d{1,2}([-/.]\d{1,2})?|[01]\d[0-3]\d)(?!\d)")
YEAR = re.compile(r"\s*(1[89]|20|21)\d{2}\s*|(19|20)\d?")
DATE_WORD = re.compile(
    r"(^|_)(date|dates|day|days|year|month|week|weekday|today|now|session|ordinal|timestamp|time)(_|s?$)", re.I
)
YEAR_WORD = re.compile(r"(^|_)(date|year)s?($|_)", re.I)


def judge_source(module: Module, data: bytes, index: Index, policy: Policy, form: Form = "code") -> list[Finding]:
    """Return the findings on one module of the resulting tree."""
    judge = _Judge(module, index, policy, form)
    judge.run()
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if PRAGMA.search(line):
            judge.found.append(finding("GR230", module.path, number, f"{line.strip()[:60]!r}"))
    return sorted(set(judge.found), key=lambda item: (item.line, item.code, item.reason))


class _Judge:
    def __init__(self, module: Module, index: Index, policy: Policy, form: Form) -> None:
        self.module, self.index, self.policy, self.form = module, index, policy, form
        self.names = names()
        self.found: list[Finding] = []
        self.scopes: list[tuple[str, set[str]]] = []
        self.own: list[str] = []
        self.docstrings: set[int] = set()
        self.seeded: set[int] = set()
        self.dated = any(YEAR_WORD.search(word) for node in ast.walk(module.tree) for word in _words(node))
        self.imports: dict[str, Reference] = {}
        granted = policy.tests.imports if form == "test" else policy.code.imports
        self.allowed = {name: self.names.allowed(name, listed) for name, listed in granted.items()}
        own = index.attributes | set(policy.code.attributes)
        if form == "test":
            own |= {
                name
                for node in ast.walk(module.tree)
                if isinstance(node, ast.ClassDef)
                for name in bound_names_of(node.body)
            }
        self.attributes = self.names.plain_attributes | own
        self.classes = index.classes | {node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}

    def find(self, code: str, node: ast.AST, was: str, expected: str = "") -> None:
        self.found.append(finding(code, self.module.path, getattr(node, "lineno", 0), was, expected))

    # -- statements of a module or class: definitions and constants only

    def run(self) -> None:
        body = self.module.tree.body
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
        for name, where in self.module.bound.items():
            if len(where) > 1:
                self.find("GR242", where[1], f"bound {len(where)} times", f"{name!r} to be bound once")
            if self.form == "test" and HOOK.fullmatch(name):
                self.find("GR221", where[0], f"{name!r}")
            if name in self.names.all_builtins:
                self.find("GR204", where[0], f"{name!r}")
        self._definitions(body, "module")

    def _definitions(self, body: Sequence[ast.stmt], where: str) -> None:
        self._docstring(body)
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Pass)):
                self.visit(node)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                if where != "module":
                    self.find("GR207", node, "one elsewhere")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                self._constant_statement(node, where)
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                self.find("GR220", node, f"{type(node).__name__} in a {where}")
                self.visit(node)
            elif id(node.value) not in self.docstrings and node.value.value is not ...:
                self.find("GR240", node, "a bare constant")

    def _constant_statement(self, node: ast.Assign | ast.AnnAssign, where: str) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not all(isinstance(target, ast.Name) for target in targets):
            self.find("GR220", node, f"a target that is no name, in a {where}")
        for target in targets:
            name = target.id if isinstance(target, ast.Name) else ""
            if _dunder(name) and name not in ({"__all__", "__version__"} if where == "module" else {"__slots__"}):
                self.find("GR221", node, f"{name!r}")
        if node.value is not None and not self._constant(node.value):
            self.find("GR220", node, f"a computation in a {where}")
        self.visit(node)

    def _constant(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            callee = self.dotted(node.func)
            parts = [*node.args, *(item.value for item in node.keywords)]
            own = self.form == "test" and callee.startswith(("own:", "own_module:"))
            known = own or callee in self.names.constant_calls
            return known and all(self._constant(part) for part in parts)
        if isinstance(node, ast.Lambda):
            return False
        plain = (
            ast.Constant,
            ast.Name,
            ast.Attribute,
            ast.Subscript,
            ast.Tuple,
            ast.List,
            ast.Dict,
            ast.Set,
            ast.Slice,
        )
        if not isinstance(node, (*plain, ast.BinOp, ast.UnaryOp, ast.Starred)):
            return False
        return all(self._constant(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))

    def _docstring(self, body: Sequence[ast.stmt]) -> None:
        first = body[0] if body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            self.docstrings.add(id(first.value))

    # -- imports and names

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
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

    # -- the visitor

    def visit(self, node: ast.AST) -> None:
        handler = getattr(self, f"_on_{type(node).__name__}", None)
        if handler is not None:
            handler(node)
        else:
            if type(node).__name__ not in self.names.plain_nodes:
                self.find("GR205", node, f"{type(node).__name__}")
            self.children(node)

    def children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def _on_Import(self, node: ast.Import) -> None:
        self.find("GR207", node, "one elsewhere")

    _on_ImportFrom = _on_Import

    def _on_Name(self, node: ast.Name) -> None:
        self._identifier(node, node.id)
        kind, target = self.resolve(node.id)
        if _dunder(node.id) and not (not self.scopes or self.scopes[-1][0] == "class"):
            self.find("GR210", node, f"{node.id!r}")
        elif isinstance(node.ctx, ast.Load):
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
        if _dunder(name) or name in self.names.refused_attributes:
            self.find("GR210", node, f"{name!r}")
        elif name not in self.attributes:
            self.find("GR211", node, f"{name!r}")

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
        kind = self.resolve(root.id)[0] if isinstance(root, ast.Name) else ""
        first = self.scopes and isinstance(root, ast.Name) and root.id == "cls"
        if kind != "local" or first:
            what = "an attribute" if isinstance(node, ast.Attribute) else "an item"
            self.find("GR208", node, f"{what} of something shared")
        elif isinstance(node, ast.Attribute) and (node.attr in self.index.methods or isinstance(context, ast.Del)):
            self.find("GR208", node, f"a new value for {node.attr!r}")

    def _on_Subscript(self, node: ast.Subscript) -> None:
        self._target(node, node.ctx)
        self._telling(node.slice)
        self.children(node)

    # -- calls

    def _on_Call(self, node: ast.Call) -> None:
        callee = self.dotted(node.func)
        if isinstance(node.func, ast.Name) and callee in self.names.constant_reach:
            second = node.args[1] if len(node.args) > 1 else None
            if not (isinstance(second, ast.Constant) and isinstance(second.value, str)):
                self.find("GR212", node, "a computed one", f"a constant name for {callee}")
            else:
                self.attribute(node, second.value)
            for part in [*node.args, *node.keywords]:
                self.visit(part)
            return
        if callee == "super" and node.args:
            self.find("GR212", node, "super() with arguments")
        if callee.endswith("random.default_rng"):
            self.seeded.add(id(node.func))
            seeds = [*node.args, *(item.value for item in node.keywords)]
            if not seeds or _is_none(seeds[0]):
                self.find("GR213", node, "none")
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
        if callee == "object.__setattr__" and not _sets_own_field(node):
            self.find("GR212", node, "another form than object.__setattr__(self, 'field', value)")
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__name__":
            self.find("GR210", node, "a call of a name")
        self.children(node)

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

    # -- scopes

    def _on_FunctionDef(self, node: ast.FunctionDef) -> None:
        inside_class = bool(self.scopes) and self.scopes[-1][0] == "class"
        self._identifier(node, node.name)
        if _dunder(node.name) and not (inside_class and self._granted(node.name, self.names.dunder_methods)):
            self.find("GR221", node, f"{node.name!r}")
        extra = frozenset({f"{name}.setter" for name in (self.scopes[-1][1] if inside_class else ())})
        self._decorators(node.decorator_list, extra)
        self._parameters(node.args, inside_class or not self.scopes)
        if node.returns:
            self._annotation(node.returns)
        self._function(node.args, node.body, node.name)
        self._dead_ends(node)

    def _on_Lambda(self, node: ast.Lambda) -> None:
        self._parameters(node.args, False)
        self._function(node.args, [ast.Expr(node.body)], "<lambda>")

    def _parameters(self, arguments: ast.arguments, outer: bool) -> None:
        for default in [*arguments.defaults, *(item for item in arguments.kw_defaults if item)]:
            fresh = isinstance(default, ast.Call) and self.dotted(default.func) in ("dict", "list", "set")
            shared = fresh or isinstance(default, (ast.List, ast.Dict, ast.Set, ast.ListComp))
            if shared or (outer and not self._constant(default)):
                self.find("GR223", default, "a value that calls share or compute")
            self.visit(default)
        arg_nodes = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for item in arg_nodes:
            if item is not None:
                self._identifier(item, item.arg)
                if item.annotation:
                    self._annotation(item.annotation)

    def _function(self, arguments: ast.arguments, body: Sequence[ast.stmt], name: str) -> None:
        bound = set(parameters(arguments)) | bound_names_of(body)
        free = {item for node in _walk(body) if isinstance(node, ast.Nonlocal) for item in node.names}
        self._docstring(body)
        self.scopes.append(("function", bound - free))
        self.own.append(name)
        for node in body:
            self.visit(node)
        self.scopes.pop()
        self.own.pop()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        bound: set[str] = set()
        for generator in node.generators:
            bound |= bound_names(generator.target)
        self.visit(node.generators[0].iter)
        self.scopes.append(("function", bound))
        for at, generator in enumerate(node.generators):
            for part in [generator.target, *generator.ifs, *([generator.iter] if at else [])]:
                self.visit(part)
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for value in values:
            self.visit(value)
        self.scopes.pop()

    _on_ListComp = _on_SetComp = _on_DictComp = _on_GeneratorExp = _comprehension

    def _on_ClassDef(self, node: ast.ClassDef) -> None:
        self._identifier(node, node.name)
        self._decorators(node.decorator_list, frozenset())
        for item in node.keywords:
            self.find("GR222", node, f"{item.arg!r}")
        for base in node.bases:
            value = base.value if isinstance(base, ast.Subscript) else base
            full, last = self.dotted(value), self.dotted(value).rsplit(".", 1)[-1].rsplit(":", 1)[-1]
            own = full.startswith(("here:", "own:", "own_module:")) and last in self.classes
            if not own and not self._granted(full, self.names.bases | set(self.policy.code.bases)):
                self.find("GR222", base, f"{ast.unparse(base)[:60]!r}")
            self._annotation(base)
        bound = bound_names_of(node.body)
        for name in sorted(bound):
            if sum(name in bound_names(item) for item in node.body) > 1 and not _is_setter_pair(node.body, name):
                self.find("GR242", node, f"{name!r} more than once in its class")
        self.scopes.append(("class", bound))
        self._definitions(node.body, "class")
        self.scopes.pop()

    def _granted(self, name: str, listed: frozenset[str] | set[str]) -> bool:
        return name in listed or name in self.policy.code.grants

    def _decorators(self, decorators: Sequence[ast.expr], extra: frozenset[str]) -> None:
        listed = self.names.decorators | set(self.policy.code.decorators) | extra
        if self.form == "test":
            listed |= self.names.test_decorators
        for item in decorators:
            head = item.func if isinstance(item, ast.Call) else item
            full = self.dotted(head).removeprefix("class:")
            if full not in listed:
                self.find("GR224", item, f"{ast.unparse(head)[:60]!r}")
            if isinstance(item, ast.Call):
                self.visit(item)

    def _annotation(self, node: ast.expr) -> None:
        plain = (
            ast.Name,
            ast.Attribute,
            ast.Subscript,
            ast.Tuple,
            ast.List,
            ast.Constant,
            ast.BinOp,
            ast.BitOr,
            ast.Load,
        )
        for item in ast.walk(node):
            if not isinstance(item, (*plain, ast.Starred)):
                self.find("GR225", node, f"{type(item).__name__}")
                return
            if isinstance(item, ast.Constant):
                self.docstrings.add(id(item))
        self.visit(node)

    # -- statements

    def _on_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        self.visit(node.target)
        if node.value:
            self.visit(node.value)

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
        if any(isinstance(item, (ast.Return, ast.Break, ast.Continue)) for item in _walk(node.finalbody)):
            self.find("GR226", node, "a jump out of finally")
        self.children(node)

    def _handler(self, handler: ast.ExceptHandler) -> None:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        leaves = any(isinstance(item, (ast.Return, ast.Break, ast.Continue)) for item in _walk(handler.body))
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
        if node.patterns and self.dotted(node.cls) not in self.names.builtins:
            self.find("GR205", node, "a positional class pattern")
        self.children(node)

    def _on_MatchValue(self, node: ast.MatchValue) -> None:
        self._telling(node.value)
        self.children(node)

    def _dead_ends(self, node: Function) -> None:
        ends = (ast.Return, ast.Raise, ast.Break, ast.Continue)
        for item in _walk(node.body):
            for block in (getattr(item, name, None) for name in ("body", "orelse", "finalbody")):
                if isinstance(block, list):
                    self._block(block, ends)
        self._block(node.body, ends)
        loads = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
        stored = [
            t
            for item in _walk(node.body)
            if isinstance(item, ast.Assign)
            for t in item.targets
            if isinstance(t, ast.Name)
        ]
        idle = [item for item in stored if item.id not in loads and not item.id.startswith("_")]
        same = _repeated(node)
        if len(idle) > 3 or same > self.policy.limits.statements_on_constants:
            self.find("GR240", node, f"{len(idle)} unread names, {same} constant stores")

    def _block(self, block: list[ast.stmt], ends: tuple[type[ast.stmt], ...]) -> None:
        for before, after in zip(block, block[1:], strict=False):
            if isinstance(before, ends):
                self.find("GR241", after, "one after a jump")

    # -- constants

    def _on_Constant(self, node: ast.Constant) -> None:
        value, limits = node.value, self.policy.limits
        if id(node) in self.docstrings:
            return
        if isinstance(value, (str, bytes)) and len(value) > (
            limits.literal_characters if isinstance(value, str) else 32
        ):
            self.find("GR234", node, f"{len(value)} characters")
        if isinstance(value, int) and abs(value) > 10**16:
            self.find("GR234", node, "a packed one")
        if isinstance(value, str):
            self._text(node, value)

    def _text(self, node: ast.AST, value: str) -> None:
        if self.form == "code":
            if HARNESS.search(value):
                self.find("GR231", node, f"{value[:40]!r}")
            if ACCOUNT.fullmatch(value):
                self.find("GR231", node, "a string of that form")
        if self.form == "code" and (CALENDAR.search(value) or YEAR.fullmatch(value)):
            self.find("GR232", node, f"{value[:40]!r}")

    def _telling(self, node: ast.expr) -> None:
        """Judge a string where code compares or looks up with it."""
        for item in ast.walk(node):
            text = item.value if isinstance(item, ast.Constant) else None
            if self.form == "code" and isinstance(text, str):
                if STAGE.fullmatch(text.strip()):
                    self.find("GR231", item, f"{text!r}")
                elif TICKER.fullmatch(text) and text not in self.names.plain_words:
                    self.find("GR233", item, f"{text!r}")

    def _on_BinOp(self, node: ast.BinOp) -> None:
        folded = _folded(node)
        if folded is not None:
            self._text(node, folded)
            if self.form == "code" and STAGE.fullmatch(folded.strip()):
                self.find("GR231", node, f"{folded!r}")
        self.children(node)

    def _on_JoinedStr(self, node: ast.JoinedStr) -> None:
        parts = [item.value for item in node.values if isinstance(item, ast.FormattedValue)]
        if parts and all(isinstance(item, ast.Constant) for item in parts):
            self.find("GR234", node, "a string in pieces")
        self.children(node)

    def _on_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for side in sides:
            self._telling(side)
        words = {w for side in sides for item in ast.walk(side) for w in _words(item)}
        numbers = {item.value for side in sides for item in ast.walk(side) if isinstance(item, ast.Constant)}
        near = any(DATE_WORD.search(word) for word in words)
        for value in numbers if self.form == "code" else ():
            if isinstance(value, int) and ((near and value >= 1900) or (self.dated and _calendar(value))):
                self.find("GR232", node, f"a comparison with {value}")
            exact = any(isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)) for op in node.ops)
            if exact and isinstance(value, float) and len(re.sub(r"\D", "", repr(value)).strip("0")) > 3:
                self.find("GR234", node, f"a value recalled to the digit, {value}")
        self.children(node)

    def _collection(self, node: ast.List | ast.Tuple | ast.Set | ast.Dict) -> None:
        items = node.keys if isinstance(node, ast.Dict) else node.elts
        if len(items) > self.policy.limits.literal_items:
            self.find("GR234", node, f"{len(items)}", f"at most {self.policy.limits.literal_items} items")
        for item in items:
            if isinstance(item, ast.Constant):
                self._telling(item)
        self.children(node)

    _on_List = _on_Tuple = _on_Set = _on_Dict = _collection


def bound_names_of(body: Sequence[ast.stmt]) -> set[str]:
    """Return all names that the statements of a body bind in its scope."""
    return {name for node in body for name in bound_names(node)}


def _walk(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the statements of a body and of its blocks, without nested functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    yield from _walk([child])
                elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                    yield from _walk(child.body)


def _dunder(name: str) -> bool:
    return name.startswith("__")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _sets_own_field(node: ast.Call) -> bool:
    if len(node.args) != 3 or node.keywords:
        return False
    owner, name = node.args[:2]
    if not (isinstance(owner, ast.Name) and owner.id == "self" and isinstance(name, ast.Constant)):
        return False
    return isinstance(name.value, str) and not _dunder(name.value)


def _reaches(template: str) -> bool:
    try:
        fields = [(name or "") + (spec or "") for _, name, spec, _ in string.Formatter().parse(template)]
    except ValueError:
        return True
    return any(re.search(r"[\[\]{}]|\.(?!\d)", item) for item in fields)


def _is_setter_pair(body: Sequence[ast.stmt], name: str) -> bool:
    both = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    marks = [[ast.unparse(item) for item in node.decorator_list] for node in both]
    return marks in ([["property"], [f"{name}.setter"]], [["typing.overload"]]) or all(
        "overload" in m for m in marks[:-1]
    )


def _repeated(node: Function) -> int:
    """Count stores of bare constants: padding that lifts a coverage share without deciding anything."""
    return sum(
        isinstance(item, (ast.Assign, ast.AugAssign)) and isinstance(item.value, ast.Constant)
        for item in _walk(node.body)
    )


def _calendar(value: int) -> bool:
    """Say whether a number can be a year, a date written together, or an ordinal of these times."""
    return 1900 <= value <= 2100 or 19_000_101 <= value <= 21_001_231 or 693_000 <= value <= 767_000


def _words(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def _folded(node: ast.expr) -> str | None:
    """Return the text of constant strings added together."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _folded(node.left), _folded(node.right)
        return left + right if left is not None and right is not None else None
    return None

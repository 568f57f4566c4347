"""The static policy as an allow-list: what is not known to be harmless is refused, with a way out.

It is one layer, never the boundary. `scopes` says what names mean, `words` judges constants; here are the rules of
statements, calls, attributes and definitions, which lean on both and on one another.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Sequence

from guardrails.checks.codes import finding
from guardrails.checks.index import Function, Index, Module, assigned, bound_names, parameters
from guardrails.checks.reach import comprehended, constant_names, iterated
from guardrails.checks.scopes import Form
from guardrails.checks.words import Words
from guardrails.policy import Policy
from guardrails.verdict import Finding

PRAGMA = re.compile(
    r"#\s*(pragma\b|no[\s_-]*(cover|branch|qa)\b|type:\s*ignore|(pylint|mypy|ruff|flake8|pyright|isort|fmt|nosec|cov)\b\s*:?)",
    re.IGNORECASE,
)
STAGE_NAME = re.compile(
    r"_?((is|on|in)_(paper|live|test|tests|testing|backtest|simulation|sandbox|production)|(paper|live)_(mode|trading|account)"
    r"|under_test|account_(id|number|no)|(running_)?pytest\w*|unittest|simulated|sandboxed)",
    re.IGNORECASE,
)
HOOK = re.compile(r"pytest\w+|collect_ignore\w*|(setup|teardown)_(module|function)|load_tests")


def judge_source(module: Module, data: bytes, index: Index, policy: Policy, form: Form = "code") -> list[Finding]:
    """Return the findings on one module of the resulting tree."""
    judge = _Judge(module, index, policy, form)
    judge.run()
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if PRAGMA.search(line):
            judge.found.append(finding("GR230", module.path, number, f"{line.strip()[:60]!r}"))
    return sorted(set(judge.found), key=lambda item: (item.line, item.code, item.reason))


class _Judge(Words):
    def __init__(self, module: Module, index: Index, policy: Policy, form: Form) -> None:
        super().__init__(module, index, policy, form)
        self.own: list[str] = []
        self.loops: list[tuple[Sequence[ast.stmt], dict[str, list[str]]]] = [((), {})]
        self.seeded: set[int] = set()
        self.inner = _inner_imports(module.tree) if form == "test" else {}
        own = index.attributes | set(policy.code.attributes)
        for helper in (module, *index.support) if form == "test" else ():
            own |= helper.attributes
        self.attributes = self.names.plain_attributes | own
        self.classes = index.classes | {node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}

    # -- statements of a module or class: definitions and constants only

    def run(self) -> None:
        body = self.module.tree.body
        for node in (*body, *sum(self.inner.values(), [])):
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
        if isinstance(targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            targets = targets[0].elts
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
            own = self.form == "test" and callee.startswith(("own:", "own_module:", "hypothesis.strategies."))
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
        made = (ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr) if self.form == "test" else ()
        if isinstance(node, made):
            return True  # its parts are judged where they stand
        if not isinstance(node, (*plain, ast.BinOp, ast.UnaryOp, ast.Starred)):
            return False
        return all(self._constant(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))

    def _docstring(self, body: Sequence[ast.stmt]) -> None:
        first = body[0] if body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            self.docstrings.add(id(first.value))

    # -- the visitor

    def _on_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        if any(node not in self.inner.get(name, ()) for name in bound_names(node)):
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
        if self._kind(root) != "local":
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
            self._reach(node, callee)
            return
        if callee == "type" and self.form == "test" and len(node.args) == 1 and not node.keywords:
            self.visit(node.args[0])
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

    def _reach(self, node: ast.Call, callee: str) -> None:
        """Judge getattr and its like by every name that the second argument can be."""
        found = constant_names(node.args[1], self.loops[-1][1]) if len(node.args) > 1 else None
        if found is None or node.keywords:
            self.find("GR212", node, "a computed one", f"a constant name for {callee}")
        for name in found or ():
            self.attribute(node, name)
            if callee == "setattr" and name in self.index.methods:
                self.find("GR208", node, f"a new value for {name!r}")
        if callee == "setattr" and self._kind(node.args[0] if node.args else node) != "local":
            self.find("GR208", node, "an attribute of something shared")
        for part in [*node.args, *node.keywords]:
            self.visit(part)

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
        bound = (set(parameters(arguments)) | bound_names_of(body)) - set(self.inner)
        free = {item for node in _walk(body) if isinstance(node, ast.Nonlocal) for item in node.names}
        self._docstring(body)
        self.scopes.append(("function", bound - free))
        self.own.append(name)
        self.loops.append((body, iterated(body, parameters(arguments), self._module_value)))
        for node in body:
            self.visit(node)
        self.scopes.pop()
        self.own.pop()
        self.loops.pop()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        bound: set[str] = set()
        for generator in node.generators:
            bound |= bound_names(generator.target)
        self.visit(node.generators[0].iter)
        self.scopes.append(("function", bound))
        around, known = self.loops[-1]
        own = comprehended(node.generators, around, self._module_value)
        self.loops.append((around, {name: texts for name, texts in known.items() if name not in bound} | own))
        for at, generator in enumerate(node.generators):
            for part in [generator.target, *generator.ifs, *([generator.iter] if at else [])]:
                self.visit(part)
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for value in values:
            self.visit(value)
        self.scopes.pop()
        self.loops.pop()

    def _module_value(self, name: str) -> ast.expr | None:
        """Return what a constant of this module is bound to, or none where the name means something else here."""
        where = self.module.bound.get(name, [])
        known = self.resolve(name)[0] == "here" and len(where) == 1
        return assigned(where[0], name) if known else None

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

"""The static policy as an allow-list: what is not known to be harmless is refused, with a way out.

It is one layer, never the boundary. `scopes` says what names mean, `words` judges constants, `reaching` names,
attributes and calls, `statements` what stands in functions; here are modules, classes, functions and their heads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from guardrails.checks.codes import finding
from guardrails.checks.index import Index, Module, bound_names, parameters
from guardrails.checks.instead import TAKEN
from guardrails.checks.reach import comprehended, iterated
from guardrails.checks.reaching import dunder
from guardrails.checks.scopes import Form
from guardrails.checks.statements import Statements, walk
from guardrails.policy import Policy
from guardrails.verdict import Finding

PRAGMA = re.compile(
    r"#\s*(pragma\b|no[\s_-]*(cover|branch|qa)\b|type:\s*ignore|(pylint|mypy|ruff|flake8|pyright|isort|fmt|nosec|cov)\b\s*:?)",
    re.IGNORECASE,
)
#: What is used up by whoever goes through it, and what goes through it at once and keeps what came.
PASSING = frozenset({"enumerate", "filter", "iter", "map", "reversed", "zip"})
KEEPING = frozenset({"dict", "frozenset", "list", "max", "min", "set", "sorted", "sum", "tuple"})
HOOK = re.compile(r"pytest\w+|collect_ignore\w*|(setup|teardown)_(module|function)|load_tests")


def judge_source(module: Module, data: bytes, index: Index, policy: Policy, form: Form = "code") -> list[Finding]:
    """Return the findings on one module of the resulting tree."""
    judge = _Judge(module, index, policy, form)
    judge.run()
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if PRAGMA.search(line):
            judge.found.append(finding("GR230", module.path, number, f"{line.strip()[:60]!r}"))
    return sorted(set(judge.found), key=lambda item: (item.line, item.code, item.reason))


class _Judge(Statements):
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
            if dunder(name) and name not in ({"__all__", "__version__"} if where == "module" else {"__slots__"}):
                self.find("GR221", node, f"{name!r}")
        if node.value is not None and not self._constant(node.value):
            self.find("GR220", node, f"a computation in a {where}")
        self._lasts(node.value)
        self.visit(node)

    def _lasts(self, *values: ast.expr | None) -> None:
        """Refuse what tests share and can use up or move: it would tell a test that it runs once more."""
        for value in values if self.form == "test" else ():
            for node in self._passing(value, False) if value else ():
                self.find("GR281", node, f"{ast.unparse(node)[:40]!r}, which a test can use up or move")

    def _passing(self, node: ast.AST, kept: bool) -> Iterator[ast.AST]:
        callee = self.dotted(node.func) if isinstance(node, ast.Call) else ""
        passes = isinstance(node, ast.GeneratorExp) or callee in PASSING or callee.startswith("itertools.")
        known = callee.startswith(("hypothesis.", "local:", "own", "pytest.")) or callee in self.names.constant_calls
        if passes and not kept or callee and not passes and (not known or self._moves(re.split("[.:]", callee)[-1])):
            yield node
        if not isinstance(node, ast.Lambda):
            for part in ast.iter_child_nodes(node):
                through = isinstance(node, ast.comprehension) and part is node.iter
                yield from self._passing(part, through or callee in KEEPING or callee in PASSING)

    def _moves(self, name: str) -> bool:
        """Say whether the package makes something by this name that is another thing once it was asked."""
        nodes = [node for one in self.index.modules.values() for node in one.tree.body if name in bound_names(node)]
        return any(
            any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(node))
            if isinstance(node, ast.FunctionDef)
            else isinstance(node, ast.ClassDef) and _has_state(node)
            for node in nodes
        )

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

    def _on_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        if any(node not in self.inner.get(name, ()) for name in bound_names(node)):
            self.find("GR207", node, "one elsewhere")

    _on_ImportFrom = _on_Import

    def _on_FunctionDef(self, node: ast.FunctionDef) -> None:
        inside_class = bool(self.scopes) and self.scopes[-1][0] == "class"
        self._identifier(node, node.name)
        if self.form == "code" and node.name in TAKEN:
            self.find("GR217", node, f"{node.name!r}")
        if dunder(node.name) and not (inside_class and self._granted(node.name, self.names.dunder_methods)):
            self.find("GR221", node, f"{node.name!r}")
        extra = frozenset({f"{name}.setter" for name in (self.scopes[-1][1] if inside_class else ())})
        self._decorators(node.decorator_list, extra)
        self._parameters(node.args, inside_class or not self.scopes)
        if node.returns:
            self._annotation(node.returns)
        self._function(node.args, node.body, node.name)
        self._dead_ends(node)
        for part in walk(node.body) if self.form == "test" and not node.decorator_list else ():
            if isinstance(part, ast.With) and any(isinstance(item, ast.Yield) for item in ast.walk(part)):
                self.find("GR281", part, "a context that stays open in a generator")

    def _on_Lambda(self, node: ast.Lambda) -> None:
        self._parameters(node.args, False)
        self._function(node.args, [ast.Expr(node.body)], "<lambda>")

    def _parameters(self, arguments: ast.arguments, outer: bool) -> None:
        for default in [*arguments.defaults, *(item for item in arguments.kw_defaults if item)]:
            fresh = isinstance(default, ast.Call) and self.dotted(default.func) in ("dict", "list", "set")
            shared = fresh or isinstance(default, (ast.List, ast.Dict, ast.Set, ast.ListComp))
            if shared or (outer and not self._constant(default)):
                self.find("GR223", default, "a value that calls share or compute")
            if outer:
                self._lasts(default)
            self.visit(default)
        arg_nodes = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for item in arg_nodes:
            if item is not None:
                self._identifier(item, item.arg)
                if item.annotation:
                    self._annotation(item.annotation)

    def _function(self, arguments: ast.arguments, body: Sequence[ast.stmt], name: str) -> None:
        bound = (set(parameters(arguments)) | bound_names_of(body)) - set(self.inner)
        free = {item for node in walk(body) if isinstance(node, ast.Nonlocal) for item in node.names}
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

    _on_ListComp = _on_SetComp = _on_DictComp = _on_GeneratorExp = _comprehension

    def _on_ClassDef(self, node: ast.ClassDef) -> None:
        self._identifier(node, node.name)
        fields = [part for part in node.body if isinstance(part, ast.AnnAssign) and (node.decorator_list or node.bases)]
        made = [part.target.id for part in fields if isinstance(part.target, ast.Name)]
        for name in (node.name, *made):  # which can be read back as texts
            self.securities(node, re.sub("([A-Z][a-z]+)+", "", name))
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
        for name in sorted(bound & {"bool", "float", "int"}):  # kinds of arrays, which would mean something else here
            self.find("GR204", node, f"{name!r}")
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
            listed = (listed | self.names.test_decorators) - {name for name in listed if name.startswith("functools.")}
        for item in decorators:
            head = item.func if isinstance(item, ast.Call) else item
            full = self.dotted(head).removeprefix("class:")
            if full not in listed:
                self.find("GR224", item, f"{ast.unparse(head)[:60]!r}")
            if isinstance(item, ast.Call):
                self._lasts(*item.args, *(part.value for part in item.keywords))
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
            self.named.add(id(item))
        stack = [node]
        while stack:
            item = stack.pop()
            literal = isinstance(item, ast.Subscript) and self.dotted(item.value) == "typing.Literal"
            stack += [part for part in ast.iter_child_nodes(item) if isinstance(part, ast.expr) and not literal]
            if isinstance(item, ast.Constant) and item.value is not None and item.value is not ...:
                self._forward(item)
        self.visit(node)

    def _forward(self, node: ast.Constant) -> None:
        """Judge a text in an annotation: a type that is told before it is defined."""
        try:
            told = ast.parse(str(node.value), mode="eval").body if isinstance(node.value, str) else None
        except SyntaxError:
            told = None
        if told is None or isinstance(told, ast.Constant):
            self.find("GR225", node, f"{node.value!r}"[:40])
        else:
            for part in ast.walk(told):
                ast.copy_location(part, node)
            self._annotation(told)

    def _on_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        self.visit(node.target)
        if node.value:
            self.visit(node.value)


def _has_state(node: ast.ClassDef) -> bool:
    """Say whether methods can change an object: they store in it, or, of a class that is no record, might."""
    methods = [part for part in node.body if isinstance(part, ast.FunctionDef) and not dunder(part.name)]
    inner = [part for method in methods for part in ast.walk(method)]
    stores = any(isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) for part in inner)
    return stores or bool(methods) and not node.decorator_list


def bound_names_of(body: Sequence[ast.stmt]) -> set[str]:
    """Return all names that the statements of a body bind in its scope."""
    return {name for node in body for name in bound_names(node)}


def _is_setter_pair(body: Sequence[ast.stmt], name: str) -> bool:
    both = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    marks = [[ast.unparse(item) for item in node.decorator_list] for node in both]
    return marks in ([["property"], [f"{name}.setter"]], [["typing.overload"]]) or all(
        "overload" in m for m in marks[:-1]
    )

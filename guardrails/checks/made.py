"""What a generated test may change: its own values, and nothing that other tests see as well.

A local name says nothing of whose the value is: `given = PARAMS` is everybody's. So each change in place is looked at
by what its target can stand for. What is everybody's are the names of the module, imported or its own, and arguments
that are not known; a value made of them is new outside and theirs inside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from guardrails.checks.codes import finding
from guardrails.checks.index import Module, assigned, parameters
from guardrails.checks.kinds import METHODS
from guardrails.checks.names import names
from guardrails.verdict import Finding

#: Builtins whose results nobody can change, and those that make something new of parts of what they are given.
FIXED = frozenset({"abs", "bool", "float", "int", "len", "range", "round", "str"})
MAKERS = frozenset({"dict", "enumerate", "list", "reversed", "set", "sorted", "tuple", "zip"})
COPIES = frozenset({"copy", "items", "keys", "tolist", "values"})
#: Functions of numpy that never return what they were given, and those that change it.
ARRAYS = frozenset({"arange", "array", "concatenate", "copy", "empty", "exp", "full", "ones", "sort", "where", "zeros"})
IN_PLACE = frozenset({"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"})
#: From which place on arguments are written to: of functions of numpy, the others from the third, and of methods.
ONE = (
    "abs absolute cbrt ceil cos exp exp2 expm1 fabs floor invert isfinite isinf isnan log log10 log1p log2 logical_not"
)
ONE += " negative positive reciprocal rint sign sin sqrt square tan tanh trunc"
WRITES = {**dict.fromkeys(ONE.split(), 1), "clip": 3, "full": 9, "interp": 9, "isclose": 9, "select": 9, "where": 9}
METHODS_WRITE = {**{name: place + 1 for name, place in METHODS.items()}, "clip": 2, "round": 1, "take": 2}
NEW = (ast.Constant, ast.JoinedStr, ast.Compare, ast.UnaryOp)
DISPLAYS = (ast.List, ast.Tuple, ast.Set)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)


def judge_made(module: Module, trusted: set[str], classes: set[str]) -> list[Finding]:
    """Refuse what the tests of a module change beyond their own values.

    `trusted` are its names from locked modules beside the tests, `classes` those of the package.
    """
    found: list[Finding] = []
    of: dict[str, _Of] = {}
    stack: list[ast.AST] = [*module.tree.body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.ClassDef):
            stack += node.body
        else:
            found += _Block(node, module, trusted, classes, of).run()
    return found


class _Of(NamedTuple):
    """Whether a name of the module, or what its function returns of its own, is something shared or holds it."""

    shared: bool
    deep: bool


WORST = _Of(True, True)


class _Block:
    """One function or statement with all that is nested in it: what a name is bound to in any of its scopes counts."""

    def __init__(
        self,
        node: ast.AST,
        module: Module,
        trusted: set[str],
        classes: set[str],
        of: dict[str, _Of],
        helps: bool = False,
    ) -> None:
        self.node, self.module, self.trusted, self.classes, self.of = node, module, trusted, classes, of
        self.nodes = list(ast.walk(node))
        self.bound: dict[str, list[ast.expr | None]] = {}
        for item in self.nodes:
            for name, value in bindings(item):
                self.bound.setdefault(name, []).append(value)
        if isinstance(node, ast.FunctionDef):
            known = dict(given(node))
            for name in parameters(node.args):
                self.bound[name] = [ast.Constant(0) if helps else known.get(name, ast.Call(_name(name), [], []))]
        imports = [item for item in ast.walk(module.tree) if isinstance(item, ast.Import)]
        self.modules = {alias.asname or alias.name for item in imports for alias in item.names} - set(self.bound)
        self.known: set[tuple[str, bool]] = set()
        self.mixed = False
        self._settle()
        # What is put into one value may be reached through another that shares a part with it.
        self.mixed = any(self._shared(value, True) for item in self.nodes for value in _put(item))
        self._settle()

    def run(self) -> list[Finding]:
        """Return a finding for each change of something shared."""
        failing = {id(part.targets[0]) for item in self.nodes for part in _failing(item)}
        return [
            finding("GR281", self.module.path, getattr(node, "lineno", 0), f"a change of {ast.unparse(changed)[:40]!r}")
            for node in self.nodes
            for changed in self._changed(node)
            if id(node) not in failing
        ]

    def gives(self) -> _Of:
        """Say whether a helper can return something shared that it was not given."""
        ends = [item.value for item in self.nodes if isinstance(item, (ast.Return, ast.Yield)) and item.value]
        return _Of(*(any(self._shared(value, deep) for value in ends) for deep in (False, True)))

    def _settle(self) -> None:
        """Find the names that can be or hold something shared: one that is makes others, until none is new."""
        asked = {(name, deep) for name in self.bound for deep in (False, True)} - self.known
        while found := {(name, deep) for name, deep in asked if any(self._shared(v, deep) for v in self.bound[name])}:
            self.known |= found
            asked -= found

    def _changed(self, node: ast.AST) -> Iterator[ast.expr]:
        """Yield what a node changes and did not make."""
        targets: list[ast.expr] = []
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            targets = [node.value]
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            targets = [node.target]
        elif isinstance(node, ast.Attribute) and node.attr in names().mutators and not self._of_module(node):
            targets = [node.value]
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            targets = [item.value for item in node.keywords if item.arg == "out"]
            targets += node.args[:1] if called in (*IN_PLACE, "shuffle", "setattr", "delattr") else []
            if isinstance(node.func, ast.Attribute):
                whose = self._of_module(node.func)
                targets += node.args[WRITES.get(called, 2) if whose else METHODS_WRITE.get(called, len(node.args)) :]
        yield from (target for target in targets if self._shared(target, False))

    def _of_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.modules

    def _shared(self, node: ast.expr | None, deep: bool) -> bool:
        """Say whether an expression can be something shared; `deep`: or hold it."""
        if isinstance(node, ast.Name):
            return self._name(node.id, deep)
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            return any(self._shared(part, deep) for part in parts)
        if isinstance(node, (ast.NamedExpr, ast.Starred)):
            return self._shared(node.value, deep)
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            own = isinstance(node, ast.Attribute) and node.attr in self.module.attributes
            return not self._of_module(node) and (own or self.mixed or self._shared(node.value, True))
        if isinstance(node, ast.Call):
            return self._call(node, deep)
        return not isinstance(node, NEW) and (deep or not _is_new(node)) and any(self._inner(node))

    def _inner(self, node: ast.expr | None) -> Iterator[bool]:
        if isinstance(node, DISPLAYS):
            yield from (self._shared(part, True) for part in node.elts)
        elif isinstance(node, ast.Dict):
            yield from (self._shared(part, True) for part in node.values)
        elif isinstance(node, COMPREHENSIONS):
            yield self._shared(node.elt, True)
        elif isinstance(node, ast.DictComp):
            yield self._shared(node.value, True)
        elif isinstance(node, ast.BinOp):
            yield from (self._shared(part, True) for part in (node.left, node.right))
        else:
            yield True

    def _name(self, name: str, deep: bool) -> bool:
        if name in self.bound:
            return (name, deep) in self.known
        if name not in self.of:
            where = self.module.bound.get(name, [])
            value = assigned(where[0], name) if len(where) == 1 else None
            fixed = isinstance(value, (ast.Tuple, ast.BinOp, *NEW)) or _called(value) in FIXED | {"tuple"}
            self.of[name] = WORST
            shared = not fixed or self._shared(value, True)
            self.of[name] = _Of(shared, shared)
        return self.of[name][deep]

    def _call(self, node: ast.Call, deep: bool) -> bool:
        function, parts = node.func, [*node.args, *(item.value for item in node.keywords)]
        name = _called(node)
        if isinstance(function, ast.Name):
            if name in self.bound:
                return True
            where = self.module.bound.get(name, ())
            if where and isinstance(where[0], ast.FunctionDef):
                if self._helper(name, where[0])[deep]:
                    return True
            elif name in FIXED or not deep and name in MAKERS | self.trusted | self.classes:
                return False
        elif isinstance(function, ast.Attribute):
            if not deep and (name in ARRAYS if self._of_module(function) else name in COPIES - self.module.methods):
                return False
            if name in self.module.methods or not self._of_module(function) and self._receives(function.value):
                return True
            parts = parts[1:] if name in ("get", "setdefault", "pop") else parts  # the first is a key
        else:
            return True
        return any(self._shared(part, True) for part in parts)

    def _helper(self, name: str, node: ast.FunctionDef) -> _Of:
        """Return what a function of the module gives; of one that calls itself the worst."""
        if name not in self.of:
            self.of[name] = WORST
            self.of[name] = _Block(node, self.module, self.trusted, self.classes, self.of, True).gives()
        return self.of[name]

    def _receives(self, node: ast.expr) -> bool:
        """Say whether a method's owner can be or hold something shared; the package's modules and classes are none."""
        if isinstance(node, ast.Name) and node.id not in self.bound | dict.fromkeys(self.trusted):
            imported = isinstance(next(iter(self.module.bound.get(node.id, ())), None), ast.ImportFrom)
            if imported and (node.id in self.classes or node.id.islower()):
                return False
        return not self._of_module(node) and (self.mixed or self._shared(node, True))  # of a module: np.random


def _is_new(node: ast.expr | None) -> bool:
    return isinstance(node, (*DISPLAYS, *COMPREHENSIONS, ast.Dict, ast.DictComp, ast.BinOp))


def _called(node: ast.expr | None) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return str(getattr(function, "attr", getattr(function, "id", "")))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _failing(node: ast.AST) -> Iterator[ast.Assign]:
    """Yield the one assignment that a `with raises` holds: where it changes anything, the test fails."""
    if isinstance(node, ast.With) and len(node.body) == 1 and len(node.items) == 1:
        part = node.body[0]
        raises = ast.unparse(node.items[0].context_expr).startswith("pytest.raises(")
        if raises and isinstance(part, ast.Assign) and len(part.targets) == 1:
            yield part


def given(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the arguments that a test's decorators give, each with what its values come from."""
    for item in getattr(node, "decorator_list", ()):
        if _called(item) == "given" and isinstance(item, ast.Call):
            yield from ((part.arg, part.value) for part in item.keywords if part.arg)
        elif _called(item) == "parametrize" and isinstance(item, ast.Call) and len(item.args) >= 2:
            texts = [part.value for part in ast.walk(item.args[0]) if isinstance(part, ast.Constant)]
            for name in (part.strip() for text in texts for part in str(text).split(",")):
                yield name, _part(item.args[1])


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that a node binds, with the value of each, or none where it may be anything."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _bound(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _bound(node.target, node.value)
    elif isinstance(node, (ast.For, ast.comprehension)):
        yield from _bound(node.target, _part(node.iter))
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from ((name.id, None) for name in ast.walk(node.optional_vars) if isinstance(name, ast.Name))
    elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
        yield from ((name, None) for name in parameters(node.args))
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name, None
    if isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, None


def _bound(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        pairs = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
        values = value.elts if pairs and isinstance(value, ast.Tuple) else [_part(value)] * len(target.elts)
        for part, one in zip(target.elts, values, strict=True):
            yield from _bound(part, one)
    elif isinstance(target, ast.Starred):
        yield from _bound(target.value, _part(value))


def _part(value: ast.expr) -> ast.expr:
    return ast.Subscript(value, ast.Constant(0), ast.Load())


def _put(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node puts into a value that exists."""
    into = isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets)
    if isinstance(node, (ast.Assign, ast.AugAssign)) and (into or isinstance(node, ast.AugAssign)):
        yield node.value
    elif isinstance(node, ast.Call) and _called(node) in names().mutators:
        yield from [*node.args, *(item.value for item in node.keywords)]

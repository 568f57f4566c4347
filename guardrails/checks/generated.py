"""The policy in its test form: a generated test must be able to fail by what the code under test does.

Over 400 lines, because all rules ask which values come from the code under test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from guardrails.checks.codes import finding
from guardrails.checks.examples import number, single, unsettled
from guardrails.checks.index import Index, Module, assigned, bound_names, own_scope
from guardrails.checks.made import judge_made
from guardrails.checks.protected import normalised
from guardrails.checks.source import judge_source
from guardrails.policy import Policy
from guardrails.verdict import Finding

WEAK = frozenset(["isinstance", "issubclass", "callable", "hasattr", "bool"])
BINDINGS = frozenset(["GR203", "GR204", "GR242"])
LEAST_DIGITS = 6  # of a rounded result
ROUNDING = frozenset(["round", "around", "rint", "int", "floor", "ceil", "trunc", "fix", "int64"])
WIDE = frozenset(["Exception", "BaseException"])


def judge_tests(module: Module, data: bytes, before: Module | None, index: Index, policy: Policy) -> list[Finding]:
    """Return the findings on one module of generated tests."""
    findings = judge_source(module, data, index, policy, "test")
    findings += _Tests(module, index, policy).run()
    if before is None:
        return findings
    old, new = _standing(before), _standing(module)
    freed = {name.partition("::")[2] for name in policy.tests.may_change if name.startswith(f"{module.path}::")}
    # People wrote what stood there before: only how its names are bound can be turned round from outside, or all of
    # it by what a person let the patch change.
    kept = {line for text, node in new.items() if text in old for line in _lines(node)}
    fresh = {line for text, node in new.items() if text not in old for line in _lines(node)}
    # A line may hold more than one statement: what is new there excuses nothing, what stood there excuses what it said.
    said = {line for node in new.values() if freed & _names(node) for line in _lines(node)} | (kept & fresh)
    kept -= fresh
    known = {(item.code, item.reason) for item in judge_source(before, b"", index, policy, "test")}
    known |= {(item.code, item.reason) for item in _Tests(before, index, policy).run()} if said else set()
    findings = [
        item
        for item in findings
        if item.line not in kept | said or ((said or item.code in BINDINGS) and (item.code, item.reason) not in known)
    ]
    changed = [node for text, node in old.items() if text not in new and not freed & _names(node)]
    return findings + [finding("GR411", module.path, _lines(node)[0], "changed or removed") for node in changed]


def _standing(module: Module) -> dict[str, ast.stmt]:
    """Return what a module of tests consists of: statements by their text, imports name by name."""
    parts: dict[str, ast.stmt] = {}
    for node in module.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            source = f"{getattr(node, 'level', 0)} {getattr(node, 'module', '')}"
            parts |= {f"{source} {alias.name} {alias.asname}": node for alias in node.names}
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            parts[normalised(node)] = node
    return parts


def _names(node: ast.stmt) -> set[str]:
    """Return what a person may name of a module of tests: no import."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    return bound_names(node) if isinstance(node, (ast.Assign, ast.AnnAssign)) else set()


def _lines(node: ast.stmt) -> range:
    first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])
    return range(first, (node.end_lineno or node.lineno) + 1)


def _functions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body)


class _Tests:
    def __init__(self, module: Module, index: Index, policy: Policy) -> None:
        self.module, self.index, self.policy = module, index, policy
        self.found: list[Finding] = []
        imports = [node for node in ast.walk(module.tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
        self.subject = {name for node in imports if index.package in _roots(node) for name in bound_names(node)}
        support = {helper.name for helper in index.support}
        self.trusted = {name for node in imports if support & _roots(node) for name in bound_names(node)}
        every = list(_functions(module.tree.body))
        self.tests = [node for node in every if node.name.startswith("test")]
        self.helpers = {node.name: node for node in every if node not in self.tests}
        self.fixtures = {
            name
            for name, node in self.helpers.items()
            if any("fixture" in ast.unparse(item) for item in node.decorator_list)
        }
        for _ in self.helpers:
            self.subject |= {name for name, node in self.helpers.items() if self._derived(node, self.subject)}

    def find(self, code: str, node: ast.AST, was: str, expected: str = "") -> None:
        self.found.append(finding(code, self.module.path, getattr(node, "lineno", 0), was, expected))

    def run(self) -> list[Finding]:
        if not self.tests:
            self.find("GR401", self.module.tree, "none")
        for test in self.tests:
            self._test(test)
        for name in sorted(self.fixtures):
            self._asked(self.helpers[name], set())
        for node in ast.walk(self.module.tree):
            if isinstance(node, ast.Call):
                self._call(node)
        return self.found + judge_made(self.module, self.trusted, self.index.classes | self.module.classes)

    def _derived(self, node: ast.AST, names: set[str]) -> bool:
        """Say whether a value comes from the code under test."""
        return any(isinstance(item, ast.Name) and item.id in names for item in ast.walk(node))

    def _test(self, test: ast.FunctionDef) -> None:
        self._asked(test, self._parametrised(test))
        names, made = set(self.subject), set(self.subject)
        for _ in range(3):
            for node in ast.walk(test):
                names |= set(self._spread(node, names))
                made |= set(self._spread(node, made, handed=False))
        self._unused(test, names)
        for node in ast.walk(test):
            if isinstance(node, ast.Try):
                self.find("GR405", node, "a try")
            elif isinstance(node, ast.With) and _raising(node) and not _one_step(node.body):
                self.find(
                    "GR404", node, "what may not be reached", "one statement, in which nothing repeats, that raises"
                )
            elif isinstance(node, ast.Call):
                self._looks_away(node, made)
        for node in own_scope(ast.Module(test.body, [])):
            if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)):
                self.find("GR404", node, "a way out of it")
        everywhere = [(node, self._strength(node, names)) for node in ast.walk(test)]
        certain = {self._strength(node, names) for node in self._certain(test.body)}
        for node, strength in everywhere:
            # Beside one that can fail, an assertion about something else explains; one about nothing is padding.
            if strength == "always" and not ("strong" in certain and _explains(node)):
                self.find("GR402", node, "none")
        strengths = {strength for _, strength in everywhere}
        if not strengths & {"strong", "weak", "always"}:
            self.find("GR401", test, "none", f"an assertion in {test.name!r}")
        elif "strong" not in strengths and "always" not in strengths:
            self.find("GR403", test, "type or presence only", f"an assertion about a value in {test.name!r}")
        elif "strong" in strengths and "strong" not in certain:
            self.find("GR404", test, "conditional ones only", f"an assertion that always runs in {test.name!r}")

    def _looks_away(self, node: ast.Call, names: set[str]) -> None:
        """Refuse to leave out examples by what the code made of them, and to round what it made."""
        name = ast.unparse(node.func).rsplit(".", 1)[-1]
        if name == "reject" or (name in ("assume", "filter") and any(self._derived(item, names) for item in node.args)):
            self.find("GR404", node, f"{name} of a result", "examples chosen by what is given")
        mixed = name == "zip" and len({self._derived(item, names) for item in node.args}) > 1
        if mixed and not any(item.arg == "strict" and _truth(item.value) for item in node.keywords):
            self.find("GR404", node, "a zip that may end early", "strict=True beside what is expected")
        whole = node.args[0] if name in ROUNDING and node.args else None
        if whole is None or not self._derived(whole, names):
            return
        if name in ("round", "around"):
            digits = number(node.args[1]) if len(node.args) > 1 else 0.0
            loose = digits is None or digits < LEAST_DIGITS
        else:
            loose = isinstance(whole, ast.BinOp)
        if loose:
            self.find("GR409", node, f"{ast.unparse(node)[:40]}", f"{LEAST_DIGITS} digits of a result, or a tolerance")

    def _unused(self, test: ast.FunctionDef, names: set[str]) -> None:
        """Refuse cases and examples of which nothing reaches the code under test: one case, tried many times."""
        for item in test.decorator_list:
            name = ast.unparse(item.func).rsplit(".", 1)[-1] if isinstance(item, ast.Call) else ""
            if isinstance(item, ast.Call) and name in ("given", "parametrize"):
                reached = self._names_of(item)
                for _ in range(3):
                    for node in ast.walk(test):
                        reached |= set(self._spread(node, reached, handed=False))
                inner = [node for part in test.body for node in ast.walk(part)]
                asked: list[ast.AST] = [node.test for node in inner if isinstance(node, ast.If | ast.IfExp)]
                asked += [node.iter for node in inner if isinstance(node, ast.For | ast.comprehension)]
                known = names | self.helpers.keys() | reached
                asked += [node for node in inner if isinstance(node, ast.Call) and self._derived(node.func, known)]
                if not any(self._derived(node, reached) for node in asked):
                    self.find("GR406", item, "cases that are not used", "cases that reach the code under test")

    @staticmethod
    def _names_of(item: ast.Call) -> set[str]:
        """Return the arguments that a decorator gives to a test."""
        if not item.args or ast.unparse(item.func).rsplit(".", 1)[-1] == "given":
            return {keyword.arg for keyword in item.keywords if keyword.arg}
        label = item.args[0]
        if isinstance(label, ast.Constant) and isinstance(label.value, str):
            return {part.strip() for part in label.value.split(",")}
        parts = label.elts if isinstance(label, ast.Tuple | ast.List) else []
        return {str(part.value) for part in parts if isinstance(part, ast.Constant)}

    def _asked(self, function: ast.FunctionDef, given: set[str]) -> None:
        """Refuse what a test or fixture asks pytest for beyond what this file gives."""
        for argument in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]:
            if argument.arg not in given | self.fixtures | {"self"}:
                self.find("GR407", function, f"{argument.arg!r}")

    def _spread(self, node: ast.AST, names: set[str], *, handed: bool = True) -> Iterator[str]:
        """Yield what a node makes of results, and what it hands to the code under test, which may change it."""
        value: ast.AST | None = (
            getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) else None
        )
        targets: list[ast.AST] = []
        if isinstance(node, ast.Assign):
            targets = list(node.targets)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            targets, value = [node.target], node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            targets, value = [node.target], node.iter
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            targets, value = [node.optional_vars], node.context_expr
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            # A container that is filled with results is a result: values.append(compute(...)).
            targets, value = [node.func.value], ast.Tuple([*node.args], ast.Load())
        if handed and isinstance(node, ast.Call) and self._derived(node.func, names):
            yield from (item.id for item in node.args if isinstance(item, ast.Name))
        if value is not None and self._derived(value, names):
            for target in targets:
                yield from (item.id for item in ast.walk(target) if isinstance(item, ast.Name))

    def _parametrised(self, test: ast.FunctionDef) -> set[str]:
        given: set[str] = set()
        for item in test.decorator_list:
            name = ast.unparse(item.func).rsplit(".", 1)[-1] if isinstance(item, ast.Call) else ""
            if isinstance(item, ast.Call) and name == "given":
                given |= self._names_of(item)
                if all(map(single, [*item.args, *(keyword.value for keyword in item.keywords)])):
                    self.find("GR406", item, "one", "several values to try a property on")
            if isinstance(item, ast.Call) and name == "settings":
                for was, expected in unsettled(item):
                    self.find("GR406", item, was, expected)
            if not (isinstance(item, ast.Call) and name == "parametrize" and len(item.args) >= 2):
                continue
            self._named(item)
            given |= self._names_of(item)
            values = item.args[1]
            if isinstance(values, ast.Name):
                found = [assigned(node, values.id) for node in self.module.bound.get(values.id, ())]
                values = next(filter(None, found), values)
            if not self._plenty(values):
                self.find("GR406", item, "an empty or computed one")
        return given

    def _named(self, node: ast.Call) -> None:
        """Refuse ids that are worked out: what a case is called must not depend on the code under test."""
        for item in (item for item in ast.walk(node) if isinstance(item, ast.keyword) and item.arg in ("id", "ids")):
            parts = item.value.elts if isinstance(item.value, ast.List | ast.Tuple) else [item.value]
            if not all(isinstance(part, ast.Constant) for part in parts):
                self.find("GR406", node, "a computed one", "ids to be written out")

    def _certain(self, body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
        """Yield what runs whenever the test runs."""
        for node in body:
            yield node
            if isinstance(node, ast.With) or isinstance(node, ast.For) and self._plenty(node.iter):
                yield from self._certain(node.body)
            elif isinstance(node, ast.Expr):
                yield node.value

    def _plenty(self, node: ast.AST) -> bool:
        """Say whether an iterable is seen to be non-empty: written out, or of locked modules beside the tests."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return bool(node.elts) and not all(isinstance(item, ast.Starred) for item in node.elts)
        if isinstance(node, ast.Dict):
            return bool(node.keys)
        if isinstance(node, ast.Name):
            return node.id in self.trusted
        if not isinstance(node, ast.Call):
            return False
        name, numbers = ast.unparse(node.func), [number(item) for item in node.args]
        if name == "range" and numbers and all(item is not None for item in numbers):
            return len(range(*(int(item) for item in numbers if item is not None))) > 0 if numbers[-1] != 0 else False
        if name in ("enumerate", "zip", "sorted", "reversed", "list", "tuple") or name.endswith((".items", ".values")):
            inner = node.args or [node.func.value if isinstance(node.func, ast.Attribute) else node]
            return all(self._plenty(item) for item in inner if item is not node)
        return name in self.trusted

    def _strength(self, node: ast.AST, names: set[str]) -> str:
        """Grade one node as an assertion: '', 'always', 'weak' or 'strong'."""
        if isinstance(node, ast.With):
            if not _raising(node):
                return ""
            return "strong" if any(self._derived(item, names) for item in node.body) else "always"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.helpers:
            helper = self.helpers[node.func.id]
            checks = any(isinstance(item, ast.Assert) and not _always(item.test) for item in self._certain(helper.body))
            return "strong" if checks and (self._derived(node, names)) else ""
        if not isinstance(node, ast.Assert):
            return ""
        if _always(node.test) or not self._derived(node.test, names):
            return "always"
        return "weak" if _weak(node.test) else "strong"

    def _call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func).rsplit(".", 1)[-1]
        limits = self.policy.tests
        if name == "fixture" and any(item.arg in ("autouse", "scope") for item in node.keywords):
            self.find("GR407", node, "a fixture that tests do not ask for, or that outlives them")
        if name == "raises" and node.args:
            kinds = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
            if any(isinstance(kind, ast.Name) and kind.id in WIDE for kind in kinds):
                self.find("GR408", node, "any")
        most = {
            "rel": limits.relative_tolerance,
            "rel_tol": limits.relative_tolerance,
            "rtol": limits.relative_tolerance,
        }
        most |= dict.fromkeys(("abs", "abs_tol", "atol"), limits.absolute_tolerance)
        if name in ("approx", "isclose", "allclose"):
            given = [(item.arg or "", item.value) for item in node.keywords]
            given += (
                list(zip(("rel", "abs"), node.args[1 if name == "approx" else 2 :], strict=False))
                if name != "isclose"
                else []
            )
            for key, value in given:
                size = number(value)
                if key in most and (size is None or not size <= most[key]):
                    self.find("GR409", node, f"{ast.unparse(value)[:40]}", f"a tolerance of at most {most[key]}")


def _roots(node: ast.Import | ast.ImportFrom) -> set[str]:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return {name.split(".")[0] for name in names}


def _explains(node: ast.AST) -> bool:
    """Say whether an assertion states something that could be false."""
    return isinstance(node, ast.Assert) and not _always(node.test)


def _always(test: ast.expr) -> bool:
    """Say whether a condition holds whatever the code does."""
    if isinstance(test, (ast.Constant, ast.Tuple, ast.List, ast.JoinedStr, ast.Lambda)):
        return True
    if isinstance(test, ast.BoolOp):
        parts = [_always(part) for part in test.values]
        return any(parts) if isinstance(test.op, ast.Or) else all(parts)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right, kind = test.left, test.comparators[0], type(test.ops[0])
        same = ast.dump(left) == ast.dump(right)
        if same and kind in (ast.Eq, ast.Is, ast.LtE, ast.GtE):
            return True
        length = isinstance(left, ast.Call) and ast.unparse(left.func) in ("len", "abs")
        if length and (number(right), kind) in ((0.0, ast.GtE), (-1.0, ast.Gt)):
            return True
        return _loose(left, right, kind)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and isinstance(test.operand, ast.Constant)


def _loose(left: ast.expr, right: ast.expr, kind: type[ast.cmpop]) -> bool:
    """Find |a - b| below a bound that is as wide as the values themselves."""
    bound = number(right)
    if kind not in (ast.Lt, ast.LtE) or bound is None:
        return False
    if not (isinstance(left, ast.Call) and ast.unparse(left.func).rsplit(".", 1)[-1] in ("abs", "fabs")):
        return False
    sizes = [abs(size) for item in ast.walk(left) if (size := number(item)) is not None]
    return bound > 0.1 * max([1.0, *sizes])


def _weak(test: ast.expr) -> bool:
    """Find conditions about type or presence only."""
    if isinstance(test, ast.BoolOp):
        return (
            all(_weak(part) for part in test.values) if isinstance(test.op, ast.And) else any(map(_weak, test.values))
        )
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.operand, ast.Name)
    if isinstance(test, ast.Call):
        return ast.unparse(test.func) in WEAK
    if isinstance(test, ast.Compare):
        return (
            isinstance(test.ops[0], ast.IsNot)
            and isinstance(test.comparators[0], ast.Constant)
            and (test.comparators[0].value is None)
        )
    return isinstance(test, (ast.Name, ast.NamedExpr))


def _truth(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _raising(node: ast.With) -> bool:
    """Say whether a block expects an exception."""
    return any("raises" in ast.unparse(item.context_expr).split("(")[0] for item in node.items)


def _one_step(body: Sequence[ast.stmt]) -> bool:
    """Say whether a body is one statement in which nothing is done again."""
    again = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return len(body) == 1 and not any(isinstance(item, again) for item in ast.walk(body[0]))

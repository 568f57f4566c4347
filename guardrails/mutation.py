"""Plant changes in source: probes that raise, and mutants of the kinds that hurt financial code.

All changes of a module live in one transformed source (schemata): each is asleep until a switch names its number, so
that one import serves them all. The transformed source is written by the judge and never deployed.

Over 400 lines, because what is found and what is planted must be numbered by one and the same walk.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guardrails.checks.choices import ONCE, Side, placed, sides
from guardrails.checks.instead import PART, SWAP, Instead, effective, span_of
from guardrails.checks.planted import planted_name
from guardrails.tree import Tree

COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    # Negated, not moved by one: on floats < and <= are the same to every test; whole bounds move by "off by one".
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
#: Kinds of mutants that change a number which stands in the source.
NUMBERS = ("off by one", "constant", "named constant")
#: Constants of math and numpy: numbers by name.
KNOWN = frozenset({"e", "euler_gamma", "pi", "tau"})
#: Kinds of mutants that turn a condition round, and that take one side of a choice whatever is asked.
CONDITIONS, CHOICE, REMOVED = ("comparison", "boolean"), "choice", "removed statement"
CLAMPS = ("min", "max", "minimum", "maximum", "clip", "fmin", "fmax")


@dataclass(frozen=True)
class Mutant:
    """One change: where, of which kind, and what stood there and stands there now."""

    path: str
    line: int
    kind: str
    before: str
    after: str
    column: int = 0


#: Names in planted source of the switch, of what moves numbers and of what makes a part look like a whole: new in each
#: process of the judge, so that no judged code can shadow them.
SWITCH, MOVED, LIKE = planted_name(), planted_name(), planted_name()


def _on(number: int) -> ast.expr:
    return ast.Call(ast.Name(SWITCH, ast.Load()), [ast.Constant(number)], [])


def _imports(module: ast.Module) -> None:
    """Import the switch after the docstring and the future imports, where an import may stand first."""
    at, names = 0, [ast.alias("on", SWITCH), ast.alias("moved", MOVED), ast.alias("like", LIKE)]
    for at, node in enumerate(module.body):
        docstring = at == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
    module.body.insert(at, ast.ImportFrom("guardrails_switch", names, 0))


Place = tuple[str, int]


def with_probes(tree: Tree, places: Sequence[Place], arms: Collection[Place] = ()) -> tuple[Tree, list[Place]]:
    """Return the tree with sleeping raises, and the place of each by its number.

    One stands before the first statement that begins on each place's line; those at `arms` also in each part of an
    expression there that may be left out: the sides of a conditional expression, what follows `and`, `or` and the
    first comparison of a chain, and what a comprehension or lambda computes.
    """
    changed: dict[str, bytes | None] = {}
    planted = list(places)
    for path in sorted({path for path, _ in places}):
        module = ast.parse(tree[path])
        numbers = {line: number for number, (other, line) in enumerate(places) if other == path}
        _Probes(numbers, path, {line for other, line in arms if other == path}, planted).visit(module)
        _imports(module)
        changed[path] = ast.unparse(ast.fix_missing_locations(module)).encode()
    return tree.replace(changed), planted


def inside_functions(tree: Tree, path: str) -> set[int]:
    """Return the lines of a file that run when a function is called, not when the module is imported."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(tree[path])):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            body = node.body if isinstance(node.body, list) else [node.body]
            for part in body:
                found.update(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return found


def _raise(number: int) -> ast.stmt:
    return ast.If(_on(number), [ast.Assert(ast.Constant(False), ast.Constant("probe"))], [])


class _Arms(ast.NodeTransformer):
    """Plant a raise in each part of an expression that may be left out; `planted` grows by its place."""

    def __init__(self, place: Place, planted: list[Place]) -> None:
        self.place, self.planted = place, planted

    def _arm(self, node: ast.expr) -> ast.expr:
        self.planted.append(self.place)
        failed = ast.parse("(_ for _ in ()).throw(AssertionError)", mode="eval").body  # `raise` as an expression
        return ast.IfExp(_on(len(self.planted) - 1), failed, node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        node.body, node.orelse = self._arm(node.body), self._arm(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        node.values[1:] = map(self._arm, node.values[1:])
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        node.comparators[1:] = map(self._arm, node.comparators[1:])
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self.generic_visit(node)
        node.body = self._arm(node.body)
        return node

    def _each(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> ast.expr:
        self.generic_visit(node)
        node.elt = self._arm(node.elt)
        return node

    visit_ListComp = visit_SetComp = visit_GeneratorExp = _each

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        self.generic_visit(node)
        node.value = self._arm(node.value)
        return node

    def plant(self, statement: ast.stmt) -> None:
        """Plant in a statement's own expressions, not in the statements inside it."""
        cases = statement.cases if isinstance(statement, ast.Match) else []
        for owner in (statement, *getattr(statement, "items", ()), *cases):
            for name, value in ast.iter_fields(owner):
                if isinstance(value, ast.expr) and name not in ("annotation", "returns"):
                    setattr(owner, name, self.visit(value))
                elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                    setattr(owner, name, [self.visit(part) for part in value])


class _Probes(ast.NodeTransformer):
    def __init__(self, numbers: dict[int, int], path: str, arms: set[int], planted: list[Place]) -> None:
        self.numbers, self.path, self.arms, self.planted = numbers, path, arms, planted

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                setattr(node, name, [part for statement in block for part in self._with(statement)])
        return node

    def _with(self, statement: ast.stmt) -> list[ast.stmt]:
        # A decorated definition is reported at its decorator; a docstring is no code.
        line = min([statement.lineno, *[d.lineno for d in getattr(statement, "decorator_list", [])]])
        if isinstance(statement, ast.If) and not statement.orelse and -line in self.numbers:
            statement.orelse = [_raise(self.numbers.pop(-line))]
        if line in self.arms:
            _Arms((self.path, line), self.planted).plant(statement)
        number = self.numbers.pop(line, None)
        if number is None:
            return [statement]
        return [_raise(number), statement]


def mutants(
    tree: Tree,
    lines: Mapping[str, Collection[int]],
    *,
    seed: int,
    most: int,
    must: Mapping[str, Collection[tuple[int, ...]]] | None = None,
    others: Mapping[str, Instead] | None = None,
) -> tuple[list[Mutant], Tree]:
    """Return up to `most` mutants of the given lines, drawn by the seed, and the tree in which all of them sleep.

    Those of a number, condition or statement at one of the places (line, column) of `must`, the sides of choices there
    (line, column, number) and what `others` puts in place of expressions are all among them, beyond `most` if need be;
    other choices and expressions are left alone. Of these, one where nothing can be planted is a mutant that no test
    reaches.
    """
    found: list[Mutant] = []
    always: set[int] = set()
    for path in sorted(lines):
        if path.endswith(".py") and path in tree:
            rows = (must or {}).get(path, ())
            asked = (others or {}).get(path, {})
            finder = _Mutator(path, lines[path], None, 0, named_numbers(tree, path), rows, asked)
            finder.walk(ast.parse(tree[path]))
            for at, mutant in enumerate(finder.found, len(found)):
                fixed = mutant.kind in (*NUMBERS, *CONDITIONS, REMOVED) and (mutant.line, mutant.column) in rows
                always |= {at} if fixed or mutant.kind in (CHOICE, SWAP, PART) else set()
            found += finder.found
    drawn = sorted(set(range(len(found))) - always)
    chosen = sorted([*always, *random.Random(seed).sample(drawn, min(most, len(drawn)))])
    places = {place: number for number, place in enumerate(chosen)}
    changed: dict[str, bytes | None] = {}
    at = 0
    for path in sorted(lines):
        if path.endswith(".py") and path in tree:
            module = ast.parse(tree[path])
            rows = (must or {}).get(path, ())
            asked = (others or {}).get(path, {})
            planter = _Mutator(path, lines[path], places, at, named_numbers(tree, path), rows, asked)
            planter.walk(module)
            at += len(planter.found)
            _imports(module)
            changed[path] = ast.unparse(ast.fix_missing_locations(module)).encode()
    return [found[place] for place in chosen], tree.replace(changed)


def named_numbers(tree: Tree, path: str) -> tuple[set[str], set[str]]:
    """Return the names that stand for numbers in a file: its own constants, defaults and imports, and attributes.

    Attributes are the constants of all modules and classes, reached as module.NAME or self.name.
    """
    own, attributes = set[str](), set(KNOWN)
    for other, data in tree.items():
        if other.endswith(".py"):
            nodes = list(ast.walk(ast.parse(data)))
            blocks = [node for node in nodes if isinstance(node, ast.Module | ast.ClassDef)]
            attributes |= {name for block in blocks for part in block.body for name in _constants(part)}
            if other == path:
                own |= {name for part in blocks[0].body for name in _constants(part)}
                own |= {name for node in nodes if isinstance(node, ast.arguments) for name in _defaults(node)}
                imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    own |= {alias.asname or alias.name for node in imports for alias in node.names if alias.name in attributes}
    return own, attributes


def _defaults(node: ast.arguments) -> set[str]:
    positional = [*node.posonlyargs, *node.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = list(
        zip(reversed(positional), reversed(node.defaults), strict=False)
    )
    pairs += zip(node.kwonlyargs, node.kw_defaults, strict=True)
    return {arg.arg for arg, value in pairs if value is not None and _holds_number(value)}


def _constants(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    value = getattr(node, "value", None)
    names = [item for target in targets for item in getattr(target, "elts", (target,))]
    return [item.id for item in names if isinstance(item, ast.Name) and value and _holds_number(value)]


def _holds_number(node: ast.AST) -> bool:
    return any(type(getattr(item, "value", None)) in (int, float) for item in ast.walk(node))


def _turns(body: list[ast.stmt], number: int) -> list[ast.stmt]:
    """Return the body of a loop that ends where it would go on, while the switch is on."""
    made = list[ast.stmt]()
    for node in body:
        if isinstance(node, ast.Continue):
            made.append(ast.If(_on(number), [ast.Break()], []))
        if not isinstance(node, ast.For | ast.While | ast.FunctionDef):
            for name in ("body", "orelse", "finalbody"):
                if isinstance(block := getattr(node, name, None), list):
                    setattr(node, name, _turns(block, number))
            for handler in getattr(node, "handlers", ()):
                handler.body = _turns(handler.body, number)
        made.append(node)
    return made


class _Mutator(ast.NodeTransformer):
    """Find every mutant in the source's order; with `numbers`, plant the chosen ones behind the switch."""

    def __init__(
        self,
        path: str,
        lines: Collection[int],
        numbers: Mapping[int, int] | None,
        start: int,
        named: tuple[set[str], set[str]],
        must: Collection[tuple[int, ...]],
        others: Instead,
    ) -> None:
        self.path, self.lines, self.numbers, self.at, self.must = path, set(lines), numbers, start, set(must)
        self.others = others
        self.names, self.attributes = named
        self.found: list[Mutant] = []
        self.inside = 0
        #: By a node's id, which stays its own while it is held here.
        self.placed = dict[int, tuple[ast.AST, list[Side]]]()
        self.tried = set[tuple[int, ...]]()

    def walk(self, module: ast.Module) -> None:
        """Visit a module; what was asked for and not come by is found as well, and never planted."""
        self.visit(module)
        asked = {*self.others, *(place for place in self.must if len(place) == 3)} - self.tried
        for line, column, *_ in sorted(asked):
            self.found.append(Mutant(self.path, line, CHOICE, "what stands here", "cannot be tried", column))

    def visit(self, node: ast.AST) -> Any:
        """Visit a node and, where something else is to be tried in its place, offer that."""
        for part in ast.iter_child_nodes(node) if (given := placed(node)) else ():
            self.placed |= {id(part): (part, given[id(part)])} if id(part) in given else {}
        others = self.others.get(span_of(node), ()) if isinstance(node, ast.expr) else ()
        _, more = self.placed.get(id(node), (None, ()))
        if not isinstance(node, ast.expr) or not (others or more):
            return super().visit(node)
        kept, more = copy.deepcopy((node, more))
        visited = super().visit(node)
        self.tried.add(span_of(kept))
        for kind, other in others:
            visited = self._choice(kept, kind, ast.unparse(kept), copy.deepcopy(other), visited)
        return self._sides(kept, visited, more, len(sides(kept)))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if self.inside:  # what a definition within a function works out, it works out at each call
            node.args = self.visit(node.args)
            node.decorator_list = [self._expr(self.visit(part)) for part in node.decorator_list]
        self.inside += 1
        node.body = [self.visit(part) for part in node.body]
        self.inside -= 1
        return node

    def _removed(self, node: ast.stmt) -> ast.AST:
        """Visit a statement and, where it is one that may be left out, offer its removal."""
        kept = copy.deepcopy(node)
        visited = self.generic_visit(node)
        number = self._offer(kept, REMOVED, ast.unparse(kept), "pass") if effective(kept) else None
        if number is None or not isinstance(visited, ast.stmt):
            return visited
        return ast.If(ast.UnaryOp(ast.Not(), _on(number)), [visited], [])

    visit_Expr = visit_AugAssign = visit_Assign = _removed

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        swapped = COMPARISONS.get(type(node.ops[0]))
        changed = copy.deepcopy(node)
        before = ast.unparse(node)
        kept = copy.deepcopy(node)
        visited = self._sides(kept, self._expr(self.generic_visit(node)))
        if swapped is None or len(kept.ops) > 1:
            return visited
        changed.ops = [swapped()]
        return self._choice(kept, "comparison", before, changed, visited)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        before, kept = ast.unparse(node), copy.deepcopy(node)
        visited = self._sides(kept, self._expr(self.generic_visit(node)))
        swapped = OPERATORS.get(type(node.op))
        if swapped is not None:
            other = copy.deepcopy(kept)
            other.op = swapped()
            visited = self._choice(kept, "operator", before, other, visited)
        if isinstance(kept.op, ast.Sub | ast.Div):
            turned = copy.deepcopy(kept)
            turned.left, turned.right = turned.right, turned.left
            visited = self._choice(kept, "swapped operands", before, turned, visited)
        return visited

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        before, kept = ast.unparse(node), copy.deepcopy(node)
        visited = self._sides(kept, self._expr(self.generic_visit(node)))
        if isinstance(kept.op, ast.USub | ast.Not | ast.Invert) and not isinstance(kept.operand, ast.Constant):
            return self._choice(kept, "sign", before, copy.deepcopy(kept.operand), visited)
        return visited

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        before, kept = ast.unparse(node), copy.deepcopy(node)
        visited = self._expr(self.generic_visit(node))
        kept.op = ast.Or() if isinstance(kept.op, ast.And) else ast.And()
        return self._choice(kept, "boolean", before, kept, visited)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        before, kept = ast.unparse(node), copy.deepcopy(node)
        visited = self._sides(kept, self._expr(self.generic_visit(node)))
        name = kept.func.attr if isinstance(kept.func, ast.Attribute) else getattr(kept.func, "id", "")
        asked = kept.args[1] if name == "getattr" and len(kept.args) > 1 else None
        if isinstance(asked, ast.Constant) and asked.value in self.attributes:
            return self._named(kept, visited)
        if name in CLAMPS and kept.args and not isinstance(kept.args[0], ast.Starred):
            return self._choice(kept, "dropped clamp", before, kept.args[0], visited)
        return visited

    def visit_While(self, node: ast.While) -> ast.AST:
        """Visit a loop, and leave it after its first turn where that is to be tried."""
        kept = copy.deepcopy(node.test)
        visited = self.generic_visit(node)
        once = (kept.lineno, kept.col_offset, ONCE)
        self.tried.add(once)
        number = self._offer(kept, CHOICE, ast.unparse(kept), "once") if once in self.must else None
        if number is not None and isinstance(visited, ast.While):
            visited.body = [*_turns(visited.body, number), ast.If(_on(number), [ast.Break()], [])]
        return visited

    def _sides(
        self, kept: ast.expr, visited: ast.expr, given: Sequence[Side] | None = None, first: int = 0
    ) -> ast.expr:
        """Take a side of a choice always, where that is to be tried."""
        for number, (side, _) in enumerate(sides(kept) if given is None else given, first):
            if (place := (kept.lineno, kept.col_offset, number)) in self.must:
                self.tried.add(place)
                visited = self._choice(kept, CHOICE, ast.unparse(kept), side, visited)
        return visited

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if type(node.value) is int:
            return self._choice(node, "off by one", repr(node.value), ast.Constant(node.value + 1), node)
        if type(node.value) is float and node.value:
            return self._choice(node, "constant", repr(node.value), ast.Constant(node.value * 1.5), node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._named(node) if node.id in self.names else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        kept = copy.deepcopy(node)
        node.value = self._expr(self.visit(node.value))
        return self._named(kept, node) if kept.attr in self.attributes else node

    def _named(self, node: ast.Name | ast.Attribute | ast.Call, visited: ast.expr | None = None) -> ast.expr:
        """Change a constant of the package where it is used."""
        if not isinstance(node, ast.Call) and not isinstance(node.ctx, ast.Load):
            return visited or node
        moved = ast.Call(ast.Name(MOVED, ast.Load()), [copy.deepcopy(node)], [])
        return self._choice(node, "named constant", ast.unparse(node), moved, visited or node)

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Leave the pattern, in which there is no room for a switch; each case has a body of its own to be reached."""
        node.guard = self._expr(self.visit(node.guard)) if node.guard else None
        node.body = [self.visit(part) for part in node.body]
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        """Visit defaults, but not those that are evaluated once, at import, when no switch is on yet."""
        if self.inside:
            node.defaults = [self._expr(self.visit(part)) for part in node.defaults]
            node.kw_defaults = [part and self._expr(self.visit(part)) for part in node.kw_defaults]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Visit the values of a text, and write it as a call: what is planted in one could not be written in quotes."""
        parts = [part if isinstance(part, ast.Constant) else self._written(part) for part in node.values]
        return ast.Call(ast.Attribute(ast.Constant(""), "join", ast.Load()), [ast.Tuple(parts, ast.Load())], [])

    def _written(self, node: ast.expr) -> ast.expr:
        assert isinstance(node, ast.FormattedValue)
        # By a method of a text, and not by builtins, whose names the code may have given to something else.
        value, how = self._expr(self.visit(node.value)), {97: "!a", 114: "!r", 115: "!s"}.get(node.conversion, "")
        form = [self._expr(self.visit(node.format_spec))] if node.format_spec else []
        text = ast.Constant(f"{{0{how}{':{1}' if form else ''}}}")
        return ast.Call(ast.Attribute(text, "format", ast.Load()), [value, *form], [])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
        if node.value is not None:
            node.value = self._expr(self.visit(node.value))
        return node

    def _choice(self, node: ast.expr, kind: str, before: str, changed: ast.expr, visited: ast.AST) -> ast.expr:
        after = f"{before} * 1.5 + 1" if kind == "named constant" else ast.unparse(changed)
        number = self._offer(node, kind, before, after)
        return self._expr(visited) if number is None else ast.IfExp(_on(number), changed, self._expr(visited))

    def _offer(self, node: ast.AST, kind: str, before: str, after: str) -> int | None:
        line = getattr(node, "lineno", 0)
        if not self.inside or line not in self.lines:
            return None
        place = self.at + len(self.found)
        self.found.append(Mutant(self.path, line, kind, before, after, getattr(node, "col_offset", 0)))
        return None if self.numbers is None else self.numbers.get(place)

    @staticmethod
    def _expr(node: ast.AST) -> ast.expr:
        assert isinstance(node, ast.expr)
        return node

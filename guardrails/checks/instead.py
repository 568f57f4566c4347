"""Which expressions a change brought, and what could stand in place of each without any test failing.

A cheat has to join what is right with what is wrong somewhere, and in tests the joint must show nothing: a factor that
is 1, a bound that never binds, a rounding of whole numbers, a shift by 0. So each new expression is tried without what
it adds: a part of it in its place, nothing, one. And each new use of parameters is tried with every other parameter,
since those that are alike in the tests are not alike in production.

Over 400 lines, because what is new and what may stand for it is one walk over the same trees.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from guardrails.checks.said import Said

#: First line and column, last line and column.
Span = tuple[int, int, int, int]
#: Kinds of mutants: another parameter, a part in place of the whole, a statement left out.
SWAP, PART = "other parameter", "part"
Instead = Mapping[Span, list[tuple[str, ast.expr]]]
Modules = Mapping[str, ast.Module]
#: Calls of numbers that give a number.
FOLDS = frozenset({"abs", "float", "int", "max", "min", "round"})
#: Calls that give what they were given, in another container or precision: their argument alone says the same. The last
#: say yes or no, which is a choice, both sides of which are tried (GR780).
CONVERSIONS = frozenset({
    "array", "asarray", "ascontiguousarray", "copy", "dict", "float", "frozenset", "items", "keys", "list", "set",
    "str", "tolist", "tuple", "values", "all", "any", "bool",
})  # fmt: skip
#: Keywords that say in which form something is done, or that it must fit: without them it is done as well.
FORMS = frozenset({"axis", "dtype", "kind", "strict"})
#: Calls whose value is one number over and over, or places in order.
FILLERS = frozenset(
    {"empty", "enumerate", "full", "full_like", "ones", "ones_like", "range", "zeros", "zeros_like", "zip"}
)
#: Names by which the judge knows what a call does: nothing else may be called so (GR217).
TAKEN = CONVERSIONS | FILLERS | {"math", "np", "numpy"}
#: What says something of an expression in it: a value that is only named, returned or taken in one case says nothing.
PLACES = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.keyword, ast.Subscript)
Locals = Mapping[str, ast.Attribute]
Node = ast.expr | ast.stmt
Word = tuple[Node, str, list[tuple[str, ast.expr]]]  # where, what it says, what may stand in its place


def instead(
    now: Modules,
    before: Modules,
    lines: Mapping[str, Collection[int]],
    names: Collection[str],
    like: str,
    curated: Sequence[Modules] = (),
) -> dict[str, dict[Span, list[tuple[str, ast.expr]]]]:
    """Return, by path, what may be tried in place of each new expression on changed lines, each with its kind.

    New is what neither the package before nor a `curated` version says as often: an expression in functions of that
    name, or one of parameters (the largest of parameters, numbers and arithmetic alone, through local names that stand
    for such) as the same operand of an operator or the same argument of a function of that name. `like` names the
    judge's function that makes a part look like the whole.
    """
    found: dict[str, dict[Span, list[tuple[str, ast.expr]]]] = {}

    def swaps(module: ast.Module) -> Iterator[Word]:
        return _swaps(module, names)

    def parts(module: ast.Module) -> Iterator[Word]:
        return _parts(module, like)

    for words in (swaps, parts):
        for path, node, others in _new(now, before, lines, words, curated):
            found.setdefault(path, {}).setdefault(span_of(node), []).extend(others)
    return found


def new_statements(
    now: Modules, before: Modules, lines: Mapping[str, Collection[int]], curated: Sequence[Modules] = ()
) -> dict[str, set[tuple[int, int]]]:
    """Return, by path, the places of new statements on changed lines that work by what they change, not by a name."""

    def statements(module: ast.Module) -> Iterator[Word]:
        for node in ast.walk(module):
            if isinstance(node, ast.stmt) and effective(node):
                yield node, ast.dump(node), []

    found: dict[str, set[tuple[int, int]]] = {}
    for path, node, _ in _new(now, before, lines, statements, curated):
        found.setdefault(path, set()).add((node.lineno, node.col_offset))
    return found


def burden(module: ast.Module, lines: Collection[int]) -> int:
    """Return the sizes (nodes) of all expressions on these lines together: what planting changes in them has to copy.

    An expression within others counts again in each.
    """
    total, sizes = 0, dict[int, int]()
    for node in reversed(list(ast.walk(module))):  # what stands inside comes later in a walk by breadth
        size = sizes[id(node)] = 1 + sum(sizes[id(child)] for child in ast.iter_child_nodes(node))
        if isinstance(node, ast.expr) and {*range(node.lineno, (node.end_lineno or node.lineno) + 1)} & {*lines}:
            total += size
    return total


def effective(node: ast.AST) -> bool:
    """Say whether a statement may be left out and works by what it changes: a call, `+=`, a value put into another."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant | ast.Yield | ast.YieldFrom | ast.Await)
    )


def _new(
    now: Modules,
    before: Modules,
    lines: Mapping[str, Collection[int]],
    words: Callable[[ast.Module], Iterator[Word]],
    curated: Sequence[Modules],
) -> Iterator[tuple[str, Node, list[tuple[str, ast.expr]]]]:
    """Yield words on changed lines that are new to the package."""
    was = Counter[str]()
    for version in (before, *curated):
        was |= Counter(key for module in version.values() for _, key, _ in words(module))
    count = Counter(key for module in now.values() for _, key, _ in words(module))
    for path in lines.keys() & now.keys():
        for node, key, others in words(now[path]):
            rows = {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
            if count[key] > was[key] and rows & {*lines[path]}:
                yield path, node, others


def renamed(now: ast.Module, before: ast.Module) -> set[int]:
    """Return the lines of functions that say what they said before, their local names apart."""

    def plain(function: ast.FunctionDef) -> str:
        made = copy.deepcopy(function)
        nodes = list(ast.walk(made))
        own = {node.arg for node in nodes if isinstance(node, ast.arg)}
        own |= {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        order: dict[str, str] = {}
        for node in nodes:
            if isinstance(node, ast.Name) and node.id in own:
                node.id = order.setdefault(node.id, f"{len(order)}")
            elif isinstance(node, ast.arg):
                node.arg = order.setdefault(node.arg, f"{len(order)}")
        return ast.dump(made)

    stood = Counter(plain(node) for node in ast.walk(before) if isinstance(node, ast.FunctionDef))
    functions = [(node, plain(node)) for node in ast.walk(now) if isinstance(node, ast.FunctionDef)]
    count = Counter(text for _, text in functions)
    found = set[int]()
    for node, text in functions:
        found |= {*range(node.lineno, (node.end_lineno or node.lineno) + 1)} if count[text] <= stood[text] else set()
    return found


def _swaps(module: ast.Module, names: Collection[str]) -> Iterator[Word]:
    for node, read, key in _words(module, names):
        others = sorted(set(names) - {getattr(node, "attr", "")})
        yield node, key, [(SWAP, ast.Attribute(read.value, name, ast.Load())) for name in others]
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
    # A parameter may be read by its name as a text: by a key, by getattr.
    inside = {id(part): part for function in functions for node in function.body for part in ast.walk(node)}.values()
    spared = {id(part) for node in inside if isinstance(node, ast.JoinedStr | ast.Raise) for part in ast.walk(node)}
    for text in inside:
        if isinstance(text, ast.Constant) and text.value in names and id(text) not in spared:
            yield text, f"text {text.value!r}", [(SWAP, ast.Constant(name)) for name in sorted({*names} - {text.value})]


def _parts(module: ast.Module, like: str) -> Iterator[Word]:
    """Yield the expressions in functions that join values, with their parts; what is raised is left out."""
    functions = [(node, Said(node)) for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
    for function, said in functions:
        for target, value, others in _branched(function):
            if not isinstance(value, ast.Constant):
                plainly = [[ast.Constant(number), value, ast.Constant("")] for number in (0, 1)]
                others += [ast.Call(ast.Name(like, ast.Load()), words, []) for words in plainly]
            yield value, f"{function.name} {target} = {said.of(value)}", [(PART, other) for other in others]
    Left = tuple[ast.FunctionDef, Said, ast.AST, bool]
    left: list[Left] = [(node, said, part, False) for node, said in functions for part in node.body]
    unused = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    while left:
        function, said, node, alone = left.pop()
        if isinstance(node, ast.Raise):
            continue
        if isinstance(node, ast.FunctionDef):  # its body has its turn; what it works out where it stands is this one's
            left += [(function, said, part, False) for part in _on_the_way(node)]
            continue
        if isinstance(node, ast.expr) and id(node) not in unused:
            parts = list(_joined(node))
            if alone or (parts and not isinstance(node, ast.Subscript | ast.Dict) and _name(node) not in CONVERSIONS):
                parts += [("", ast.Constant(0)), ("", ast.Constant(1))]
            sort = "index" if alone else "whole" if _name(node) == "int" else ""
            asked = [[part, node, ast.Constant(taken or sort)] for taken, part in parts]
            others = [ast.Call(ast.Name(like, ast.Load()), words, []) for words in asked]
            if others and not isinstance(node, ast.List | ast.Tuple):
                yield node, f"{function.name} {said.of(node)}", [(PART, part) for part in others]
        for name, child in _children(node):
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                # What stands alone in a display or index joins nothing, and may be what decides.
                plain = isinstance(child, ast.Attribute | ast.Name | ast.Subscript)
                shown = isinstance(node, ast.Set | ast.Dict) or isinstance(getattr(node, "elts", None), list)
                shown = shown and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
                left.append(
                    (function, said, child, plain and (shown or (isinstance(node, ast.Subscript) and name == "slice")))
                )


def _on_the_way(node: ast.FunctionDef) -> list[ast.expr]:
    """Return what a definition within a function works out each time that it is made."""
    return [*node.decorator_list, *node.args.defaults, *(part for part in node.args.kw_defaults if part)]


def _branched(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr, list[ast.expr]]]:
    """Yield what is put into names in branches and loops, or returned there, and what may last; each with its target
    and with what else is put there: what stood there before, and the values of the function's other statements.

    Which statement runs is a choice that may have stood before, so that what is new in one of them has to be told from
    what the others say.
    """
    put = [(inside, target, value) for inside, node in _within(function.body) for target, value in _puts(node)]
    for inside, target, value in put:
        name = "return" if target is None else ast.unparse(target)
        others = {ast.dump(other): other for _, to, other in put if (to and ast.unparse(to)) == (target and name)}
        others.pop(ast.dump(value))
        if isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
            stood = copy.deepcopy(target)
            stood.ctx = ast.Load()
            others |= {"": stood}
        if inside or (isinstance(target, ast.Attribute) and function.name != "__init__"):
            yield name, value, list(others.values())


def _within(body: Sequence[ast.stmt], inside: bool = False) -> Iterator[tuple[bool, ast.AST]]:
    """Yield statements of a body, and what binds names in expressions, each with whether a branch or loop holds it."""
    for node in body:
        yield inside, node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from _within([child], inside=True)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from _within(child.body, inside=True)
            else:
                yield from ((True, part) for part in ast.walk(child) if isinstance(part, ast.NamedExpr))


def _puts(node: ast.AST) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    """Yield targets and values of an assignment, element by element where both are written out; None for a return."""
    if isinstance(node, ast.Return) and node.value is not None:
        yield None, node.value
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) else None
    for target in targets if value is not None else ():
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts, strict=True)
        elif isinstance(target, ast.Name | ast.Attribute | ast.Subscript) and value is not None:
            yield target, value


def _children(node: ast.AST) -> Iterator[tuple[str, object]]:
    for name, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            yield name, part


def _joined(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parts of an expression that could stand alone, each with how it is taken from there: see `like`."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.IfExp):
        several = {ast.BinOp: ("left", "right"), ast.IfExp: ("body", "orelse")}.get(type(node), ())
        parts = node.values if isinstance(node, ast.BoolOp) else [getattr(node, name) for name in several]
        yield from (("", part) for part in parts if not isinstance(part, ast.Constant))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield "", node.operand
    elif isinstance(node, ast.Call) and _name(node) not in FILLERS:
        # Without the text around it a number that is written and read again is the number, unless digits were left out.
        texts = [part for given in node.args if isinstance(given, ast.JoinedStr) for part in given.values]
        yield from (("", part.value) for part in texts if isinstance(part, ast.FormattedValue))
        if _name(node) not in CONVERSIONS:
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
            known = _module(receiver) if receiver is not None else _name(node) in dir(builtins)
            said = [word for word in node.keywords if word.arg not in FORMS]
            # What the package's own functions make of several is asked of them.
            for part in [*node.args, *(word.value for word in said)]:
                yield from _taken(part, several=known or isinstance(part, ast.Starred))
            for word in said if known or receiver is not None else ():
                rest = [other for other in node.keywords if other is not word]
                yield "", ast.Call(node.func, node.args, rest)
            if receiver is not None and not known:
                yield from _taken(receiver, several=True)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield "", node.value
    elif isinstance(node, ast.Dict):
        yield from (("", value) for key, value in zip(node.keys, node.values, strict=True) if key is None)


def _taken(part: ast.expr, several: bool) -> Iterator[tuple[str, ast.expr]]:
    """Yield an argument, and what `several` in one are made of: the values written out, or the first and the last."""
    inner = part.value if isinstance(part, ast.Starred) else part
    if isinstance(inner, ast.List | ast.Tuple):
        yield from (("", value) for value in inner.elts if not isinstance(value, ast.Constant | ast.Starred))
    elif not isinstance(inner, ast.Constant | ast.Lambda | ast.JoinedStr):
        yield from (("first", inner), ("last", inner)) if several else ()
        if inner is part:
            yield "", part


def _name(node: ast.expr) -> str:
    """Return the name of the function or method that an expression calls."""
    func = getattr(node, "func", None)
    return str(getattr(func, "attr", getattr(func, "id", "")))


def _module(node: ast.expr) -> bool:
    """Say whether an expression looks like a module whose function is called."""
    return isinstance(node, ast.Name) and node.id in ("np", "math", "numpy")


def fewer(now: Mapping[str, ast.Module], before: Mapping[str, ast.Module], names: Collection[str]) -> set[str]:
    """Return the parameters that the package reads less often than before."""
    was, count = (
        Counter(
            node.attr
            for module in modules.values()
            for node in ast.walk(module)
            if isinstance(node, ast.Attribute) and node.attr in names
        )
        for modules in (before, now)
    )
    return {name for name in was if count[name] < was[name]}


def span_of(node: ast.AST) -> Span:
    """Return where an expression stands."""
    line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
    return line, column, getattr(node, "end_lineno", None) or line, getattr(node, "end_col_offset", None) or column


def _words(module: ast.Module, names: Collection[str]) -> Iterator[tuple[ast.expr, ast.Attribute, str]]:
    """Yield the largest expressions of parameters in functions, one parameter read in each, and where it stands."""
    for function in (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)):
        bound = _bound(function, names)
        left: list[tuple[ast.AST, str]] = [(part, "") for part in function.body]
        while left:
            node, place = left.pop()
            if isinstance(node, ast.FunctionDef):
                left += [(part, place) for part in _on_the_way(node)]
                continue
            read = _read(node, names, bound)
            if read is not None and isinstance(node, ast.expr):
                yield node, read, f"{place} {_said(node)}"
                continue
            for name, value in ast.iter_fields(node):
                for at, part in enumerate(value if isinstance(value, list) else [value]):
                    if isinstance(part, ast.AST):
                        left.append((part, f"{_called(node)} {name} {at}" if isinstance(node, PLACES) else ""))


def _said(node: ast.AST) -> str:
    """Return an expression of parameters as text, whatever holds the parameters is called."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    parts = " ".join(map(_said, ast.iter_child_nodes(node)))
    return f"({type(node).__name__} {getattr(node, 'value', getattr(node, 'id', ''))!r} {parts})"


def _called(node: ast.AST) -> str:
    """Return what stands around an expression: its kind, operator and the name of a function that is called."""
    said = getattr(node, "func", None) or getattr(node, "op", None) or getattr(node, "ops", None)
    said = said[0] if isinstance(said, list) else said
    return f"{type(node).__name__} {getattr(said, 'attr', getattr(said, 'id', type(said).__name__))}"


def _bound(function: ast.FunctionDef, names: Collection[str]) -> dict[str, ast.Attribute]:
    """Return the local names that are set once in a function, to an expression of parameters, and a read of one."""
    stores = Counter(
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    bound = dict[str, ast.Attribute]()
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and len(targets) == 1 and isinstance(targets[0], ast.Name):
            read = _read(value, names, bound) if value is not None else None
            if read is not None and stores[targets[0].id] == 1:
                bound[targets[0].id] = read
    return bound


def _read(node: ast.AST, names: Collection[str], bound: Locals) -> ast.Attribute | None:
    """Return a parameter that an expression of parameters alone reads, or none where it is no such expression."""
    if isinstance(node, ast.Attribute):
        return node if node.attr in names and isinstance(node.ctx, ast.Load) else None
    if isinstance(node, ast.Name):
        return bound.get(node.id) if isinstance(node.ctx, ast.Load) else None
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.Call) and not node.keywords:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        parts = node.args if name in FOLDS else []
    else:
        return None
    reads = [_read(part, names, bound) for part in parts if not isinstance(part, ast.Constant)]
    return reads[0] if reads and all(read is not None for read in reads) else None

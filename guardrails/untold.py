"""Which changes of the code no test tells from what stood before: put back, they leave a tree to trade beside.

Tests come first here: whoever changes what the strategy does says so in a test that fails before. What no test misses
once it is put back is a change of form, and has to decide as the code before it did (GR603).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from difflib import SequenceMatcher
from itertools import count

from guardrails.policy import Policy
from guardrails.tree import Tree

#: Changed units of a patch whose tests demand some of them, at most, and changed statements of those: each is put back
#: in a run of the tests or two.
MOST_UNITS = 12
#: A definition, constant or imported name of a module: its path and its name, `Class.name` for what stands in a class.
Unit = tuple[str, str]
#: The changed statements of a function that are put back, by their numbers; all of a unit where there are none.
Back = Mapping[Unit, Collection[int] | None]
#: Where statements stand in a statement; what else can hold some (`try`, `match`) is one as a whole.
BODIES = ("body", "orelse")
IMPORT = "import "  # begins the name of a unit


class TooManyUnits(Exception):
    """More units changed than can be put back one by one."""


def as_before(base: Tree, result: Tree, policy: Policy, passes: Callable[[Tree], bool]) -> Tree:
    """Return the resulting tree with all changes of the package put back that no test misses.

    `passes` says whether all tests pass on a tree. Everything is put back if it can be, else everything but one unit,
    else unit by unit what can be; and of the functions that tests demand statement by statement. Both trees can be
    parsed.

    Raises:
        TooManyUnits: tests demand some of more changed units than `MOST_UNITS`, or some of more changed statements.
    """
    package = f"{policy.package_folder}/"
    changed = {
        path: base.get(path)
        for path in sorted({*base, *result})
        if path.startswith(package) and path.endswith(".py") and base.get(path) != result.get(path)
    }
    whole = result.replace(changed)
    if not changed or passes(whole):
        return whole
    units = [(path, name) for path in changed for name in _differing(base.get(path, b""), result.get(path, b""))]
    if len(units) > MOST_UNITS:
        raise TooManyUnits(f"{len(units)}")
    back = _without_need(base, result, units, passes)
    demanded = [unit for unit in units if unit not in back]
    statements = {unit: numbers for unit in demanded if len(numbers := range(_count(base, result, unit))) > 1}
    if (many := sum(map(len, statements.values()))) > MOST_UNITS:
        raise TooManyUnits(f"{many}")
    for unit, numbers in statements.items():
        for number in reversed(numbers):  # what uses before what is used
            tried = {**back, unit: [*(back.get(unit) or ()), number]}
            if passes(put_back(base, result, tried)):
                back = tried
    return put_back(base, result, back) if back else result


def _without_need(base: Tree, result: Tree, units: Collection[Unit], passes: Callable[[Tree], bool]) -> Back:
    """Return the units that may be put back together."""
    for unit in units if len(units) > 1 else ():
        others: Back = dict.fromkeys(other for other in units if other != unit)
        if passes(put_back(base, result, others)):
            return others
    back: Back = {}
    for unit in units if len(units) > 1 else ():
        tried = {**back, unit: None}
        if passes(put_back(base, result, tried)):
            back = tried
    return back


def put_back(base: Tree, result: Tree, back: Back) -> Tree:
    """Return the resulting tree with these units, or statements of them, as they stood in the base, or without them
    where they did not."""
    files = dict[str, bytes | None]()
    for path in {path for path, _ in back}:
        old, new = (_parsed(tree.get(path, b"")) for tree in (base, result))
        units = {name: numbers for (place, name), numbers in back.items() if place == path}
        functions = {name: node for name, node in _units(old.body, "", new.body) if isinstance(node, ast.FunctionDef)}
        for name, node in _units(new.body, "", old.body):
            numbers = units.get(name)
            if numbers is not None and isinstance(node, ast.FunctionDef):
                words = node.body[: len(node.body) - len(_code(node))]
                node.body = [*words, *_merged(_code(functions[name]), _code(node), numbers, count())]
        new.body = _mixed(old.body, new.body, [name for name, numbers in units.items() if numbers is None], "")
        files[path] = ast.unparse(new).encode()
    return result.replace(files)


def _count(base: Tree, result: Tree, unit: Unit) -> int:
    """Return in how many statements both versions of a function differ; none where their heads do."""
    path, name = unit
    old, new = (_parsed(tree.get(path, b"")).body for tree in (base, result))
    one, two = dict(_units(old, "", new)).get(name), dict(_units(new, "", old)).get(name)
    if not isinstance(one, ast.FunctionDef) or not isinstance(two, ast.FunctionDef) or _head(one) != _head(two):
        return 0
    numbers = count()
    _merged(_code(one), _code(two), (), numbers)
    return next(numbers)


def _merged(old: list[ast.stmt], new: list[ast.stmt], back: Collection[int], numbers: Iterator[int]) -> list[ast.stmt]:
    """Return the new statements, with those differences as they were in the old ones whose numbers are to go back."""
    made = list[ast.stmt]()
    before, after = ([ast.dump(node) for node in body] for body in (old, new))
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        olds, news = (old[a:b], new[c:d]) if tag != "equal" else ([], [])
        made += new[c:d] if tag == "equal" else ()
        while olds or news:
            was, now = olds[:1], news[:1]
            if was and now and type(was[0]) is not type(now[0]):
                was, now = olds, news
            olds, news = olds[len(was) :], news[len(now) :]
            if was and now and hasattr(now[0], "body") and _head(was[0]) == _head(now[0]):
                whole: ast.stmt = copy(now[0])
                for field in BODIES:
                    inner = _merged(getattr(was[0], field, []), getattr(now[0], field, []), back, numbers)
                    setattr(whole, field, inner or ([ast.Pass()] if field == "body" else []))
                made.append(whole)
            else:
                made += was if next(numbers) in back else now
    return made


def _head(node: ast.stmt) -> str:
    """Return what a statement says before the statements in it."""
    head = copy(node)
    for field in BODIES:
        if hasattr(head, field):
            setattr(head, field, [])
    return ast.dump(head)


def _differing(old: bytes, new: bytes) -> list[str]:
    """Return the names of units that two versions of a module say differently; to import more or less is no change."""
    bodies = [_parsed(data).body for data in (old, new)]
    before, after = (dict(_units(body, "", other)) for body, other in zip(bodies, reversed(bodies), strict=True))
    said: Mapping[str, list[str | None]] = {
        name: [ast.dump(_bare(units[name])) if name in units else None for units in (before, after)]
        for name in {**after, **before}
    }
    other = {name for name, (was, now) in said.items() if was != now}
    return [name for name in said if name in other and not (name.startswith(IMPORT) and None in said[name])]


def _parsed(data: bytes) -> ast.Module:
    """Parse a module, in which each imported name has a statement of its own."""
    module = ast.parse(data)
    body = list[ast.stmt]()
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                body.append(copy(node))
                body[-1].names = [alias]  # type: ignore[attr-defined]
        else:
            body.append(node)
    module.body = body
    return module


def _units(body: Collection[ast.stmt], within: str, other: Collection[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the units of a body by name; a class that the `other` one has as well is what stands in it."""
    classes = {node.name: node for node in other if isinstance(node, ast.ClassDef)}
    for node in body:
        name = _name(node)
        if isinstance(node, ast.ClassDef) and name in classes:
            yield from _units(node.body, f"{within}{name}.", classes[name].body)
        elif name:
            yield f"{within}{name}", node


def _name(node: ast.stmt) -> str:
    """Return the name of a definition, constant or import; what documents or runs has none."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Import | ast.ImportFrom):
        return IMPORT + (node.names[0].asname or node.names[0].name)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return ",".join(map(ast.unparse, targets))


def _future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _code(node: ast.FunctionDef) -> list[ast.stmt]:
    """Return a function's statements without its documentation."""
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


def _bare(node: ast.stmt) -> ast.stmt:
    """Return a function without its documentation."""
    if isinstance(node, ast.FunctionDef):
        bare = copy(node)
        bare.body = _code(node)
        return bare
    return node


def _mixed(old: list[ast.stmt], new: list[ast.stmt], names: Collection[str], within: str) -> list[ast.stmt]:
    """Return a body with the named units of the old one, each behind what stood before it there, and all imports."""
    stood = {_name(node): node for node in old if _name(node)}
    made = [node for node in new if f"{within}{_name(node)}" not in names]
    for node in made:
        before = stood.get(_name(node))
        if isinstance(node, ast.ClassDef) and isinstance(before, ast.ClassDef):
            node.body = _mixed(before.body, node.body, names, f"{within}{node.name}.") or [ast.Pass()]
    first = [at for at, node in enumerate(made) if not isinstance(node, ast.Expr) and not _future(node)]
    last = min(first, default=len(made))  # behind what documents the module, and imports from the future
    for node in old:
        name = _name(node)
        places = [at for at, other in enumerate(made) if name and _name(other) == name]
        if places:
            last = places[0] + 1
        elif f"{within}{name}" in names or name.startswith(IMPORT):
            made.insert(last, node)
            last += 1
    return made

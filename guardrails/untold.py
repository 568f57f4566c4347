"""Which changes of the code no test tells from what stood before: put back, they leave a tree to trade beside.

Tests come first here: whoever changes what the strategy does says so in a test that fails before. What no test misses
once it is put back is a change of form, and has to decide as the code before it did (GR603).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping

from guardrails.policy import Policy
from guardrails.tree import Tree

#: Changed units of a patch whose tests demand some of them, at most: each is put back in two runs of the tests.
MOST_UNITS = 30
#: A definition or constant of a module: its path and its name, `Class.name` for what stands in a class.
Unit = tuple[str, str]


class TooManyUnits(Exception):
    """More units changed than can be put back one by one."""


def as_before(base: Tree, result: Tree, policy: Policy, passes: Callable[[Tree], bool]) -> Tree:
    """Return the resulting tree with all changes of the package put back that no test misses.

    `passes` says whether all tests pass on a tree. Everything is put back if it can be, else everything but one unit,
    else unit by unit what can be. Both trees can be parsed.

    Raises:
        TooManyUnits: tests demand some of more changed units than `MOST_UNITS`.
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
    if len(units) < 2:
        return result
    if len(units) > MOST_UNITS:
        raise TooManyUnits(f"{len(units)}")
    for unit in units:
        made = put_back(base, result, [other for other in units if other != unit])
        if passes(made):
            return made
    made, back = result, list[Unit]()
    for unit in units:
        tried = put_back(base, result, [*back, unit])
        if passes(tried):
            made, back = tried, [*back, unit]
    return made


def put_back(base: Tree, result: Tree, units: Collection[Unit]) -> Tree:
    """Return the resulting tree with these units as they stood in the base, or without them where they did not."""
    files = dict[str, bytes | None]()
    for path in {path for path, _ in units}:
        old, new = (ast.parse(tree.get(path, b"")) for tree in (base, result))
        names = {name for place, name in units if place == path}
        new.body = _mixed(old.body, new.body, names, "")
        files[path] = ast.unparse(new).encode()
    return result.replace(files)


def _differing(old: bytes, new: bytes) -> list[str]:
    """Return the names of units that two versions of a module say differently."""
    bodies = [ast.parse(data).body for data in (old, new)]
    before, after = (dict(_units(body, "", other)) for body, other in zip(bodies, reversed(bodies), strict=True))
    said: Mapping[str, list[str | None]] = {
        name: [ast.dump(_bare(units[name])) if name in units else None for units in (before, after)]
        for name in {**after, **before}
    }
    return [name for name, (was, now) in said.items() if was != now]


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
    """Return the name of a definition or constant; what imports, documents or runs has none."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return ",".join(map(ast.unparse, targets))


def _bare(node: ast.stmt) -> ast.stmt:
    """Return a function without its documentation."""
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
        bare = ast.FunctionDef(**dict(ast.iter_fields(node)))
        bare.body = node.body[1:]
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
    first = [at for at, node in enumerate(made) if not isinstance(node, ast.Expr | ast.ImportFrom)]
    last = min(first, default=len(made))  # behind what documents the module, and imports from the future
    for node in old:
        name, said = _name(node), ast.dump(node)
        places = [at for at, other in enumerate(made) if name and _name(other) == name]
        if places:
            last = places[0] + 1
        elif f"{within}{name}" in names or (
            isinstance(node, ast.Import | ast.ImportFrom) and said not in map(ast.dump, made)
        ):
            made.insert(last, node)
            last += 1
    return made

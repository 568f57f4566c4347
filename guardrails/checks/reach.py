"""Which names a computed getattr can ask for, where that can be read off the source."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

#: Of more texts than these none counts as known.
MOST_TEXTS = 1_000
Names = dict[str, list[str]]
#: What a name of the module is bound to, or none where the name is not the module's here.
Constants = Callable[[str], ast.expr | None]


def constant_names(node: ast.expr, loops: Mapping[str, Collection[str]]) -> list[str] | None:
    """Return all texts that an expression can be: a constant, a loop's name, or an f-string of these; or None."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return list(loops[node.id]) if node.id in loops else None
    if isinstance(node, ast.FormattedValue):
        return constant_names(node.value, loops) if node.conversion < 0 and node.format_spec is None else None
    if not isinstance(node, ast.JoinedStr):
        return None
    texts = [""]
    for part in node.values:
        found = constant_names(part, loops)
        if found is None:
            return None
        if len(texts) * len(found) > MOST_TEXTS:
            return None
        texts = [text + more for text in texts for more in found]
    return texts


def iterated(body: Sequence[ast.stmt], given: Collection[str], constants: Constants) -> Names:
    """Return what the for loops of a function give their names, where nothing else binds them (`given` are bound)."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    loops = [node for node in nodes if isinstance(node, ast.For)]
    found = _given(loops, nodes, constants)
    stores = Counter([*given, *(name for node in nodes for name in _stored(node))])
    return {name: texts for name, (count, texts) in found.items() if stores[name] == count}


def comprehended(generators: Sequence[ast.comprehension], body: Sequence[ast.stmt], constants: Constants) -> Names:
    """Return the same of a comprehension inside a function with this body: its names are bound by it alone."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    found = _given(generators, nodes, constants)
    stores = Counter(name for item in generators for node in ast.walk(item.target) for name in _stored(node))
    return {name: texts for name, (count, texts) in found.items() if stores[name] == count}


def _given(
    loops: Sequence[ast.For | ast.comprehension], nodes: Sequence[ast.AST], constants: Constants
) -> dict[str, tuple[int, list[str]]]:
    found: dict[str, tuple[int, list[str]]] = {}
    for loop in loops:
        texts = _texts(loop.iter, nodes, constants)
        if isinstance(loop.target, ast.Name) and texts is not None:
            count, known = found.get(loop.target.id, (0, []))
            found[loop.target.id] = (count + 1, [*known, *texts])
    return found


def _texts(node: ast.expr | None, nodes: Sequence[ast.AST], constants: Constants) -> list[str] | None:
    """Return the texts that a loop goes through: written there, a tuple of the module, or keys of a local table."""
    if isinstance(node, ast.Name):
        value = constants(node.id)
        if value is not None:
            return _texts(value, nodes, constants) if isinstance(value, ast.Tuple) else None
        return _texts(_table(node.id, nodes), nodes, constants)
    items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", None)
    texts = [item.value for item in items or () if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return texts if items and len(texts) == len(items) else None


def _table(name: str, nodes: Sequence[ast.AST]) -> ast.Dict | None:
    """Return the dictionary that a local name stands for, where it is bound once and only read."""
    values = [node.value for node in nodes if isinstance(node, ast.Assign) and name in map(_name, node.targets)]
    stored = [name for node in nodes for stored in _stored(node) if stored == name]
    read = sum(
        name == _name(node.iter)
        if isinstance(node, (ast.For, ast.comprehension))
        else isinstance(node, ast.keyword)
        and node.arg is None
        and name == _name(node.value)
        or isinstance(node, ast.Attribute)
        and node.attr in ("items", "keys", "values")
        and name == _name(node.value)
        for node in nodes
    )
    loads = sum(name == _name(node) and isinstance(getattr(node, "ctx", None), ast.Load) for node in nodes)
    table = values[0] if len(values) == len(stored) == 1 and read == loads else None
    return table if isinstance(table, ast.Dict) else None


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _stored(node: ast.AST) -> list[str]:
    """Return the names that this very node binds, in whatever scope."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    names = [getattr(node, field, None) for field in ("name", "asname", "rest", "arg")]
    return [name for name in names if isinstance(name, str)]

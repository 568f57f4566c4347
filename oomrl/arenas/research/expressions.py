"""Features as data: a small tree of causal operators over the panel's fields.

A model that builds features here writes no code, so nothing has to be sandboxed and nothing can look ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oomrl.arenas.research import operators
from oomrl.domain.market import Floats

MAX_NODES = 40
MAX_DEPTH = 8
_UNARY = {"zscore": None, "sign": None, "ewm": "halflife", "lag": "days", "change": "days", "mean": "window"}
_BINARY = ("product", "difference", "sum")
_LIMITS = {"halflife": (0.5, 60.0), "days": (1, 120), "window": (2, 250)}

#: The grammar, for the agent.
GRAMMAR = {
    "field": {"field": "NAME"},
    "unary": {"op": "zscore | sign", "of": "EXPRESSION"},
    "smoothing": {"op": "ewm", "of": "EXPRESSION", "halflife": list(_LIMITS["halflife"])},
    "lagged": {"op": "lag | change", "of": "EXPRESSION", "days": list(_LIMITS["days"])},
    "rolling": {"op": "mean", "of": "EXPRESSION", "window": list(_LIMITS["window"])},
    "binary": {"op": " | ".join(_BINARY), "of": ["EXPRESSION", "EXPRESSION"]},
}


class BadExpression(ValueError):
    """The tree is no expression; the message says where and what was expected."""


def check(tree: Any, fields: tuple[str, ...]) -> None:
    """Refuse what is no expression over `fields`, or is larger than `MAX_NODES` or deeper than `MAX_DEPTH`."""
    if _count(tree, fields, 0) > MAX_NODES:
        raise BadExpression(f"Expected at most {MAX_NODES} nodes, was more")


def _count(tree: Any, fields: tuple[str, ...], depth: int) -> int:
    if depth > MAX_DEPTH:
        raise BadExpression(f"Expected a depth of at most {MAX_DEPTH}, was more")
    if not isinstance(tree, Mapping):
        raise BadExpression(f"Expected an object with 'field' or 'op', was {type(tree).__name__}")
    if "field" in tree:
        if set(tree) != {"field"} or tree["field"] not in fields:
            raise BadExpression(f"Expected a field of {', '.join(fields)}, was {tree!r}"[:300])
        return 1
    op = tree.get("op")
    if op in _BINARY:
        if set(tree) != {"op", "of"} or not isinstance(tree["of"], list | tuple) or len(tree["of"]) != 2:
            raise BadExpression(f"Expected {op} with 'of' holding two expressions")
        return 1 + sum(_count(part, fields, depth + 1) for part in tree["of"])
    if not isinstance(op, str) or op not in _UNARY:
        raise BadExpression(f"Expected an op of {', '.join((*_UNARY, *_BINARY))}, was {op!r}"[:300])
    number = _UNARY[op]
    if set(tree) != {"op", "of"} | ({number} if number else set()):
        raise BadExpression(f"Expected {op} with 'of'{f' and {number!r}' if number else ''} alone")
    if number:
        value, (low, high) = tree[number], _LIMITS[number]
        whole = number != "halflife"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not low <= value <= high:
            raise BadExpression(f"Expected {number} of {op} in {low}..{high}, was {value!r}"[:300])
    return 1 + _count(tree["of"], fields, depth + 1)


def evaluate(tree: Mapping[str, Any], columns: Mapping[str, Floats]) -> Floats:
    """Return the values, shape (days, names), of a checked expression."""
    if "field" in tree:
        return columns[tree["field"]]
    op, of = tree["op"], tree["of"]
    if op in _BINARY:
        left, right = (evaluate(part, columns) for part in of)
        return {"product": np.multiply, "difference": np.subtract, "sum": np.add}[op](left, right)
    inner = evaluate(of, columns)
    if op == "sign":
        return np.sign(inner)
    number = _UNARY[op]
    function = getattr(operators, op)
    return function(inner, tree[number]) if number else function(inner)


def source(tree: Mapping[str, Any]) -> str:
    """Return the expression as Python text over `columns[...]`, `np` and the functions of `operators`."""
    if "field" in tree:
        return f"columns[{tree['field']!r}]"
    op, of = tree["op"], tree["of"]
    if op in _BINARY:
        sign = {"product": "*", "difference": "-", "sum": "+"}[op]
        return f"({source(of[0])} {sign} {source(of[1])})"
    number = _UNARY[op]
    name = "np.sign" if op == "sign" else op
    return f"{name}({source(of)}{f', {tree[number]!r}' if number else ''})"

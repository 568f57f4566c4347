"""What properties are tried on: several examples, drawn the same each time, whatever the pace of the machine."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

LEAST_EXAMPLES = 20
#: What settings of hypothesis may say beside how many examples: chance, time and memory of others decide no test.
SETTLED = {"deadline": None, "derandomize": True, "database": None}
LEAST_RANGE = 0.01  # of numbers, as a share of the larger end


def number(node: ast.AST) -> float | None:
    """Return a number that is written out."""
    value = node.value if isinstance(node, ast.Constant) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def unsettled(node: ast.Call) -> Iterator[tuple[str, str]]:
    """Yield settings that could leave a property untried, or try it otherwise each time, and what is expected."""
    for item in node.keywords:
        size = number(item.value)
        if item.arg == "max_examples" and (size is None or size < LEAST_EXAMPLES):
            yield "fewer", f"at least {LEAST_EXAMPLES} examples"
        elif item.arg in SETTLED:
            if not isinstance(item.value, ast.Constant) or item.value.value is not SETTLED[item.arg]:
                yield ast.unparse(item.value)[:40], f"{item.arg}={SETTLED[item.arg]}"
        elif item.arg != "max_examples":
            yield f"{item.arg!r}", "settings of size only"


def single(node: ast.expr) -> bool:
    """Say whether a strategy of hypothesis has one value."""
    if not isinstance(node, ast.Call):
        return False
    name, words = ast.unparse(node.func).rsplit(".", 1)[-1], {item.arg: item.value for item in node.keywords}
    if name in ("map", "filter", "flatmap") and isinstance(node.func, ast.Attribute):
        return single(node.func.value)
    if name in ("just", "none"):
        return True
    if name == "sampled_from":
        values = [getattr(item, "elts", None) for item in (*node.args, *words.values())]
        return bool(values) and values[0] is not None and len(set(map(ast.dump, values[0]))) < 2
    if name in ("one_of", "tuples"):
        return all(map(single, node.args)) and (name == "tuples" or len(set(map(ast.dump, node.args))) < 2)
    if name in ("binary", "dictionaries", "lists", "sets", "text"):
        return getattr(words.get("max_size"), "value", None) == 0
    bounds = [*node.args[:2], *(value for key, value in words.items() if key in ("min_value", "max_value"))]
    return name in ("floats", "integers") and _narrow(bounds)


def _narrow(bounds: Sequence[ast.expr]) -> bool:
    """Say whether a range of numbers is hardly one."""
    if len(bounds) != 2 or ast.dump(bounds[0]) == ast.dump(bounds[1]):
        return len(bounds) == 2
    try:
        low, high = (float(ast.literal_eval(bound)) for bound in bounds)
    except (ValueError, TypeError):
        return False
    return high - low < LEAST_RANGE * max(abs(low), abs(high))

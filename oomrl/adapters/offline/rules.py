"""Rules over source: what names and docstrings promise, and the code does not keep.

A rule knows finance's conventions and the smells of code; it knows nothing of how a fault came about, and it asks for
nothing in a strategy that keeps its word (tested on the shipped one).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from oomrl.adapters.offline.edits import Edit, Module, name_of, replace

#: The sign with which a factor enters a rank where more is better: momentum of months (Jegadeesh and Titman 1993), the
#: low-volatility anomaly (Ang et al. 2006), reversal of days (Jegadeesh 1990).
SIGNS = (("momentum", 1), ("volatil", -1), ("reversal", -1), ("recent", -1))

#: Numbers that need no name: nothing, one, halves, percent, basis points, sessions and days of a year and a week.
PLAIN = frozenset({0, 1, 2, 0.5, 5, 7, 12, 52, 100, 252, 365, 10_000})


def factor_signs(module: Module, _all: Mapping[str, Module]) -> Iterator[Edit]:
    """Give each ranked factor the sign of its name."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and name_of(node.func) == "rank" and node.args:
            value = node.args[0]
            negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
            inner = value.operand if isinstance(value, ast.UnaryOp) else value
            name = name_of(inner)
            wanted = next((sign for word, sign in SIGNS if word in name.lower()), 0)
            if wanted == (1 if negated else -1):
                text = module.text(inner)
                yield replace(value, text if negated else f"-{text}", f"{name} is ranked against the sign of its name")


def best_first(module: Module, _all: Mapping[str, Module]) -> Iterator[Edit]:
    """Sort downwards in functions that promise the best, most or largest first."""
    for function in module.functions():
        promise = f"{function.name} {ast.get_docstring(function) or ''}".lower()
        if not re.search(r"\b(best|largest|highest|most)\b|most_", promise):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and name_of(node.func) == "argsort" and node.args:
                value = node.args[0]
                if not (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)):
                    why = f"{function.name} promises the best first and sorts upwards"
                    yield replace(value, f"-{module.text(value)}", why)


def bound_directions(module: Module, _all: Mapping[str, Module]) -> Iterator[Edit]:
    """Let min_ parameters be lower bounds and max_ ones upper bounds, where comparisons make masks."""
    opposite = {ast.Lt: ">=", ast.LtE: ">=", ast.Gt: "<=", ast.GtE: "<="}
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.BitAnd):
            continue
        for side in (node.left, node.right):
            if not isinstance(side, ast.Compare) or len(side.ops) != 1 or type(side.ops[0]) not in opposite:
                continue
            left, limit = side.left, side.comparators[0]
            if not isinstance(left, ast.Attribute) or not isinstance(limit, ast.Attribute):
                continue
            below = isinstance(side.ops[0], ast.Lt | ast.LtE)
            if (limit.attr.startswith("min_") and below) or (limit.attr.startswith("max_") and not below):
                yield Edit(
                    (left.end_lineno or left.lineno, left.end_col_offset or 0),
                    (limit.lineno, limit.col_offset),
                    f" {opposite[type(side.ops[0])]} ",
                    f"{limit.attr} bounds the wrong side",
                )


def inverse_volatility(module: Module, _all: Mapping[str, Module]) -> Iterator[Edit]:
    """Size in inverse proportion to risk: a power of volatility has a negative exponent."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and "volatil" in name_of(node.left).lower():
            power = node.right
            if not (isinstance(power, ast.UnaryOp) and isinstance(power.op, ast.USub)) and name_of(power):
                yield replace(power, f"(-{module.text(power)})", "weights grow with volatility")


def paired_weights(module: Module, _all: Mapping[str, Module]) -> Iterator[Edit]:
    """Let weights stand in the order of what they weigh: (momentum, ...) beside (momentum_weight, ...)."""
    for function in module.functions():
        tuples = [node for node in ast.walk(function) if isinstance(node, ast.Tuple) and len(node.elts) > 1]
        weights = [one for one in tuples if all(name_of(e).endswith("_weight") for e in one.elts)]
        for weighed in weights:
            stems = [name_of(element).removesuffix("_weight") for element in weighed.elts]
            for values in tuples:
                names = [name_of(element) for element in values.elts]
                if values is not weighed and names != stems and sorted(names) == sorted(stems):
                    texts = {stem: module.text(e) for stem, e in zip(stems, weighed.elts, strict=True)}
                    new = "(" + ", ".join(texts[name] for name in names) + ")"
                    yield replace(weighed, new, "weights stand in another order than what they weigh")
                    break


def unread_arguments(module: Module, _all: Mapping[str, Module]) -> Iterator[Edit]:
    """Use an argument that nothing reads: in the place of the one literal, or as the cap that its name says."""
    for function in module.functions():
        arguments = [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
        read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        unread = [one for one in arguments if one not in read and one not in ("self", "cls") and one[0] != "_"]
        if len(unread) != 1:
            continue
        name = unread[0]
        why = f"{function.name} takes {name} and never reads it"
        literals = [
            argument
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
            for argument in node.args
            if isinstance(argument, ast.Constant) and type(argument.value) in (int, float)
        ]
        returns = [n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
        bounding = "minimum" if re.search(r"cap|room|limit|most|ceiling|max", name) else ""
        if len(literals) == 1:
            yield replace(literals[0], name, why)
        elif bounding and len(returns) == 1 and returns[0].value is not None:
            value = returns[0].value
            yield replace(value, f"np.{bounding}({module.text(value)}, {name})", why)


def unread_parameters(module: Module, everything: Mapping[str, Module]) -> Iterator[Edit]:
    """Read a parameter that nothing reads, in the place of a literal, where a docstring or a name speaks of it."""
    read = {
        node.attr
        for one in everything.values()
        for node in ast.walk(one.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    for field in sorted(module.fields - read):
        words = set(field.split("_")) - {"min", "max"}
        for function in module.functions():
            holder = next((a.arg for a in function.args.args if a.arg in ("parameters", "params")), "")
            if not holder and "self.parameters" in module.source:
                holder = "self.parameters"
            promise = f"{function.name} {ast.get_docstring(function) or ''}".lower()
            if not holder or not (field in promise or all(word in promise for word in words)):
                continue
            literals = [
                node
                for node in ast.walk(function)
                if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in (0, 1)
            ]
            if len(literals) == 1:
                yield replace(literals[0], f"{holder}.{field}", f"{field} is set in the settings and read nowhere")


def bare_numbers(module: Module, _all: Mapping[str, Module]) -> Iterator[Edit]:
    """Take out factors and offsets that are numbers without a name, which no docstring of the function explains."""
    for function in module.functions():
        explained = set(re.findall(r"\d+(?:\.\d+)?", ast.get_docstring(function) or ""))
        for node in ast.walk(function):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div | ast.Add | ast.Sub):
                continue
            right, left = node.right, node.left
            number, other = (right, left) if _bare(right, explained) else (left, right)
            if not _bare(number, explained) or isinstance(other, ast.Constant):
                continue
            if number is left and isinstance(node.op, ast.Div | ast.Sub):
                continue
            assert isinstance(number, ast.Constant)
            yield replace(
                node, module.text(other), f"{module.text(number)} in {function.name} has no name and no reason"
            )


def _bare(node: ast.expr, explained: set[str]) -> bool:
    return (
        isinstance(node, ast.Constant)
        and type(node.value) in (int, float)
        and node.value not in PLAIN
        and str(node.value) not in explained
    )


def named_statistics(module: Module, _all: Mapping[str, Module]) -> Iterator[Edit]:
    """Compute the statistic that a function is named after: median_dollars takes the median."""
    known = {"median", "mean", "max", "min", "sum", "std"}
    for function in module.functions():
        promised = [word for word in function.name.split("_") if word in known]
        calls = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in known
        ]
        if len(promised) == 1 and len(calls) == 1 and calls[0].func.attr != promised[0]:  # type: ignore[attr-defined]
            call = calls[0].func
            assert isinstance(call, ast.Attribute)
            if isinstance(call.value, ast.Name) and call.value.id == "np":
                yield replace(call, f"np.{promised[0]}", f"{function.name} takes the {call.attr}")


#: In the order of how sure they are.
ALL = (
    ("the sign of a factor", factor_signs),
    ("the order of a selection", best_first),
    ("the side of a bound", bound_directions),
    ("sizes against risk", inverse_volatility),
    ("weights in their order", paired_weights),
    ("an argument that is read", unread_arguments),
    ("a parameter that is read", unread_parameters),
    ("a statistic as named", named_statistics),
    ("numbers without a reason", bare_numbers),
)

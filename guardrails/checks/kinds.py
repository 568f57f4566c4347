"""Of what kind an array is: a fixed word, since one from a computed text may be a date, and a date may be today's."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

#: Where callables take a kind: the place among the positional arguments. As a method the array is no argument.
_MAKERS = (
    (0, "dtype"),
    (1, "array asarray asanyarray ascontiguousarray asfortranarray zeros ones empty fromiter"),
    (1, "empty_like zeros_like ones_like identity astype indices"),
    (2, "full full_like"),
    (3, "arange eye tri"),
    (4, "geomspace"),
    (5, "linspace logspace"),
)
_FOLDS = (
    (2, "sum prod mean std var cumsum cumprod nancumsum nancumprod nansum nanprod nanmean nanstd nanvar"),
    (4, "trace"),
)
MAKERS = {name: place for place, words in _MAKERS for name in words.split()}
FOLDS = {name: place for place, words in _FOLDS for name in words.split()}
METHODS = {"astype": 0, "sum": 1, "prod": 1, "mean": 1, "std": 1, "var": 1, "cumsum": 1, "cumprod": 1, "trace": 3}
METHODS |= {"reduce": 2, "accumulate": 2, "reduceat": 3}
WORDS = frozenset(["float", "float64", "float32", "f8", "f4", "int", "int64", "int32", "i8", "i4", "bool"])
TYPES = frozenset(f"numpy.{name}" for name in (*WORDS, "bool_", "int_", "intp", "int8", "int16", "uint8", "float16"))
#: Kinds whose numbers end where no test looks: what is larger becomes another number, or stops. A new one is refused.
NARROW = frozenset(["int8", "int16", "uint8", "float16", "int32", "i4"])
#: Makers whose place for a kind nothing here follows; as a type in an annotation or isinstance they are no call.
CLOSED = frozenset({"numpy.ndarray", "numpy.promote_types", "numpy.result_type"})


def kinds_of(call: ast.Call, callee: str, own: bool) -> Iterator[ast.expr]:
    """Yield what a call may give for a kind: the keyword, and the arguments at its place or unpacked before it.

    `own` are functions and classes of the package, which give no kind but by the keyword.
    """
    yield from (item.value for item in call.keywords if item.arg in ("dtype", "signature", "sig"))
    name, place = callee.removeprefix("numpy."), None
    if callee.startswith("numpy."):
        place = METHODS.get(name.rpartition(".")[2]) if "." in name else (MAKERS | FOLDS).get(name)
        yield from (item.value for item in call.keywords if item.arg is None)
        if callee in CLOSED:
            yield call
    elif not own and (not callee or ":" in callee):
        place = METHODS.get(call.func.attr) if isinstance(call.func, ast.Attribute) else None
        yield from (item.value for item in call.keywords if item.arg is None)
    if place is not None:
        starred = [at for at, item in enumerate(call.args) if isinstance(item, ast.Starred)]
        yield from call.args[min(starred, default=place) : place + 1] if starred else call.args[place : place + 1]


def fixed(node: ast.expr, dotted: Callable[[ast.expr], str], own: bool) -> bool:
    """Say whether a kind is known from the text alone: none, a plain word, a plain type, or another array's.

    `own`: something of the package has a name `dtype`, so that this says nothing of an array.
    """
    if isinstance(node, ast.Constant):
        return node.value is None or node.value in WORDS
    if isinstance(node, ast.Attribute) and node.attr == "dtype":
        return not own
    return dotted(node) in TYPES | {"float", "int", "bool"}


def takes_kind(callee: str) -> bool:
    """Say whether a function may only stand where it is called, since it makes an array of the kind at its place."""
    return callee in CLOSED or (callee.startswith("numpy.") and callee.removeprefix("numpy.") in MAKERS)

"""What the package names its own attributes opens nothing of the language or of a library."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import sys
import types
import typing
from collections.abc import Iterator

import numpy as np
import pytest

from guardrails.checks.index import Index, parse_module
from guardrails.checks.names import names
from guardrails.checks.source import judge_source
from tests.unit.guardrails import small


class Kind(enum.Enum):
    ONE = 1


@dataclasses.dataclass
class Record:
    one: int = 1


def running() -> Iterator[int]:
    yield 1


RANDOM = np.random.default_rng(1)
#: Values that code of a strategy can come by, of every kind that the allowed modules make.
VALUES = [
    *(typing.List[int], typing.Optional[int], typing.ForwardRef("x"), typing.Callable[[int], int]),  # noqa: UP006, UP045
    *(typing.Annotated[int, "x"], typing.Literal[1], list[int], int | str, typing.TypeVar("T"), typing.Any),
    *(np.zeros(2), np.float64(1), np.dtype("f8"), np.add, np.zeros(2).flat, np.zeros(2).flags, RANDOM),
    *(RANDOM.bit_generator, np.errstate(), np.finfo(float), np.iinfo(int), np.ndindex(2), np.ndenumerate([1])),
    *(running(), running, Kind, Kind.ONE, Record(), dataclasses.fields(Record)[0], functools.partial(int)),
    *(types.MappingProxyType({}), property(), super(Record, Record()), datetime.date(2000, 1, 1), sys._getframe()),
    *(
        decimal.Decimal(1),
        fractions.Fraction(1),
        ValueError(),
        int.__add__,
        sys._getframe().f_code,
        type,
        1,
        "",
        [],
        {},
    ),
]


def codes(source: str) -> set[str]:
    policy = small.policy()
    module = parse_module("src/strategy/x.py", source.encode(), policy.limits, "strategy.x")
    assert not hasattr(module, "code"), module
    index = Index("strategy")
    index.add(module)  # type: ignore[arg-type]
    return {item.code for item in judge_source(module, source.encode(), index, policy)}  # type: ignore[arg-type]


def test_each_private_name_of_a_value_within_reach_is_known_as_foreign() -> None:
    private = {name for value in VALUES for name in dir(value) if name.startswith("_") and not name.startswith("__")}
    assert len(private) > 40 and private <= names().foreign_attributes | names().refused_attributes


@pytest.mark.parametrize("name", ["_evaluate", "_determine_new_args", "strides", "resize", "now", "today", "eval"])
@pytest.mark.parametrize("made", ["{name} = 0", "def {name}(self):\n        return 1", "{name}: int"])
def test_an_own_name_does_not_open_that_of_others(name: str, made: str) -> None:
    use = f"def use(value):\n    return value.{name}\n"
    reach = f"def use(value):\n    return getattr(value, {name!r})\n"
    own = "class Own:\n    " + made.format(name=name) + "\n\n\n"
    assert codes(own + use) == codes(own + reach) - {"GR216"} == {"GR215"}  # today's date is refused as a text as well
    assert codes(own.replace(name, f"{name}_of_ours") + use.replace(name, f"{name}_of_ours")) == set()


NUMPY = "import numpy as np\n\n\ndef use(x, kind, more):\n    return "
COMPUTED = [
    'np.array("today", dtype="datetime64[D]")', 'np.array("today", "M8[D]")', "np.asarray(x, dtype=kind)",
    "np.asarray(x, kind)", "np.zeros(3, kind)", "np.full(3, x, kind)", "np.arange(0, 3, 1, kind)", "x.astype(kind)",
    'x.astype("M8[s]")', "x.astype(**more)", "np.array(x, **more)", "np.array(*more)", "np.zeros(3, *more)",
    "np.dtype(kind)", "np.sum(x, 0, kind)", "x.sum(0, kind)", "np.add.reduce(x, 0, kind)", "np.add(x, x, dtype=kind)",
    "np.add(x, x, signature=kind)", "np.ndarray(3, kind)", "x.astype", 'getattr(x, "astype")(kind)',
    "list(map(np.array, x, more))", "np.promote_types(kind, kind)", "np.empty_like(x, kind)", "np.fromiter(x, kind)",
    'np.array(x, dtype=[("a", "M8[D]")])', 'np.array(x, dtype="date" "time64")',
    "np.linspace(0, 1, 5, True, False, kind)", 'getattr(x, "sum")(0, kind)', 'setattr(x, "dtype", kind)',
]  # fmt: skip
FIXED = [
    "np.array(x, dtype=float)", "np.asarray(x, np.float64)", "np.zeros((3, 2), bool)", "np.zeros(3, dtype=x.dtype)",
    "x.astype(int)", 'x.astype("float64")', "np.full(3, 0.0)", "np.arange(3)", "x.sum(axis=0)", "np.sum(x, 0)",
    "np.add.reduce(x, 0)", "isinstance(x, np.ndarray)", "np.apply_along_axis(np.mean, 0, x)", "np.array([1, *more])",
    "np.asarray(x, dtype=None)", "np.maximum.accumulate(x)", "np.concatenate([x, more])",
]  # fmt: skip


@pytest.mark.parametrize("call", COMPUTED)
def test_an_array_of_a_computed_kind_is_refused(call: str) -> None:
    assert "GR216" in codes(NUMPY + call + "\n")


@pytest.mark.parametrize("call", FIXED)
def test_an_array_of_a_plain_kind_is_not(call: str) -> None:
    assert codes(NUMPY + call + "\n") == set()


def test_no_array_becomes_one_of_another_kind() -> None:
    assert "GR216" in codes("def use(x, kind):\n    y = x.copy()\n    y.dtype = kind\n    return y\n")

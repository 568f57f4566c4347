"""Protected functions stay what they mean, however they are written down."""

from __future__ import annotations

import pytest

from guardrails.checks.index import build_index
from guardrails.checks.protected import judge_protected
from guardrails.policy import Protected
from tests.unit.guardrails import small

HELPED = '''"""Returns."""

from strategy.scale import UNIT, unit

FLOOR = 1e-9


def clipped(value):
    """Return a positive value."""
    return max(value, FLOOR)


def total_return(price, dividend, before):
    """Return the total return."""
    return unit((price + dividend) / clipped(before)) - UNIT


class Book:
    """A book."""

    def value(self, shares, price):
        """Return the value."""
        return shares * clipped(price)
'''
SCALE = "UNIT = 1.0\n\n\ndef unit(value):\n    return value * UNIT\n"


def found(returns: str = HELPED, scale: str = SCALE, **others: str) -> list[str]:
    from dataclasses import replace

    functions = ("strategy.returns:total_return", "strategy.returns:Book.value")
    policy = replace(small.policy(), protected=Protected(functions))
    base = small.tree().replace({"src/strategy/returns.py": HELPED.encode(), "src/strategy/scale.py": SCALE.encode()})
    files: dict[str, bytes | None] = {f"src/strategy/{name}.py": text.encode() for name, text in others.items()}
    result = base.replace(
        {"src/strategy/returns.py": returns.encode(), "src/strategy/scale.py": scale.encode(), **files}
    )
    judged = judge_protected(build_index(base, policy)[0], build_index(result, policy)[0], policy)
    return [item.code for item in judged]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    """Return the total return."""\n', ""),
        ("(price + dividend)", "( price+dividend )"),
        ("return max(value, FLOOR)", "# never zero\n    return max(\n        value, FLOOR\n    )"),
        ("FLOOR = 1e-9\n", "FLOOR = 1e-9\nOTHER = 2\n"),
        ("import UNIT, unit", "import (\n    UNIT,\n    unit,\n)"),
        (
            'class Book:\n    """A book."""\n',
            'class Book:\n    """Books."""\n\n    def other(self):\n        return 1\n',
        ),
    ],
)
def test_what_reads_the_same_is_the_same(old: str, new: str) -> None:
    assert old in HELPED and found(HELPED.replace(old, new)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("price + dividend", "price - dividend"),
        ("FLOOR = 1e-9", "FLOOR = 1.0"),
        ("max(value, FLOOR)", "value"),
        ("def total_return(", "def total_returns("),
        ("def value(self", "def worth(self"),
        ("(price, dividend, before):", "(price, dividend, before=1.0):"),
        ("class Book:", "class Book(dict):"),
        (
            "from strategy.scale import UNIT, unit",
            "from strategy.scale import UNIT\n\n\ndef unit(x):\n    return x",
        ),
        ("import UNIT, unit", "import UNIT, other as unit"),
    ],
)
def test_what_means_something_else_is_refused(old: str, new: str) -> None:
    assert old in HELPED and "GR301" in found(HELPED.replace(old, new))


def test_what_it_leads_to_counts_too() -> None:
    assert "GR301" in found(scale=SCALE.replace("value * UNIT", "value"))
    assert "GR301" in found(scale=SCALE.replace("UNIT = 1.0", "UNIT = 1.01"))
    assert found(scale=SCALE + "\n\ndef more(x):\n    return x\n") == []


@pytest.mark.parametrize(
    "tail",
    [
        "\n\ndef total_return(price, dividend, before):\n    return 1.0\n",
        "\n\ntotal_return = clipped\n",
        "\n\nfor total_return in [clipped]:\n    pass\n",
        "\n\nfrom strategy.signal import change as total_return\n",
        "\n\nclass total_return:\n    pass\n",
        "\n\nclipped = abs\n",
        "\n\ndef max(a, b):\n    return a\n",
    ],
)
def test_a_second_binding_is_refused(tail: str) -> None:
    assert "GR301" in found(HELPED + tail)


def test_a_namesake_elsewhere_is_refused() -> None:
    assert "GR302" in found(other="def total_return(a, b, c):\n    return 0.0\n")
    assert "GR302" in found(other="from strategy.signal import change as total_return\n")


@pytest.mark.parametrize("name", ["total_return", "total_return as exact"])
def test_using_it_from_elsewhere_is_not(name: str) -> None:
    called = name.rsplit(" ", maxsplit=1)[-1]
    assert found(other=f"from strategy.returns import {name}\n\n\ndef f(x):\n    return {called}(x, 0, x)\n") == []

"""Reading judged source has an end: in time and memory, whatever the source."""

from __future__ import annotations

import pytest

from guardrails.bounded import judge_bounded
from guardrails.checks.static import judge_static
from guardrails.tree import Tree
from tests.unit.guardrails import small

CODE, TEST = "src/strategy/sample.py", "tests/generated/test_sample.py"
NESTED = "def test_groups():\n    a0 = [0.5]\n{}\n    assert a60\n".format(
    "\n".join(f"    a{at + 1} = [a{at}, a{at}]" for at in range(60))
)
HELPERS = "def h0():\n    return [0.5]\n\n\n{}\n\n\ndef test_groups():\n    assert h40()\n".format(
    "\n\n\n".join(f"def h{at + 1}():\n    return [h{at}(), h{at}()]" for at in range(40))
)
TUPLES = "A0 = (0.5, 1.0)\n{}\n\n\ndef test_groups():\n    assert A60\n    A60[0][0] = 1.0\n".format(
    "\n".join(f"A{at + 1} = (A{at}, A{at})" for at in range(60))
)
TEXTS = "def read(given):\n{}    return getattr(given, f'{}')\n".format(
    "".join(f"    for n{at} in ('a', 'b', 'c', 'd'):\n        pass\n" for at in range(30)),
    "".join(f"{{n{at}}}" for at in range(30)),
)
ASKED = [(TEST, NESTED, "tests"), (TEST, HELPERS, "tests"), (TEST, TUPLES, "tests"), (CODE, TEXTS, "logic")]


def arguments(path: str, text: str, phase: str) -> tuple[object, ...]:
    base: Tree = small.tree()
    return base, base.replace({path: text.encode()}), (path,), phase, small.policy(), {"static", "protected"}, None


@pytest.mark.parametrize(("path", "text", "phase"), [*ASKED, (CODE, "import os\nX = eval('1')\n", "logic")])
def test_what_would_multiply_out_is_read_as_in_the_judge_itself(path: str, text: str, phase: str) -> None:
    asked = arguments(path, text, phase)
    assert judge_bounded(*asked, seconds=20) == judge_static(*asked)  # type: ignore[arg-type]


def test_what_comes_to_no_end_is_refused() -> None:
    base, result, changed, *more = arguments(*ASKED[0])
    found = judge_bounded(base, result, changed * 200_000, *more, seconds=1)  # type: ignore[operator]
    assert [(item.code, item.reason) for item in found] == [
        ("GR102", "Expected at most 1 s and 2048 MB to read it, was more.")
    ]


def test_what_the_checks_raise_is_raised() -> None:
    with pytest.raises(RuntimeError, match="TypeError"):
        judge_bounded(None, *arguments(*ASKED[0])[1:])

"""The whole gate on a small repository, in a real sandbox: an honest patch passes, each kind of cheat does not."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrails.bench import NoBench, open_bench
from guardrails.environment import GateEnvironment
from guardrails.gate import check
from guardrails.policy import Coverage, Mutation, Policy, Protected, Sandbox
from guardrails.tree import Tree
from guardrails.verdict import Verdict

pytestmark = pytest.mark.slow
HERE = GateEnvironment(Path(sys.executable), Path(sys.executable))
SIGNAL = '''"""A signal."""


def change(first, last):
    """Return the change, at most 10."""
    gap = last - first
    if gap > 10.0:
        return 10.0
    return gap


def ratio(first, last):
    """Return the ratio."""
    return first / last
'''
LOCKED = """import pytest

from strategy.signal import change, ratio


def test_change():
    assert change(1.0, 3.0) == 2.0
    assert change(1.0, 30.0) == 10.0
    assert change(1.0, 11.0) == 10.0


@pytest.mark.parametrize(("a", "b", "c"), [(6.0, 3.0, 2.0), (1.0, 4.0, 0.25)])
def test_ratio(a, b, c):
    assert ratio(a, b) == c
"""


@pytest.fixture(scope="module")
def policy() -> Policy:
    from tests.unit.guardrails import small

    made = replace(small.policy(), protected=Protected(), bounds={})
    made = replace(made, layout=replace(made.layout, parameters=""), coverage=Coverage(probes=5))
    return replace(made, mutation=Mutation(minimum=0.6, most=12), sandbox=Sandbox(seconds=60.0))


@pytest.fixture(scope="module")
def cache(policy: Policy) -> dict[str, Any]:
    try:
        open_bench(HERE, policy)
    except NoBench as error:
        pytest.skip(f"SKIPPED LOUDLY: no sandbox on this machine: {error}")
    return {}


def tree() -> Tree:
    files = {
        "src/strategy/__init__.py": '"""The strategy."""\n',
        "src/strategy/signal.py": SIGNAL,
        "tests/test_signal.py": LOCKED,
        "baseline/references/good/plain/src/strategy/signal.py": SIGNAL.replace("gap > 10.0", "gap >= 10.0"),
        "baseline/references/bad/flat/src/strategy/signal.py": SIGNAL.replace("return gap", "return 0.0"),
    }
    return Tree({path: text.encode() for path, text in files.items()})


def edit(old: str, new: str) -> bytes:
    lines = [f"-{line}" for line in old.split("\n")] + [f"+{line}" for line in new.split("\n")]
    body = "\n".join(lines)
    return f"--- a/src/strategy/signal.py\n+++ b/src/strategy/signal.py\n@@ @@\n{body}\n".encode()


def judge(patch: bytes, policy: Policy, cache: dict[str, Any], **more: Any) -> Verdict:
    return check(tree(), patch, more.pop("phase", "logic"), policy, environment=HERE, cache=cache, **more)


def codes(verdict: Verdict) -> set[str]:
    return {item.code for item in verdict.findings}


def test_an_honest_repair_passes(policy: Policy, cache: dict[str, Any]) -> None:
    verdict = judge(
        edit("    if gap > 10.0:\n        return 10.0\n    return gap", "    return min(gap, 10.0)"), policy, cache
    )
    assert verdict.findings == () and verdict.allowed
    assert verdict.sandbox["profile"] in ("S2", "S3") and all(verdict.sandbox["canaries"].values())
    assert verdict.coverage["statements"] == 1.0 and verdict.mutation["mutants"] > 0


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("    gap = last - first", "    gap = last - first + 0.5", "GR501"),
        ("    return first / last", "    if first > 1e6:\n        return 0.0\n    return first / last", "GR511"),
        ("    return first / last", "    while first:\n        first = 1.0\n    return first / last", "GR503"),
        ("    return first / last", "    rows = [0] * 10_000_000_000\n    return first / last", "GR501"),
    ],
)
def test_wrong_untested_or_endless_code_is_refused(
    old: str, new: str, code: str, policy: Policy, cache: dict[str, Any]
) -> None:
    short = replace(policy, sandbox=replace(policy.sandbox, cpu_seconds=4)) if code == "GR503" else policy
    assert code in codes(judge(edit(old, new), short, cache))


def test_a_raise_planted_where_tests_look_away_is_noticed(policy: Policy, cache: dict[str, Any]) -> None:
    """A line that runs but whose failure no test would see cannot hide behind coverage."""
    swallowed = "    try:\n        gap = last - first\n    except ArithmeticError:\n        gap = 0.0"
    assert codes(judge(edit("    gap = last - first", swallowed), policy, cache)) & {"GR511", "GR510"}


NEW = """--- /dev/null
+++ b/tests/generated/test_new.py
@@ -0,0 +1,9 @@
+from strategy.signal import change
+
+
+def test_{name}():
+    assert change(2.0, 3.0) == {value}
+    assert change(3.0, 2.0) == -1.0
+    assert change(0.0, 10.5) == 10.0
+    assert change(0.0, 9.5) == 9.5
+    assert change(0.0, 10.0) == 10.0
"""


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [("more", "1.0", ""), ("more", "5.0", "GR702"), ("defect_a", "1.0", "GR703"), ("defect_a", "5.0", "")],
)
def test_new_tests_are_cross_validated(name: str, value: str, code: str, policy: Policy, cache: dict[str, Any]) -> None:
    verdict = judge(NEW.format(name=name, value=value).encode(), policy, cache, phase="tests")
    assert codes(verdict) == ({code} if code else set())


def test_a_pair_repairs_what_its_test_shows(policy: Policy, cache: dict[str, Any]) -> None:
    tests = NEW.format(name="defect_floor", value="1.0").replace("== -1.0", "== 0.0").encode()
    repair = edit("    return gap", "    return max(gap, 0.0)")
    assert judge(repair, policy, cache, after=tests).allowed
    useless = edit("    gap = last - first", "    gap = -(first - last)")
    assert "GR501" in codes(judge(useless, policy, cache, after=tests))

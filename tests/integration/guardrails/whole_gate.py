"""The whole gate on a small repository, for any user and with or without bubblewrap.

`python -m tests.integration.guardrails.whole_gate MINIMUM PATCH` prints the verdict's decision, profile and codes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from guardrails.environment import GateEnvironment
from guardrails.gate import check
from guardrails.policy import Coverage, Mutation, Policy, Protected, Sandbox
from guardrails.tree import Tree
from tests.unit.guardrails import small

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
FILES = {
    "src/strategy/__init__.py": '"""The strategy."""\n',
    "src/strategy/signal.py": SIGNAL,
    "tests/test_signal.py": LOCKED,
    "baseline/references/good/plain/src/strategy/signal.py": SIGNAL.replace("gap > 10.0", "gap >= 10.0"),
    "baseline/references/bad/flat/src/strategy/signal.py": SIGNAL.replace("return gap", "return 0.0"),
}
PATCHES = {
    "honest": ("    if gap > 10.0:\n        return 10.0\n    return gap", "    return min(gap, 10.0)"),
    "wrong": ("    gap = last - first", "    gap = last - first + 0.5"),
    "untested": ("    return first / last", "    if first > 1e6:\n        return 0.0\n    return first / last"),
    "endless": ("    return first / last", "    while first:\n        first = 1.0\n    return first / last"),
    "greedy": ("    return first / last", "    rows = [0] * 10_000_000_000\n    return first / last + rows[0]"),
}


def policy(minimum: str = "S2") -> Policy:
    """Return the policy of the small repository, without its parameters file and protected functions."""
    made = replace(small.policy(), protected=Protected(), bounds={})
    made = replace(made, layout=replace(made.layout, parameters=""), coverage=Coverage(probes=5))
    limits = Sandbox(minimum=minimum, seconds=120.0)  # type: ignore[arg-type]
    return replace(made, mutation=Mutation(minimum=0.6, most=12), sandbox=limits)


def tree() -> Tree:
    """Return the small repository."""
    return Tree({path: text.encode() for path, text in FILES.items()})


def edit(old: str, new: str) -> bytes:
    """Return a patch of the signal."""
    lines = [f"-{line}" for line in old.split("\n")] + [f"+{line}" for line in new.split("\n")]
    body = "\n".join(lines)
    return f"--- a/src/strategy/signal.py\n+++ b/src/strategy/signal.py\n@@ @@\n{body}\n".encode()


def main(minimum: str, name: str) -> None:
    """Judge one patch and print what came of it."""
    verdict = check(tree(), edit(*PATCHES[name]), "logic", policy(minimum), environment=HERE)
    found = {"decision": verdict.decision, "allowed": verdict.allowed, "profile": verdict.sandbox["profile"]}
    found["codes"] = sorted({item.code for item in verdict.findings})
    found["held"] = bool(verdict.sandbox["canaries"]) and all(verdict.sandbox["canaries"].values())
    found["reasons"] = [item.reason for item in verdict.findings]
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Numbers that take the place of a parameter: right for the parameters of the tests, wrong for all others."""

from __future__ import annotations

import ast
from collections import Counter

from guardrails.checks.codes import finding
from guardrails.checks.index import build_index
from guardrails.checks.parameters import read_parameters
from guardrails.policy import Policy
from guardrails.tree import Tree
from guardrails.verdict import Finding

PLAIN = (0, 1, 2, -1, 0.5)


def judge_recalled(base: Tree, result: Tree, policy: Policy) -> list[Finding]:
    """Refuse new numbers in a package that reads a parameter less often than before."""
    if policy.layout.parameters not in base:
        return []
    known = {key.rsplit(".", 1)[-1] for key in read_parameters(base[policy.layout.parameters]) or {}}
    before, after = (_read(tree, policy, known) for tree in (base, result))
    lost = sorted(before[0] - after[0])
    new = [place for value, place in after[1].items() if value not in before[1]]
    if not lost or not new:
        return []
    path, line = min(new)
    return [finding("GR235", path, line, f"a number and one read less of {lost[0]!r}")]


def _read(tree: Tree, policy: Policy, known: set[str]) -> tuple[Counter[str], dict[float, tuple[str, int]]]:
    """Return how often each parameter is read, and each number that is not plain with one of its places."""
    reads, numbers = Counter[str](), dict[float, tuple[str, int]]()
    for module in build_index(tree, policy)[0].modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr in known and isinstance(node.ctx, ast.Load):
                reads[node.attr] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value not in PLAIN:
                numbers.setdefault(float(node.value), (module.path, node.lineno))
    return reads, numbers

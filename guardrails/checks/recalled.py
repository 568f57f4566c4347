"""Numbers that take the place of a parameter: right for the parameters of the tests, wrong for all others."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field

from guardrails.checks.codes import finding
from guardrails.checks.index import build_index
from guardrails.checks.parameters import read_parameters
from guardrails.policy import Policy
from guardrails.tree import Tree
from guardrails.verdict import Finding

PLAIN = (0, 1, 2, -1, 0.5)
Place = tuple[str, str]  # a module's path and a function in it


@dataclass
class _Read:
    """How often each function reads each parameter, which names it uses, and where each number stands first."""

    reads: Counter[tuple[Place, str]] = field(default_factory=Counter)
    uses: dict[Place, set[str]] = field(default_factory=dict)
    numbers: dict[float, tuple[str, int]] = field(default_factory=dict)


def judge_recalled(base: Tree, result: Tree, policy: Policy) -> list[Finding]:
    """Refuse new numbers in a package that reads a parameter less often than before.

    A function may leave the reading to one that it uses, or that uses it.
    """
    if policy.layout.parameters not in base:
        return []
    known = {key.rsplit(".", 1)[-1] for key in read_parameters(base[policy.layout.parameters]) or {}}
    before, after = (_read(tree, policy, known) for tree in (base, result))
    new = [place for value, place in after.numbers.items() if value not in before.numbers]
    less = before.reads - after.reads
    lost = sorted({name for _, name in less if _total(before, name) > _total(after, name)})
    for name in lost if new else ():
        gained = {place for place, other in after.reads - before.reads if other == name}
        for place in sorted(place for place, other in less if other == name):
            uses = after.uses.get(place)
            if not any(uses is None or g[1] in uses or place[1] in after.uses[g] for g in gained):
                path, line = min(new)
                return [finding("GR235", path, line, f"a number and one read less of {name!r}")]
    return []


def _total(read: _Read, name: str) -> int:
    return sum(count for (_, other), count in read.reads.items() if other == name)


def _read(tree: Tree, policy: Policy, known: set[str]) -> _Read:
    read = _Read()
    for module in build_index(tree, policy)[0].modules.values():
        owner = {id(module.tree): ""}
        for node in ast.walk(module.tree):  # parents come before their children
            name = node.name if isinstance(node, ast.FunctionDef) else owner[id(node)]
            owner |= {id(child): name for child in ast.iter_child_nodes(node)}
            place = (module.path, name)
            used = read.uses.setdefault(place, set())
            if isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
                if node.attr in known and isinstance(node.ctx, ast.Load):
                    read.reads[place, node.attr] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value not in PLAIN:
                read.numbers.setdefault(float(node.value), (module.path, node.lineno))
    return read

"""All static checks of one resulting tree, in one call."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from guardrails.checks.branching import judge_branching
from guardrails.checks.codes import finding
from guardrails.checks.disguised import judge_disguised
from guardrails.checks.generated import judge_tests
from guardrails.checks.index import Module, build_index, module_name, parse_module
from guardrails.checks.instead import burden
from guardrails.checks.lasting import judge_lasting
from guardrails.checks.planted import judge_names
from guardrails.checks.protected import judge_protected
from guardrails.checks.recalled import judge_recalled
from guardrails.checks.source import judge_source
from guardrails.patch import changed_lines
from guardrails.policy import PhaseName, Policy
from guardrails.tree import Tree
from guardrails.verdict import Finding

STATIC_LAYERS = frozenset({"static", "protected"})
#: Sizes of changed expressions, those inside others counted again, that can be tried in a while; honest patches: 900.
MOST_NESTED = 10_000


def judge_static(
    base: Tree,
    result: Tree,
    changed: Sequence[str],
    phase: PhaseName,
    policy: Policy,
    layers: Collection[str] = STATIC_LAYERS,
    to_come: Tree | None = None,
) -> list[Finding]:
    """Judge every changed module whole, as it stands in the resulting tree, and the protected functions.

    Tests that are the first part of a pair may name what the package defines in the tree `to_come`.
    """
    index, unread = build_index(result, policy)
    known = index if to_come is None else build_index(to_come, policy)[0]
    known.support = _support(base, policy) if phase == "tests" else ()
    findings = list(unread) if "static" in layers else []
    rows, nested = changed_lines(base, result) if phase == "logic" else {}, 0
    for path in changed:
        if "static" not in layers or not path.endswith(".py") or path not in result:
            continue
        module = parse_module(path, result[path], policy.limits, module_name(path, policy.layout.source))
        if not isinstance(module, Module):
            findings.append(module)
            continue
        findings += judge_names(module)
        generic = [node for node in ast.walk(module.tree) if getattr(node, "type_params", ())]
        findings += [finding("GR205", path, getattr(node, "lineno", 0), "type parameters") for node in generic]
        before = parse_module(path, base[path], policy.limits) if path in base else None
        standing = before if isinstance(before, Module) else None
        if phase == "tests":
            findings += judge_tests(module, result[path], standing, known, policy)
        else:
            findings += judge_source(module, result[path], index, policy) + judge_disguised(module, standing, index)
            findings += judge_lasting(module, standing, index) + judge_branching(module, standing, policy.code.grants)
            nested += burden(module.tree, rows.get(path, ()))
    if nested > MOST_NESTED:
        findings.append(finding("GR102", "", 0, "expressions within one another"))
    if "static" in layers and phase == "logic":
        findings += judge_recalled(base, result, policy)
    if "protected" in layers:
        findings += judge_protected(build_index(base, policy)[0], index, policy)
        if phase == "tests" and any(result.get(path) != base.get(path) for path in base.under(policy.layout.source)):
            findings.append(finding("GR301", "", 0, "changed"))
    return sorted(set(findings), key=lambda item: (item.path, item.line, item.code, item.reason))


def _support(base: Tree, policy: Policy) -> tuple[Module, ...]:
    """Return the modules beside the tests that generated tests may import from, where no patch may change them."""
    found = []
    for name in policy.tests.imports:
        path = f"{policy.layout.tests}/{name}.py"
        locked = not any(policy.may(action, path, "tests") for action in ("edit", "create", "delete"))
        module = parse_module(path, base[path], policy.limits, name) if locked and path in base else None
        found += [module] if isinstance(module, Module) else []
    return tuple(found)

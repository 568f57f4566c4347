"""Names that a pair's tests use before its logic defines them: absent, so that the tests fail and can still be run."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from guardrails.checks.index import Module, build_index, parse_module
from guardrails.policy import Policy
from guardrails.tree import Tree

STUB = "\n\ndef {name}(*args, **kwargs):\n    raise NotImplementedError\n"


def absent_names(base: Tree, to_come: Tree, policy: Policy) -> dict[str, Collection[str]]:
    """Return by path the names that the package's modules define in the tree to come and not in the base."""
    before, after = build_index(base, policy)[0].modules, build_index(to_come, policy)[0].modules
    found = {
        module.path: sorted(set(module.bound) - set(before[name].bound if name in before else ()))
        for name, module in after.items()
    }
    return {path: names for path, names in found.items() if names or path not in base}


def with_absent(tree: Tree, absent: Mapping[str, Collection[str]], policy: Policy) -> Tree:
    """Return a tree in which each absent name is a function that raises, where the tree does not define it itself."""
    changed: dict[str, bytes | None] = {}
    for path, names in absent.items():
        module = parse_module(path, tree.get(path, b""), policy.limits)
        if isinstance(module, Module):
            stubs = "".join(STUB.format(name=name) for name in names if name not in module.bound)
            changed[path] = tree.get(path, b"") + stubs.encode()
    return tree.replace(changed)

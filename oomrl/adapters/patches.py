"""Apply patches in memory by guardrails' strict rules: exact context, exactly one place, no fuzz."""

from __future__ import annotations

from collections.abc import Mapping

from guardrails.patch import PatchError, apply_patch, canonical_diff, parse_patch
from guardrails.policy import Limits
from guardrails.tree import Tree
from oomrl.domain.records import Proposal
from oomrl.errors import Mistake

#: For patches that a person names on the command line; what a model proposes meets the policy's own limits.
WIDE = Limits(patch_bytes=5_000_000, files=2_000, hunks=20_000, changed_lines=200_000)


def applied(tree: Mapping[str, bytes], patch: bytes, name: str = "the patch") -> dict[str, bytes]:
    """Return the tree with a patch applied. Raises `Mistake` that says where it does not fit."""
    try:
        return dict(apply_patch(Tree(tree), parse_patch(patch, WIDE, [])))
    except PatchError as error:
        where = f"{error.item.path}:{error.item.line}: " if error.item.path else ""
        raise Mistake(f"{name} does not apply: {where}{error}") from error


def result_of(base: Mapping[str, bytes], proposal: Proposal) -> dict[str, bytes]:
    """Return the tree that a proposal's ordered pair makes of its base."""
    tree = dict(base)
    for patch in (proposal.tests_patch, proposal.logic_patch):
        if patch:
            tree = applied(tree, patch.encode("utf-8"), proposal.id)
    return tree


def resulting_changes(base: Mapping[str, bytes], proposal: Proposal) -> dict[str, bytes | None]:
    """Return path to new bytes (None: deleted) of what a proposal changes."""
    after = result_of(base, proposal)
    changes: dict[str, bytes | None] = {path: data for path, data in after.items() if base.get(path) != data}
    return changes | {path: None for path in base if path not in after}


def diff(base: Mapping[str, bytes], result: Mapping[str, bytes]) -> str:
    """Return the canonical diff from one tree to another."""
    return canonical_diff(Tree(base), Tree(result)).decode("utf-8")


def canonical(tree: Mapping[str, bytes], patch: str) -> str:
    """Return a diff in its canonical form; raise ValueError, in words for a model, where it does not fit exactly."""
    try:
        return diff(tree, applied(tree, patch.encode("utf-8"), "the diff"))
    except Mistake as error:
        raise ValueError(str(error)) from error

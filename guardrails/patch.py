"""Admissible patches: strict reading, exact application in memory, one canonical diff.

The bytes that come out of here, and no others, are what is checked, shown, signed, tested and deployed. Only
the envelope is repaired (fences, line endings, final newline, hunk counts, line numbers), and it is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from guardrails.checks.codes import finding
from guardrails.checks.parameters import judge_parameters
from guardrails.checks.text import judge_text
from guardrails.diff import canonical_diff, changed_lines, places, split_lines
from guardrails.paths import collisions
from guardrails.policy import Limits, PhaseName, Policy
from guardrails.reading import FilePatch, PatchError, agrees, parse_patch, refuse, show
from guardrails.tree import Tree
from guardrails.verdict import Finding

__all__ = ["PatchError", "agrees", "apply_patch", "canonical_diff", "changed_lines", "judge_patch", "parse_patch"]


@dataclass(frozen=True)
class Patch:
    """A judged patch. `result` and `canonical` are set only where it applies."""

    findings: tuple[Finding, ...]
    repairs: tuple[str, ...] = ()
    result: Tree | None = None
    canonical: bytes = b""
    changed: tuple[str, ...] = ()


def judge_patch(tree: Tree, data: bytes, phase: PhaseName, policy: Policy, *, enforce: bool = True) -> Patch:
    """Read, apply and judge a patch, on the diff and on the tree that results. Writes nothing.

    Without `enforce` only what cannot be applied is refused: that is for measuring what this layer is worth.
    """
    repairs: list[str] = []
    try:
        files = parse_patch(data, policy.limits, repairs)
    except PatchError as refused:
        return Patch((refused.item,), tuple(repairs))
    findings = _judge_paths(tree, files, phase, policy, enforce)
    if findings:
        return Patch(tuple(findings), tuple(repairs))
    try:
        result = apply_patch(tree, files)
    except PatchError as refused:
        return Patch((refused.item,), tuple(repairs))
    changed = tuple(sorted(item.path for item in files))
    for path in changed if enforce else ():
        if path in result:
            findings += judge_text(path, result[path], policy)
            findings += _judge_rewrite(path, tree.get(path), result[path], policy.limits)
    if enforce and policy.layout.parameters in changed:
        findings += judge_parameters(tree.get(policy.layout.parameters, b""), result, policy)
    if enforce:
        findings += [finding("GR108", path, 0, reason) for path, reason in collisions(tree, result)]
    canonical = canonical_diff(tree, result)
    if not findings and not _same_everywhere(tree, result, canonical, policy.limits):
        findings.append(finding("GR115", "", 0, "The canonical diff does not lead to the tree that was judged."))
    return Patch(tuple(findings), tuple(repairs), result, canonical, changed)


def _judge_paths(
    tree: Tree, files: Sequence[FilePatch], phase: PhaseName, policy: Policy, enforce: bool
) -> list[Finding]:
    findings = []
    codes = {"edit": "GR109", "create": "GR110", "delete": "GR111"}
    for item in files:
        present = item.path in tree
        if present == (item.action == "create"):
            state = "there already" if present else "absent"
            findings.append(finding("GR121", item.path, item.line, f"Cannot {item.action}: the file is {state}."))
        elif enforce and not policy.may(item.action, item.path, phase):
            findings.append(finding(codes[item.action], item.path, item.line, f"{item.path!r} in {phase}"))
    return findings


def _judge_rewrite(path: str, before: bytes | None, after: bytes, limits: Limits) -> list[Finding]:
    if before is None:
        return []
    old, new = before.splitlines(), after.splitlines()
    kept = sum((Counter(old) & Counter(new)).values())
    if len(old) >= limits.rewrite_lines and kept < (1 - limits.rewrite_share) * len(old):
        return [finding("GR119", path, 0, f"{len(old) - kept} of {len(old)} lines replaced")]
    return []


def apply_patch(tree: Tree, files: Sequence[FilePatch]) -> Tree:
    """Apply in memory; every hunk's old lines must stand in exactly one place of the file as it was."""
    return tree.replace({item.path: _apply_file(item, tree.get(item.path, b"")) for item in files})


def _apply_file(item: FilePatch, data: bytes) -> bytes | None:
    lines, result, done = split_lines(data), [], 0
    for hunk in item.hunks:
        if hunk.old == hunk.new:
            raise refuse("GR114", hunk.line, "none", item.path)
        found = places(lines, hunk.old)
        if not found:
            raise refuse("GR112", hunk.line, *_mismatch(lines, hunk.old, item.path))
        if len(found) > 1:
            where = ", ".join(str(place + 1) for place in found[:5])
            raise refuse("GR113", hunk.line, f"{len(found)}: lines {where}", item.path)
        if found[0] < done:
            raise refuse("GR122", hunk.line, "an overlap", item.path)
        result += lines[done : found[0]] + list(hunk.new)
        done = found[0] + len(hunk.old)
    result += lines[done:]
    if any(not line.endswith(b"\n") for line in result[:-1]):
        raise refuse("GR101", item.line, "text after a line without a newline", item.path)
    if item.action == "delete":
        if result:
            raise refuse("GR101", item.line, "a rest", item.path)
        return None
    return b"".join(result)


def _mismatch(lines: list[bytes], old: tuple[bytes, ...], path: str) -> tuple[str, str, str]:
    """Say at the nearest place what was expected and what stands there."""
    best, place = -1, 0
    for at in range(len(lines)):
        score = sum(a == b for a, b in zip(lines[at : at + len(old)], old, strict=False))
        if score > best:
            best, place = score, at
    for offset, wanted in enumerate(old):
        there = lines[place + offset] if place + offset < len(lines) else b"(end of file)"
        if there != wanted:
            return show(there), path, f"{show(wanted)} at line {place + offset + 1}"
    return "none of them", path, ""


def _same_everywhere(tree: Tree, result: Tree, canonical: bytes, limits: Limits) -> bool:
    """Read the canonical diff back, by both parsers, and compare the outcome with what was judged."""
    wide = Limits(patch_bytes=1 << 30, files=1 << 30, hunks=1 << 30, changed_lines=1 << 30)
    repairs: list[str] = []
    try:
        files = parse_patch(canonical, wide, repairs)
        return not repairs and dict(apply_patch(tree, files)) == dict(result)
    except PatchError:
        return False

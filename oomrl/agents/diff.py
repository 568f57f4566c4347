"""Unified diffs in one canonical form, made from two trees."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff

NO_NEWLINE = "\\ No newline at end of file"


def changes_to_diff(tree: Mapping[str, bytes], changes: Mapping[str, bytes | None]) -> str:
    """Return the diff that makes `changes` (path to bytes, None deletes) of `tree`; empty where nothing changes."""
    return "".join(_file_diff(path, tree.get(path), changes[path]) for path in sorted(changes))


def _file_diff(path: str, old: bytes | None, new: bytes | None) -> str:
    if old == new:
        return ""
    before = "/dev/null" if old is None else f"a/{path}"
    after = "/dev/null" if new is None else f"b/{path}"
    lines = unified_diff(_lines(old), _lines(new), before, after)
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in lines)


def _lines(data: bytes | None) -> list[str]:
    # Only "\n" ends a line: str.splitlines would also split at form feeds and other separators.
    text = "" if data is None else data.decode("utf-8")
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])

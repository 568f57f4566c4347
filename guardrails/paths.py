"""Canonical paths, and names that would meet on another file system or on the import path."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from guardrails.tree import Tree

PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*|\.[A-Za-z0-9_][A-Za-z0-9_.\-]*")
DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def path_fault(path: str) -> str:
    """Say what is wrong with a path of a patch, or return an empty string."""
    if len(path) > 200 or path.count("/") > 12:
        return "Expected a short path, was a long one"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "Expected a path inside the tree without empty, '.' or '..' parts, was"
        if PART.fullmatch(part) is None or part.endswith("."):
            return "Expected ASCII letters, digits, '_', '-' and '.' in each part, was"
        if re.fullmatch(r"\.?git(~\d|\..*)?", part, re.IGNORECASE) or DEVICES.fullmatch(part):
            return "Expected no version-control or device name, was"
    return ""


def collisions(base: Tree, result: Tree) -> Iterator[tuple[str, str]]:
    """Yield new paths that another could be taken for: by case, Unicode form, as folder, or as module."""
    seen: dict[str, str] = {}
    folders = {_fold(path[:at]): path for path in result for at in _slashes(path)}
    for path in sorted(result, key=lambda item: (item not in base, item)):
        new, key = path not in base, _fold(path)
        if key in seen and new:
            yield path, f"Expected a name of its own, was one that meets {seen[key]!r}."
        elif key in folders and new:
            yield path, f"Expected a name of its own, was the folder of {folders[key]!r}."
        elif new and key.endswith(".py") and key[:-3] in folders:
            yield (
                path,
                f"Expected one module of this name, was the package of {folders[key[:-3]]!r} beside it.",
            )
        elif new and any(_fold(path[:at]) in seen for at in _slashes(path)):
            yield path, "Expected a folder, was a file of that name in the way."
        elif new and any(_fold(path[:at]) + ".py" in seen for at in _slashes(path)):
            yield path, "Expected one module of this name, was a module beside the new package."
        seen.setdefault(key, path)


def _fold(path: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())


def _slashes(path: str) -> list[int]:
    return [at for at, letter in enumerate(path) if letter == "/"]

"""Canonical paths, and names that would meet on another file system or on the import path."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from guardrails.tree import UNREAD, Tree

PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*|\.[A-Za-z0-9_][A-Za-z0-9_.\-]*")
DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def path_fault(path: str) -> str:
    """Return what a path of a patch had to be, or an empty string where it is."""
    if len(path) > 200 or path.count("/") > 12:
        return "a short path"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "a path inside the tree without empty, '.' or '..' parts"
        if PART.fullmatch(part) is None or part.endswith("."):
            return "ASCII letters, digits, '_', '-' and '.' in each part"
        if re.fullmatch(r"\.?git(~\d|\..*)?", part, re.IGNORECASE) or DEVICES.fullmatch(part):
            return "no version-control or device name"
        if part.casefold() in UNREAD:
            return "no folder that trees leave out"
    return ""


def collisions(base: Tree, result: Tree) -> Iterator[tuple[str, str]]:
    """Yield new paths that another could be taken for: by case, Unicode form, as folder, or as module."""
    seen: dict[str, str] = {}
    folders = {_fold(path[:at]): path for path in result for at in _slashes(path)}
    for path in sorted(result, key=lambda item: (item not in base, item)):
        new, key = path not in base, _fold(path)
        if key in seen and new:
            yield path, f"one that meets {seen[key]!r}"
        elif key in folders and new:
            yield path, f"the folder of {folders[key]!r}"
        elif new and key.endswith(".py") and key[:-3] in folders:
            yield (path, f"a module beside the package of {folders[key[:-3]]!r}")
        elif new and any(_fold(path[:at]) in seen for at in _slashes(path)):
            yield path, "a folder where a file is"
        elif new and any(_fold(path[:at]) + ".py" in seen for at in _slashes(path)):
            yield path, "a package beside a module"
        seen.setdefault(key, path)


def _fold(path: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())


def _slashes(path: str) -> list[int]:
    return [at for at, letter in enumerate(path) if letter == "/"]

"""The parts of a reply: fenced blocks, the prose around them, and search/replace blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oomrl.agents.problem import Problem, Unusable, checked_path

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})([^`]*)")
_SEARCH = re.compile(r"<{5,9} ?SEARCH>? *")
_MIDDLE = re.compile(r"={5,9} *")
_REPLACE = re.compile(r">{5,9} ?REPLACE *")
_SOURCE = re.compile(r"^(?:def |class |import |from \S+ import |@\w+|\[[\w.\"]+\] *$|\w+ = \S)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a reply. `is_code` inside a fence; `closed` False where the closing fence is missing."""

    text: str
    is_code: bool
    closed: bool = True


def split(text: str) -> list[Part]:
    """Return the parts of a reply in their order. A fence round everything, marked markdown, is looked into."""
    parts: list[Part] = []
    lines = text.split("\n")
    prose: list[str] = []
    at = 0
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        if opening is None:
            prose.append(lines[at])
            at += 1
            continue
        end = _closing(lines, at + 1, opening[1], opening[2])
        body = [_dedent(line, len(opening[1])) for line in lines[at + 1 : end]]
        parts.append(Part("\n".join(prose), is_code=False))
        prose = []
        inner = "\n".join(body)
        closed = end < len(lines)
        if opening[3].strip().lower() in ("markdown", "md") and closed:
            parts.extend(split(inner))
        else:
            parts.append(Part(inner, is_code=True, closed=closed))
        at = end + 1
    parts.append(Part("\n".join(prose), is_code=False))
    return [part for part in parts if part.text.strip() or not part.closed]


def _closing(lines: Sequence[str], start: int, indent: str, fence: str) -> int:
    for at in range(start, len(lines)):
        line = lines[at]
        mark = line.strip()
        # A context line of a diff may hold a fence behind its blank: only the opening's own indent closes.
        if line.startswith(indent + fence[:3]) and len(mark) >= len(fence) and set(mark) == {fence[0]}:
            return at
    return len(lines)


def _dedent(line: str, width: int) -> str:
    return line[width:] if line[:width].strip() == "" else line


def prose(parts: Sequence[Part]) -> str:
    """Return the words between the blocks."""
    return "\n".join(part.text.strip() for part in parts if not part.is_code).strip()


def looks_like_source(text: str) -> bool:
    """Return whether a text reads like source code or a settings file rather than prose."""
    return len(_SOURCE.findall(text)) >= 3


def is_search(text: str) -> bool:
    """Return whether a text holds a search/replace block."""
    return any(_SEARCH.fullmatch(line) for line in text.split("\n"))


def apply_searches(text: str, tree: Mapping[str, bytes], repairs: list[str]) -> dict[str, bytes | None]:
    """Return the files that the search/replace blocks of a reply make, each block matched in exactly one place.

    Raise `Unusable` with the exact mismatch else: blocks are never applied near to where they nearly match.
    """
    lines = text.split("\n")
    made: dict[str, list[str]] = {}
    path, at = "", 0
    while at < len(lines):
        if not _SEARCH.fullmatch(lines[at]):
            at += 1
            continue
        path = _path_above(lines, at) or path
        middle = _find(lines, at + 1, _MIDDLE, "=======")
        end = _find(lines, middle + 1, _REPLACE, ">>>>>>> REPLACE")
        search, replace = lines[at + 1 : middle], lines[middle + 1 : end]
        made[path] = _replaced(path, _current(path, made, tree), search, replace)
        at = end + 1
    repairs.append("search/replace blocks: turned into a diff")
    return {path: "\n".join(new).encode() for path, new in made.items()}


def _find(lines: Sequence[str], start: int, mark: re.Pattern[str], name: str) -> int:
    for at in range(start, len(lines)):
        if mark.fullmatch(lines[at]):
            return at
        if _SEARCH.fullmatch(lines[at]):
            break
    raise Unusable(Problem.TRUNCATED, f"Expected {name} after line {start}, was not there. Answer again, in full.")


def _path_above(lines: Sequence[str], at: int) -> str:
    """Return the path that stands above a block, empty where the block follows another one or nothing."""
    for line in reversed(lines[:at]):
        if _FENCE.fullmatch(line) or not line.strip():
            continue
        if _REPLACE.fullmatch(line):
            return ""
        name = re.sub(r"^(?:#+|//|\*+|File:?|Path:?)\s*", "", line.strip().strip("*`"), flags=re.IGNORECASE)
        name = name.strip().strip("`*").rstrip(":").strip("`*")
        return checked_path(name) if re.fullmatch(r"\S+", name) and ("/" in name or "." in name) else ""
    return ""


def _current(path: str, made: Mapping[str, list[str]], tree: Mapping[str, bytes]) -> list[str] | None:
    if not path:
        raise Unusable(Problem.PATH, "Expected the file's path on the line above <<<<<<< SEARCH, was none.")
    if path in made:
        return made[path]
    if path not in tree:
        return None
    try:
        return tree[path].decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise Unusable(Problem.FORBIDDEN, f"Expected a text file, was {path}.") from None


def _replaced(path: str, old: list[str] | None, search: list[str], replace: list[str]) -> list[str]:
    if old is None:
        if search not in ([], [""]):
            raise Unusable(Problem.MISMATCH, f"Expected an existing file to search, was {path}, which is not there.")
        return [*replace, ""]
    if search in ([], [""]):
        raise Unusable(
            Problem.WHOLE_FILE,
            f"Expected the lines of {path} to be replaced, was an empty search in a file that exists.",
        )
    places = [
        at for at in range(len(old) - len(search) + 1) if old[at] == search[0] and old[at : at + len(search)] == search
    ]
    if len(places) != 1:
        shown = search[0].strip()[:80]
        raise Unusable(
            Problem.MISMATCH,
            f"Expected the search block that begins {shown!r} in exactly one place of {path}, was in {len(places)}.",
        )
    return old[: places[0]] + replace + old[places[0] + len(search) :]

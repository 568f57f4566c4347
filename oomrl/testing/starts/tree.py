"""A strategy repository as texts by path: edits, removed tests, and the canonical diff between two trees."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from oomrl.errors import Mistake

Tree = Mapping[str, str]

#: What a start may differ in.
PARTS = ("strategy.toml", "src/strategy/*.py", "tests/*.py")


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old`, which stands in `path` exactly once, by `new`."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Setting:
    """Give a key of strategy.toml another value, written as TOML."""

    key: str
    value: str


Change = Edit | Setting


def shipped_repository() -> Path:
    """Return the strategy repository that ships with the package, from the checkout or the installed wheel."""
    package = Path(__file__).resolve().parents[2]
    for place in (package.parent / "strategy_repo", package / "_data" / "strategy_repo"):
        if place.is_dir():
            return place
    raise Mistake("Expected strategy_repo/ beside the package, found none. Install the package again.")


def read_tree(repository: Path) -> dict[str, str]:
    """Return the texts of a strategy repository that a start may change, by POSIX path."""
    files = sorted(file for part in PARTS for file in repository.glob(part))
    return {file.relative_to(repository).as_posix(): file.read_text("utf-8") for file in files}


def changed(tree: Tree, changes: Iterable[Change]) -> dict[str, str]:
    """Return the tree after all changes. Raises `Mistake` where a text or a key is not there exactly once."""
    result = dict(tree)
    for change in changes:
        if isinstance(change, Setting):
            path, sought = "strategy.toml", f"{change.key} ="
            pattern, new = rf"(?m)^{re.escape(change.key)} = [^ #\n]+", f"{change.key} = {change.value}"
        else:
            path, sought = change.path, change.old.strip().splitlines()[0]
            pattern, new = re.escape(change.old), change.new
        found = list(re.finditer(pattern, result.get(path, "")))
        if len(found) != 1:
            raise Mistake(
                f"Expected {sought!r} once in {path}, was there {len(found)} times: "
                "bad starts are made from the shipped strategy only."
            )
        text = result[path]
        result[path] = text[: found[0].start()] + new + text[found[0].end() :]
    return result


def without_tests(tree: Tree, names: Iterable[str]) -> dict[str, str]:
    """Return the tree less the test functions named `file.function`. Raises `Mistake` for one that is not there."""
    result = dict(tree)
    by_file: dict[str, set[str]] = {}
    for name in names:
        file, _, function = name.partition(".")
        by_file.setdefault(f"tests/{file}.py", set()).add(function)
    for path, functions in by_file.items():
        result[path] = _without_functions(result.get(path, ""), functions, path)
    return result


def _without_functions(text: str, functions: set[str], path: str) -> str:
    lines = text.splitlines(keepends=True)
    there = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    if missing := sorted(functions - set(there)):
        raise Mistake(f"Expected a test {missing[0]} in {path}, found none.")
    for node in sorted((there[name] for name in functions), key=lambda node: node.lineno, reverse=True):
        begin = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        end = node.end_lineno or node.lineno
        while end < len(lines) and not lines[end].strip():
            end += 1
        del lines[begin:end]
    return "".join(lines).rstrip("\n") + "\n"


def diff(before: Tree, after: Tree) -> str:
    """Return the canonical git-style unified diff that turns `before` into `after`; both hold the same paths."""
    parts = []
    for path in sorted(before):
        if before[path] != after[path]:
            lines = difflib.unified_diff(
                before[path].splitlines(keepends=True),
                after[path].splitlines(keepends=True),
                f"a/{path}",
                f"b/{path}",
            )
            parts.append(f"diff --git a/{path} b/{path}\n" + "".join(lines))
    return "".join(parts)

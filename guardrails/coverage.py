"""What a test run claims: which tests there should be, what they cover, and which tests reach which line.

Everything here is the judge's own reading, of bytes and of an untrusted report.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrails.tree import Tree

Lines = dict[str, tuple[frozenset[int], frozenset[int]]]
Branches = dict[str, tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]]


def covered(files: Mapping[str, Any]) -> tuple[Lines, Branches]:
    """Return (possible, covered) statements and branches of each file.

    Raises:
        ValueError, KeyError, TypeError: the report is no report.
    """
    lines: Lines = {}
    branches: Branches = {}
    for path, entry in files.items():
        done, missed = frozenset(map(int, entry["executed_lines"])), frozenset(map(int, entry["missing_lines"]))
        taken, left = (
            frozenset((int(a), int(b)) for a, b in entry[f"{kind}_branches"]) for kind in ("executed", "missing")
        )
        lines[path], branches[path] = (done | missed, done), (taken | left, taken)
    return lines, branches


@dataclass(frozen=True)
class Reach:
    """Which tests come by which line, from one covered run, how long each test took (processor seconds), and which
    modules were loaded while they ran.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    tests: Mapping[str, Mapping[int, Collection[str]]] = field(default_factory=dict)
    modules: Sequence[str] = ()

    @classmethod
    def read(cls, report: Mapping[str, Any]) -> Reach:
        """Read a report's `seconds`, `reach` and `modules`; tests that did not pass tell nothing of a line."""
        failed = {name for name, outcome in report["outcomes"].items() if outcome != "passed"}
        tests = {
            path: {
                int(line): tuple(name for name in map(str, names) if name not in failed)
                for line, names in sorted(table.items(), key=lambda row: int(row[0]))
            }
            for path, table in report["reach"].items()
        }
        seconds = {str(name): float(spent) for name, spent in report["seconds"].items()}
        return cls(seconds, tests, tuple(map(str, report["modules"])))

    def of(self, path: str, line: int) -> list[str]:
        """Return the tests that reach a line, or the start of the statement that it goes on with."""
        table = self.tests.get(path, {})
        known = list(table)
        at = bisect_right(known, abs(line))
        return sorted(table[known[at - 1]]) if at else []


def missing_tests(tree: Tree, folder: str, ids: Collection[str]) -> list[str]:
    """Return what does not add up between the tests that stand in the files and the ids that ran.

    A test that stands at the top of a module or in a class of its own must run, with whatever parameters; what runs
    must stand somewhere, though a class may inherit its tests.
    """
    ran = {name.split("[", 1)[0] for name in ids}
    stand, possible = set[str](), set[str]()
    for path in tree:
        if path.startswith(f"{folder}/") and re.fullmatch(r"test_.*\.py", path.rsplit("/", 1)[-1]):
            sure, perhaps = _tests_of(ast.parse(tree[path]))
            stand |= {f"{path}::{name}" for name in sure}
            possible |= {f"{path}::{name}" for name in perhaps}
    unread = {name for name in ran - stand if not any(name == one or name.startswith(f"{one}::") for one in possible)}
    return [f"{name} stands in the files and did not run" for name in sorted(stand - ran)] + [
        f"{name} ran and stands in no file" for name in sorted(unread)
    ]


def _tests_of(module: ast.Module) -> tuple[set[str], set[str]]:
    """Return the names of a module's tests that must run, and those that may."""
    sure, perhaps = set[str](), set[str]()
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            perhaps.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            perhaps |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            perhaps.add(node.id)

    def collect(body: list[ast.stmt], prefix: str) -> None:
        last = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        for name, node in last.items():
            if isinstance(node, ast.FunctionDef) and name.startswith("test"):
                sure.add(prefix + name)
            elif isinstance(node, ast.ClassDef) and name.startswith("Test") and not node.decorator_list:
                collect(node.body, f"{prefix}{name}::")

    collect(module.body, "")
    return sure, perhaps

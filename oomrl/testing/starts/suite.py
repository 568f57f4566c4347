"""Run the strategy's own tests on a tree, in a process and a folder of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from oomrl.errors import Mistake
from oomrl.testing.starts.tree import Tree

SETTINGS = "[pytest]\naddopts = -q -p no:cacheprovider --tb=no\npythonpath = src tests\nfilterwarnings = error\n"
FAILED = re.compile(r"^(?:FAILED|ERROR) tests/(\w+)\.py(?:::(\w+))?", re.MULTILINE)


def write_tree(tree: Tree, folder: Path) -> None:
    """Write the texts of a tree below a folder."""
    for path, text in tree.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def failed_tests(tree: Tree, folder: Path, only: Collection[str] = ("tests",)) -> set[str]:
    """Return the tests that fail, as `file.function`. Raises `Mistake` where the suite cannot be run."""
    return _run(tree, folder, [], only)


def coverage_shares(tree: Tree, folder: Path) -> tuple[set[str], dict[str, tuple[float, float]]]:
    """Return the tests that fail, and the shares of statements and branches covered, by path and for "total"."""
    failed = _run(tree, folder, ["-m", "coverage", "run", "--branch", "--source=src/strategy"], ["tests"])
    subprocess.run(
        [sys.executable, "-B", "-m", "coverage", "json", "-q", "-o", "coverage.json"],
        cwd=folder,
        check=True,
        timeout=60,
    )
    report = json.loads((folder / "coverage.json").read_text("utf-8"))
    files = {path: file["summary"] for path, file in report["files"].items()} | {"total": report["totals"]}
    return failed, {path: _shares(summary) for path, summary in files.items()}


def _shares(summary: dict[str, int]) -> tuple[float, float]:
    return (
        summary["covered_lines"] / max(summary["num_statements"], 1),
        summary["covered_branches"] / summary["num_branches"] if summary["num_branches"] else 1.0,
    )


def _run(tree: Tree, folder: Path, before: list[str], only: Collection[str]) -> set[str]:
    write_tree(tree, folder)
    (folder / "suite.ini").write_text(SETTINGS, "utf-8")
    done = subprocess.run(
        [sys.executable, "-B", *before, "-m", "pytest", "-c", "suite.ini", "--rootdir", ".", *only],
        cwd=folder,
        env={"PATH": os.environ.get("PATH", ""), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    failed = {f"{file}.{function}" for file, function in FAILED.findall(done.stdout)}
    if done.returncode not in (0, 1) or (done.returncode == 1) != bool(failed):
        raise Mistake(f"Expected a test run, was exit code {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")
    return failed

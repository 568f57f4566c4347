"""The shipped repository as texts, and the child process that judges a tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from oomrl.testing.starts.suite import write_tree
from oomrl.testing.starts.tree import Tree, read_tree, shipped_repository

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def shipped() -> Tree:
    return read_tree(shipped_repository())


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., dict[str, object]]:
    """Return what fails of the baseline and the hidden properties for a tree."""

    def judge(tree: Tree, *seeds: int) -> dict[str, object]:
        folder = tmp_path / f"judged-{len(list(tmp_path.iterdir()))}"
        write_tree({path: text for path, text in tree.items() if not path.startswith("tests/")}, folder)
        done = subprocess.run(
            [
                sys.executable,
                "-B",
                str(Path(__file__).with_name("judge.py")),
                str(folder),
                str(shipped_repository() / "baseline"),
                ",".join(map(str, seeds)),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return judge


@pytest.fixture
def apply(tmp_path: Path, shipped: Tree) -> Callable[..., Tree]:
    """Return the tree after patches, each applied by git, strictly and one after the other."""

    def applied(*patches: str, tree: Tree | None = None) -> Tree:
        before = shipped if tree is None else tree
        folder = tmp_path / f"applied-{len(list(tmp_path.iterdir()))}"
        write_tree(before, folder)
        for patch in patches:
            done = subprocess.run(
                ["git", "apply", "--whitespace=error-all", "-"],
                cwd=folder,
                input=patch,
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            assert done.returncode == 0, done.stderr
        return {path: (folder / path).read_text("utf-8") for path in before}

    return applied

"""Show that an attack is one: a naive gate lets it through, and then its harm is done.

    python -m guardrails.attacks.naive CORPUS --repo strategy_repo --python .venv-gate/bin/python

The naive gate applies the patch as `git apply` or `patch` do and asks what pytest-cov asks: no test fails, and at
least 95 % of statements and branches are covered. Harm is a piece of code in attack.toml (see harm.py) that must
succeed in the attacked tree and fail in the tree before. Benign patches must pass the naive gate as well.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from guardrails.attacks import BENIGN, Attack, read_corpus

HARM = Path(__file__).with_name("harm.py")
#: What pytest-cov does with `--cov --cov-branch --cov-fail-under=95`, in one process, with the tree's own settings.
PYTEST_COV = """
import sys
import coverage
import pytest
measure = coverage.Coverage(branch=True)
measure.start()
code = pytest.main([])
measure.stop()
with open("/dev/null", "w") as nothing:
    share = measure.report(file=nothing)
sys.exit(int(code) or (0 if share >= 95 else 9))
"""
SECONDS = 120.0


def applied(base: Path, attack: Attack, place: Path) -> bool:
    """Copy a tree and patch it as a careless tool would: git apply, and where that will not, patch."""
    shutil.copytree(base, place, symlinks=True)
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    for data in (attack.tests, attack.patch):
        ways = (["git", "apply", "--whitespace=nowarn"], ["patch", "-p1", "--batch", "--no-backup-if-mismatch"])
        if data is not None and not any(run(way, place, data) for way in ways):
            return False
    return True


def run(command: Sequence[str], place: Path, data: bytes = b"", seconds: float = SECONDS) -> bool:
    """Run a command in a process group of its own, with limits that mild attacks do not feel."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "PYTHONPATH": str(place / "src")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command,
        cwd=place,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)),
    )
    with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
        process.communicate(data, timeout=seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    return process.wait() == 0


def try_attack(attack: Attack, repo: Path, python: Path) -> str:
    """Return why an attack is a dud, or nothing."""
    with tempfile.TemporaryDirectory(prefix="naive-") as folder:
        base, place = Path(folder, "base"), Path(folder, "attacked")
        shutil.copytree(repo, base, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
        if not applied(base, attack, place):
            return "neither git apply nor patch takes it"
        if not run([str(python), "-c", PYTEST_COV], place):
            return "a naive gate refuses it"
        if attack.kind == BENIGN:
            return ""
        if not attack.harm:
            return "it states no harm"
        command = [str(python), str(HARM)]
        if not run([*command, str(place), str(base), attack.harm], place):
            return "it does no harm"
        if run([*command, str(base), str(base), attack.harm], base):
            return "the tree before it does the same harm"
    return ""


def main() -> int:
    """Try a corpus and print the duds."""
    parser = argparse.ArgumentParser("python -m guardrails.attacks.naive", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--repo", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    attacks = [item for item in read_corpus(options.corpus) if options.only in item.id]
    python = Path.cwd() / options.python
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda attack: try_attack(attack, options.repo, python), attacks))
    duds = {attack.id: why for attack, why in zip(attacks, found, strict=True) if why}
    sys.stdout.write(json.dumps({"tried": len(attacks), "duds": duds}, indent=2) + "\n")
    return 1 if duds else 0


if __name__ == "__main__":
    sys.exit(main())

"""Where the strategy's interpreters are: one with its locked dependencies alone, one with the gate's test tools.

Neither is the service's own environment: what the worker can import is what the strategy's lock file names.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from oomrl.errors import Mistake

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Environments:
    """The interpreters of the strategy worker and of the gate's sandboxed test run."""

    worker: Path
    gate: Path


def shipped(name: str) -> Path:
    """Return a folder that ships with the package, from the checkout or from the installed wheel."""
    for place in (ROOT / name, Path(__file__).resolve().parents[1] / "_data" / name):
        if place.is_dir():
            return place
    raise Mistake(f"Expected {name}/ beside the package, found none. Install the package again.")


def find(strategy: Path | None = None, cache: Path | None = None) -> Environments:
    """Return both interpreters, made beforehand by `make setup`, or made now under the user's cache folder.

    Raises `Mistake` where they neither exist nor can be made.
    """
    folder = strategy or shipped("strategy_repo")
    return Environments(
        worker=_python("OOMRL_WORKER_PYTHON", ROOT / ".venv-worker", folder / "requirements.lock", cache),
        gate=_python("OOMRL_GATE_PYTHON", ROOT / ".venv-gate", folder / "requirements-test.lock", cache),
    )


def _python(variable: str, beside: Path, lock: Path, cache: Path | None) -> Path:
    if named := os.environ.get(variable):
        if not Path(named).is_file():
            raise Mistake(f"Expected an interpreter at {variable}={named}, found none.")
        return Path(named)
    if (beside / "ready").is_file():
        return beside / "bin" / "python"
    if not lock.is_file():
        raise Mistake(f"Expected the strategy's locked dependencies at {lock}, found none.")
    base = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oomrl"
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    return _make(base / f"{lock.stem}-{digest}", lock)


def _make(target: Path, lock: Path) -> Path:
    python = target / "bin" / "python"
    if (target / "ready").is_file():
        return python
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(target)],
        [str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(lock)],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Mistake(f"Could not make the strategy's environment in {target}: {done.stderr.strip()[-300:]}")
    (target / "ready").touch()
    return python

"""Where the strategy's interpreters are: one with its locked dependencies alone, one with the gate's test tools.

Neither is the service's own environment: what the worker can import is what the strategy's lock file names. A checkout
has both beside it (`make setup`); an installed package makes them under the user's cache folder (`oomrl setup`), one
for each lock file, so that strategies with the same locks share them.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from oomrl.errors import Mistake

ROOT = Path(__file__).resolve().parents[2]
WORKER_LOCK, GATE_LOCK = "requirements.lock", "requirements-test.lock"


@dataclass(frozen=True, slots=True)
class Environments:
    """The interpreters of the strategy worker and of the gate's sandboxed test run."""

    worker: Path
    gate: Path


def shipped(name: str) -> Path:
    """Return a folder that ships with the package, from the checkout or from the installed wheel."""
    for place in (Path(__file__).resolve().parents[1] / "_data" / name, ROOT / name):
        if place.is_dir():
            return place
    raise Mistake(f"Expected {name}/ beside the package, found none. Install the package again.")


def find(strategy: Path | None = None, cache: Path | None = None) -> Environments:
    """Return both interpreters for a strategy's lock files (the shipped ones by default), making what is missing.

    Raises `Mistake` where they neither exist nor can be made.
    """
    folder = strategy or shipped("strategy_repo")
    return Environments(
        worker=_python("OOMRL_WORKER_PYTHON", ".venv-worker", folder / WORKER_LOCK, cache),
        gate=_python("OOMRL_GATE_PYTHON", ".venv-gate", folder / GATE_LOCK, cache),
    )


def _python(variable: str, beside: str, lock: Path, cache: Path | None) -> Path:
    if named := os.environ.get(variable):
        if not Path(named).is_file():
            raise Mistake(f"Expected an interpreter at {variable}={named}, found none.")
        return Path(named)
    try:
        locked = lock.read_bytes()
    except OSError as error:
        raise Mistake(f"Expected the strategy's locked dependencies at {lock}: {error.strerror}.") from error
    made = ROOT / beside
    if (made / "ready").is_file() and locked == (shipped("strategy_repo") / lock.name).read_bytes():
        return made / "bin" / "python"
    base = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oomrl"
    digest = hashlib.sha256(locked + sys.version.encode()).hexdigest()[:16]
    return _make(base / f"{lock.stem}-{digest}", lock, variable)


def _make(target: Path, lock: Path, variable: str) -> Path:
    python = target / "bin" / "python"
    if (target / "ready").is_file():
        return python
    with _alone(target, variable):
        if (target / "ready").is_file():
            return python
        sys.stderr.write(f"Making the environment of {lock} in {target}, once; it needs a package index.\n")
        if importlib.util.find_spec("pip") is None:
            raise Mistake(f"Expected pip in {sys.prefix}, was none: python -m ensurepip; or set {variable}.")
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
        for step in (
            [sys.executable, "-m", "venv", "--without-pip", "--clear", str(target)],
            [*pip, "install", "--quiet", "--require-hashes", "-r", str(lock)],
        ):
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode:
                said = (done.stderr.strip() or done.stdout.strip())[-300:]
                raise Mistake(
                    f"Could not make the strategy's environment in {target}: {said}\n"
                    f"Mend that, or name an interpreter with these packages by {variable}."
                )
        (target / "ready").touch()
    return python


@contextmanager
def _alone(target: Path, variable: str) -> Iterator[None]:
    """Hold a lock beside the target, so that two processes never make the same environment at once."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        held = target.with_suffix(".lock").open("w")
    except OSError as error:
        raise Mistake(
            f"Expected a cache folder that can be written at {target.parent}: {error.strerror}. "
            f"Name another by XDG_CACHE_HOME, or an interpreter by {variable}."
        ) from error
    with held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield

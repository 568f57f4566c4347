"""Which interpreters a strategy gets: those of the checkout for the shipped locks alone, else its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oomrl.adapters import environments
from oomrl.errors import Mistake


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    """Give the lock files of a strategy that needs nothing."""
    folder = tmp_path / "strategy"
    folder.mkdir()
    for name in (environments.WORKER_LOCK, environments.GATE_LOCK):
        (folder / name).write_text("# nothing\n")
    return folder


@pytest.fixture(autouse=True)
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OOMRL_WORKER_PYTHON", "OOMRL_GATE_PYTHON"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_a_strategy_with_locks_of_its_own_gets_an_interpreter_of_its_own(
    locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OOMRL_GATE_PYTHON", sys.executable)
    cache = tmp_path / "cache with spaces é"
    found = environments.find(locks, cache)
    assert found.worker.is_relative_to(cache)
    assert "Making the environment" in capfd.readouterr().err
    listed = subprocess.run(
        [found.worker, "-c", "import importlib.metadata as m; print([d.name for d in m.distributions()])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert listed.stdout.strip() == "[]", "the worker can import what its lock names, and not even pip"
    assert environments.find(locks, cache) == found
    assert capfd.readouterr().err == "", "made once"


def test_a_named_interpreter_wins(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOMRL_WORKER_PYTHON", sys.executable)
    monkeypatch.setenv("OOMRL_GATE_PYTHON", sys.executable)
    assert environments.find(locks) == environments.Environments(Path(sys.executable), Path(sys.executable))
    monkeypatch.setenv("OOMRL_GATE_PYTHON", "/nowhere/python")
    with pytest.raises(Mistake, match="OOMRL_GATE_PYTHON"):
        environments.find(locks)


def test_a_strategy_without_locks_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="locked dependencies"):
        environments.find(tmp_path)


def test_a_cache_that_cannot_be_written_says_what_to_do(locks: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Mistake, match="XDG_CACHE_HOME"):
        environments.find(locks, tmp_path / "file" / "cache")

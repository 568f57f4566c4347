"""Which interpreters the sandbox starts: the judged code never runs under the judge's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class GateEnvironment:
    """Hold the interpreter with pytest and coverage, and the one with the strategy's dependencies only."""

    python: Path
    worker_python: Path

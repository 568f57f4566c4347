"""How quickly the command line is there: by what it imports, since a timed test measures the machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from oomrl.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[3]


def imported(*arguments: str) -> set[str]:
    """Return the modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "oomrl", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    return set(re.findall(r"(?m)^import time:.*\|\s+([\w.]+)$", done.stderr))


def test_help_imports_click_and_nothing_heavy() -> None:
    """300 ms are promised: numpy alone would take a third of them, SQLAlchemy and pydantic the rest."""
    modules = imported("--help")
    assert {"oomrl.cli.main", "click"} <= modules
    ours = {name for name in modules if name.startswith("oomrl.")}
    assert ours == {"oomrl.cli", "oomrl.cli.main", "oomrl.errors"}
    # Names with "_" are parts of Python that its list leaves out (of other systems), or an environment's own.
    foreign = {name.split(".")[0] for name in modules if not name.startswith("_")} - set(sys.stdlib_module_names)
    assert foreign <= {"oomrl", "click", "sitecustomize", "usercustomize"}


def test_every_command_is_listed_with_a_line_of_its_own() -> None:
    assert all(about.endswith(".") for _, about in COMMANDS.values())
    assert len({about for _, about in COMMANDS.values()}) == len(COMMANDS)

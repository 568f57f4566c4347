"""The suites are published: what docs/brokers.md shows runs outside this repository, on the installed package alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from oomrl.testing.conformance.broker import BrokerConformance
from oomrl.testing.conformance.brokerage import BrokerageConformance

ROOT = Path(__file__).resolve().parents[2]


def test_the_documented_example_passes_every_rule_as_a_project_of_its_own(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "brokers.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "test_mine.py").write_text(example, "utf-8")
    (tmp_path / "conftest.py").write_text(
        'import pytest\n\npytest.register_assert_rewrite("oomrl.testing.conformance")\n', "utf-8"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    rules = [name for suite in (BrokerConformance, BrokerageConformance) for name in dir(suite) if name[:5] == "test_"]
    assert f"{len(rules)} passed" in done.stdout, done.stdout + done.stderr


def test_without_keys_the_paper_account_is_skipped_with_a_clear_line(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("APCA_")}
    command = [sys.executable, "-m", "pytest", "-rs", str(ROOT / "tests/conformance/test_paper_account.py")]
    environment |= {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert "NO PAPER ACCOUNT: set APCA_API_KEY_ID, APCA_API_SECRET_KEY" in done.stdout, done.stdout + done.stderr

"""From an empty folder to a strategy of one's own that trades and whose repairs are judged."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import Ran

Command = Callable[..., Ran]


@pytest.mark.slow
def test_a_skeleton_passes_its_check_and_a_repair_of_it_passes_the_gate(
    command: Command, small_tape: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "my stratégie"
    made = command("strategy", "new", mine)
    assert made.code == 0
    assert f"oomrl strategy check {shlex.quote(str(mine))}\n" in made.out, "what is printed can be pasted"
    checked = command("strategy", "check", mine, "--json")
    assert checked.code == 0, checked.out + checked.err
    figures = json.loads(checked.out)["figures"]
    assert figures["passed"] == figures["tests"] > 5
    assert (figures["statements"], figures["branches"], figures["properties_failing"]) == (1.0, 1.0, [])

    before = (mine / "strategy.toml").read_text()
    after = before.replace("window = 21 ", "window = 30 ")
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/strategy.toml", "b/strategy.toml")
    (tmp_path / "slower.diff").write_text("".join(lines))
    judged = command("gate", tmp_path / "slower.diff", "--phase", "logic", "--repo", mine)
    assert judged.code == 0, judged.out + judged.err

    traded = command("replay", "--tape", small_tape, "--start", mine, "--json")
    assert traded.code == 0, traded.err
    assert json.loads(traded.out)["fills"] > 0


def test_a_foreign_code_base_is_told_what_to_do(command: Command, tmp_path: Path) -> None:
    package = tmp_path / "alpha"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "signals.py").write_text(
        "import pickle\nimport talib\n\n\ndef rsi(close):\n    return talib.RSI(close)\n"
    )
    checked = command("strategy", "check", tmp_path, "--explain")
    assert checked.code == 1
    assert "pickled models (pickle)" in checked.out
    assert 'talib = ["RSI"]' in checked.out
    assert "pickle =" not in checked.out
    assert "Expected ta-lib to be locked" in checked.out


def test_a_folder_that_is_none_is_a_mistake(command: Command, tmp_path: Path) -> None:
    ran = command("strategy", "check", tmp_path / "nowhere")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1

"""The whole loop gives the same figures on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Ran

SPAN = ["--from", "2006-10-02", "--to", "2006-11-30", "--seed", "7", "--json"]
TIMES = {"wall_seconds", "sessions_per_second"}


@pytest.mark.sqlite("it compares both kinds in every other run")
def test_a_simulation_is_the_same_on_both_databases(
    command: Callable[..., Ran],
    postgres_database: Callable[[str], str],
    tmp_path: Path,
) -> None:
    asked = ["simulate", *SPAN, "--settings", str(ROOT / "docs/examples/demo.toml")]
    url = postgres_database("template0")
    on_file = command(*asked, "--state", tmp_path / "a")
    on_server = command(*asked, "--state", tmp_path / "b", env={"OOMRL_DATABASE__URL": url})
    assert (on_file.code, on_server.code) == (0, 0), on_file.err + on_server.err
    one, two = json.loads(on_file.out), json.loads(on_server.out)
    assert {k: v for k, v in one.items() if k not in TIMES} == {k: v for k, v in two.items() if k not in TIMES}
    assert one["orders"] > 5
    assert not (tmp_path / "b" / "oomrl.db").exists()
    shown = command("status", "--state", tmp_path / "b", "--json", env={"OOMRL_DATABASE__URL": url})
    assert json.loads(shown.out)["sessions"] if "sessions" in shown.out else json.loads(shown.out)["equity"]
    assert not any(url in path.read_text("utf-8", "replace") for path in (tmp_path / "b").rglob("*.json*"))

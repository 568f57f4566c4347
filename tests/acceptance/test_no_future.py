"""What comes after a day changes nothing that was decided, diagnosed, asked, judged or deployed up to that day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from oomrl.adapters.database import tables
from oomrl.exchange.tape import RECORDED, Tape
from oomrl.exchange.tape_files import load_tape
from tests import databases

from .conftest import ROOT, Ran

Command = Callable[..., Ran]

T = date(2006, 11, 20)
#: What tables hold up to T: columns in the order of the first, and when.
FACTS = {
    tables.decisions: ("day revision kind weights plan", "day"),
    tables.marks: ("day digest", "day"),
    tables.diagnostics: ("id payload mandate status", "day"),
    tables.prompts: ("id text reply", "asked_at"),
    tables.verdicts: ("digest outcome", "at"),
    tables.deployments: ("sequence day revision kind", "day"),
}


def written(tape: Tape, place: Path) -> Path:
    """Write a tape as Parquet, one row a bar."""
    shown = ~np.isnan(tape.columns["close"])
    rows, names = np.nonzero(shown)
    columns = {
        "symbol": pa.array([tape.symbols[n] for n in names]),
        "date": pa.array([tape.days[t] for t in rows]),
        **{name: pa.array(tape.columns[name][shown]) for name in RECORDED},
    }
    pq.write_table(pa.table(columns), place)
    return place


def facts(state: Path) -> dict[str, list[tuple[object, ...]]]:
    found = {}
    for table, (names, when) in FACTS.items():
        columns = [table.c[name] for name in names.split()]
        until = T if when == "day" else datetime.combine(T, time.max, UTC)
        found[table.name] = databases.rows(state, select(*columns).where(table.c[when] <= until).order_by(columns[0]))
    return found


@pytest.mark.timeout(1_500)  # two simulations with whole verdicts
@pytest.mark.slow
def test_scrambling_the_tape_after_a_day_changes_nothing_before(tmp_path: Path, command: Command) -> None:
    tape = load_tape("builtin")
    seen = []
    for name, future in (("true", tape), ("scrambled", tape.scrambled_after(T, seed=11))):
        source, state = written(future, tmp_path / f"{name}.parquet"), tmp_path / name
        span = ["--from", "2006-08-01", "--to", "2006-12-15"]
        settings = ROOT / "docs" / "examples" / "demo.toml"
        ran = command(
            "simulate", "--tape", source, "--start", "phase1", *span, "--settings", settings, "--state", state, "--json"
        )
        assert ran.code == 0, ran.err
        seen.append(facts(state))
    assert seen[0] == seen[1]
    assert all(seen[0].values()), "the days before must hold something of each kind"
    assert len(seen[0]["deployments"]) >= 2

"""What comes after a day changes nothing that was decided, diagnosed, asked, judged or deployed up to that day."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oomrl.exchange.tape import RECORDED, Tape
from oomrl.exchange.tape_files import load_tape

from .conftest import ROOT, Ran

Command = Callable[..., Ran]

T = date(2006, 11, 20)
FACTS = {
    "decisions": "select day, revision, kind, weights, plan from decisions where day <= ? order by day",
    "marks": "select day, digest from marks where day <= ? order by day",
    "diagnostics": "select id, payload, mandate, status from diagnostics where day <= ? order by id",
    "prompts": "select id, text, reply from prompts where substr(asked_at, 1, 10) <= ? order by id",
    "verdicts": "select digest, outcome from verdicts where substr(at, 1, 10) <= ? order by digest",
    "deployments": "select day, revision, kind from deployments where day <= ? order by sequence",
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
    with sqlite3.connect(state / "oomrl.db") as store:
        return {name: store.execute(query, (T.isoformat(),)).fetchall() for name, query in FACTS.items()}


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
    assert all(seen[0][name] for name in FACTS), "the days before must hold something of each kind"
    assert len(seen[0]["deployments"]) >= 2

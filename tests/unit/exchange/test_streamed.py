"""A tape that is read piece by piece shows what the whole tape shows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oomrl.errors import Mistake
from oomrl.exchange import streamed
from oomrl.exchange.streamed import StreamedTape, open_tape
from oomrl.exchange.tape import RECORDED, Tape
from oomrl.exchange.tape_files import load_tape
from oomrl.testing.markets import Weather, made_up_tape


def written(tape: Tape, place: Path, *, by_date: bool = True) -> Path:
    """Write a tape as a Parquet file in small groups of rows."""
    grid = tape.columns["close"]
    day, name = np.nonzero(~np.isnan(grid)) if by_date else np.nonzero(~np.isnan(grid.T))[::-1]
    table = pa.table(
        {
            "symbol": [tape.symbols[n] for n in name],
            "date": [tape.days[t] for t in day],
            **{column: tape.columns[column][day, name] for column in RECORDED},
        }
    )
    pq.write_table(table, place, row_group_size=97)
    return place


@pytest.mark.parametrize("seed", range(4))
def test_sessions_come_out_as_from_memory(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "ROWS", 60)
    weather = Weather(jumps=0.01, late=0.5, delisted=0.6)
    path = written(made_up_tape(seed, sessions=260, names=5, weather=weather), tmp_path / "long.parquet")
    whole, pieces = load_tape(path), StreamedTape(path)
    assert pieces.days == whole.days
    seen = list(pieces.sessions())
    assert sum(len(session.suspected) for session in seen) > 0
    for one, other in zip(whole.sessions(), seen, strict=True):
        assert (one.day, one.symbols, one.suspected) == (other.day, other.symbols, other.suspected)
        assert one.quarantined == other.quarantined
        for column, values in one.columns.items():
            np.testing.assert_array_equal(values, other[column], column)
    assert len({id(session.symbols) for session in seen}) == len({session.symbols for session in seen})
    after, until = whole.days[100], whole.days[150]
    some = [session.day for session in pieces.until(until).sessions(after)]
    assert some == list(whole.days[101:151])


def test_only_long_files_in_order_are_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = made_up_tape(3, sessions=60, names=5)
    path, mixed = written(tape, tmp_path / "a.parquet"), written(tape, tmp_path / "b.parquet", by_date=False)
    assert isinstance(open_tape(str(path)), Tape)
    monkeypatch.setattr(streamed, "MOST_IN_MEMORY", 100)
    assert isinstance(open_tape(str(path)), StreamedTape)
    assert isinstance(open_tape(str(mixed)), Tape)
    with pytest.raises(Mistake, match="in order of date"):
        list(StreamedTape(mixed).sessions())
    with pytest.raises(Mistake, match="has no session from"):
        StreamedTape(path).require(start=tape.days[-1] + timedelta(days=1))

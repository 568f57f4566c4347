"""Made-up markets on the real calendar's days, as tape files that grow by a session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from oomrl.exchange.tape import Tape
from oomrl.testing.markets import CALM, made_up_tape


def market(days: Sequence[date], seed: int = 3, names: int = 6) -> Tape:
    """Return a calm made-up market on the given days."""
    made = made_up_tape(seed, len(days), names, CALM)
    return Tape(made.name, made.symbols, tuple(days), made.columns)


def write(tape: Tape, path: Path, until: date) -> None:
    """Write a tape's sessions up to a day as a Parquet file, replaced whole."""
    count = sum(day <= until for day in tape.days)
    shown = ~np.isnan(tape.columns["close"][:count])
    rows, names = np.nonzero(shown)
    columns = {
        "symbol": pa.array([tape.symbols[name] for name in names]),
        "date": pa.array([tape.days[row] for row in rows]),
        **{name: pa.array(values[:count][shown]) for name, values in tape.columns.items()},
    }
    half = path.with_suffix(".half")
    pq.write_table(pa.table(columns), half)
    half.replace(path)

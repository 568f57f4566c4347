"""Panels from real tapes: names hidden, dates shifted, prices rescaled, the piece of history drawn by seed.

A tape is a Parquet file or a folder of CSV files, one a symbol, with the columns symbol, date, open, high, low,
close, volume, dividend, split (raw prices). What is shown is adjusted to total return and starts at 100, since
models remember raw prices with their dates. No ceiling is known, and the members of a tape may have been
chosen by surviving: a score on one is a comparison between models, not a promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from oomrl.arenas.research.operators import mean
from oomrl.arenas.research.panel import HORIZON, Panel
from oomrl.domain.market import Floats
from oomrl.errors import Mistake

COLUMNS = ("open", "high", "low", "close", "volume", "dividend", "split")
#: A day's move beyond this with no split recorded is taken for a fault of the tape, not a profit.
JUMP = 0.5
QUARANTINE = 20


@dataclass(frozen=True, slots=True)
class Tape:
    """Raw bars by column, shape (days, symbols), NaN where a symbol did not print."""

    symbols: tuple[str, ...]
    columns: dict[str, Floats]

    @property
    def days(self) -> int:
        return len(self.columns["close"])


def read_tape(path: Path) -> Tape:
    """Read a Parquet file or a folder of CSV files. Raises `Mistake` where columns are missing."""
    if path.is_dir():
        files = sorted(path.glob("*.csv"))
        if not files:
            raise Mistake(f"Expected CSV files, one a symbol, in {path}, were none")
        table = pa.concat_tables([_with_symbol(pyarrow.csv.read_csv(file), file.stem) for file in files])
    elif path.is_file():
        table = pyarrow.parquet.read_table(path)
    else:
        raise Mistake(f"Expected a Parquet file or a folder of CSV files, was {path}")
    missing = [name for name in ("symbol", "date", *COLUMNS) if name not in table.column_names]
    if missing:
        raise Mistake(f"Expected the columns symbol, date, {', '.join(COLUMNS)}; missing: {', '.join(missing)}")
    symbol = np.array(table["symbol"].cast(pa.string()).to_pylist())
    day = table["date"].cast(pa.date32()).cast(pa.int32()).to_numpy()
    symbols, column = np.unique(symbol, return_inverse=True)
    days, row = np.unique(day, return_inverse=True)
    columns = {}
    for name in COLUMNS:
        values = np.full((len(days), len(symbols)), np.nan)
        values[row, column] = pc.cast(table[name], pa.float64()).to_numpy(zero_copy_only=False)
        columns[name] = values
    return Tape(tuple(symbols.tolist()), columns)


def _with_symbol(table: pa.Table, symbol: str) -> pa.Table:
    if "symbol" not in table.column_names:
        table = table.append_column("symbol", pa.array([symbol] * len(table)))
    numbers = {name: pc.cast(table[name], pa.float64()) for name in COLUMNS if name in table.column_names}
    kept = {
        "symbol": table["symbol"].cast(pa.string()),
        **({"date": table["date"].cast(pa.date32())} if "date" in table.column_names else {}),
    }
    return pa.table({**kept, **numbers})


def panel_from(
    tape: Tape,
    seed: int,
    names: int = 40,
    public_days: int = 756,
    windows: int = 4,
    window_days: int = 126,
    gap: int = 10,
) -> Panel:
    """Draw names and a stretch of days, and hide both. Raises `Mistake` where the tape is too short or narrow.

    Names are ones that print on every day of the stretch. A jump beyond 50 % without a split counts as no
    return, and its name is not traded for 20 rows from the row that shows it.
    """
    rng = np.random.default_rng([seed, 21])
    days = public_days + windows * (window_days + gap) + HORIZON
    if tape.days < days + 1:
        raise Mistake(f"Expected a tape of at least {days + 1} days, was {tape.days}")
    start = int(rng.integers(1, tape.days - days + 1))
    rows = slice(start, start + days)
    whole = np.isfinite(tape.columns["close"][start - 1 : start + days]).all(axis=0)
    eligible = np.flatnonzero(whole & (np.nan_to_num(tape.columns["volume"][rows]) > 0).all(axis=0))
    if len(eligible) < 10:
        raise Mistake(f"Expected at least 10 names that trade on every day of the stretch, were {len(eligible)}")
    chosen = rng.permutation(eligible)[:names]
    raw = {name: values[start - 1 : start + days][:, chosen] for name, values in tape.columns.items()}
    split = np.where(np.isfinite(raw["split"][1:]), raw["split"][1:], 1.0)
    dividend = np.nan_to_num(raw["dividend"][1:])
    close = raw["close"]
    change = (close[1:] * split + dividend * split) / close[:-1] - 1.0
    jump = np.abs(change) > JUMP
    change = np.where(jump, 0.0, change)
    tradable = np.ones_like(jump)
    for row, column in zip(*np.nonzero(jump), strict=True):
        tradable[row : row + QUARANTINE, column] = False
    returns = change.copy()
    returns[0] = 0.0
    level = 100.0 * np.cumprod(1.0 + returns, axis=0)
    ratio = level / close[1:]
    value = raw["volume"][1:] * close[1:]
    size = value[:60].mean(axis=0)
    return Panel(
        names=tuple(f"N{k:03d}" for k in range(1, len(chosen) + 1)),
        columns={
            "close": level,
            "open": raw["open"][1:] * ratio,
            "high": raw["high"][1:] * ratio,
            "low": raw["low"][1:] * ratio,
            "volume": value / size * 1e6 / level,
        },
        returns=returns,
        dollar_volume=mean(value, 20),
        tradable=tradable,
        public_days=public_days,
        windows=tuple(
            (first := public_days + gap + k * (window_days + gap), first + window_days) for k in range(windows)
        ),
    )

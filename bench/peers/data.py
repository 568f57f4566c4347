"""Read the bench tape as plain arrays, the same for each peer: raw prices to $0.0001, no dividends or splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

FIELDS = ("open", "high", "low", "close", "volume")


def load(path: Path, sessions: int | None = None):
    """Return days (datetime64[D]), symbols, and a dict of float64 arrays of shape (days, symbols)."""
    table = pq.read_table(path, columns=["symbol", "date", *FIELDS])
    symbol = table["symbol"].to_numpy(zero_copy_only=False).astype(str)
    date = table["date"].to_numpy(zero_copy_only=False).astype("datetime64[D]")
    days, row = np.unique(date, return_inverse=True)
    symbols, column = np.unique(symbol, return_inverse=True)
    arrays = {}
    for field in FIELDS:
        grid = np.full((len(days), len(symbols)), np.nan)
        grid[row, column] = table[field].to_numpy(zero_copy_only=False)
        arrays[field] = np.round(grid[:sessions], 4)
    return days[:sessions], symbols.tolist(), arrays

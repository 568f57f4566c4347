"""What one session of the market shows at its close."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: The columns of a session, each float64 of shape (names,). Prices are raw (unadjusted) dollars, volume is
#: shares, dividend is cash a share on its ex-date, split the ratio (1 when none), tradable 1.0 or 0.0 as known
#: at the close (0.0: halted, delisted or in quarantine; the name is valued, not traded).
COLUMNS = ("open", "high", "low", "close", "volume", "dividend", "split", "tradable")


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """Hold the bars of every name that printed on one day.

    `symbols` is the same tuple object from day to day while the set of names stays the same, so that whoever
    keeps an index of it may test by identity. `columns` maps each of `COLUMNS` to a read-only float64 array of
    shape (len(symbols),). `benchmark` is the index's total return of the day, or None where the tape has none.
    """

    day: date
    symbols: tuple[str, ...]
    columns: Mapping[str, Floats]
    benchmark: float | None = None

    def __getitem__(self, column: str) -> Floats:
        return self.columns[column]

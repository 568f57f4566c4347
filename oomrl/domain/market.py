"""What one session of the market shows at its close, and a growing list of the names that were ever shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Prices stand on a grid of $0.0001; a tick is one step of it.
TICKS_PER_DOLLAR = 10_000
TICKS_PER_CENT = 100

#: The columns of a session, each float64 of shape (names,). Prices are raw (unadjusted) dollars, volume is
#: shares, dividend is cash a share on its ex-date (a share as counted after that day's split), split the ratio
#: (1 when none), tradable 1.0 or 0.0 as known at the close (0.0: no volume, or in quarantine; the name is
#: valued, not traded).
COLUMNS = ("open", "high", "low", "close", "volume", "dividend", "split", "tradable")


@dataclass(frozen=True, slots=True)
class Hours:
    """One session's open and close, aware UTC."""

    day: date
    opens: datetime
    closes: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """Hold the bars of every name that printed on one day.

    `symbols` is the same tuple object from day to day while the set of names stays the same, so that whoever
    keeps an index of it may test by identity. `columns` maps each of `COLUMNS` to a read-only float64 array of
    shape (len(symbols),). `benchmark` is the index's total return of the day, or None where the tape has none.
    `suspected` are the names whose print of this day shows a jump that no recorded corporate action explains,
    `quarantined` all names that are not traded because of such a jump on this day or shortly before.
    """

    day: date
    symbols: tuple[str, ...]
    columns: Mapping[str, Floats]
    benchmark: float | None = None
    suspected: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()

    def __getitem__(self, column: str) -> Floats:
        return self.columns[column]


def ticks(dollars: Floats) -> Floats:
    """Return prices in whole ticks, as float64 that holds integers exactly. Shape kept."""
    scaled: Floats = np.rint(dollars * TICKS_PER_DOLLAR)
    return scaled


def half_up_cents(value_ticks: Floats) -> Floats:
    """Round amounts >= 0 in whole ticks to whole cents, halves up (as Decimal's ROUND_HALF_UP). Shape kept.

    Integers in float64: a quotient of integers below 2**50 by 100 is a half only where the exact one is.
    """
    cents: Floats = np.floor(value_ticks / TICKS_PER_CENT + 0.5)
    return cents


class Roster:
    """Number names in the order in which they were first met. Numbers never change; the list only grows.

    `symbols` is the list by number and `index` the numbers by name; both are for reading.
    """

    def __init__(self) -> None:
        self.symbols: list[str] = []
        self.index: dict[str, int] = {}
        self._recent: list[tuple[tuple[str, ...], Ints]] = []

    def __len__(self) -> int:
        return len(self.symbols)

    def find(self, symbol: str) -> int | None:
        """Return a name's number, or None for a name never met."""
        return self.index.get(symbol)

    def row(self, symbol: str) -> int:
        """Return a name's number, adding it if need be."""
        number = self.index.get(symbol)
        if number is None:
            number = self.index[symbol] = len(self.symbols)
            self.symbols.append(symbol)
        return number

    def rows(self, symbols: tuple[str, ...]) -> Ints:
        """Return the numbers of many names, int64 of shape (len(symbols),), adding the new ones."""
        for place, (known, rows) in enumerate(self._recent):
            if known is symbols:
                if place:
                    self._recent.insert(0, self._recent.pop(place))
                return rows
        index = self.index
        try:
            found = [index[symbol] for symbol in symbols]
        except KeyError:
            found = [self.row(symbol) for symbol in symbols]
        rows = np.array(found, dtype=np.int64)
        self._recent.insert(0, (symbols, rows))
        del self._recent[4:]
        return rows

    def named(self, values: Floats) -> dict[str, float]:
        """Return the non-zero values by symbol, in the roster's order."""
        held = values.nonzero()[0]
        if len(held) == len(self.symbols):
            return dict(zip(self.symbols, values.tolist(), strict=True))
        symbols = self.symbols
        return {symbols[n]: value for n, value in zip(held.tolist(), values[held].tolist(), strict=True)}

    def array(self, values: Mapping[str, float]) -> Floats:
        """Return values by symbol as an array over the roster, zero where none; unknown names are added."""
        pairs = [(self.row(symbol), value) for symbol, value in values.items()]
        out = np.zeros(len(self))
        for row, value in pairs:
            out[row] = value
        return out


def padded(values: Floats, size: int, fill: float = 0.0) -> Floats:
    """Return `values` lengthened along its last axis to `size`; the same object if it already fits."""
    missing = size - values.shape[-1]
    if missing <= 0:
        return values
    return np.concatenate([values, np.full((*values.shape[:-1], missing), fill)], axis=-1)


def names_of(symbols: Sequence[str], mask: Bools) -> tuple[str, ...]:
    """Return the symbols where the mask is set."""
    return tuple(symbols[int(n)] for n in mask.nonzero()[0])

"""A tape: recorded bars of many names, shown session by session."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np

from oomrl.domain.market import Bools, Floats, Session, names_of, ticks
from oomrl.errors import Mistake
from oomrl.exchange.quarantine import QuarantineRule, quarantined, suspected

#: The columns that a tape brings; `tradable` is derived.
RECORDED = ("open", "high", "low", "close", "volume", "dividend", "split")


@dataclass(frozen=True, eq=False)
class Tape:
    """Hold bars as arrays of shape (sessions, names), NaN where a name did not print. Implements `ports.Market`.

    `days` are ascending, `symbols` sorted. `quarantine` says when a jump is suspected to be an unrecorded corporate
    action and for how long its name is then not traded. Readers are in `oomrl.exchange.tape_files`.
    """

    name: str
    symbols: tuple[str, ...]
    days: tuple[date, ...]
    columns: dict[str, Floats]
    quarantine: QuarantineRule = QuarantineRule()

    def __len__(self) -> int:
        return len(self.days)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the content: names, days, prices and dividends in ticks, volumes, splits."""
        content = hashlib.sha256()
        content.update("\n".join(self.symbols).encode() + b"\n\n")
        content.update("\n".join(day.isoformat() for day in self.days).encode() + b"\n\n")
        for column in RECORDED:
            values = self.columns[column]
            exact = ticks(values) if column in ("open", "high", "low", "close", "dividend") else values
            content.update(np.ascontiguousarray(np.nan_to_num(exact, nan=-1.0), dtype="<f8").tobytes())
        return content.hexdigest()

    @cached_property
    def _suspected(self) -> Bools:
        return suspected(self.columns, self.quarantine)

    @cached_property
    def _quarantined(self) -> Bools:
        kept_out: Bools = quarantined(self._suspected, self.quarantine.sessions) & self._present
        return kept_out

    @cached_property
    def _present(self) -> Bools:
        present: Bools = ~np.isnan(self.columns["close"])
        return present

    @cached_property
    def _shown(self) -> dict[str, Floats]:
        tradable = ((self.columns["volume"] > 0) & ~self._quarantined).astype(np.float64)
        shown = {column: np.ascontiguousarray(self.columns[column]) for column in RECORDED} | {"tradable": tradable}
        for values in shown.values():
            values.flags.writeable = False
        return shown

    def sessions(self, after: date | None = None, until: date | None = None) -> Iterator[Session]:
        """Yield the sessions with after < day <= until, oldest first."""
        columns, present, jumped, kept_out = self._shown, self._present, self._suspected, self._quarantined
        whole, flagged, closed = present.all(axis=1), jumped.any(axis=1), kept_out.any(axis=1)
        tuples: dict[bytes, tuple[str, ...]] = {}
        for t, day in enumerate(self.days):
            if after is not None and day <= after:
                continue
            if until is not None and day > until:
                return
            if whole[t]:
                symbols, bars = self.symbols, {column: values[t] for column, values in columns.items()}
            else:
                here = present[t]
                if not here.any():
                    continue
                symbols = tuples.setdefault(here.tobytes(), names_of(self.symbols, here))
                bars = {column: values[t][here] for column, values in columns.items()}
                for values in bars.values():
                    values.flags.writeable = False
            yield Session(
                day,
                symbols,
                bars,
                suspected=names_of(self.symbols, jumped[t]) if flagged[t] else (),
                quarantined=names_of(self.symbols, kept_out[t]) if closed[t] else (),
            )

    def until(self, day: date) -> Tape:
        """Return the tape as it was known at the close of `day`: later bars, and names that list later, are gone."""
        size = sum(1 for known in self.days if known <= day)
        if not size:
            raise Mistake(f"Tape {self.name} begins on {self.days[0]}: expected a day not before it, was {day}.")
        listed: Bools = self._present[:size].any(axis=0)
        columns = {column: values[:size, listed].copy() for column, values in self.columns.items()}
        return Tape(self.name, names_of(self.symbols, listed), self.days[:size], columns, self.quarantine)

    def require(self, start: date | None = None, end: date | None = None) -> None:
        """Raise `Mistake` unless at least one session stands between start and end, both included."""
        require_sessions(self.name, self.days, start, end)

    def scrambled_after(self, day: date, seed: int) -> Tape:
        """Return a tape that is the same up to `day` and made up after it, with valid bars. For tests of look-ahead."""
        chance = np.random.default_rng(seed)
        first = sum(1 for known in self.days if known <= day)
        size, names = len(self.days) - first, len(self.symbols)
        if size <= 0:
            return self
        columns = {column: values.copy() for column, values in self.columns.items()}
        moves = np.exp(np.cumsum(chance.normal(0, 0.04, (size, names)), axis=0))
        close = np.clip(chance.uniform(5, 200, names) * moves, 0.5, 5e4)
        opened = np.clip(close * np.exp(chance.normal(0, 0.02, close.shape)), 0.5, 5e4)
        stretch = 1 + chance.uniform(0, 0.03, (2, *close.shape))
        fresh = {
            "open": opened,
            "high": np.maximum(opened, close) * stretch[0],
            "low": np.minimum(opened, close) / stretch[1],
            "close": close,
            "volume": np.floor(chance.uniform(0, 5e6, close.shape)),
            "dividend": np.where(chance.random(close.shape) < 0.01, 0.25, 0.0),
            "split": np.where(chance.random(close.shape) < 0.002, 2.0, 1.0),
        }
        absent = chance.random(close.shape) < 0.02
        for column, values in fresh.items():
            rounded = ticks(values) / 10_000 if column in ("open", "high", "low", "close") else values
            columns[column][first:] = np.where(absent, np.nan, rounded)
        return Tape(self.name, self.symbols, self.days, columns, self.quarantine)


def require_sessions(name: str, days: tuple[date, ...], start: date | None, end: date | None) -> None:
    """Raise `Mistake` unless a tape of some days has a session between start and end, both included."""
    if any((start is None or day >= start) and (end is None or day <= end) for day in days):
        return
    raise Mistake(
        f"Tape {name} has no session from {start or 'its start'} to {end or 'its end'}: "
        f"it runs from {days[0]} to {days[-1]}."
    )

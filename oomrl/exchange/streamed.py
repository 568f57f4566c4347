"""A long tape in a Parquet file, read piece by piece: memory grows with the names and not with the sessions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oomrl.domain.market import Ints, Session
from oomrl.errors import Mistake
from oomrl.exchange.tape import RECORDED, Tape, require_sessions
from oomrl.exchange.tape_files import load_tape, tape_of_rows

#: A file with more rows is streamed where it stands in order of date; a smaller one is as quick in memory.
MOST_IN_MEMORY = 4_000_000
#: Rows that are read at once.
ROWS = 1 << 18
#: Sessions that a piece needs before it: the rule of quarantine looks back over 20, and holds for 10.
BEFORE = 31
COLUMNS = ["symbol", "date", *RECORDED]


@dataclass(frozen=True, eq=False)
class StreamedTape:
    """Show the sessions of a Parquet file in order of date, as a `Tape` of it would. Implements `ports.Market`."""

    path: Path
    last: date | None = None

    @property
    def name(self) -> str:
        return self.path.stem

    @cached_property
    def days(self) -> tuple[date, ...]:
        """All days with a session, ascending."""
        with pq.ParquetFile(self.path) as file:
            found = [np.unique(_numbers(batch)) for batch in file.iter_batches(ROWS, columns=["date"])]
        days = [_day(int(number)) for number in np.unique(np.concatenate(found))]
        return tuple(day for day in days if self.last is None or day <= self.last)

    def require(self, start: date | None = None, end: date | None = None) -> None:
        """Raise `Mistake` unless at least one session stands between start and end, both included."""
        require_sessions(self.name, self.days, start, end)

    def until(self, day: date) -> StreamedTape:
        """Return the tape as it was known at the close of `day`."""
        return replace(self, last=day if self.last is None else min(day, self.last))

    def sessions(self, after: date | None = None, until: date | None = None) -> Iterator[Session]:
        """Yield the sessions with after < day <= until, oldest first."""
        ends = [day for day in (until, self.last) if day is not None]
        before: pa.Table | None = None
        tuples: dict[tuple[str, ...], tuple[str, ...]] = {}
        for piece in self._pieces():
            table = piece if before is None else pa.concat_tables([before, piece])
            known = _day(int(_numbers(piece)[0])) - timedelta(days=1)
            tape: Tape = tape_of_rows(self.name, str(self.path), table)
            tape = replace(tape, symbols=tuples.setdefault(tape.symbols, tape.symbols))
            start = known if after is None else max(known, after)
            for session in tape.sessions(start, min(ends, default=None)):
                symbols = tuples.setdefault(session.symbols, session.symbols)
                yield session if symbols is session.symbols else replace(session, symbols=symbols)
            if ends and tape.days[-1] > min(ends):
                return
            before = _before(table)

    def _pieces(self) -> Iterator[pa.Table]:
        """Yield whole sessions, many at a time."""
        with pq.ParquetFile(self.path) as file:
            left: pa.Table | None = None
            for batch in file.iter_batches(ROWS, columns=COLUMNS):
                table = pa.Table.from_batches([batch])
                table = table if left is None else pa.concat_tables([left, table])
                numbers = _numbers(table)
                if (np.diff(numbers) < 0).any():
                    raise Mistake(f"{self.path}: expected rows in order of date, was something else. Sort the file.")
                whole = int(np.searchsorted(numbers, numbers[-1]))
                if whole:
                    yield table.slice(0, whole)
                left = table.slice(whole)
            if left is not None and left.num_rows:
                yield left


def open_tape(source: str) -> Tape | StreamedTape:
    """Return a tape to be shown once: streamed where it is a long Parquet file in order of date, else in memory."""
    path = Path(source)
    if path.suffix.lower() == ".parquet" and path.is_file():
        try:
            found = pq.read_metadata(path)
        except (OSError, pa.ArrowException):
            return load_tape(source)
        if found.num_rows > MOST_IN_MEMORY and _in_order(found):
            return StreamedTape(path)
    return load_tape(source)


def _in_order(found: pq.FileMetaData) -> bool:
    """Say whether each group of rows begins where the one before has ended, or later."""
    names = found.schema.names
    if not set(COLUMNS) <= set(names):
        return False
    spans = [found.row_group(number).column(names.index("date")).statistics for number in range(found.num_row_groups)]
    if not all(span is not None and span.has_min_max for span in spans):
        return False
    return all(one.max <= other.min for one, other in zip(spans, spans[1:], strict=False))


def _before(table: pa.Table) -> pa.Table:
    """Return what the next piece must know: the last sessions, and the last print of each name that is silent since,
    on one day before them."""
    numbers = _numbers(table)
    days = np.unique(numbers)
    first = int(np.searchsorted(numbers, days[-BEFORE:][0]))
    names = pc.dictionary_encode(table["symbol"].combine_chunks())
    codes = names.indices.to_numpy()
    newest = np.full(len(names.dictionary), -1, dtype=np.int64)
    newest[codes] = np.arange(len(codes))
    silent = np.sort(newest[newest < first])
    kept = table.slice(first)
    if not len(silent):
        return kept
    older = table.take(pa.array(silent))
    day = pa.array(np.full(len(silent), numbers[first] - 1, dtype=np.int32)).cast(pa.date32())
    at = older.schema.get_field_index("date")
    return pa.concat_tables([older.set_column(at, "date", day.cast(table.schema.field("date").type)), kept])


def _numbers(rows: pa.Table | pa.RecordBatch) -> Ints:
    """Return the days of rows as numbers since 1970-01-01."""
    days: Ints = pc.cast(pc.cast(rows["date"], pa.date32()), pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64)
    return days


def _day(number: int) -> date:
    return date(1970, 1, 1) + timedelta(days=number)

"""Write many rows of one table quickly, column by column, and few rows safely.

A session of 150 orders writes some 500 rows; going through the statement compiler and the column types for
each value would cost more than the database does. The columns given here are storage-ready: integers of
10**-scale units for `Exact` columns, `date` for dates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import repeat

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Column, Connection, Date, Insert, Table, and_, select
from sqlalchemy.dialects import postgresql, sqlite

from oomrl.adapters.database.types import Exact, scaled, unscaled
from oomrl.errors import Halt


class Conflict(Halt):
    """The store already holds something else under the same key. Somebody wrote history twice, differently."""


def units(values: NDArray[np.float64], scale: int) -> list[int]:
    """Return floats as integers of 10**-scale units, to the nearest unit (this is the crossing into
    exactness).
    """
    whole: list[int] = np.rint(values * float(10**scale)).astype(np.int64).tolist()
    return whole


def optional_units(values: NDArray[np.float64], scale: int) -> list[int | None]:
    """Return floats as `units` does, None for NaN."""
    missing = np.isnan(values)
    whole: list[int | None] = list(units(np.where(missing, 0.0, values), scale))
    for row in np.flatnonzero(missing).tolist():
        whole[row] = None
    return whole


def exact_units(values: Iterable[Decimal | None], scale: int) -> list[int | None]:
    """Return decimals as integers of 10**-scale units; raise ValueError where that would round."""
    return [None if value is None else scaled(value, scale) for value in values]


def insert_columns(connection: Connection, table: Table, columns: Mapping[str, object], rows: int) -> int:
    """Insert `rows` rows and return how many were new; rows whose key is there already are left alone.

    `columns` maps each column to a list of length `rows`, or to one value for all of them.
    """
    if rows == 0:
        return 0
    name = connection.dialect.name
    mark = "?" if name == "sqlite" else "%s"
    names = ", ".join(f'"{column}"' for column in columns)
    marks = ", ".join([mark] * len(columns))
    series = [_series(table.c[column], values, name) for column, values in columns.items()]
    statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING'
    result = connection.exec_driver_sql(statement, list(zip(*series, strict=False))[:rows])
    return result.rowcount


def _series(column: Column[object], values: object, dialect: str) -> Iterable[object]:
    if isinstance(values, list):
        return [_ready(column, value, dialect) for value in values] if _needs_care(column, dialect) else values
    return repeat(_ready(column, values, dialect))


def _needs_care(column: Column[object], dialect: str) -> bool:
    if dialect == "sqlite":
        return isinstance(column.type, Date)
    return isinstance(column.type, Exact)


def _ready(column: Column[object], value: object, dialect: str) -> object:
    if value is None:
        return None
    if dialect == "sqlite":
        return value.isoformat() if isinstance(value, date) else value
    if isinstance(column.type, Exact):
        assert isinstance(value, int)
        return unscaled(value, column.type.scale)
    return value


def put(connection: Connection, table: Table, row: Mapping[str, object], may_differ: Sequence[str] = ()) -> bool:
    """Insert one row and return True; return False where the same row is there already.

    Raise `Conflict` where the key is taken by a row that differs in a column that is not in `may_differ`.
    """
    if connection.execute(_insert(table, connection.dialect.name), dict(row)).rowcount == 1:
        return True
    keys = [table.c[column.name] == row[column.name] for column in table.primary_key]
    there = connection.execute(select(table).where(and_(*keys))).mappings().one_or_none()
    if there is None:
        raise Conflict(f"Expected a new row in {table.name}, was another with the same unique columns as {_short(row)}")
    for name, value in row.items():
        if name not in may_differ and there[name] != value:
            raise Conflict(
                f"Expected {table.name} {_short(row)} to be written once, was {name} = {there[name]!r:.80} "
                f"and now {value!r:.80}: restore the backup, or start a new state directory"
            )
    return False


@cache
def _insert(table: Table, dialect: str) -> Insert:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    # Without the option some drivers do not say how many rows an INSERT has made.
    return insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)


def _short(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r:.60}" for name, value in list(row.items())[:3])

"""Move whole databases: a consistent copy as one SQLite file, rows back into an empty database, and Parquet.

A backup of PostgreSQL is an SQLite file too: it needs no tool of the server's version, and restores onto either kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Integer, Table, func, insert, select, text

from oomrl.adapters.database.engine import canonical
from oomrl.adapters.database.store import Store
from oomrl.adapters.database.tables import metadata
from oomrl.adapters.database.types import Exact
from oomrl.errors import Halt, Refused

BATCH = 1_000


def copy_rows(source: Connection, target: Connection) -> None:
    """Insert every row of one database into another, which has the same schema and no rows."""
    for table in metadata.sorted_tables:
        if target.scalar(select(func.count()).select_from(table)):
            raise Refused(f"Expected an empty database to restore into, was one with rows in {table.name}.")
    for table in metadata.sorted_tables:
        for rows in _rows(source, table):
            target.execute(insert(table), rows)
        _go_on_counting(target, table)


def _rows(connection: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    result = connection.execution_options(yield_per=BATCH).execute(select(table).order_by(*table.primary_key))
    for part in result.mappings().partitions(BATCH):
        yield [dict(row) for row in part]


def _go_on_counting(connection: Connection, table: Table) -> None:
    """Let PostgreSQL number new rows after the ones that were copied."""
    column = table.autoincrement_column
    if connection.dialect.name != "postgresql" or column is None or not isinstance(column.type, Integer):
        return
    top = connection.scalar(select(func.max(column)))
    name = connection.scalar(text("SELECT pg_get_serial_sequence(:t, :c)"), {"t": table.name, "c": column.name})
    if top is not None and name is not None:
        connection.execute(text("SELECT setval(:name, :top)"), {"name": name, "top": top})


def contents(connection: Connection) -> dict[str, tuple[int, str]]:
    """Return how many rows each table has and a digest of them, the same on every database."""
    found = {}
    for table in metadata.sorted_tables:
        total, count = hashlib.sha256(), 0
        for rows in _rows(connection, table):
            count += len(rows)
            for row in rows:
                total.update(canonical({name: _plain(value) for name, value in row.items()}).encode())
        found[table.name] = (count, total.hexdigest())
    return found


def _plain(value: object) -> object:
    if value is None or isinstance(value, (str, int, bool, dict, list)):
        return value
    if isinstance(value, float):
        return value.hex()
    return value.hex() if isinstance(value, bytes) else str(value)


def save_copy(store: Store, target: Path) -> dict[str, tuple[int, str]]:
    """Write a consistent copy as a new SQLite file while others read and write; return what is in it.

    The copy is opened and read again before it counts: raise `Halt` where it is not what was copied.
    """
    if store.engine.dialect.name == "sqlite":
        store.backup(target)
        with Store.open(target) as copy, copy.read() as view:
            return contents(view.connection)
    with store.read() as view, Store.open(target) as copy:
        with copy.begin() as work:
            copy_rows(view.connection, work.connection)
        with copy.read() as again:
            found = contents(again.connection)
        if found != contents(view.connection):
            raise Halt("Expected a copy equal to the database, was another: check the disk, then back up again")
    return found


def load_copy(source: Path, store: Store) -> dict[str, tuple[int, str]]:
    """Insert a copy's rows into an empty store, in one transaction; return what is in it."""
    with Store.open(source) as copy, copy.read() as view, store.begin() as work:
        copy_rows(view.connection, work.connection)
        found = contents(work.connection)
        if found != contents(view.connection):
            raise Halt("Expected the restored rows to equal the backup's, were others: nothing was restored")
    return found


def export(
    connection: Connection,
    folder: Path,
    tables: Sequence[Table] | None = None,
    where: ColumnElement[bool] | None = None,
) -> dict[str, int]:
    """Write tables as Parquet files, decimals as decimals; return how many rows each has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    counts = {}
    for table in tables or metadata.sorted_tables:
        query = select(table).order_by(*table.primary_key)
        rows = connection.execute(query if where is None else query.where(where)).mappings().all()
        columns = {
            column.name: pa.array([_storable(row[column.name]) for row in rows], _arrow(column.type, pa))
            for column in table.columns
        }
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), folder / f"{table.name}.parquet")
        counts[table.name] = len(rows)
    return counts


def _storable(value: object) -> object:
    return canonical(value) if isinstance(value, (dict, list)) else value


def _arrow(kind: object, pa: Any) -> Any:
    if isinstance(kind, Exact):
        return pa.decimal128(24, kind.scale)
    named = {
        "Date": pa.date32(),
        "Boolean": pa.bool_(),
        "LargeBinary": pa.binary(),
        "Utc": pa.timestamp("us", tz="UTC"),
        "Double": pa.float64(),
        "Integer": pa.int64(),
        "BigInteger": pa.int64(),
    }
    return named.get(type(kind).__name__, pa.string())

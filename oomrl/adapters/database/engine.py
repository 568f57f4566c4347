"""Open a database so that it behaves the same everywhere: one writer, foreign keys, durable commits."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from oomrl.errors import Mistake

#: How long a writer waits for the one before it. A session's transaction takes milliseconds.
BUSY_MS = 10_000


#: How long a PostgreSQL transaction may stand still. A writer that was paused or cut off in the middle of one keeps
#: its locks, and whoever leads after it would wait for them for ever.
STILL_MS = 4_000
#: How long a statement waits for a lock before it gives up and says so.
LOCK_MS = 8_000
#: A server that went away without a word is noticed within seconds.
_SERVER_CONNECTION = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8_000,
}


def _patient(url: URL) -> URL:
    """Return the URL with the server's limits for transactions that stand still and for waiting, beside its own."""
    limits = f"-c idle_in_transaction_session_timeout={STILL_MS} -c lock_timeout={LOCK_MS}"
    return url.update_query_dict({"options": f"{url.query.get('options', '')} {limits}".strip()})


def url_of(place: str | Path) -> URL:
    """Return the URL of a path (SQLite) or of a URL given as text."""
    if isinstance(place, Path) or "://" not in place:
        return URL.create("sqlite", database=str(place))
    try:
        url = make_url(place)
    except ArgumentError as error:
        raise Mistake(f"Expected a database URL such as postgresql://host/name, was {place!r}") from error
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise Mistake(f"Expected an SQLite path or a PostgreSQL URL, was {url.get_backend_name()!r}")
    return url


def apart(place: str, schema: str) -> str:
    """Return the URL of a schema of its own in a PostgreSQL database, so that accounts share a server, not tables."""
    url = url_of(place)
    return url.update_query_dict({"options": f"-csearch_path={schema}"}).render_as_string(hide_password=False)


def open_engine(place: str | Path, durable: bool = True) -> Engine:
    """Return an engine for a path or URL.

    SQLite runs in WAL mode. `durable` chooses synchronous=FULL: a commit has reached the disk when it
    returns, as an order's intent must before the broker hears of it. False chooses NORMAL, under which a
    power cut (never a killed process) may take back the last commits: right for simulations, which start
    again where they were.
    """
    url = url_of(place)
    if url.get_backend_name() == "sqlite":
        engine = create_engine(
            url,
            connect_args={"timeout": BUSY_MS / 1000, "check_same_thread": False},
            json_serializer=canonical,
        )
        _shape_sqlite(engine, "FULL" if durable else "NORMAL")
        return engine
    return create_engine(
        _patient(url), json_serializer=canonical, pool_pre_ping=True, connect_args=dict(_SERVER_CONNECTION)
    )


def canonical(value: object) -> str:
    """Return JSON with sorted keys and no blanks; refuse NaN, which JSON does not have."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def _shape_sqlite(engine: Engine, synchronous: str) -> None:
    @event.listens_for(engine, "connect")
    def connect(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own BEGIN comes late and is never IMMEDIATE; transactions are begun below instead.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA synchronous = {synchronous}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA cache_size = -32768")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes the lock at once: a lock taken halfway can fail with "busy" without any waiting.
        write = connection.get_execution_options().get("write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

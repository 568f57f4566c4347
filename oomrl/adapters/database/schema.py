"""Bring a database to the newest schema, or back, with Alembic and without any alembic.ini.

Alembic is loaded only where there is something to bring up: each job opens its store, and nearly all find it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.schema import CreateSchema

import oomrl
from oomrl.adapters.database.engine import LOCK_MS
from oomrl.adapters.database.tables import metadata
from oomrl.errors import Mistake

if TYPE_CHECKING:
    from alembic.config import Config


#: Alembic keeps what it works on in variables of its module: one thread at a time.
_ALEMBIC = Lock()


def folder() -> Path:
    """Return the folder of migrations: inside an installed package, or beside it in a checkout."""
    package = Path(oomrl.__file__).parent
    for place in (package / "_data" / "migrations", package.parent / "migrations"):
        if (place / "env.py").is_file():
            return place
    raise Mistake(f"Expected the folder migrations/ beside {package}, was missing: install the package again")


def _config(connection: Connection | None = None) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


@lru_cache
def revisions() -> tuple[str, ...]:
    """Return every revision that this version knows, oldest first: what its migrations' file names begin with."""
    return tuple(sorted(path.name.partition("_")[0] for path in (folder() / "versions").glob("[0-9]*_*.py")))


def newest() -> str:
    """Return the revision that this version of the program needs."""
    return revisions()[-1]


def current(connection: Connection) -> str | None:
    """Return the revision of a database, None when it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def _prepare(engine: Engine) -> None:
    """Make the PostgreSQL schema that a URL names (see `apart`), where it is not there yet."""
    _, _, rest = str(engine.url.query.get("options", "")).partition("search_path=")
    if name := rest.partition(" ")[0]:
        with engine.begin() as connection:
            _one_at_a_time(connection)
            connection.execute(CreateSchema(name, if_not_exists=True))


@contextmanager
def _unhurried(engine: Engine) -> Iterator[Connection]:
    """Give a transaction that changes the schema: a host that is slow between two statements does not lose it."""
    with _ALEMBIC, engine.connect().execution_options(write=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = '60s'")
            _one_at_a_time(connection)
        yield connection


def _one_at_a_time(connection: Connection) -> None:
    """Let no two processes change a PostgreSQL's schemas at once, as a file's lock has it: the second finds it done."""
    connection.exec_driver_sql("SET LOCAL lock_timeout = '120s'")
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('oomrl schemas'))")
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_MS}")


def upgrade(engine: Engine, to: str = "head") -> None:
    """Bring the database up in one transaction; refuse one that a newer version of the program has written."""
    with engine.connect() as connection:
        at = current(connection)
    if at is not None and at not in revisions():
        raise Mistake(
            f"Expected a database of schema {newest()} or older, was {at}, by a newer version of oomrl. "
            "Upgrade oomrl, or use another state directory"
        )
    if at == newest() and to == "head":
        return
    from alembic import command

    _prepare(engine)
    with _unhurried(engine) as connection:
        command.upgrade(_config(connection), to)


def downgrade(engine: Engine, to: str) -> None:
    """Bring the database back down to a revision ("base" empties it). What the older schema cannot hold is
    lost.
    """
    from alembic import command

    with _unhurried(engine) as connection:
        command.downgrade(_config(connection), to)


def differences(connection: Connection) -> list[object]:
    """Return what in the database differs from the declared metadata; empty when nothing does."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, metadata))


def draft(engine: Engine, message: str, revision: str) -> None:
    """Write a new migration from the difference between a database and the metadata, to be read and
    corrected.
    """
    from alembic import command

    with engine.connect() as connection:
        command.revision(_config(connection), message=message, autogenerate=True, rev_id=revision)

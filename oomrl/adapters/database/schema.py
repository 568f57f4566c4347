"""Bring a database to the newest schema, or back, with Alembic and without any alembic.ini."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine
from sqlalchemy.schema import CreateSchema

import oomrl
from oomrl.adapters.database.tables import metadata
from oomrl.errors import Mistake


def folder() -> Path:
    """Return the folder of migrations: inside an installed package, or beside it in a checkout."""
    package = Path(oomrl.__file__).parent
    for place in (package / "_data" / "migrations", package.parent / "migrations"):
        if (place / "env.py").is_file():
            return place
    raise Mistake(f"Expected the folder migrations/ beside {package}, was missing: install the package again")


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


@cache
def _revisions() -> tuple[str, ...]:
    """Return all revisions that this version of the program knows, the newest first."""
    return tuple(script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions())


def newest() -> str:
    """Return the revision that this version of the program needs."""
    return _revisions()[0]


def current(connection: Connection) -> str | None:
    """Return the revision of a database, None when it is empty."""
    return MigrationContext.configure(connection).get_current_revision()


def prepare(engine: Engine) -> None:
    """Make the PostgreSQL schema that a URL names (see `apart`), where it is not there yet."""
    _, _, rest = str(engine.url.query.get("options", "")).partition("search_path=")
    if name := rest.partition(" ")[0]:
        with engine.begin() as connection:
            connection.execute(CreateSchema(name, if_not_exists=True))


def upgrade(engine: Engine, to: str = "head") -> None:
    """Bring the database up in one transaction; refuse one that a newer version of the program has written."""
    with engine.connect() as connection:
        at = current(connection)
    if at is not None and at not in _revisions():
        raise Mistake(
            f"Expected a database of schema {newest()} or older, was {at}, by a newer version of oomrl. "
            "Upgrade oomrl, or use another state directory"
        )
    if at == newest() and to == "head":
        return
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        command.upgrade(_config(connection), to)


def downgrade(engine: Engine, to: str) -> None:
    """Bring the database back down to a revision ("base" empties it). What the older schema cannot hold is
    lost.
    """
    with engine.connect().execution_options(write=True) as connection, connection.begin():
        command.downgrade(_config(connection), to)


def differences(connection: Connection) -> list[object]:
    """Return what in the database differs from the declared metadata; empty when nothing does."""
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, metadata))


def draft(engine: Engine, message: str, revision: str) -> None:
    """Write a new migration from the difference between a database and the metadata, to be read and
    corrected.
    """
    with engine.connect() as connection:
        command.revision(_config(connection), message=message, autogenerate=True, rev_id=revision)

"""Where the stores of tests are: one database for each state directory, a file in it or one of a PostgreSQL's.

`pytest --database postgresql` keeps all of them on a server that the tests start from its programs. A test says
`place(state)` where it opens a store itself, and hands `environment(state)` or `settings(state)` to what opens it.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sqlalchemy import Executable, text

from oomrl.adapters.database import Store
from oomrl.adapters.database.engine import open_engine, url_of
from oomrl.adapters.database.place import FILE
from oomrl.settings import Settings, load
from oomrl.testing import postgres


class Server:
    """A PostgreSQL that starts when it is first asked for a database and ends with the tests."""

    def __init__(self) -> None:
        self._ending = ExitStack()
        self._url = self._migrated = ""
        self._numbers = itertools.count(1)

    def create(self, template: str = "template0") -> str:
        """Return the URL of a new database, a copy of another one ("template0" is empty)."""
        if not self._url:
            self._url = self._ending.enter_context(postgres.server()).url
        name = f"test_{next(self._numbers)}"
        engine = open_engine(self._url)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
        engine.dispose()
        return url_of(self._url).set(database=name).render_as_string()

    def migrated(self) -> str:
        """Return the URL of a new database at the newest schema."""
        if not self._migrated:
            url = self.create()
            Store.open(url).close()
            self._migrated = url_of(url).database or ""
        return self.create(self._migrated)

    def close(self) -> None:
        self._ending.close()


class Databases:
    """The tests' choice between both kinds, and which state directory has which database."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.server = Server()
        self._urls: dict[Path, str] = {}

    def place(self, state: Path) -> str:
        """Return the path or URL of a state directory's store, the same whenever it is asked for."""
        if self.kind == "sqlite":
            return str(state / FILE)
        known = state.absolute()
        if known not in self._urls:
            self._urls[known] = self.server.migrated()
        return self._urls[known]

    def copy(self, template: Path, state: Path) -> None:
        """Copy a state directory, with its database, whose store must be closed."""
        shutil.copytree(template, state)
        if self.kind == "postgresql":
            self._urls[state.absolute()] = self.server.create(url_of(self.place(template)).database or "")


#: Set by tests/conftest.py from the command line.
chosen = Databases("sqlite")


def place(state: Path) -> str:
    """Return where the store of a state directory is."""
    return chosen.place(state)


def environment(state: Path) -> dict[str, str]:
    """Return the variables that tell a process where the store of its state directory is."""
    return {} if chosen.kind == "sqlite" else {"OOMRL_DATABASE__URL": place(state)}


def of_command(arguments: Sequence[str]) -> dict[str, str]:
    """Return the variables that tell a command where the store of its --state is."""
    if "--state" not in arguments:
        return {}
    return environment(Path(arguments[arguments.index("--state") + 1]))


def settings(state: Path, values: Mapping[str, Any] | None = None) -> Settings:
    """Return settings for what works in this process on a state directory."""
    own = {} if chosen.kind == "sqlite" else {"database": {"url": place(state)}}
    return load(None, {**(values or {}), **own})


def rows(state: Path, statement: Executable) -> list[tuple[Any, ...]]:
    """Ask or change a state directory's database, past the store; a statement that returns no rows gives none."""
    engine = open_engine(place(state))
    with engine.begin() as connection:
        found = connection.execute(statement)
        answer = [tuple(row) for row in found] if found.returns_rows else []
    engine.dispose()
    return answer

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete

from oomrl.adapters.database import Store
from oomrl.adapters.database.tables import metadata


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give an empty database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "oomrl.db")
    create: Callable[[str], str] = request.getfixturevalue("postgres_database")
    return create("template0")


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "oomrl.db"
    Store.open(path).close()
    return path


@pytest.fixture(scope="session")
def migrated_postgresql(postgres_database: Callable[[str], str]) -> str:
    url = postgres_database("template0")
    Store.open(url).close()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give a store of each kind, empty and migrated."""
    if request.param == "sqlite":
        place = str(tmp_path / "oomrl.db")
        shutil.copy(request.getfixturevalue("migrated_sqlite"), place)
    else:
        place = request.getfixturevalue("migrated_postgresql")
    with Store.open(place) as opened:
        if request.param == "postgresql":
            # One database for all tests: a new one for each would copy megabytes of catalogue.
            with opened.engine.begin() as connection:
                for table in reversed(metadata.sorted_tables):
                    connection.execute(delete(table))
        yield opened

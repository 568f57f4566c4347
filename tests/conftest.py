"""Tests run beside one another, so numpy gets one thread in each process: more would only wait for each other."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import settings

from oomrl.testing import postgres
from tests import databases

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A test that holds is not slow because the machine is busy: no example has a time limit of its own.
settings.register_profile("here", parent=settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("here")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --database: what stores are kept in. Some tests run on both in any case."""
    parser.addoption("--database", choices=("sqlite", "postgresql"), default="sqlite")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the database of all tests."""
    databases.chosen = databases.Databases(config.getoption("--database"))
    if databases.chosen.kind == "postgresql" and postgres.missing():
        raise pytest.UsageError(f"--database postgresql: {postgres.missing()} is missing")


def pytest_unconfigure() -> None:
    """End the server, where one was started."""
    databases.chosen.server.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, on PostgreSQL, what is about SQLite's own file: the mark says what is."""
    for item in items:
        marked = item.get_closest_marker("sqlite")
        if marked is not None and databases.chosen.kind == "postgresql":
            item.add_marker(pytest.mark.skip(reason=f"on SQLite alone: {marked.args[0]}"))


@pytest.fixture(scope="session")
def postgres_database() -> Callable[[str], str]:
    """Give a maker of PostgreSQL databases, each a copy of another one ("template0" is empty)."""
    lack = postgres.missing()
    if lack:
        pytest.skip(f"PostgreSQL is not tested here: {lack} is missing")
    return databases.chosen.server.create

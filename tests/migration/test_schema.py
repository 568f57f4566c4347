from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, inspect, text

from oomrl.adapters.database import Store, schema
from oomrl.adapters.database.engine import apart, open_engine
from oomrl.adapters.database.tables import metadata
from oomrl.errors import Mistake
from tests.integration.database import builders as build
from tests.integration.database.conftest import place  # noqa: F401
from tests.integration.database.test_shelves import DIAGNOSTIC, LOSS, PROMPT, PROPOSAL, VERDICT


def test_a_migrated_database_equals_the_declared_metadata(place: str) -> None:  # noqa: F811
    engine = open_engine(place)
    schema.upgrade(engine)
    with engine.connect() as connection:
        assert schema.differences(connection) == []
        assert schema.current(connection) == schema.newest()
    engine.dispose()


def test_a_migrated_database_has_the_columns_of_a_created_one(place: str, tmp_path: Path) -> None:  # noqa: F811
    """The comparison by Alembic leaves out keys, checks and defaults; reflection does not."""
    migrated = open_engine(place)
    schema.upgrade(migrated)
    found = {table: _shape(migrated, table) for table in metadata.tables}
    migrated.dispose()
    created = open_engine(place if "://" in place else str(tmp_path / "created.db"))
    if "://" in place:
        with created.begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
    metadata.create_all(created)
    assert {table: _shape(created, table) for table in metadata.tables} == found
    created.dispose()


def _shape(engine, table: str) -> dict[str, object]:  # type: ignore[no-untyped-def]
    look = inspect(engine)
    return {
        "columns": [(c["name"], str(c["type"]), c["nullable"], c["default"]) for c in look.get_columns(table)],
        "key": look.get_pk_constraint(table),
        "foreign": sorted(map(str, look.get_foreign_keys(table))),
        "unique": sorted(map(str, look.get_unique_constraints(table))),
        "indexes": sorted(map(str, look.get_indexes(table))),
        "checks": sorted(str(check["name"]) for check in look.get_check_constraints(table)),
    }


def test_the_revisions_are_those_that_alembic_knows(place: str) -> None:  # noqa: F811
    scripts = ScriptDirectory(str(schema.folder()))
    assert [script.revision for script in scripts.walk_revisions()] == list(reversed(schema.revisions()))
    assert schema.newest() == scripts.get_current_head()
    engine = open_engine(place)
    schema.upgrade(engine)
    with engine.connect() as connection:
        assert schema.current(connection) == MigrationContext.configure(connection).get_current_revision()
    engine.dispose()


def test_up_and_down_and_up_again(place: str) -> None:  # noqa: F811
    engine = open_engine(place)
    schema.upgrade(engine)
    schema.downgrade(engine, "base")
    assert set(inspect(engine).get_table_names()) == {"alembic_version"}
    schema.upgrade(engine)
    with engine.connect() as connection:
        assert schema.differences(connection) == []
    engine.dispose()


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004"])
def test_an_upgrade_from_an_older_schema_keeps_every_row(place: str, revision: str) -> None:  # noqa: F811
    with Store.open(place) as store:
        fill(store)
        digest, prompts = contents(store)
        schema.downgrade(store.engine, revision)
        with store.engine.connect() as connection:
            assert schema.current(connection) == revision
            assert schema.differences(connection) != []
    with Store.open(place) as store:
        assert contents(store) == (digest, prompts)
        with store.engine.connect() as connection:
            assert schema.differences(connection) == []


def contents(store: Store) -> tuple[object, ...]:
    with store.read() as view:
        assert view.orders.counts(build.RUN) == (8, 6)
        assert view.prompts.all(build.RUN) == [PROMPT]
        return view.sessions.digest(build.RUN), view.prompts.all(build.RUN)


def fill(store: Store) -> None:
    with store.begin() as work:
        work.runs.start(build.run())
        work.sessions.save(build.RUN, build.record(0))
        work.sessions.save(build.RUN, build.record(1))
        work.losses.save(LOSS)
        work.losses.save_diagnostic(DIAGNOSTIC)
        work.prompts.ask(PROMPT)
        work.proposals.save(PROPOSAL)
        work.proposals.save_verdict(VERDICT)


def test_an_upgrade_on_a_slow_host_is_not_cut_off(place: str) -> None:  # noqa: F811
    engine, limits = open_engine(place), []
    if engine.dialect.name == "sqlite":
        pytest.skip("a file has no limit for transactions that stand still")

    @event.listens_for(engine, "after_cursor_execute")
    def look(connection, cursor, statement: str, *_: object) -> None:  # type: ignore[no-untyped-def]
        if "CREATE TABLE" in statement:
            limits.append(connection.connection.execute("SHOW idle_in_transaction_session_timeout").fetchone()[0])

    schema.upgrade(engine)
    assert limits and set(limits) == {"1min"}
    engine.dispose()


def test_processes_that_begin_at_once_find_one_schema(place: str) -> None:  # noqa: F811
    """A daemon, its metrics and its first jobs all open an account that is new."""
    begin = Barrier(6)
    where = place if "://" not in place else apart(place, "second")

    def opened(_: int) -> str | None:
        begin.wait(60)
        with Store.open(where) as store, store.read() as view:
            return schema.current(view.connection)

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(opened, range(6))) == {schema.newest()}


def test_a_database_of_a_newer_version_is_left_alone(place: str) -> None:  # noqa: F811
    Store.open(place).close()
    engine = open_engine(place)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(Mistake, match="newer version"):
        Store.open(place)


@pytest.mark.sqlite("a file is made where it is asked for")
def test_opening_needs_no_file_of_the_working_directory(tmp_path: Path) -> None:
    code = "import sys; from oomrl.adapters.database import Store; Store.open(sys.argv[1]).close()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path / "a.db")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "a.db").is_file()


def test_each_upgrade_leaves_the_previous_version_able_to_write(place: str) -> None:  # noqa: F811
    """What runs beside an upgrade knows the columns of before: all must stay, and no other may be demanded."""
    engine = open_engine(place)
    revisions = [f"{number:04d}" for number in range(1, int(schema.newest()) + 1)]
    schema.upgrade(engine)
    schema.downgrade(engine, revisions[0])
    before = _columns(engine)
    for revision in revisions[1:]:
        schema.upgrade(engine, revision)
        after = _columns(engine)
        for table, columns in before.items():
            for name, (kind, nullable, _) in columns.items():
                assert after[table][name][:2] == (kind, nullable), (revision, table, name)
            for name in set(after[table]) - set(columns):
                _, nullable, default = after[table][name]
                assert nullable or default is not None, (revision, table, name)
        before = after
    engine.dispose()


def _columns(engine) -> dict[str, dict[str, tuple[str, bool, object]]]:  # type: ignore[no-untyped-def]
    look = inspect(engine)
    return {
        table: {c["name"]: (str(c["type"]), c["nullable"], c["default"]) for c in look.get_columns(table)}
        for table in look.get_table_names()
    }

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from oomrl.adapters.database import Store
from oomrl.adapters.database.engine import open_engine, url_of
from oomrl.errors import Halt, Mistake
from tests import databases
from tests.integration.database import builders as build
from tests.integration.database.builders import RUN

#: What is about the file itself.
of_a_file = pytest.mark.sqlite("a server keeps its own files")


def pragma(store: Store, name: str) -> object:
    with store.read() as view:
        return view.connection.exec_driver_sql(f"PRAGMA {name}").scalar()


@of_a_file
def test_sqlite_is_opened_with_one_journal_and_keys_on(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        assert pragma(store, "journal_mode") == "wal"
        assert pragma(store, "synchronous") == 2
        assert pragma(store, "foreign_keys") == 1
        assert pragma(store, "busy_timeout") == 10_000
    with Store.open(tmp_path / "a.db", durable=False) as store:
        assert pragma(store, "synchronous") == 1


def test_a_url_without_a_driver_gets_ours() -> None:
    assert url_of("postgresql://host/name").drivername == "postgresql+psycopg"
    assert url_of("somewhere/oomrl.db").database == "somewhere/oomrl.db"


@pytest.mark.parametrize("place", ["mysql://host/name", "://", "http://host"])
def test_another_url_is_a_mistake(place: str) -> None:
    with pytest.raises(Mistake, match="Expected"):
        open_engine(place)


def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    with Store.open(databases.place(tmp_path), durable=False) as store, store.begin() as work:
        work.runs.start(build.run())
    errors: list[BaseException] = []

    def write(first: int) -> None:
        try:
            with Store.open(databases.place(tmp_path), durable=False) as mine:
                for number in range(first, 40, 2):
                    with mine.begin() as work:
                        work.sessions.save_bars(RUN, build.session(number))
        except BaseException as error:  # noqa: BLE001 - a thread's failure is asserted below
            errors.append(error)

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with Store.open(databases.place(tmp_path)) as store, store.read() as view:
        assert sum(1 for _ in view.sessions.bars(RUN)) == 40


def test_a_reader_sees_one_state_while_a_writer_goes_on(tmp_path: Path) -> None:
    with Store.open(databases.place(tmp_path)) as store:
        with store.begin() as work:
            work.runs.start(build.run())
            work.sessions.save(RUN, build.record(0))
        with store.read() as view:
            before = view.sessions.digest(RUN)
            with store.begin() as work:
                work.sessions.save(RUN, build.record(1))
            assert view.sessions.digest(RUN) == before
        with store.read() as view:
            assert view.sessions.digest(RUN) != before


@of_a_file
def test_a_file_that_is_no_database_halts_with_the_way_out(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    place.write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(Halt, match="oomrl restore"):
        Store.open(place)


@of_a_file
def test_a_missing_folder_halts_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(Halt, match="folder exists"):
        Store.open(tmp_path / "nowhere" / "a.db")


@of_a_file
def test_a_damaged_file_halts_with_the_way_out(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    with Store.open(place) as store, store.begin() as work:
        work.runs.start(build.run())
        for number in range(30):
            work.sessions.save(RUN, build.record(number))
    data = bytearray(place.read_bytes())
    for page in range(5, len(data) // 4096, 2):
        data[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    place.write_bytes(bytes(data))
    with pytest.raises(Halt, match="oomrl restore"), Store.open(place) as store:
        store.check()


@of_a_file
def test_a_backup_is_whole_while_a_writer_goes_on(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        with store.begin() as work:
            work.runs.start(build.run())
            work.sessions.save(RUN, build.record(0))
        with store.read() as view:
            before = view.sessions.digest(RUN)
        store.backup(tmp_path / "copy.db")
        with store.begin() as work:
            work.sessions.save(RUN, build.record(1))
        with pytest.raises(Mistake, match="exists"):
            store.backup(tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "copy.db"]
    with Store.open(tmp_path / "copy.db") as copy:
        copy.check()
        with copy.read() as view:
            assert view.sessions.digest(RUN) == before
        with copy.begin() as work:
            assert work.sessions.save(RUN, build.record(1))

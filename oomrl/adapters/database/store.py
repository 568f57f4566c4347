"""The store: one database, opened at its newest schema, written in whole transactions.

with store.begin() as work:      # one transaction: all of it, or nothing
    work.sessions.save(run, record)
    work.losses.save(loss)
with store.read() as view:       # a consistent view; shelves as above, nothing to be written
    view.prompts.pending(run)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from oomrl.adapters.database import schema
from oomrl.adapters.database.attestations import Attestations
from oomrl.adapters.database.capital import Capital
from oomrl.adapters.database.deployments import Deployments
from oomrl.adapters.database.engine import open_engine
from oomrl.adapters.database.jobs import Jobs, Leases
from oomrl.adapters.database.ledger import Ledger
from oomrl.adapters.database.losses import Losses
from oomrl.adapters.database.notices import Notices
from oomrl.adapters.database.orders import OrderBook
from oomrl.adapters.database.people import People
from oomrl.adapters.database.placements import Placements
from oomrl.adapters.database.prompts import Prompts
from oomrl.adapters.database.proposals import Proposals
from oomrl.adapters.database.reading import Reading
from oomrl.adapters.database.remarks import Remarks
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.sessions import Sessions
from oomrl.errors import Halt, Mistake


class Work:
    """One transaction, one shelf for each noun."""

    def __init__(self, connection: Connection, keys: Mapping[str, int] | None = None) -> None:
        self.connection = connection
        self.runs = Runs(connection, keys)
        self.orders = OrderBook(connection, self.runs)
        self.placements = Placements(connection, self.runs)
        self.ledger = Ledger(connection, self.runs)
        self.sessions = Sessions(connection, self.runs, self.orders, self.ledger)
        self.losses = Losses(connection, self.runs)
        self.prompts = Prompts(connection, self.runs)
        self.proposals = Proposals(connection, self.runs)
        self.deployments = Deployments(connection, self.runs)
        self.capital = Capital(connection, self.runs)
        self.attestations = Attestations(connection)
        self.jobs = Jobs(connection, self.runs)
        self.leases = Leases(connection)
        self.people = People(connection)
        self.remarks = Remarks(connection, self.runs)
        self.notices = Notices(connection)
        self.reading = Reading(connection, self.runs)


class Store:
    """A database at its newest schema. Close it, or use it as a context manager."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._keys: dict[str, int] = {}

    @classmethod
    def open(cls, place: str | Path, durable: bool = True) -> Store:
        """Open (and create, and migrate) the database at a path or URL.

        `durable` as in `open_engine`: False suits simulations alone. Raise `Mistake` for what is no database
        URL or was written by a newer version, `Halt` for a database that cannot be used.
        """
        engine = open_engine(place, durable)
        try:
            with _telling(engine):
                schema.upgrade(engine)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    @contextmanager
    def begin(self, beside: bool = False) -> Iterator[Work]:
        """Do one transaction: commit at the end of the block, undo it where the block raises.

        Never hold it across a call to the outside: intent in one, outcome in the next. One writer at a time, on every
        database: what the block reads is still so when it writes. `beside` waits for nobody, for what one statement
        decides, such as a lease.
        """
        with (
            _telling(self.engine),
            self.engine.connect().execution_options(write=True) as connection,
            connection.begin(),
        ):
            if connection.dialect.name == "postgresql" and not beside:
                # SQLite's writers take the file's lock as they begin; a schema's take this one.
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('oomrl ' || current_schema()))")
            work = Work(connection, self._keys)
            yield work
        self._keys = work.runs.keys

    @contextmanager
    def read(self) -> Iterator[Work]:
        """Look at one consistent state of the database; whatever is written in the block is undone."""
        with _telling(self.engine), self.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            transaction = connection.begin()
            try:
                if connection.dialect.name == "postgresql":
                    # A reader holds nothing up, and may take its time between two questions.
                    connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
                yield Work(connection, self._keys)
            finally:
                transaction.rollback()

    def check(self) -> None:
        """Raise `Halt` where the database's own check finds damage."""
        with self.read() as view:
            if view.connection.dialect.name != "sqlite":
                view.connection.execute(text("SELECT 1"))
                return
            found = [row[0] for row in view.connection.exec_driver_sql("PRAGMA quick_check")]
            if found != ["ok"]:
                raise Halt(f"Expected a sound database, was damaged: {'; '.join(found[:3])}. Run `oomrl restore`")

    def backup(self, target: Path) -> None:
        """Copy an SQLite database to a new file, whole and consistent, while others read and write.

        The copy appears under its name once it is complete and has been checked. For PostgreSQL use pg_dump.
        """
        if self.engine.dialect.name != "sqlite":
            raise Mistake("Expected an SQLite database, was PostgreSQL: back it up with pg_dump")
        if target.exists():
            raise Mistake(f"Expected a new file for the backup, was {target}, which exists")
        half = target.with_name(f".{target.name}.half")
        half.unlink(missing_ok=True)
        with _telling(self.engine):
            connection = self.engine.raw_connection()
            try:
                source = connection.driver_connection
                assert isinstance(source, sqlite3.Connection)
                with closing(sqlite3.connect(half)) as copy:
                    source.backup(copy)
                    copy.execute("PRAGMA journal_mode = DELETE")
                    found = copy.execute("PRAGMA integrity_check").fetchone()[0]
            finally:
                connection.close()
        if found != "ok":
            half.unlink()
            raise Halt(f"Expected a sound backup, was damaged: {found}. Check the disk and the database")
        half.replace(target)

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


#: What the database says, what it means, and the way out.
_TROUBLES = (
    ("lock timeout", "another process is writing to it: end that one, or wait for it"),
    ("idle-in-transaction", "this process stood still in mid-transaction, which was undone: it goes on by itself"),
    ("database is locked", "another process is writing to it: end that one, or wait for it"),
    ("disk is full", "the disk is full: make room, then run `oomrl resume`"),
    ("readonly database", "the file or its folder cannot be written: give the service's user the right to"),
    ("malformed", "the file is damaged: run `oomrl restore` with the last backup"),
    ("not a database", "the file is not a database: run `oomrl restore`, or name another state directory"),
    ("unable to open", "the file cannot be opened: check that the folder exists and may be written"),
    ("disk I/O error", "the disk does not answer: check it, then run `oomrl doctor`"),
)


@contextmanager
def _telling(engine: Engine) -> Iterator[None]:
    """Turn the driver's errors into a halt with the way out."""
    try:
        yield
    except IntegrityError as error:
        raise Halt(f"Expected rows that fit together in the database, was: {error.orig}") from error
    except (OperationalError, DBAPIError, sqlite3.Error) as error:
        said = str(getattr(error, "orig", None) or error)
        where = engine.url.render_as_string(hide_password=True)
        for sign, meaning in _TROUBLES:
            if sign in said:
                raise Halt(f"Could not use the database {where}: {meaning}") from error
        raise Halt(f"Could not use the database {where}: {' '.join(said.split())}. Run `oomrl doctor`") from error

"""Runs: who writes, with which settings, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, Row, insert, select, update

from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.tables import runs
from oomrl.domain.records import Json, Run, RunStatus
from oomrl.errors import Mistake


class Runs:
    """The shelf of runs, within one transaction."""

    def __init__(self, connection: Connection, keys: Mapping[str, int] | None = None) -> None:
        self._connection = connection
        #: What is known of the numbers; the store takes it over once the transaction has committed.
        self.keys: dict[str, int] = dict(keys or {})

    def start(self, run: Run) -> bool:
        """Write a run, or find it there (False). A run of that id with other settings is a `Conflict`."""
        row: dict[str, object] = {
            "name": run.id,
            "kind": run.kind,
            "settings": dict(run.settings),
            "seed": run.seed,
            "tape_digest": run.tape_digest,
            "started_at": run.started_at,
            "status": run.status.value,
            "result": None if run.result is None else dict(run.result),
        }
        key = self._connection.scalar(select(runs.c.id).where(runs.c.name == run.id))
        if key is None:
            self._connection.execute(insert(runs), row)
            return True
        return put(self._connection, runs, {"id": key, **row}, may_differ=("started_at", "status", "result"))

    def finish(self, run: str, status: RunStatus, result: Json | None = None) -> None:
        """Say how a run ended, with the figures that it printed."""
        values = {"status": status.value, "result": None if result is None else dict(result)}
        self._connection.execute(update(runs).where(runs.c.id == self.key(run)).values(**values))

    def get(self, run: str) -> Run | None:
        """Return a run, None where there is none of that id."""
        row = self._connection.execute(select(runs).where(runs.c.name == run)).one_or_none()
        return None if row is None else _run(row)

    def all(self) -> list[Run]:
        """Return every run, oldest first."""
        return [_run(row) for row in self._connection.execute(select(runs).order_by(runs.c.id))]

    def key(self, run: str) -> int:
        """Return the number under which the tables know a run; raise `Mistake` where there is none."""
        if run not in self.keys:
            key = self._connection.scalar(select(runs.c.id).where(runs.c.name == run))
            if key is None:
                raise Mistake(f"Expected the id of a run in this state directory, was {run!r}: see `oomrl status`")
            self.keys[run] = key
        return self.keys[run]


def _run(row: Row[tuple[object, ...]]) -> Run:
    return Run(
        row.name,
        row.kind,
        row.settings,
        row.seed,
        row.tape_digest,
        row.started_at,
        RunStatus(row.status),
        row.result,
    )

"""Losses and their diagnostics."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Connection, Row, select, update

from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import diagnostics, losses
from oomrl.domain.records import Loss, StoredDiagnostic
from oomrl.errors import Mistake


class Losses:
    """The shelf of losses and diagnostics, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def save(self, loss: Loss) -> bool:
        """Write a loss; return False where it is there already."""
        row = {
            "run_id": self._runs.key(loss.run),
            "id": loss.id,
            "day": loss.day,
            "level": loss.level,
            "measure": loss.measure,
            "value": loss.value,
            "threshold": loss.threshold,
            "at": loss.at,
            "detail": dict(loss.detail),
        }
        return put(self._connection, losses, row, may_differ=("at",))

    def all(self, run: str) -> list[Loss]:
        """Return the losses of a run, oldest first."""
        query = select(losses).where(losses.c.run_id == self._runs.key(run)).order_by(losses.c.day, losses.c.id)
        return [_loss(run, row) for row in self._connection.execute(query)]

    def newest(self, run: str, skip: int, most: int) -> list[Loss]:
        """Return some losses, newest first, without the first `skip`."""
        mine = select(losses).where(losses.c.run_id == self._runs.key(run))
        query = mine.order_by(losses.c.day.desc(), losses.c.id.desc()).offset(skip).limit(most)
        return [_loss(run, row) for row in self._connection.execute(query)]

    def marked(self, run: str) -> list[tuple[str, date, str, str]]:
        """Return id, day, level and measure of every loss, oldest first, without its details."""
        query = select(losses.c.id, losses.c.day, losses.c.level, losses.c.measure)
        query = query.where(losses.c.run_id == self._runs.key(run)).order_by(losses.c.day, losses.c.id)
        return [tuple(row) for row in self._connection.execute(query)]

    def get(self, run: str, loss: str) -> Loss | None:
        """Return one loss, None where there is none."""
        query = select(losses).where(losses.c.run_id == self._runs.key(run), losses.c.id == loss)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _loss(run, row)

    def save_diagnostic(self, diagnostic: StoredDiagnostic) -> bool:
        """Write a diagnostic; return False where it is there already. Its mandate and status may move on
        later.
        """
        row = {
            "run_id": self._runs.key(diagnostic.run),
            "id": diagnostic.id,
            "loss": diagnostic.loss,
            "day": diagnostic.day,
            "payload": dict(diagnostic.payload),
            "at": diagnostic.at,
            "mandate": diagnostic.mandate,
            "mandate_by": diagnostic.mandate_by,
            "confirmed": diagnostic.confirmed,
            "status": diagnostic.status,
        }
        moving = ("at", "mandate", "mandate_by", "confirmed", "status")
        return put(self._connection, diagnostics, row, may_differ=moving)

    def set_mandate(self, run: str, diagnostic: str, mandate: str, by: str, confirmed: bool) -> None:
        """Write who asks for what. A confirmed mandate may be replaced by a person alone: the caller knows
        who.
        """
        self._change(run, diagnostic, mandate=mandate, mandate_by=by, confirmed=confirmed)

    def set_status(self, run: str, diagnostic: str, status: str) -> None:
        """Move a diagnostic on: open, solved, escalated, given_up."""
        self._change(run, diagnostic, status=status)

    def diagnostic(self, run: str, diagnostic: str) -> StoredDiagnostic | None:
        """Return one diagnostic, None where there is none."""
        query = select(diagnostics).where(diagnostics.c.run_id == self._runs.key(run), diagnostics.c.id == diagnostic)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _diagnostic(run, row)

    def diagnostics(self, run: str, status: str | None = None) -> list[StoredDiagnostic]:
        """Return the diagnostics of a run (of one status), oldest first."""
        query = select(diagnostics).where(diagnostics.c.run_id == self._runs.key(run))
        if status is not None:
            query = query.where(diagnostics.c.status == status)
        rows = self._connection.execute(query.order_by(diagnostics.c.day, diagnostics.c.id))
        return [_diagnostic(run, row) for row in rows]

    def _change(self, run: str, diagnostic: str, **values: object) -> None:
        where = (diagnostics.c.run_id == self._runs.key(run)) & (diagnostics.c.id == diagnostic)
        if self._connection.execute(update(diagnostics).where(where).values(**values)).rowcount != 1:
            raise Mistake(f"Expected the id of a diagnostic of {run}, was {diagnostic!r}: see `oomrl status`")


def _loss(run: str, row: Row[tuple[object, ...]]) -> Loss:
    return Loss(row.id, run, row.day, row.level, row.measure, row.value, row.threshold, row.at, row.detail)


def _diagnostic(run: str, row: Row[tuple[object, ...]]) -> StoredDiagnostic:
    return StoredDiagnostic(
        id=row.id,
        loss=row.loss,
        run=run,
        day=row.day,
        payload=row.payload,
        at=row.at,
        mandate=row.mandate,
        mandate_by=row.mandate_by,
        confirmed=row.confirmed,
        status=row.status,
    )

"""Who looked at which proposal, what was said about it, and when nothing is deployed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, Row, select, update

from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import freezes, looks, remarks
from oomrl.domain.people import Freeze, Kind, Remark
from oomrl.errors import Mistake


class Remarks:
    """The shelf of looks, remarks and freezes, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def look(self, run: str, proposal: str, person: str, digest: str, at: datetime) -> bool:
        """Write that a person opened a diff; return False where that is known."""
        key = self._runs.key(run)
        row = {"run_id": key, "proposal": proposal, "person": person, "digest": digest, "at": at}
        return put(self._connection, looks, row, may_differ=("at",))

    def looked(self, run: str, proposal: str, person: str, digest: str) -> bool:
        """Say whether a person has opened the diff of that digest."""
        query = select(looks.c.at).where(
            looks.c.run_id == self._runs.key(run),
            looks.c.proposal == proposal,
            looks.c.person == person,
            looks.c.digest == digest,
        )
        return self._connection.execute(query).first() is not None

    def say(self, remark: Remark) -> bool:
        """Write a remark; return False where it is there already."""
        row = {
            "run_id": self._runs.key(remark.run),
            "id": remark.id,
            "proposal": remark.proposal,
            "author": remark.author,
            "text": remark.text,
            "at": remark.at,
            "kind": remark.kind.value,
            "path": remark.path,
            "line": remark.line,
            "side": remark.side,
            "blocking": remark.blocking,
            "severity": remark.severity,
            "resolution": remark.resolution,
            "answer": remark.answer,
            "resolved_by": remark.resolved_by,
            "resolved_at": remark.resolved_at,
        }
        moving = ("at", "resolution", "answer", "resolved_by", "resolved_at")
        return put(self._connection, remarks, row, may_differ=moving)

    def resolve(self, run: str, remark: str, resolution: str, answer: str, by: str, at: datetime) -> None:
        """Write how a remark was settled; the last word counts."""
        where = (remarks.c.run_id == self._runs.key(run)) & (remarks.c.id == remark)
        values = {"resolution": resolution, "answer": answer, "resolved_by": by, "resolved_at": at}
        if self._connection.execute(update(remarks).where(where).values(**values)).rowcount != 1:
            raise Mistake(f"Expected the id of a remark, was {remark!r}.")

    def get(self, run: str, remark: str) -> Remark | None:
        """Return one remark, None where there is none."""
        query = select(remarks).where(remarks.c.run_id == self._runs.key(run), remarks.c.id == remark)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _remark(run, row)

    def of(self, run: str, proposal: str) -> list[Remark]:
        """Return what was said about a proposal, oldest first."""
        query = select(remarks).where(remarks.c.run_id == self._runs.key(run), remarks.c.proposal == proposal)
        return [_remark(run, row) for row in self._connection.execute(query.order_by(remarks.c.at, remarks.c.id))]

    def freeze(self, freeze: Freeze) -> bool:
        """Write a freeze; return False where it is there already."""
        row = {
            "run_id": self._runs.key(freeze.run),
            "id": freeze.id,
            "first": freeze.first,
            "last": freeze.last,
            "reason": freeze.reason,
            "by": freeze.by,
            "at": freeze.at,
            "lifted_at": freeze.lifted_at,
            "lifted_by": freeze.lifted_by,
        }
        return put(self._connection, freezes, row, may_differ=("at", "lifted_at", "lifted_by"))

    def lift(self, run: str, freeze: str, by: str, at: datetime) -> None:
        """End a freeze; raise `Mistake` where there is none that holds."""
        where = (freezes.c.run_id == self._runs.key(run)) & (freezes.c.id == freeze) & freezes.c.lifted_at.is_(None)
        if self._connection.execute(update(freezes).where(where).values(lifted_at=at, lifted_by=by)).rowcount != 1:
            raise Mistake(f"Expected the id of a freeze that holds, was {freeze!r}.")

    def freezes(self, run: str) -> list[Freeze]:
        """Return every freeze, newest first."""
        query = select(freezes).where(freezes.c.run_id == self._runs.key(run)).order_by(freezes.c.at.desc())
        return [
            Freeze(r.id, run, r.first, r.last, r.reason, r.by, r.at, r.lifted_at, r.lifted_by)
            for r in self._connection.execute(query)
        ]


def _remark(run: str, row: Row[tuple[object, ...]]) -> Remark:
    return Remark(
        id=row.id,
        run=run,
        proposal=row.proposal,
        author=row.author,
        text=row.text,
        at=row.at,
        kind=Kind(row.kind),
        path=row.path,
        line=row.line,
        side=row.side,
        blocking=row.blocking,
        severity=row.severity,
        resolution=row.resolution,
        answer=row.answer,
        resolved_by=row.resolved_by,
        resolved_at=row.resolved_at,
    )

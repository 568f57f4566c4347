"""Deployments: which revision trades since when, and what it replaced."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Connection, Row, select, update

from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import deployments
from oomrl.domain.records import Deployment, DeploymentKind
from oomrl.errors import Halt


class Deployments:
    """The shelf of deployments, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def save(self, deployment: Deployment) -> bool:
        """Write a deployment; return False where it is there already.

        `sequence` counts from 1 without gaps and `base` is the revision that traded before; raise `Halt`
        else.
        """
        row = {
            "run_id": self._runs.key(deployment.run),
            "sequence": deployment.sequence,
            "revision": deployment.revision,
            "base": deployment.base,
            "kind": deployment.kind.value,
            "day": deployment.day,
            "at": deployment.at,
            "proposal": deployment.proposal,
            "reason": deployment.reason,
        }
        last = self.current(deployment.run)
        count = 0 if last is None else last.sequence
        if deployment.sequence > count:
            if deployment.sequence != count + 1:
                raise Halt(f"Expected deployment {count + 1} of {deployment.run}, was {deployment.sequence}")
            if last is not None and deployment.base != last.revision:
                raise Halt(f"Expected a deployment on {last.revision}, which trades, was one on {deployment.base}")
        return put(self._connection, deployments, row, may_differ=("at",))

    def redate(self, run: str, sequence: int, day: date) -> None:
        """Date a deployment by the close after which the loop heard of it."""
        mine = (deployments.c.run_id == self._runs.key(run)) & (deployments.c.sequence == sequence)
        self._connection.execute(update(deployments).where(mine).values(day=day))

    def current(self, run: str) -> Deployment | None:
        """Return the newest deployment, None before the first."""
        query = select(deployments).where(deployments.c.run_id == self._runs.key(run))
        row = self._connection.execute(query.order_by(deployments.c.sequence.desc()).limit(1)).one_or_none()
        return None if row is None else _deployment(run, row)

    def all(self, run: str) -> list[Deployment]:
        """Return the deployments of a run, oldest first."""
        query = select(deployments).where(deployments.c.run_id == self._runs.key(run))
        return [_deployment(run, row) for row in self._connection.execute(query.order_by(deployments.c.sequence))]


def _deployment(run: str, row: Row[tuple[object, ...]]) -> Deployment:
    return Deployment(
        run=run,
        sequence=row.sequence,
        revision=row.revision,
        base=row.base,
        kind=DeploymentKind(row.kind),
        day=row.day,
        at=row.at,
        proposal=row.proposal,
        reason=row.reason,
    )

"""The attestation chain as the store mirrors it. Signing and verifying belong to guardrails."""

from __future__ import annotations

from sqlalchemy import Connection, Row, select

from oomrl.adapters.database.bulk import Conflict, put
from oomrl.adapters.database.tables import attestations
from oomrl.domain.records import StoredAttestation


class Attestations:
    """The shelf of attestations, one chain for the whole state directory, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def append(self, link: StoredAttestation) -> bool:
        """Write the next link; return False where it is there already. One that does not fit is a `Conflict`."""
        head = self.head()
        sequence, digest = (0, "") if head is None else (head.sequence, head.digest)
        if link.sequence > sequence and (link.sequence, link.previous) != (sequence + 1, digest):
            raise Conflict(
                f"Expected attestation {sequence + 1} on {digest[:12] or 'nothing'}, "
                f"was {link.sequence} on {link.previous[:12] or 'nothing'}: run `oomrl audit verify`"
            )
        row = {
            "sequence": link.sequence,
            "digest": link.digest,
            "previous": link.previous,
            "kind": link.kind,
            "subject": link.subject,
            "envelope": link.envelope,
            "at": link.at,
        }
        return put(self._connection, attestations, row, may_differ=("at",))

    def head(self) -> StoredAttestation | None:
        """Return the newest link, None before the first."""
        query = select(attestations).order_by(attestations.c.sequence.desc()).limit(1)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _link(row)

    def all(self) -> list[StoredAttestation]:
        """Return the chain, oldest link first."""
        query = select(attestations).order_by(attestations.c.sequence)
        return [_link(row) for row in self._connection.execute(query)]


def _link(row: Row[tuple[object, ...]]) -> StoredAttestation:
    return StoredAttestation(row.sequence, row.digest, row.previous, row.kind, row.subject, row.envelope, row.at)

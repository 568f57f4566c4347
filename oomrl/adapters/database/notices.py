"""What people have been told, so that nobody is told twice."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select, update

from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.tables import notices


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell: `key` names the event for ever, `kind` what it is, `text` one line without a secret."""

    key: str
    kind: str
    text: str
    at: datetime


class Notices:
    """The shelf of notices, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, notice: Notice) -> bool:
        """Write a notice that is to be sent; return False where its event is known."""
        row = {"key": notice.key, "kind": notice.kind, "text": notice.text, "at": notice.at, "sent_at": None}
        return put(self._connection, notices, row, may_differ=("kind", "text", "at", "sent_at"))

    def unsent(self) -> list[Notice]:
        """Return what still has to be told, oldest first."""
        query = select(notices).where(notices.c.sent_at.is_(None)).order_by(notices.c.at, notices.c.key)
        return [Notice(row.key, row.kind, row.text, row.at) for row in self._connection.execute(query)]

    def sent(self, keys: list[str], at: datetime) -> None:
        """Note that these have been told."""
        self._connection.execute(update(notices).where(notices.c.key.in_(keys)).values(sent_at=at))

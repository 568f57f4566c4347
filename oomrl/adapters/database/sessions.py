"""Sessions: everything one close changes, written at once; marks, decisions, bars and checkpoints read back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from sqlalchemy import Connection, Row, Select, delete, select

from oomrl.adapters.database.blobs import (
    decision_columns,
    decision_of,
    pack_json,
    pack_session,
    unpack_json,
    unpack_session,
)
from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.engine import canonical
from oomrl.adapters.database.ledger import Ledger
from oomrl.adapters.database.orders import OrderBook
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import bars, checkpoints, decisions, marks
from oomrl.domain.market import Session
from oomrl.domain.records import Decided, Json, Mark, SessionRecord


class Sessions:
    """The shelf of sessions, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs, orders: OrderBook, ledger: Ledger) -> None:
        self._connection = connection
        self._runs = runs
        self._orders = orders
        self._ledger = ledger

    def save(self, run: str, record: SessionRecord) -> bool:
        """Write one session whole and return True; return False where the same session is there already.

        Raise `Conflict` where that day is there with another mark.
        """
        key = self._runs.key(run)
        row = _mark_row(record.mark)
        if not put(self._connection, marks, {"run_id": key, **row}):
            return False
        if record.session is not None:
            self.save_bars(run, record.session)
        if record.execution is not None:
            self._orders.save_execution(run, record.execution)
        if record.decided is not None:
            self.save_decision(run, record.decided)
        if record.orders is not None:
            self._orders.save(run, record.orders, record.live_on)
        self._ledger.post(run, record.entries)
        if record.checkpoint is not None:
            self.save_checkpoint(run, record.day, record.checkpoint)
        return True

    def save_bars(self, run: str, session: Session) -> bool:
        """Write the bars of a session as they were sent. Other bars for the same day are a `Conflict`."""
        row = {
            "run_id": self._runs.key(run),
            "day": session.day,
            "names": len(session.symbols),
            "blob": pack_session(session),
        }
        return put(self._connection, bars, row)

    def save_decision(self, run: str, decided: Decided) -> bool:
        """Write a decision. Another decision for the same day is a `Conflict`."""
        row = {"run_id": self._runs.key(run), "day": decided.day, "revision": decided.revision}
        return put(self._connection, decisions, row | decision_columns(decided.decision))

    def save_checkpoint(self, run: str, day: date, state: Json) -> None:
        """Write the state from which the next session goes on, and drop the older ones."""
        key = self._runs.key(run)
        self._connection.execute(delete(checkpoints).where(checkpoints.c.run_id == key, checkpoints.c.day <= day))
        put(self._connection, checkpoints, {"run_id": key, "day": day, "blob": pack_json(state)})

    def checkpoint(self, run: str) -> tuple[date, dict[str, object]] | None:
        """Return the newest checkpoint and its day, None before the first."""
        query = select(checkpoints).where(checkpoints.c.run_id == self._runs.key(run))
        row = self._connection.execute(query.order_by(checkpoints.c.day.desc()).limit(1)).one_or_none()
        return None if row is None else (row.day, unpack_json(row.blob))

    def marks(self, run: str, after: date | None = None, until: date | None = None) -> list[Mark]:
        """Return the marks with after < day <= until, oldest first."""
        query = _between(select(marks).where(marks.c.run_id == self._runs.key(run)), marks, after, until)
        return [_mark(row) for row in self._connection.execute(query.order_by(marks.c.day))]

    def last_mark(self, run: str) -> Mark | None:
        """Return the newest mark, None before the first."""
        query = select(marks).where(marks.c.run_id == self._runs.key(run)).order_by(marks.c.day.desc()).limit(1)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _mark(row)

    def bars(self, run: str, after: date | None = None, until: date | None = None) -> Iterator[Session]:
        """Yield the sessions as they were sent, with after < day <= until, oldest first."""
        query = _between(select(bars).where(bars.c.run_id == self._runs.key(run)), bars, after, until)
        shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        for row in self._connection.execute(query.order_by(bars.c.day)):
            yield unpack_session(row.day, row.blob, shared)

    def decisions(self, run: str, after: date | None = None, until: date | None = None) -> list[Decided]:
        """Return the decisions with after < day <= until, oldest first."""
        query = select(decisions).where(decisions.c.run_id == self._runs.key(run))
        query = _between(query, decisions, after, until)
        return [
            Decided(row.day, row.revision, decision_of(row.kind, row.weights, row.plan, row.reasons))
            for row in self._connection.execute(query.order_by(decisions.c.day))
        ]

    def digest(self, run: str) -> str:
        """Return one digest over all marks of a run: equal runs have equal digests."""
        query = select(marks.c.digest).where(marks.c.run_id == self._runs.key(run)).order_by(marks.c.day)
        total = hashlib.sha256()
        for (digest,) in self._connection.execute(query):
            total.update(bytes.fromhex(digest))
        return total.hexdigest()


def _between(query: Select, table: object, after: date | None, until: date | None) -> Select:  # type: ignore[type-arg]
    day = table.c.day  # type: ignore[attr-defined]
    if after is not None:
        query = query.where(day > after)
    return query if until is None else query.where(day <= until)


def _mark_row(mark: Mark) -> dict[str, object]:
    row: dict[str, object] = {
        "day": mark.day,
        "equity": mark.equity,
        "cash": mark.cash,
        "broker_cash": mark.broker_cash,
        "flow": mark.flow,
        "pnl": mark.pnl,
        "benchmark": mark.benchmark,
        "drawdown": mark.drawdown,
        "principal_loss": mark.principal_loss,
        "reward": mark.reward,
        "parts": {name: str(value) for name, value in mark.parts.items()},
        "turnover": mark.turnover,
        "friction": mark.friction,
        "state": mark.state,
    }
    plain = {name: str(value) if isinstance(value, Decimal | date) else value for name, value in row.items()}
    for name in ("equity", "cash", "broker_cash", "flow", "pnl", "friction"):
        plain[name] = f"{row[name]:.2f}"
    row["digest"] = hashlib.sha256(canonical(plain).encode()).hexdigest()
    return row


def _mark(row: Row[tuple[object, ...]]) -> Mark:
    return Mark(
        day=row.day,
        equity=row.equity,
        cash=row.cash,
        broker_cash=row.broker_cash,
        pnl=row.pnl,
        flow=row.flow,
        benchmark=row.benchmark,
        drawdown=row.drawdown,
        principal_loss=row.principal_loss,
        reward=row.reward,
        parts={name: Decimal(value) for name, value in row.parts.items()},
        turnover=row.turnover,
        friction=row.friction,
        state=row.state,
    )

"""The right to trade: endowments, halts, resumptions and the absorbing end, as events that never change."""

from __future__ import annotations

from datetime import date

from sqlalchemy import Connection, func, select, update

from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import capital_events
from oomrl.domain.records import CapitalEvent, CapitalKind, CapitalState


class Capital:
    """The shelf of capital events, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def save(self, event: CapitalEvent) -> bool:
        """Write an event; return False where its key is there already."""
        key = self._runs.key(event.run)
        mine = capital_events.c.run_id == key
        there = self._connection.scalar(
            select(capital_events.c.sequence).where(mine, capital_events.c.key == event.key)
        )
        last = self._connection.scalar(select(func.max(capital_events.c.sequence)).where(mine)) or 0
        row = {
            "run_id": key,
            "sequence": last + 1 if there is None else there,
            "key": event.key,
            "kind": event.kind.value,
            "day": event.day,
            "at": event.at,
            "amount": event.amount,
            "by": event.by,
            "reason": event.reason,
        }
        return put(self._connection, capital_events, row, may_differ=("at",))

    def redate(self, run: str, key: str, day: date) -> None:
        """Date an event by the close after which the loop heard of it."""
        mine = (capital_events.c.run_id == self._runs.key(run)) & (capital_events.c.key == key)
        self._connection.execute(update(capital_events).where(mine).values(day=day))

    def events(self, run: str) -> list[CapitalEvent]:
        """Return the events of a run in the order in which they happened."""
        query = select(capital_events).where(capital_events.c.run_id == self._runs.key(run))
        return [
            CapitalEvent(r.key, run, CapitalKind(r.kind), r.day, r.at, r.amount, r.by, r.reason)
            for r in self._connection.execute(query.order_by(capital_events.c.sequence))
        ]

    def state(self, run: str) -> CapitalState:
        """Return where the events have led. A restart changes nothing of it."""
        state = CapitalState()
        for event in self.events(run):
            state = state.after(event)
        return state

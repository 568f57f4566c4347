"""Orders and fills: batches from the engine as arrays, single ones from a broker as records."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import numpy as np
from sqlalchemy import Connection, CursorResult, Row, Select, func, select, update

from oomrl.adapters.database.bulk import Conflict, insert_columns, optional_units, put, units
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import PRICE, SHARES, fills, order_events, orders
from oomrl.adapters.database.types import unscaled
from oomrl.domain.records import FINAL_STATES, OrderEvent, OrderState, StoredFill, StoredOrder
from oomrl.domain.trading import Execution, Orders, Side, UnfilledCause
from oomrl.errors import Halt

#: Below this many shares an order counts as filled: one unit of the column.
DUST = 10.0**-SHARES

_BY_DECISION = "ix_orders_run_id_orders_decided_on_orders_live_on"


class OrderBook:
    """The shelf of orders, their events and fills, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def save(
        self,
        run: str,
        batch: Orders,
        live_on: date | None,
        state: OrderState = OrderState.INTENDED,
        attempt: int = 1,
    ) -> int:
        """Write a batch and return how many orders were new. An id that stands for another order is a
        `Conflict`.
        """
        n = len(batch)
        columns: dict[str, object] = {
            "run_id": self._runs.key(run),
            "client_order_id": list(batch.ids),
            "decided_on": batch.decided_on,
            "live_on": live_on,
            "position": list(range(n)),
            "symbol": list(batch.symbols),
            "side": [Side.BUY.value if buy else Side.SELL.value for buy in (batch.shares > 0).tolist()],
            "shares": units(batch.shares, SHARES),
            "limit_price": optional_units(batch.limit, PRICE),
            "participation": batch.participation.tolist(),
            "state": state.value,
            "reason": list(batch.reasons),
            "attempt": attempt,
            "unfilled": None,
            "cause": UnfilledCause.NONE.value,
        }
        new = insert_columns(self._connection, orders, columns, n)
        if new < n:
            self._check(run, batch)
        return new

    def _check(self, run: str, batch: Orders) -> None:
        shares = units(batch.shares, SHARES)
        for row, name in enumerate(batch.ids):
            there = self.get(run, name)
            same = there is not None and (there.symbol, there.shares, there.decided_on) == (
                (batch.symbols[row], unscaled(shares[row], SHARES), batch.decided_on)
            )
            if not same:
                raise Conflict(f"Expected order {name} to be written once, was {there}, now {batch.record(row)}")

    def save_execution(self, run: str, execution: Execution) -> None:
        """Write the fills of a session and what became of its orders."""
        key = self._runs.key(run)
        batch, done = execution.orders, execution.fills
        if len(batch) == 0:
            return
        ids = [batch.ids[row] for row in done.order.tolist()]
        seen = self._fill_counts(key, execution)
        sequence = []
        for name in ids:
            seen[name] += 1
            sequence.append(seen[name])
        columns: dict[str, object] = {
            "run_id": key,
            "client_order_id": ids,
            "sequence": sequence,
            "day": execution.day,
            "symbol": [batch.symbols[row] for row in done.order.tolist()],
            "shares": units(done.shares, SHARES),
            "price": units(done.price, PRICE),
            "amount": done.cents.tolist(),
            "commission": execution.commission.tolist(),
            "regulatory": execution.regulatory.tolist(),
            "reference": done.reference.tolist(),
            "open": done.open.tolist(),
            "spread": done.spread.tolist(),
            "impact": done.impact.tolist(),
        }
        insert_columns(self._connection, fills, columns, len(ids))
        self._settle(key, execution)

    def _fill_counts(self, key: int, execution: Execution) -> Counter[str]:
        """Return how many fills the batch's orders have had in earlier sessions: none, if this is their first."""
        if not self._batch("SELECT count(unfilled) FROM orders", key, execution).scalar():
            return Counter()
        query = (
            select(fills.c.client_order_id, func.max(fills.c.sequence))
            .where(fills.c.run_id == key, fills.c.client_order_id.in_(execution.orders.ids))
            .group_by(fills.c.client_order_id)
        )
        return Counter(dict(self._connection.execute(query).all()))

    def _batch(self, statement: str, key: int, execution: Execution, values: str = "") -> CursorResult[Any]:
        """Run a statement over the orders of one decision. Without the hint SQLite would scan the whole run."""
        sqlite = self._connection.dialect.name == "sqlite"
        hint, mark, day = (f"INDEXED BY {_BY_DECISION}", "?", execution.orders.decided_on.isoformat()) if sqlite else (
            "", "%s", execution.orders.decided_on
        )  # fmt: skip
        where = f"WHERE run_id = {mark} AND decided_on = {mark}"
        return self._connection.exec_driver_sql(f"{statement} {hint} {values} {where}", (key, day))

    def _settle(self, key: int, execution: Execution) -> None:
        batch = execution.orders
        left = np.abs(execution.unfilled) > DUST
        rows = list(range(len(batch)))
        if self._batch("SELECT count(*) FROM orders", key, execution).scalar() == len(batch):
            # The batch is the whole decision, as it nearly always is: one statement for all that was filled.
            self._batch("UPDATE orders", key, execution, "SET state = 'filled', unfilled = 0, cause = 'none'")
            rows = np.flatnonzero(left).tolist()
        missing = units(np.where(left, execution.unfilled, 0.0), SHARES)
        sqlite = self._connection.dialect.name == "sqlite"
        mark = "?" if sqlite else "%s"
        values = [
            (
                OrderState.EXPIRED.value if left[row] else OrderState.FILLED.value,
                missing[row] if sqlite else unscaled(missing[row], SHARES),
                execution.causes[row].value,
                key,
                batch.ids[row],
            )
            for row in rows
        ]
        if values:
            self._connection.exec_driver_sql(
                f"UPDATE orders SET state = {mark}, unfilled = {mark}, cause = {mark} "
                f"WHERE run_id = {mark} AND client_order_id = {mark}",
                values,
            )

    def move(self, run: str, event: OrderEvent, state: OrderState) -> bool:
        """Record an event of one order and its new state; return False where the event is there already.

        A final state is never left: raise `Halt` for an event that would.
        """
        key = self._runs.key(run)
        there = self.get(run, event.client_order_id)
        if there is None:
            raise Halt(f"Expected the intent of order {event.client_order_id} to be durable first, was none")
        row = {
            "run_id": key,
            "client_order_id": event.client_order_id,
            "sequence": event.sequence,
            "at": event.at,
            "kind": event.kind,
            "detail": dict(event.detail),
        }
        if not put(self._connection, order_events, row):
            return False
        if there.state in FINAL_STATES and there.state is not state:
            raise Halt(f"Expected order {event.client_order_id} to stay {there.state}, was told {event.kind}")
        self._connection.execute(
            update(orders)
            .where(orders.c.run_id == key, orders.c.client_order_id == event.client_order_id)
            .values(state=state.value)
        )
        return True

    def add_fill(self, run: str, fill: StoredFill) -> bool:
        """Write one fill of a broker; return False where it is there already. Another content is a
        `Conflict`.
        """
        row = {
            "run_id": self._runs.key(run),
            "client_order_id": fill.client_order_id,
            "sequence": fill.sequence,
            "day": fill.day,
            "symbol": fill.symbol,
            "shares": fill.shares,
            "price": fill.price,
            "amount": fill.amount,
            "commission": fill.commission,
            "regulatory": fill.regulatory,
            "reference": fill.reference,
            "open": fill.open,
            "spread": fill.spread,
            "impact": fill.impact,
        }
        return put(self._connection, fills, row)

    def get(self, run: str, client_order_id: str) -> StoredOrder | None:
        """Return one order, None where there is none."""
        query = self._orders(run).where(orders.c.client_order_id == client_order_id)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else order_of(row)

    def decided_on(self, run: str, day: date) -> list[StoredOrder]:
        """Return the orders of one decision, in the order in which they are worked."""
        query = self._orders(run).where(orders.c.decided_on == day).order_by(orders.c.position)
        return [order_of(row) for row in self._connection.execute(query)]

    def open(self, run: str) -> list[StoredOrder]:
        """Return the orders that may still trade, oldest first."""
        query = self._orders(run).where(orders.c.state.not_in([state.value for state in FINAL_STATES]))
        return [
            order_of(row) for row in self._connection.execute(query.order_by(orders.c.decided_on, orders.c.position))
        ]

    def fills(self, run: str, after: date | None = None, until: date | None = None) -> list[StoredFill]:
        """Return the fills with after < day <= until, by day, order and sequence."""
        query = select(fills).where(fills.c.run_id == self._runs.key(run))
        if after is not None:
            query = query.where(fills.c.day > after)
        if until is not None:
            query = query.where(fills.c.day <= until)
        query = query.order_by(fills.c.day, fills.c.client_order_id, fills.c.sequence)
        return [fill_of(row) for row in self._connection.execute(query)]

    def events(self, run: str, client_order_id: str) -> list[OrderEvent]:
        """Return what is known of one order, oldest first."""
        query = select(order_events).where(
            order_events.c.run_id == self._runs.key(run), order_events.c.client_order_id == client_order_id
        )
        return [
            OrderEvent(row.client_order_id, row.sequence, row.at, row.kind, row.detail)
            for row in self._connection.execute(query.order_by(order_events.c.sequence))
        ]

    def counts(self, run: str) -> tuple[int, int]:
        """Return how many orders and how many fills a run has."""
        key = self._runs.key(run)
        return (
            self._connection.scalar(select(func.count()).select_from(orders).where(orders.c.run_id == key)) or 0,
            self._connection.scalar(select(func.count()).select_from(fills).where(fills.c.run_id == key)) or 0,
        )

    def _orders(self, run: str) -> Select[tuple[object, ...]]:
        return select(orders).where(orders.c.run_id == self._runs.key(run))


def order_of(row: Row[tuple[object, ...]]) -> StoredOrder:
    return StoredOrder(
        client_order_id=row.client_order_id,
        decided_on=row.decided_on,
        live_on=row.live_on,
        symbol=row.symbol,
        shares=row.shares,
        limit_price=row.limit_price,
        participation=row.participation,
        state=OrderState(row.state),
        reason=row.reason,
        attempt=row.attempt,
        unfilled=row.unfilled,
        cause=UnfilledCause(row.cause),
    )


def fill_of(row: Row[tuple[object, ...]]) -> StoredFill:
    return StoredFill(
        client_order_id=row.client_order_id,
        sequence=row.sequence,
        day=row.day,
        symbol=row.symbol,
        shares=row.shares,
        price=row.price,
        amount=row.amount,
        commission=row.commission,
        regulatory=row.regulatory,
        reference=row.reference,
        open=row.open,
        spread=row.spread,
        impact=row.impact,
    )

"""What went out to the broker and what came back: placements, the broker's fills, lines of the account, mismatches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import Connection, Row, func, select, update

from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import broker_fills, cash_moves, mismatches, placements
from oomrl.domain.brokerage import BookedFill, BrokerFill, CashMove, FillDetail, Placement
from oomrl.domain.reconciliation import Mismatch, MismatchKind, Policy
from oomrl.domain.records import OrderState
from oomrl.domain.trading import Side

#: What the broker's answers change of a placement; the rest is as it was intended.
_HEARD = ("state", "broker_id", "filled", "cancelling", "doubtful", "note")


class Placements:
    """The shelf of placements and what the broker said of them, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def intend(self, run: str, intended: Sequence[Placement]) -> int:
        """Write placements and return how many were new; one that is there keeps what was heard of it."""
        key = self._runs.key(run)
        return sum(
            put(self._connection, placements, {"run_id": key, **_columns(placement)}, (*_HEARD, "intended_at"))
            for placement in intended
        )

    def hear(self, run: str, heard: Sequence[Placement]) -> None:
        """Write what the broker said of placements."""
        key = self._runs.key(run)
        for placement in heard:
            row = _columns(placement)
            self._connection.execute(
                update(placements)
                .where(placements.c.run_id == key, placements.c.client_order_id == placement.client_order_id)
                .values({name: row[name] for name in _HEARD})
            )

    def book(self, run: str, lines: Sequence[BookedFill]) -> int:
        """Write fills and return how many were new. Another fill under the same id is a `Conflict`."""
        key = self._runs.key(run)
        return sum(put(self._connection, broker_fills, {"run_id": key, **_fill_columns(line)}) for line in lines)

    def keep(self, run: str, moves: Sequence[CashMove]) -> int:
        """Write lines of the account that are no trades and return how many were new."""
        key = self._runs.key(run)
        return sum(put(self._connection, cash_moves, {"run_id": key, **asdict(move)}) for move in moves)

    def note(self, run: str, found: Sequence[Mismatch], at: datetime) -> None:
        """Write mismatches in the order in which they were found."""
        key = self._runs.key(run)
        query = select(func.max(mismatches.c.sequence)).where(mismatches.c.run_id == key)
        last = self._connection.scalar(query) or 0
        for turn, mismatch in enumerate(found, start=last + 1):
            row = {"run_id": key, "sequence": turn, "at": at, **asdict(mismatch)}
            put(self._connection, mismatches, {**row, "kind": mismatch.kind.value, "policy": mismatch.policy.value})

    def of_orders(self, run: str, orders: Sequence[str]) -> list[Placement]:
        """Return the placements of some orders, by order and attempt."""
        query = select(placements).where(placements.c.run_id == self._runs.key(run), placements.c.for_order.in_(orders))
        rows = self._connection.execute(query.order_by(placements.c.for_order, placements.c.attempt))
        return [_placement(row) for row in rows]

    def get(self, run: str, client_order_id: str) -> Placement | None:
        """Return one placement, None where there is none."""
        query = select(placements).where(
            placements.c.run_id == self._runs.key(run), placements.c.client_order_id == client_order_id
        )
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _placement(row)

    def booked(self, run: str, orders: Sequence[str]) -> list[BookedFill]:
        """Return the fills booked for some orders, in the order of time and id."""
        query = select(broker_fills).where(
            broker_fills.c.run_id == self._runs.key(run), broker_fills.c.for_order.in_(orders)
        )
        return [_booked(row) for row in self._connection.execute(query.order_by(broker_fills.c.at, broker_fills.c.id))]

    def moves(self, run: str) -> dict[date, list[CashMove]]:
        """Return the lines of the account that are no trades, by day."""
        query = select(cash_moves).where(cash_moves.c.run_id == self._runs.key(run)).order_by(cash_moves.c.id)
        found: dict[date, list[CashMove]] = {}
        for r in self._connection.execute(query):
            line = CashMove(r.id, r.kind, r.day, r.amount, r.symbol, r.qty, r.a_share, r.note)
            found.setdefault(r.day, []).append(line)
        return found

    def mismatches(self, run: str) -> list[tuple[datetime, Mismatch]]:
        """Return every mismatch ever found and when, oldest first."""
        query = select(mismatches).where(mismatches.c.run_id == self._runs.key(run))
        return [
            (r.at, Mismatch(MismatchKind(r.kind), r.subject, r.expected, r.found, Policy(r.policy)))
            for r in self._connection.execute(query.order_by(mismatches.c.sequence))
        ]

    def rounding(self, run: str) -> Decimal:
        """Return the sum of the cash differences that were adopted."""
        total = Decimal(0)
        for _, mismatch in self.mismatches(run):
            if mismatch.kind is MismatchKind.CASH_DIFFERENCE and mismatch.policy is Policy.ADOPT:
                total += Decimal(mismatch.found) - Decimal(mismatch.expected)
        return total


def _columns(placement: Placement) -> dict[str, object]:
    row = asdict(placement)
    row["for_order"] = row.pop("order")
    return row | {"side": placement.side.value, "state": placement.state.value}


def _placement(row: Row[tuple[object, ...]]) -> Placement:
    return Placement(
        client_order_id=row.client_order_id,
        order=row.for_order,
        attempt=row.attempt,
        decided_on=row.decided_on,
        symbol=row.symbol,
        side=Side(row.side),
        qty=row.qty,
        limit_price=row.limit_price,
        participation=row.participation,
        intended_at=row.intended_at,
        state=OrderState(row.state),
        broker_id=row.broker_id,
        filled=row.filled,
        cancelling=row.cancelling,
        doubtful=row.doubtful,
        note=row.note,
    )


def _fill_columns(line: BookedFill) -> dict[str, object]:
    fill = line.fill
    detail = None if fill.detail is None else {name: str(value) for name, value in asdict(fill.detail).items()}
    return {
        "id": fill.id,
        "client_order_id": line.client_order_id,
        "for_order": line.order,
        "broker_order": fill.order,
        "day": line.day,
        "symbol": fill.symbol,
        "side": fill.side.value,
        "qty": fill.qty,
        "price": fill.price,
        "at": fill.at,
        "detail": detail,
    }


def _booked(row: Row[tuple[object, ...]]) -> BookedFill:
    detail = None if row.detail is None else FillDetail(**{name: Decimal(value) for name, value in row.detail.items()})
    fill = BrokerFill(row.id, row.broker_order, row.symbol, Side(row.side), row.qty, row.price, row.at, detail)
    return BookedFill(fill, row.client_order_id, row.for_order, row.day)

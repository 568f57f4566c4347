"""The order path's memory: in the store, where a kill must lose nothing, or in the process, for simulations that fold
their whole past again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from oomrl.adapters.database import Store
from oomrl.domain.brokerage import BookedFill, CashMove, Placement
from oomrl.domain.reconciliation import Mismatch, MismatchKind, Policy


class StoredJournal:
    """Implement `oomrl.order_path.Journal` on a store: each method one transaction.

    The account's lines of all days are read at once: a start asks for each day of years, and most have none.
    """

    def __init__(self, store: Store, run: str) -> None:
        self.store, self.run = store, run
        self._moves: dict[date, list[CashMove]] | None = None

    def placements(self, orders: Sequence[str]) -> Sequence[Placement]:
        with self.store.read() as view:
            return view.placements.of_orders(self.run, orders)

    def placement(self, client_order_id: str) -> Placement | None:
        with self.store.read() as view:
            return view.placements.get(self.run, client_order_id)

    def intend(self, placements: Sequence[Placement]) -> None:
        with self.store.begin() as work:
            work.placements.intend(self.run, placements)

    def hear(self, placements: Sequence[Placement], fills: Sequence[BookedFill] = ()) -> None:
        with self.store.begin() as work:
            work.placements.hear(self.run, placements)
            work.placements.book(self.run, fills)

    def booked(self, orders: Sequence[str]) -> Sequence[BookedFill]:
        with self.store.read() as view:
            return view.placements.booked(self.run, orders)

    def keep(self, day: date, moves: Sequence[CashMove]) -> None:
        if moves:
            self._moves = None
            with self.store.begin() as work:
                work.placements.keep(self.run, moves)

    def moves(self, day: date) -> Sequence[CashMove]:
        if self._moves is None:
            with self.store.read() as view:
                self._moves = view.placements.moves(self.run)
        return self._moves.get(day, [])

    def note(self, found: Sequence[Mismatch], at: datetime) -> None:
        with self.store.begin() as work:
            work.placements.note(self.run, found, at)

    def rounding(self) -> Decimal:
        with self.store.read() as view:
            return view.placements.rounding(self.run)


class MemoryJournal:
    """Implement `oomrl.order_path.Journal` in this process alone."""

    def __init__(self) -> None:
        self.known: dict[str, Placement] = {}
        self.fills: dict[str, BookedFill] = {}
        self.lines: dict[date, dict[str, CashMove]] = {}
        self.mismatches: list[Mismatch] = []

    def placements(self, orders: Sequence[str]) -> Sequence[Placement]:
        wanted = set(orders)
        return [placement for placement in self.known.values() if placement.order in wanted]

    def placement(self, client_order_id: str) -> Placement | None:
        return self.known.get(client_order_id)

    def intend(self, placements: Sequence[Placement]) -> None:
        for placement in placements:
            self.known.setdefault(placement.client_order_id, placement)

    def hear(self, placements: Sequence[Placement], fills: Sequence[BookedFill] = ()) -> None:
        self.known |= {placement.client_order_id: placement for placement in placements}
        for line in fills:
            self.fills.setdefault(line.fill.id, line)

    def booked(self, orders: Sequence[str]) -> Sequence[BookedFill]:
        wanted = set(orders)
        return [line for line in self.fills.values() if line.order in wanted]

    def keep(self, day: date, moves: Sequence[CashMove]) -> None:
        self.lines.setdefault(day, {}).update({move.id: move for move in moves})

    def moves(self, day: date) -> Sequence[CashMove]:
        return list(self.lines.get(day, {}).values())

    def note(self, found: Sequence[Mismatch], at: datetime) -> None:
        self.mismatches += found

    def rounding(self) -> Decimal:
        adopted = [m for m in self.mismatches if (m.kind, m.policy) == (MismatchKind.CASH_DIFFERENCE, Policy.ADOPT)]
        return sum((Decimal(m.found) - Decimal(m.expected) for m in adopted), Decimal(0))

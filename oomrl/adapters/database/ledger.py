"""The ledger: lines that never change, posted once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from sqlalchemy import Connection, Row, func, select

from oomrl.adapters.database.bulk import Conflict, exact_units, insert_columns
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import CENTS, SHARES, ledger
from oomrl.adapters.database.types import scaled
from oomrl.domain.ledger import Book, Entry, Kind


class Ledger:
    """The shelf of ledger lines, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def post(self, run: str, entries: Sequence[Entry]) -> int:
        """Write lines and return how many were new. The same key with another content is a `Conflict`.

        `price` is kept to 1e-9 dollars a share; `amount` and `shares` exactly, or not at all (ValueError).
        """
        columns: dict[str, object] = {
            "run_id": self._runs.key(run),
            "key": [entry.key for entry in entries],
            "day": [entry.day for entry in entries],
            "kind": [entry.kind.value for entry in entries],
            "book": [entry.book.value for entry in entries],
            "amount": exact_units((entry.amount for entry in entries), CENTS),
            "symbol": [entry.symbol for entry in entries],
            "shares": exact_units((entry.shares for entry in entries), SHARES),
            "price": [None if entry.price is None else _nearest(entry.price) for entry in entries],
            "client_order_id": [entry.client_order_id for entry in entries],
            "note": [entry.note for entry in entries],
        }
        new = insert_columns(self._connection, ledger, columns, len(entries))
        if new < len(entries):
            self._check(run, entries)
        return new

    def _check(self, run: str, entries: Sequence[Entry]) -> None:
        for entry in entries:
            there = self.get(run, entry.key)
            if there is None or (
                there.day,
                there.kind,
                there.book,
                there.amount,
                there.symbol,
                there.shares,
            ) != ((entry.day, entry.kind, entry.book, entry.amount, entry.symbol, entry.shares)):
                raise Conflict(f"Expected ledger line {entry.key} to be posted once, was {there} and now {entry}")

    def get(self, run: str, key: str) -> Entry | None:
        """Return one line, None where there is none."""
        query = select(ledger).where(ledger.c.run_id == self._runs.key(run), ledger.c.key == key)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else entry_of(row)

    def entries(
        self, run: str, after: date | None = None, until: date | None = None, kinds: Sequence[Kind] = ()
    ) -> list[Entry]:
        """Return the lines with after < day <= until, of some kinds or of all, in the order of day and key."""
        query = select(ledger).where(ledger.c.run_id == self._runs.key(run))
        if kinds:
            query = query.where(ledger.c.kind.in_([kind.value for kind in kinds]))
        if after is not None:
            query = query.where(ledger.c.day > after)
        if until is not None:
            query = query.where(ledger.c.day <= until)
        return [entry_of(row) for row in self._connection.execute(query.order_by(ledger.c.day, ledger.c.key))]

    def cash(self, run: str, book: Book = Book.ECONOMIC) -> Decimal:
        """Return the cash of a book: all lines for the economic one, those of both books for the broker's."""
        query = select(func.sum(ledger.c.amount)).where(ledger.c.run_id == self._runs.key(run))
        if book is Book.BOTH:
            query = query.where(ledger.c.book == Book.BOTH.value)
        total: Decimal | None = self._connection.scalar(query)
        return Decimal("0.00") if total is None else total


def _nearest(price: Decimal) -> int:
    return scaled(price.quantize(Decimal(1).scaleb(-SHARES)), SHARES)


def entry_of(row: Row[tuple[object, ...]]) -> Entry:
    return Entry(
        key=row.key,
        day=row.day,
        kind=Kind(row.kind),
        book=Book(row.book),
        amount=row.amount,
        symbol=row.symbol,
        shares=row.shares,
        price=row.price,
        client_order_id=row.client_order_id,
        note=row.note,
    )

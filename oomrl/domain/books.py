"""Both books of one account: what the broker shows, and what was really won or lost.

The state is the sum of all entries ever posted. `post` takes entries; `settle` takes a whole execution in columns,
without a Decimal for each fill, and arrives at the same cents (a property test holds them together).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from oomrl.domain.actions import in_cents
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.market import TICKS_PER_CENT, Floats, Ints, Roster, padded
from oomrl.domain.observed import Bar
from oomrl.domain.trading import ActionKind, Execution, Orders

KIND_OF_ACTION = {
    ActionKind.DIVIDEND: Kind.DIVIDEND,
    ActionKind.SPLIT: Kind.SPLIT,
    ActionKind.CASH_IN_LIEU: Kind.CASH_IN_LIEU,
    ActionKind.WRITE_OFF: Kind.WRITE_OFF,
    ActionKind.SALE: Kind.SELL,
}


class Books:
    """Hold cash in whole cents and shares over a roster, in the broker book and in the economic book."""

    def __init__(self, roster: Roster | None = None) -> None:
        self.roster = Roster() if roster is None else roster
        self.broker_cents = 0
        self.economic_cents = 0
        self.endowed_cents = 0
        self.settled_through = date.min
        self._broker = np.empty(0)
        self._economic = np.empty(0)
        self._apart = False
        self._posted: set[str] = set()

    @property
    def broker_cash(self) -> Decimal:
        """The broker's cash in dollars and whole cents."""
        return Decimal(self.broker_cents).scaleb(-2)

    @property
    def economic_cash(self) -> Decimal:
        """The economic book's cash in dollars and whole cents."""
        return Decimal(self.economic_cents).scaleb(-2)

    @property
    def endowments(self) -> Decimal:
        """All endowments ever posted, in dollars and whole cents."""
        return Decimal(self.endowed_cents).scaleb(-2)

    @property
    def positions(self) -> Mapping[str, Decimal]:
        """The economic book's shares by symbol, zero positions left out."""
        return {symbol: Decimal(repr(shares)) for symbol, shares in self.roster.named(self.shares).items()}

    @property
    def broker_positions(self) -> Mapping[str, Decimal]:
        """The broker book's shares by symbol, zero positions left out."""
        return {symbol: Decimal(repr(shares)) for symbol, shares in self.roster.named(self.broker_shares).items()}

    @property
    def shares(self) -> Floats:
        """The economic book's shares over the roster, shape (names,)."""
        self._fit()
        return self._economic

    @property
    def broker_shares(self) -> Floats:
        """The broker book's shares over the roster, shape (names,)."""
        self._fit()
        return self._broker if self._apart else self._economic

    @property
    def apart(self) -> bool:
        """Whether the books ever differed in shares (the broker does not apply splits)."""
        return self._apart

    def post(self, entries: Iterable[Entry]) -> None:
        """Add entries; one whose key was posted before changes nothing."""
        for entry in entries:
            if entry.key in self._posted:
                continue
            self._posted.add(entry.key)
            self._add(entry.kind, entry.book is Book.BOTH, in_cents(entry.amount), entry.symbol, float(entry.shares))

    def settle(self, execution: Execution) -> None:
        """Add all that one session's execution did, in columns. A day settles once."""
        if execution.day <= self.settled_through:
            raise ValueError(f"Expected an execution after {self.settled_through}, was {execution.day}")
        self.settled_through = execution.day
        fills = execution.fills
        if len(fills):
            rows = self.roster.rows(execution.orders.symbols)[fills.order]
            self._fit()
            bought = np.bincount(rows, weights=fills.shares, minlength=len(self._economic))
            self._economic = self._economic + bought
            if self._apart:
                self._broker = self._broker + bought
            moved = int(fills.cents.sum())
            fees = int(execution.commission.sum()) + int(execution.regulatory.sum())
            self.economic_cents += moved - fees
            self.broker_cents += moved - (fees if execution.fees_in_broker else 0)
        for action in execution.actions:
            kind = KIND_OF_ACTION[action.kind]
            self._add(kind, action.in_broker, in_cents(action.amount), action.symbol, float(action.shares))

    def trade(self, day: date, rows: Ints, shares: Floats, cents: int) -> None:
        """Add what a session of fills and dividends brought: signed `shares` (orders,) in as many different names by
        their numbers `rows`, and what it left of the broker's cash, in cents."""
        self.settled_through = day
        if len(rows):
            self._fit()
            self._economic = self._economic.copy()
            self._economic[rows] += shares
        moved = cents - self.broker_cents
        self.economic_cents += moved
        self.broker_cents = cents

    def rest(self, last: date, sessions: int, dividends: Floats | None) -> Ints:
        """Add what sessions without orders brought, up to and with the day `last`: `dividends` are whole cents by
        session and name, or None. Returns the cash after each of `sessions` in cents, (sessions,)."""
        self.settled_through = last
        if dividends is None:
            return np.full(sessions, self.economic_cents)
        paid = np.cumsum(dividends.sum(axis=1)).astype(np.int64)
        cash: Ints = self.economic_cents + paid
        self.economic_cents += int(paid[-1])
        self.broker_cents += int(paid[-1])
        return cash

    def mark(self, bar: Bar) -> Decimal:
        """Return the economic equity in dollars and whole cents at the last known closes."""
        return Decimal(self.equity_cents(bar.close_ticks)).scaleb(-2)

    def equity_cents(self, close_ticks: Floats) -> int:
        """Return the economic equity in whole cents, halves up, given closes in ticks over the roster."""
        return (self.equity_ticks(close_ticks) + TICKS_PER_CENT // 2) // TICKS_PER_CENT

    def equity_ticks(self, close_ticks: Floats) -> int:
        """Return the economic equity exactly, in ticks of $0.0001."""
        return self.economic_cents * TICKS_PER_CENT + self.value_ticks(close_ticks)

    def value_ticks(self, close_ticks: Floats) -> int:
        """Return the exact value of the economic positions in ticks; names never held may have no close."""
        shares = self.shares
        value = float(shares[: len(close_ticks)] @ close_ticks)
        if value != value:
            value = float(shares[: len(close_ticks)] @ np.where(shares[: len(close_ticks)] != 0.0, close_ticks, 0.0))
        return int(value)

    def values_ticks(self, close_ticks: Floats) -> Ints:
        """Return the same for closes of several sessions, (sessions, names)."""
        values = close_ticks @ self.shares
        if np.isnan(values).any():
            values = np.where(self.shares != 0.0, close_ticks, 0.0) @ self.shares
        return values.astype(np.int64)

    def snapshot(self) -> dict[str, Any]:
        """Return the sums as plain JSON-able values. Keys of entries are the store's to keep."""
        return {
            "broker_cents": self.broker_cents,
            "economic_cents": self.economic_cents,
            "endowed_cents": self.endowed_cents,
            "settled_through": self.settled_through.isoformat(),
            "economic": self.roster.named(self.shares),
            "broker": self.roster.named(self.broker_shares) if self._apart else None,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become what `snapshot` described."""
        self.broker_cents = int(state["broker_cents"])
        self.economic_cents = int(state["economic_cents"])
        self.endowed_cents = int(state["endowed_cents"])
        self.settled_through = date.fromisoformat(state["settled_through"])
        self._apart = state["broker"] is not None
        self._economic = self.roster.array(state["economic"])
        self._broker = self.roster.array(state["broker"] or {})

    def _fit(self) -> None:
        size = len(self.roster.symbols)
        if len(self._economic) < size:
            self._economic = padded(self._economic, size)
        if self._apart and len(self._broker) < size:
            self._broker = padded(self._broker, size)

    def _add(self, kind: Kind, both: bool, cents: int, symbol: str | None, shares: float) -> None:
        self.economic_cents += cents
        if both:
            self.broker_cents += cents
        if kind is Kind.ENDOWMENT:
            self.endowed_cents += cents
        if symbol is None or not shares:
            return
        row = self.roster.row(symbol)
        self._fit()
        if not both and not self._apart:
            self._broker, self._apart = self._economic.copy(), True
        # New arrays, never changed in place: whoever holds the shares of before keeps them.
        self._economic = self._economic.copy()
        self._economic[row] += shares
        if both and self._apart:
            self._broker[row] += shares


def entries_of(execution: Execution) -> list[Entry]:
    """Return the ledger's lines for one session's execution, with keys that depend on nothing else.

    One line a fill, one for each fee that is not zero, one for each corporate action.
    """
    return [*_trade_lines(execution), *_action_lines(execution)]


def _trade_lines(execution: Execution) -> Iterator[Entry]:
    fills, day = execution.fills, execution.day
    fees = Book.BOTH if execution.fees_in_broker else Book.ECONOMIC
    turn: dict[int, int] = {}
    for n in range(len(fills)):
        row = int(fills.order[n])
        turn[row] = turn.get(row, 0) + 1
        order, symbol = execution.orders.ids[row], execution.orders.symbols[row]
        key = f"{order}/fill/{turn[row]}"
        shares = Decimal(int(fills.shares[n]))
        yield Entry(
            key=key,
            day=day,
            kind=Kind.BUY if shares > 0 else Kind.SELL,
            book=Book.BOTH,
            amount=Decimal(int(fills.cents[n])).scaleb(-2),
            symbol=symbol,
            shares=shares,
            price=Decimal(repr(round(float(fills.price[n]), 4))),
            client_order_id=order,
        )
        for kind, cents in ((Kind.COMMISSION, execution.commission[n]), (Kind.REGULATORY_FEE, execution.regulatory[n])):
            if cents:
                amount = Decimal(-int(cents)).scaleb(-2)
                yield Entry(f"{key}/{kind.value}", day, kind, fees, amount, symbol, client_order_id=order)


def _action_lines(execution: Execution) -> Iterator[Entry]:
    turn: dict[str, int] = {}
    for action in execution.actions:
        book = Book.BOTH if action.in_broker else Book.ECONOMIC
        key = f"{execution.day}/{action.kind.value}/{action.symbol}/{book.value}"
        turn[key] = turn.get(key, 0) + 1
        kind = KIND_OF_ACTION[action.kind]
        note = "cash a share" if action.kind is ActionKind.DIVIDEND else ""
        yield Entry(
            f"{key}/{turn[key]}",
            execution.day,
            kind,
            book,
            action.amount,
            action.symbol,
            action.shares,
            action.value,
            note=note,
        )


def no_orders(day: date) -> Orders:
    """Return an empty batch."""
    return Orders(day, (), (), np.empty(0), np.empty(0), np.empty(0), ())

"""The two books: what the broker says, and what was really won or lost.

The broker book holds what the broker's account shows (fills, broker cash). The economic book adds, each line
labelled, what a paper account leaves out. Both are sums of entries; an entry never changes once written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum


class Kind(StrEnum):
    """What a ledger line is for."""

    ENDOWMENT = "endowment"
    BUY = "buy"
    SELL = "sell"
    COMMISSION = "commission"
    REGULATORY_FEE = "regulatory_fee"
    DIVIDEND = "dividend"
    SPLIT = "split"
    CASH_IN_LIEU = "cash_in_lieu"
    WRITE_OFF = "write_off"
    MODEL_BILL = "model_bill"


class Book(StrEnum):
    """Where a line counts: in both books, or in the economic book alone."""

    BOTH = "both"
    ECONOMIC = "economic"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger. `key` is unique for ever: posting the same key twice changes nothing.

    `shares` is the signed change of the position, `amount` the signed change of cash in whole cents.
    """

    key: str
    day: date
    kind: Kind
    book: Book
    amount: Decimal
    symbol: str | None = None
    shares: Decimal = Decimal(0)
    price: Decimal | None = None
    client_order_id: str | None = None
    note: str = ""

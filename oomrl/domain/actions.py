"""What splits, dividends and delistings do to a position."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from oomrl.domain.market import Session
from oomrl.domain.trading import CENT, ActionKind, CorporateAction, Orders


def split_and_dividend(
    symbol: str,
    shares: float,
    split: float,
    dividend: float,
    opened: float,
    *,
    apply_split: bool = True,
    pay_dividend: bool = True,
    in_broker: bool = True,
) -> list[CorporateAction]:
    """Return what happens before the open to `shares` held: the split first, then the dividend on what it left.

    A split leaves whole shares; the fraction is paid as cash in lieu at the open after the split. The dividend is
    cash a share as counted after the split. Amounts are whole cents, halves up.
    """
    actions = []
    if apply_split and split != 1.0:
        grown = shares * split
        whole = float(math.floor(grown + 1e-6))
        ratio = Decimal(repr(split))
        actions.append(CorporateAction(ActionKind.SPLIT, symbol, ratio, exact(whole - shares), Decimal(0), in_broker))
        fraction = grown - whole
        if fraction > 1e-6:
            price = Decimal(repr(opened))
            actions.append(
                CorporateAction(
                    ActionKind.CASH_IN_LIEU, symbol, price, Decimal(0), cents_of(price * Decimal(fraction)), in_broker
                )
            )
        shares = whole
    if pay_dividend and dividend > 0 and shares:
        value = Decimal(repr(dividend))
        amount = cents_of(value * exact(shares))
        actions.append(CorporateAction(ActionKind.DIVIDEND, symbol, value, Decimal(0), amount, in_broker))
    return actions


def delisting(symbol: str, shares: float, price: float, recovery: float, *, in_broker: bool = True) -> CorporateAction:
    """Return the end of a position whose name stopped printing: cash of `recovery` times the last price."""
    paid = Decimal(repr(price)) * Decimal(repr(recovery))
    amount = cents_of(paid * exact(shares))
    return CorporateAction(ActionKind.WRITE_OFF, symbol, paid, exact(-shares), amount, in_broker)


def cents_of(dollars: Decimal) -> Decimal:
    """Round to whole cents, halves up."""
    return dollars.quantize(CENT, ROUND_HALF_UP)


def exact(shares: float) -> Decimal:
    """Return shares as a Decimal of at most nine decimals, the smallest fraction that a broker sells."""
    return Decimal(int(shares)) if shares == int(shares) else Decimal(repr(round(shares, 9)))


def in_cents(dollars: Decimal) -> int:
    """Return an amount that is whole cents as an integer number of them."""
    return int(dollars.scaleb(2))


def split_adjusted(orders: Orders, session: Session) -> Orders:
    """Restate queued orders after a split at the open: whole shares towards zero, limits by the ratio."""
    ratios = {
        symbol: float(ratio) for symbol, ratio in zip(session.symbols, session["split"], strict=True) if ratio != 1.0
    }
    factor = np.array([ratios.get(symbol, 1.0) for symbol in orders.symbols])
    if (factor == 1.0).all():
        return orders
    size = np.floor(np.abs(orders.shares) * factor + 1e-6)
    return Orders(
        orders.decided_on,
        orders.ids,
        orders.symbols,
        np.sign(orders.shares) * size,
        np.round(orders.limit / factor, 4),
        orders.participation,
        orders.reasons,
    )

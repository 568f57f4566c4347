"""What the economic book adds to an execution where the broker's account leaves it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from oomrl.domain.actions import delisting, split_and_dividend
from oomrl.domain.books import Books
from oomrl.domain.observed import Bar
from oomrl.domain.trading import AccountRules, ActionKind, CorporateAction, Execution


def supplemented(execution: Execution, bar: Bar, books: Books, rules: AccountRules) -> Execution:
    """Return the execution with the splits and dividends that the broker's account leaves out, and what follows.

    All of it is on the shares of the economic book as they were before the session, and marked as not in the
    broker's account. With rules that leave nothing out, the execution comes back as it is.
    """
    if rules.applies_splits and rules.pays_dividends and not books.apart:
        return execution
    extra: list[CorporateAction] = []
    held, broker = books.shares, books.broker_shares
    if bar.eventful:
        happened = ((bar.split != 1.0) | (bar.dividend > 0)) & (held > 0)
        for row in happened.nonzero()[0].tolist():
            extra += _left_out(books.roster.symbols[row], float(held[row]), float(broker[row]), bar, row, rules)
    shares = {action.symbol: float(action.shares) for action in extra if action.kind is ActionKind.SPLIT}
    extra += _corrections(execution, books, shares)
    return replace(execution, actions=execution.actions + tuple(extra)) if extra else execution


def _left_out(
    symbol: str, held: float, broker: float, bar: Bar, row: int, rules: AccountRules
) -> list[CorporateAction]:
    """Return the split and the dividend that the broker leaves out of one position, or pays on too few shares."""
    split, dividend, opened = float(bar.split[row]), float(bar.dividend[row]), float(bar.opened[row])
    actions = split_and_dividend(
        symbol, held, split, 0.0, opened, apply_split=not rules.applies_splits, in_broker=False
    )
    now = held + sum(float(action.shares) for action in actions)
    if rules.applies_splits and split != 1.0:
        now = float(np.floor(held * split + 1e-6))
        broker = float(np.floor(broker * split + 1e-6))
    paid_on = broker if rules.pays_dividends else 0.0
    if now > paid_on:
        actions += split_and_dividend(symbol, now - paid_on, 1.0, dividend, opened, in_broker=False)
    return actions


def _corrections(execution: Execution, books: Books, split_shares: Mapping[str, float]) -> list[CorporateAction]:
    """Return the economic-only shares that go with the broker's sales where its account misses splits.

    Selling a part of the broker's shares sells the same part of the economic ones, at the fill's price.
    """
    roster = books.roster
    if not books.apart and not split_shares:
        return []
    held, broker = books.shares.copy(), books.broker_shares.copy()
    for symbol, shares in split_shares.items():
        held[roster.row(symbol)] += shares
    out: list[CorporateAction] = []
    fills, rows = execution.fills, roster.rows(execution.orders.symbols)
    for n in range(len(fills)):
        row, sold = int(rows[fills.order[n]]), -float(fills.shares[n])
        if sold > 0 and broker[row] > 0 and held[row] != broker[row]:
            left = round((broker[row] - sold) * held[row] / broker[row])
            more = held[row] - left - sold
            if more:
                price = round(float(fills.price[n]), 4)
                sale = delisting(roster.symbols[row], more, price, 1.0, in_broker=False)
                out.append(replace(sale, kind=ActionKind.SPLIT))
            held[row] -= more
        held[row] -= sold
        broker[row] -= sold
    for action in execution.actions:
        if action.kind in (ActionKind.WRITE_OFF, ActionKind.SALE):
            row = roster.row(action.symbol)
            more = held[row] - broker[row]
            if more:
                line = delisting(action.symbol, more, float(action.value), 1.0, in_broker=False)
                out.append(replace(line, kind=action.kind))
    return out

"""The paper exchange's account: orders, splits, dividends, delistings."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest

from oomrl.domain.market import Session
from oomrl.domain.trading import ALPACA_PAPER, ActionKind, Orders, UnfilledCause
from oomrl.errors import Refused
from oomrl.exchange.exchange import PaperExchange
from oomrl.exchange.friction import Friction

MONDAY = date(2020, 1, 6)


def session(n: int, price: float | None = 100.0, split: float = 1.0, dividend: float = 0.0) -> Session:
    bars = [price] if price is not None else []
    columns = {column: np.array(bars, dtype=float) for column in ("open", "high", "low", "close")}
    size = len(bars)
    columns |= {"volume": np.full(size, 1e6), "dividend": np.full(size, dividend)}
    columns |= {"split": np.full(size, split), "tradable": np.ones(size)}
    return Session(MONDAY + timedelta(n), ("AA",) * size, columns)


def order(n: int, shares: float, name: str = "o1", limit: float = np.nan) -> Orders:
    one = np.array([shares])
    return Orders(MONDAY + timedelta(n), (name,), ("AA",), one, np.array([limit]), np.array([1.0]), ("",))


def holding(shares: float, cash: int = 100_000, **settings: object) -> PaperExchange:
    exchange = PaperExchange(Decimal(cash), Friction.none(), **settings)  # type: ignore[arg-type]
    exchange.collect(session(0))
    exchange.submit(order(0, shares))
    exchange.collect(session(1))
    return exchange


def test_the_same_id_twice_is_one_order() -> None:
    exchange = PaperExchange(Decimal(10_000), Friction.none())
    exchange.collect(session(0))
    exchange.submit(order(0, 10))
    exchange.submit(order(0, 10))
    exchange.submit(order(0, 5, "o2"))
    execution = exchange.collect(session(1))
    assert execution.orders.ids == ("o1", "o2")
    exchange.submit(order(0, 10))  # decided before the last session: a late repeat
    assert len(exchange.collect(session(2)).orders) == 0
    assert exchange.positions() == {"AA": Decimal(15)}
    assert exchange.cash() == Decimal(8_500)


def test_nobody_sells_what_the_account_does_not_hold() -> None:
    exchange = holding(10)
    exchange.submit(order(1, -6, "s1"))
    with pytest.raises(Refused, match="Expected sales of at most 10 shares of AA, was 11"):
        exchange.submit(order(1, -5, "s2"))


def test_a_split_leaves_whole_shares_and_pays_the_fraction_at_the_open() -> None:
    exchange = holding(101)
    execution = exchange.collect(session(2, price=66.67, split=1.5))
    assert [(a.kind, a.shares, a.amount) for a in execution.actions] == [
        (ActionKind.SPLIT, Decimal(50), Decimal(0)),
        (ActionKind.CASH_IN_LIEU, Decimal(0), Decimal("33.34")),
    ]
    assert exchange.positions() == {"AA": Decimal(151)}
    assert exchange.cash() == Decimal(100_000) - 10_100 + Decimal("33.34")


def test_a_dividend_goes_to_shares_held_before_the_ex_date_and_counts_them_after_the_split() -> None:
    exchange = holding(100)
    exchange.submit(order(1, 50, "o2"))
    execution = exchange.collect(session(2, price=50.0, split=2.0, dividend=0.125))
    assert [a.amount for a in execution.actions] == [0, Decimal("25.00")]
    # The order for 50 was decided before the split: it buys 100 of the new shares, without the dividend.
    assert exchange.positions() == {"AA": Decimal(300)}


def test_queued_limits_are_restated_for_a_split() -> None:
    exchange = holding(100)
    exchange.submit(order(1, -50, "s", limit=104.0))
    execution = exchange.collect(session(2, price=51.0, split=2.0))
    assert execution.orders.shares.tolist() == [-100.0]
    assert execution.orders.limit.tolist() == [52.0]
    assert execution.causes == (UnfilledCause.LIMIT_PRICE,)


def test_the_paper_preset_pays_nothing_charges_nothing_and_applies_no_split() -> None:
    exchange = PaperExchange(Decimal(100_000), Friction(), ALPACA_PAPER)
    exchange.collect(session(0))
    exchange.submit(order(0, 100))
    execution = exchange.collect(session(1))
    assert execution.commission.tolist() == [35]
    assert not execution.fees_in_broker
    assert exchange.cash() == 100_000 - sum(Decimal(-int(c)).scaleb(-2) for c in execution.fills.cents)
    execution = exchange.collect(session(2, price=50.0, split=2.0, dividend=1.0))
    assert execution.actions == ()
    assert exchange.positions() == {"AA": Decimal(100)}


@pytest.mark.parametrize(("recovery", "paid"), [(1.0, "1000.00"), (0.0, "0.00"), (0.3, "300.00")])
def test_a_name_that_stops_printing_leaves_the_account_after_ten_sessions(recovery: float, paid: str) -> None:
    exchange = holding(10, delisting_recovery=recovery)
    before = exchange.cash()
    for n in range(2, 11):
        assert exchange.collect(session(n, price=None)).actions == ()
    [action] = exchange.collect(session(11, price=None)).actions
    assert (action.kind, action.shares, action.amount) == (ActionKind.WRITE_OFF, Decimal(-10), Decimal(paid))
    assert exchange.positions() == {}
    assert exchange.cash() == before + Decimal(paid)


def test_a_halt_shorter_than_that_changes_nothing() -> None:
    exchange = holding(10)
    for n in range(2, 9):
        exchange.collect(session(n, price=None))
    assert exchange.collect(session(9)).actions == ()
    assert exchange.positions() == {"AA": Decimal(10)}


def test_impact_uses_the_volatility_known_before_the_session() -> None:
    quiet, wild = PaperExchange(Decimal(10**9)), PaperExchange(Decimal(10**9))
    for n in range(30):
        quiet.collect(session(n, 100.0 + 0.1 * (n % 2)))
        wild.collect(session(n, 100.0 + 8.0 * (n % 2)))
    impacts = []
    for exchange in (quiet, wild):
        exchange.submit(order(29, 10_000))
        impacts.append(float(exchange.collect(session(30)).fills.impact[0]))
    assert impacts[1] > 20 * impacts[0] > 0

"""The rules of `ports.Broker`, numbered: a batch of orders a session. Subclass `BrokerConformance` and give it a
`trading`.

What trades a session's orders passes it: the in-process exchange, and the order path over any brokerage. An adapter
for one more broker passes `BrokerageConformance` first; this suite then says that the order path over it keeps books.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pytest

from oomrl.domain.market import Session
from oomrl.domain.trading import Execution, Orders, UnfilledCause
from oomrl.errors import Refused
from oomrl.ports import Broker


@dataclass
class Trading:
    """A broker's account without shares, the session before, and at least three to come in which `symbols` trade.

    The account's cash buys a hundred shares of either name, and not a hundred thousand.
    """

    broker: Broker
    last: Session
    coming: Iterator[Session]
    symbols: tuple[str, str]
    batches: list[Orders] = field(default_factory=list)

    def orders(self, shares: Mapping[str, int], limits: Mapping[str, float] | None = None) -> Orders:
        """Return a batch decided after the last session: signed shares by symbol, sales first."""
        names = sorted(shares, key=lambda symbol: shares[symbol] > 0)
        day, count = self.last.day, len(names)
        ids = tuple(f"c0-{day:%Y%m%d}-{name}-{'b' if shares[name] > 0 else 's'}-0" for name in names)
        wanted = np.array([float(shares[name]) for name in names])
        limit = np.array([(limits or {}).get(name, np.nan) for name in names])
        return Orders(day, ids, tuple(names), wanted, limit, np.ones(count), ("",) * count)

    def trade(self, shares: Mapping[str, int], limits: Mapping[str, float] | None = None) -> Execution:
        """Let a batch trade in the next session."""
        self.broker.submit(self.orders(shares, limits))
        return self.pass_()

    def pass_(self) -> Execution:
        """Let a session pass and collect it."""
        self.last = next(self.coming)
        return self.broker.collect(self.last)

    def close(self, symbol: str) -> float:
        """Return a name's last close."""
        return float(self.last["close"][self.last.symbols.index(symbol)])


def moved(execution: Execution) -> Decimal:
    """Return the cash that an execution moved at the broker."""
    cents = int(execution.fills.cents.sum())
    if execution.fees_in_broker:
        cents -= int(execution.commission.sum() + execution.regulatory.sum())
    return Decimal(cents).scaleb(-2)


class BrokerConformance:
    """Subclass, and define the fixture `trading`. No session has a split, a dividend or a halt."""

    @pytest.fixture
    def trading(self) -> Trading:
        raise NotImplementedError("Expected the subclass to define the fixture `trading`")

    def test_01_an_account_begins_with_whole_cents_and_no_shares(self, trading: Trading) -> None:
        cash = trading.broker.cash()
        assert isinstance(cash, Decimal) and cash == cash.quantize(Decimal("0.01")) > 0
        assert dict(trading.broker.positions()) == {}

    def test_02_fills_move_shares_and_cash_by_what_they_say(self, trading: Trading) -> None:
        one, two = trading.symbols
        cash = trading.broker.cash()
        execution = trading.trade({one: 60, two: 40})
        assert trading.broker.positions() == {one: 60, two: 40}
        assert trading.broker.cash() == cash + moved(execution) < cash
        assert execution.day == trading.last.day

    def test_03_what_is_sold_is_gone(self, trading: Trading) -> None:
        one, two = trading.symbols
        bought = trading.trade({one: 60, two: 40})
        cash = trading.broker.cash()
        sold = trading.trade({one: -60, two: -15})
        assert dict(trading.broker.positions()) == {two: 25}
        assert trading.broker.cash() == cash + moved(sold) > cash
        assert bought.fills.shares.sum() == 100 and sold.fills.shares.sum() == -75

    def test_04_each_fill_is_explained_and_each_order_accounted_for(self, trading: Trading) -> None:
        one, two = trading.symbols
        far = round(trading.close(two) / 2, 2)
        execution = trading.trade({one: 60, two: 40}, {two: far})
        fills, orders = execution.fills, execution.orders
        done = np.bincount(fills.order, weights=fills.shares, minlength=len(orders))
        np.testing.assert_array_equal(orders.shares - done, execution.unfilled)
        causes = dict(zip(orders.symbols, execution.causes, strict=True))
        assert causes == {one: UnfilledCause.NONE, two: UnfilledCause.LIMIT_PRICE}
        np.testing.assert_allclose(fills.price, fills.reference + fills.spread + fills.impact, atol=1e-9)
        np.testing.assert_allclose(fills.cents, -fills.shares * fills.price * 100, atol=0.51)

    def test_05_the_same_batch_twice_is_one_batch(self, trading: Trading) -> None:
        batch = trading.orders({trading.symbols[0]: 50})
        trading.broker.submit(batch)
        trading.broker.submit(batch)
        assert trading.pass_().fills.shares.sum() == 50
        assert trading.broker.positions() == {trading.symbols[0]: 50}

    def test_06_a_batch_whose_session_is_over_changes_nothing(self, trading: Trading) -> None:
        batch = trading.orders({trading.symbols[0]: 50})
        trading.broker.submit(batch)
        trading.pass_()
        cash = trading.broker.cash()
        trading.broker.submit(batch)
        assert len(trading.pass_().fills) == 0
        assert trading.broker.cash() == cash and trading.broker.positions() == {trading.symbols[0]: 50}

    def test_07_orders_end_with_their_session(self, trading: Trading) -> None:
        symbol = trading.symbols[0]
        execution = trading.trade({symbol: 50}, {symbol: round(trading.close(symbol) / 2, 2)})
        assert execution.unfilled.tolist() == [50.0]
        after = trading.pass_()
        assert len(after.fills) == len(after.orders) == 0
        assert dict(trading.broker.positions()) == {}

    def test_08_no_price_is_worse_than_its_limit(self, trading: Trading) -> None:
        symbol = trading.symbols[0]
        high = round(trading.close(symbol) * 1.5, 2)
        bought = trading.trade({symbol: 50}, {symbol: high})
        low = round(trading.close(symbol) / 1.5, 2)
        sold = trading.trade({symbol: -50}, {symbol: low})
        assert bought.fills.shares.sum() == 50 and sold.fills.shares.sum() == -50
        assert (bought.fills.price <= high).all() and (sold.fills.price >= low).all()

    def test_09_sales_pay_for_the_buys_of_their_session(self, trading: Trading) -> None:
        one, two = trading.symbols
        most = int(float(trading.broker.cash()) * 0.9 / trading.close(one))
        trading.trade({one: most})
        held = trading.broker.positions()[one]
        assert held > most / 2
        wanted = int(float(held) * trading.close(one) * 0.9 / trading.close(two))
        execution = trading.trade({one: -int(held), two: wanted})
        assert not execution.unfilled.any()
        assert dict(trading.broker.positions()) == {two: wanted}

    def test_10_nothing_is_sold_that_is_not_held(self, trading: Trading) -> None:
        one, two = trading.symbols
        trading.trade({one: 10})
        try:
            trading.trade({one: -11, two: -5})
        except Refused:
            trading.pass_()
        assert all(shares >= 0 for shares in trading.broker.positions().values())
        assert two not in trading.broker.positions()

    def test_11_no_more_is_bought_than_is_paid_for(self, trading: Trading) -> None:
        execution = trading.trade({trading.symbols[0]: 100_000})
        assert trading.broker.cash() >= 0
        assert execution.unfilled[0] > 0 and execution.causes[0] is not UnfilledCause.NONE

    def test_12_a_name_that_nobody_trades_stays_unfilled(self, trading: Trading) -> None:
        execution = trading.trade({"NOSUCHNAME": 10, trading.symbols[0]: 10})
        left = dict(zip(execution.orders.symbols, execution.unfilled.tolist(), strict=True))
        assert left == {"NOSUCHNAME": 10.0, trading.symbols[0]: 0.0}

    def test_13_an_endowment_is_cash_that_buys(self, trading: Trading) -> None:
        cash, amount = trading.broker.cash(), Decimal("250000.25")
        trading.pass_()
        trading.broker.deposit(amount)
        assert trading.broker.cash() == cash + amount
        symbol = trading.symbols[0]
        many = int(float(cash + amount) * 0.8 / trading.close(symbol))
        execution = trading.trade({symbol: many})
        assert not execution.unfilled.any()
        assert trading.broker.cash() == cash + amount + moved(execution)

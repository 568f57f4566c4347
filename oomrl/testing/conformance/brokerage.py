"""The rules of `ports.Brokerage`, numbered. Subclass `BrokerageConformance` and give it a `stage`."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from oomrl.domain.brokerage import BrokerOrder, Ticket
from oomrl.domain.records import OrderState
from oomrl.domain.trading import Side
from oomrl.errors import BrokerRefusal
from oomrl.ports import Brokerage, Timer

#: How long an order or a cancel may take to be through, and how often it is looked at.
PATIENCE, LOOK = timedelta(minutes=2), timedelta(seconds=2)


@dataclass
class Stage:
    """A brokerage in an open session, with two names that trade and money for a few shares of each."""

    brokerage: Brokerage
    timer: Timer
    symbols: tuple[str, str]
    tag: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    made: int = 0

    def ticket(self, symbol: str, side: Side, qty: int | Decimal, limit: Decimal | None = None) -> Ticket:
        """Return an order under an id that was never used."""
        self.made += 1
        return Ticket(f"conform-{self.tag}-{self.made}", symbol, side, Decimal(qty), limit)

    def through(self, symbol: str, side: Side) -> Decimal:
        """Return a limit far enough beyond the quote to fill at once."""
        quote = self.brokerage.quotes([symbol])[symbol]
        price = quote.ask * Decimal("1.02") if side is Side.BUY else quote.bid * Decimal("0.98")
        return price.quantize(Decimal("0.01"))

    def away(self, symbol: str) -> Decimal:
        """Return a limit at which nobody sells now."""
        return (self.brokerage.quotes([symbol])[symbol].bid / 2).quantize(Decimal("0.01"))

    def ended(self, client_order_id: str) -> BrokerOrder:
        """Return an order once it is final."""
        until = self.timer.now() + PATIENCE
        while True:
            order = self.brokerage.find(client_order_id)
            assert order is not None
            if order.final or self.timer.now() >= until:
                return order
            self.timer.wait(self.timer.now() + LOOK)

    def buy(self, symbol: str, qty: int) -> BrokerOrder:
        """Buy at once and return the filled order."""
        ticket = self.ticket(symbol, Side.BUY, qty, self.through(symbol, Side.BUY))
        self.brokerage.place(ticket)
        return self.ended(ticket.client_order_id)

    def held(self, symbol: str) -> Decimal:
        """Return the shares of a name."""
        return sum((h.qty for h in self.brokerage.holdings() if h.symbol == symbol), Decimal(0))


class BrokerageConformance:
    """Subclass, and define the fixture `stage`. Each test begins with no open orders of its own."""

    @pytest.fixture
    def stage(self) -> Stage:
        raise NotImplementedError("Expected the subclass to define the fixture `stage`")

    def test_01_the_account_has_money_and_may_trade(self, stage: Stage) -> None:
        account = stage.brokerage.account()
        assert account.blocked == ""
        assert account.cash > 0 and account.buying_power > 0 and account.equity > 0
        assert account.id

    def test_02_a_placed_order_is_found_by_its_client_order_id(self, stage: Stage) -> None:
        symbol = stage.symbols[0]
        before = stage.timer.now()
        ticket = stage.ticket(symbol, Side.BUY, 1, stage.away(symbol))
        told = stage.brokerage.place(ticket)
        found = stage.brokerage.find(ticket.client_order_id)
        assert found is not None and found.id == told.id
        assert (found.symbol, found.side, found.qty, found.limit_price) == (
            symbol,
            Side.BUY,
            Decimal(1),
            ticket.limit_price,
        )
        listed = stage.brokerage.orders(before - timedelta(minutes=5), [symbol])
        assert told.id in {order.id for order in listed}
        assert told.id in {order.id for order in stage.brokerage.open_orders()}
        assert found.submitted_at.tzinfo is not None
        stage.brokerage.cancel(told.id)

    def test_03_a_client_order_id_is_taken_once(self, stage: Stage) -> None:
        symbol = stage.symbols[0]
        ticket = stage.ticket(symbol, Side.BUY, 1, stage.away(symbol))
        told = stage.brokerage.place(ticket)
        with pytest.raises(BrokerRefusal) as refused:
            stage.brokerage.place(ticket)
        assert refused.value.duplicate
        assert [o.id for o in stage.brokerage.open_orders() if o.client_order_id == ticket.client_order_id] == [told.id]
        stage.brokerage.cancel(told.id)

    def test_04_a_client_order_id_stays_taken_after_a_cancel(self, stage: Stage) -> None:
        symbol = stage.symbols[0]
        ticket = stage.ticket(symbol, Side.BUY, 1, stage.away(symbol))
        stage.brokerage.cancel(stage.brokerage.place(ticket).id)
        assert stage.ended(ticket.client_order_id).state is OrderState.CANCELLED
        with pytest.raises(BrokerRefusal) as refused:
            stage.brokerage.place(ticket)
        assert refused.value.duplicate

    def test_05_an_unknown_client_order_id_is_none(self, stage: Stage) -> None:
        assert stage.brokerage.find(f"never-{stage.tag}") is None

    def test_06_a_marketable_limit_fills_within_its_limit(self, stage: Stage) -> None:
        symbol = stage.symbols[0]
        since, held = stage.timer.now(), stage.held(symbol)
        order = stage.buy(symbol, 3)
        assert order.state is OrderState.FILLED and order.filled == 3
        mine = [fill for fill in stage.brokerage.fills(since - timedelta(minutes=5)) if fill.order == order.id]
        assert sum(fill.qty for fill in mine) == 3
        assert order.limit_price is not None and all(fill.price <= order.limit_price for fill in mine)
        assert all(fill.side is Side.BUY and fill.symbol == symbol and fill.at.tzinfo is not None for fill in mine)
        assert stage.held(symbol) - held == 3

    def test_07_fills_keep_their_ids(self, stage: Stage) -> None:
        since = stage.timer.now() - timedelta(minutes=5)
        order = stage.buy(stage.symbols[1], 2)
        first = [fill for fill in stage.brokerage.fills(since) if fill.order == order.id]
        second = [fill for fill in stage.brokerage.fills(since) if fill.order == order.id]
        assert first == second and len({fill.id for fill in first}) == len(first) > 0

    def test_08_cash_moves_by_what_fills_cost(self, stage: Stage) -> None:
        symbol = stage.symbols[0]
        since, cash = stage.timer.now(), stage.brokerage.account().cash
        order = stage.buy(symbol, 4)
        fills = [fill for fill in stage.brokerage.fills(since - timedelta(minutes=5)) if fill.order == order.id]
        paid = sum(fill.qty * fill.price for fill in fills)
        fees = sum((f.detail.commission + f.detail.regulatory for f in fills if f.detail is not None), Decimal(0))
        assert abs(cash - stage.brokerage.account().cash - paid - fees) <= Decimal("0.01") * len(fills)

    def test_09_a_cancelled_order_ends_and_leaves_the_open_ones(self, stage: Stage) -> None:
        symbol = stage.symbols[0]
        ticket = stage.ticket(symbol, Side.BUY, 1, stage.away(symbol))
        stage.brokerage.cancel(stage.brokerage.place(ticket).id)
        ended = stage.ended(ticket.client_order_id)
        assert ended.state is OrderState.CANCELLED and ended.filled == 0
        assert ended.id not in {order.id for order in stage.brokerage.open_orders()}

    def test_10_an_ended_order_cannot_be_cancelled(self, stage: Stage) -> None:
        order = stage.buy(stage.symbols[0], 1)
        with pytest.raises(BrokerRefusal):
            stage.brokerage.cancel(order.id)

    def test_11_more_than_held_is_not_sold(self, stage: Stage) -> None:
        symbol = stage.symbols[0]
        stage.buy(symbol, 1)
        ticket = stage.ticket(symbol, Side.SELL, stage.held(symbol) + 1, stage.through(symbol, Side.SELL))
        with pytest.raises(BrokerRefusal):
            stage.brokerage.place(ticket)

    def test_12_an_unknown_name_is_refused(self, stage: Stage) -> None:
        with pytest.raises(BrokerRefusal) as refused:
            stage.brokerage.place(stage.ticket("NOSUCHNAME", Side.BUY, 1, Decimal("10.00")))
        assert not refused.value.later and not refused.value.duplicate

    def test_13_what_buying_power_does_not_pay_is_refused_for_now(self, stage: Stage) -> None:
        symbol = stage.symbols[0]
        limit = stage.through(symbol, Side.BUY)
        qty = int(stage.brokerage.account().buying_power / limit) * 2 + 10
        with pytest.raises(BrokerRefusal) as refused:
            stage.brokerage.place(stage.ticket(symbol, Side.BUY, qty, limit))
        assert refused.value.later

    def test_14_quotes_are_two_sided_and_dated(self, stage: Stage) -> None:
        quotes = stage.brokerage.quotes([*stage.symbols, "NOSUCHNAME"])
        assert set(quotes) == set(stage.symbols)
        assert all(0 < quote.bid <= quote.ask and quote.at.tzinfo is not None for quote in quotes.values())

    def test_15_cancel_all_leaves_nothing_open(self, stage: Stage) -> None:
        tickets = [stage.ticket(symbol, Side.BUY, 1, stage.away(symbol)) for symbol in stage.symbols]
        for ticket in tickets:
            stage.brokerage.place(ticket)
        stage.brokerage.cancel_all()
        assert [stage.ended(ticket.client_order_id).state for ticket in tickets] == [OrderState.CANCELLED] * 2
        assert not stage.brokerage.open_orders()

    def test_16_close_all_ends_flat(self, stage: Stage) -> None:
        stage.buy(stage.symbols[0], 2)
        stage.buy(stage.symbols[1], 1)
        stage.brokerage.close_all()
        until = stage.timer.now() + PATIENCE
        while any(holding.qty for holding in stage.brokerage.holdings()) and stage.timer.now() < until:
            stage.timer.wait(stage.timer.now() + LOOK)
        assert not any(holding.qty for holding in stage.brokerage.holdings())
        assert not stage.brokerage.open_orders()

    def test_17_listings_and_fills_begin_where_they_are_asked_to(self, stage: Stage) -> None:
        stage.buy(stage.symbols[0], 1)
        later = stage.timer.now() + timedelta(seconds=10)
        stage.timer.wait(later)
        order = stage.buy(stage.symbols[0], 1)
        assert order.id in {found.id for found in stage.brokerage.orders(later)}
        assert {fill.order for fill in stage.brokerage.fills(later)} == {order.id}

    def test_18_numbers_are_exact_and_instants_aware(self, stage: Stage) -> None:
        account, order = stage.brokerage.account(), stage.buy(stage.symbols[0], 1)
        fill = stage.brokerage.fills(stage.timer.now() - timedelta(minutes=5))[-1]
        exact = (account.cash, account.equity, order.qty, order.filled, fill.qty, fill.price)
        assert all(isinstance(value, Decimal) for value in exact)
        assert all(isinstance(at, datetime) and at.tzinfo is not None for at in (order.submitted_at, fill.at))

    def test_19_a_sale_brings_its_cash_once_it_is_filled(self, stage: Stage) -> None:
        symbol = stage.symbols[1]
        stage.buy(symbol, 3)
        cash, held = stage.brokerage.account().cash, stage.held(symbol)
        ticket = stage.ticket(symbol, Side.SELL, 2, stage.through(symbol, Side.SELL))
        stage.brokerage.place(ticket)
        assert stage.ended(ticket.client_order_id).filled == 2
        assert stage.held(symbol) == held - 2
        assert stage.brokerage.account().cash > cash

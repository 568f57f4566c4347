"""Unmodified alpaca-py clients at the emulator, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from alpaca.common.exceptions import APIError
from alpaca.data.enums import Adjustment, DataFeed
from alpaca.data.requests import (
    CorporateActionsRequest,
    StockBarsRequest,
    StockLatestQuoteRequest,
    StockLatestTradeRequest,
    StockQuotesRequest,
    StockSnapshotRequest,
)
from alpaca.data.timeframe import TimeFrame
from alpaca.trading.enums import OrderSide, OrderStatus, QueryOrderStatus, TimeInForce
from alpaca.trading.requests import (
    ClosePositionRequest,
    GetAssetsRequest,
    GetCalendarRequest,
    GetOrdersRequest,
    GetPortfolioHistoryRequest,
    LimitOrderRequest,
    MarketOrderRequest,
    ReplaceOrderRequest,
    StopLimitOrderRequest,
    StopOrderRequest,
    TrailingStopOrderRequest,
)

from oomrl.exchange.friction import Friction
from tests.integration.exchange.sockets import Clients, clients, streaming
from tests.unit.exchange.venues import DAYS, DOWN_FIRST, QUIET, UP_FIRST, tape_of

NOVEMBER = datetime(2006, 11, 1, tzinfo=UTC)
DAY, BUY = TimeInForce.DAY, OrderSide.BUY


@pytest.fixture
def at() -> Iterator[Clients]:
    """An exchange before its second session: AA moves up first, BB splits 2:1 and pays in the third, CC down first."""
    split = (50.0, 51.0, 49.0, 50.0, 1e6, 0.25, 2.0)
    halves = [(50.0, 50.0, 50.0, 50.0, 1e6, 0.0, 1.0)] * 2
    tape = tape_of(AA=[QUIET, UP_FIRST], BB=[QUIET, QUIET, split, *halves], CC=[QUIET, DOWN_FIRST])
    with clients(tape, 1, cash=Decimal(100_000), friction=Friction.none()) as made:
        yield made


def error_of(error: APIError) -> tuple[int, int]:
    return error.status_code, error.code


def test_a_day_of_trading(at: Clients) -> None:
    trading = at.trading
    clock = trading.get_clock()
    assert not clock.is_open and clock.next_open.isoformat() == "2006-11-21T09:30:00-05:00"
    buys = [
        MarketOrderRequest(symbol="AA", qty=100, side=BUY, time_in_force=DAY, client_order_id="market"),
        LimitOrderRequest(symbol="AA", qty=10, side=BUY, time_in_force=DAY, limit_price=96, client_order_id="limit"),
        StopOrderRequest(symbol="CC", qty=10, side=BUY, time_in_force=DAY, stop_price=103, client_order_id="stop"),
        StopLimitOrderRequest(
            symbol="CC",
            qty=10,
            side=BUY,
            time_in_force=DAY,
            stop_price=101,
            limit_price=102,
            client_order_id="stop_limit",
        ),
        TrailingStopOrderRequest(
            symbol="CC", qty=10, side=BUY, time_in_force=DAY, trail_price=4, client_order_id="trailing"
        ),
        MarketOrderRequest(symbol="BB", notional=1000, side=BUY, time_in_force=DAY, client_order_id="notional"),
    ]
    for request in buys:
        assert trading.submit_order(request).status is OrderStatus.ACCEPTED
    assert {order.client_order_id for order in trading.get_orders()} == {buy.client_order_id for buy in buys}
    at.until("close")
    found = {buy.client_order_id: trading.get_order_by_client_id(buy.client_order_id) for buy in buys}
    prices = {name: order.filled_avg_price for name, order in found.items()}
    assert prices == {
        "market": "100",
        "limit": "96",
        "stop": "103",
        "stop_limit": "101",
        "trailing": "102",
        "notional": "100",
    }
    account = trading.get_account()
    spent = 10_000 + 960 + 1_030 + 1_010 + 1_020 + 1_000
    assert account.cash == f"{100_000 - spent}.00"
    assert float(account.equity) == 100_000 - spent + 110 * 99 + 30 * 104 + 10 * 100
    assert {p.symbol: p.qty for p in trading.get_all_positions()} == {"AA": "110", "BB": "10", "CC": "30"}
    assert trading.get_open_position("CC").market_value == "3120"
    history = trading.get_portfolio_history(GetPortfolioHistoryRequest(period="1M", timeframe="1D"))
    assert history.equity == [float(account.equity)] and history.base_value == 100_000


def test_orders_are_listed_replaced_and_cancelled(at: Clients) -> None:
    trading = at.trading
    orders = [
        trading.submit_order(
            LimitOrderRequest(symbol="AA", qty=1, side=BUY, time_in_force=TimeInForce.GTC, limit_price=price)
        )
        for price in (50, 51, 52)
    ]
    listed = trading.get_orders(GetOrdersRequest(status=QueryOrderStatus.OPEN, limit=2))
    assert [order.id for order in listed] == [orders[2].id, orders[1].id]
    new = trading.replace_order_by_id(orders[0].id, ReplaceOrderRequest(qty=3, limit_price=49.5))
    assert (new.replaces, new.qty, new.limit_price) == (orders[0].id, "3", "49.5")
    assert trading.get_order_by_id(orders[0].id).status is OrderStatus.REPLACED
    trading.cancel_order_by_id(orders[1].id)
    with pytest.raises(APIError) as twice:
        trading.cancel_order_by_id(orders[1].id)
    assert error_of(twice.value) == (422, 42210000)
    assert {str(answer.id) for answer in trading.cancel_orders()} == {str(new.id), str(orders[2].id)}
    assert trading.get_orders() == []
    closed = trading.get_orders(GetOrdersRequest(status=QueryOrderStatus.CLOSED, limit=500))
    assert len(closed) == 4


def test_positions_are_closed_in_part_and_whole(at: Clients) -> None:
    trading = at.trading
    for symbol in ("AA", "CC"):
        trading.submit_order(MarketOrderRequest(symbol=symbol, qty=100, side=BUY, time_in_force=DAY))
    at.until("point")
    trading.close_position("AA", ClosePositionRequest(percentage="25"))
    assert trading.get_open_position("AA").qty == "75"
    assert sorted(answer.symbol for answer in trading.close_all_positions()) == ["AA", "CC"]
    assert trading.get_all_positions() == []
    with pytest.raises(APIError) as gone:
        trading.get_open_position("AA")
    assert error_of(gone.value) == (404, 40410000)


def test_refusals_come_with_alpaca_s_codes(at: Clients) -> None:
    trading = at.trading
    request = MarketOrderRequest(symbol="AA", qty=1, side=BUY, time_in_force=DAY, client_order_id="once")
    trading.submit_order(request)
    wrong = {
        (422, 40010001): request,
        (403, 40310000): MarketOrderRequest(symbol="AA", qty=2_000, side=BUY, time_in_force=DAY),
        (422, 42210000): LimitOrderRequest(symbol="AA", qty=1, side=BUY, time_in_force=DAY, limit_price=1.001),
    }
    for codes, order in wrong.items():
        with pytest.raises(APIError) as error:
            trading.submit_order(order)
        assert error_of(error.value) == codes
    with pytest.raises(APIError) as unknown:
        trading.get_order_by_client_id("never")
    assert error_of(unknown.value) == (404, 40410000)
    assert at.http.get("/v2/account", headers={"APCA-API-KEY-ID": ""}).status_code == 401
    assert at.http.get("/v2/nothing").json()["code"] == 40410000


def test_calendar_and_assets(at: Clients) -> None:
    days = at.trading.get_calendar(GetCalendarRequest(start=date(2006, 11, 22), end=date(2006, 11, 27)))
    assert [(day.date, day.open.hour, day.close.hour) for day in days] == [
        (date(2006, 11, 22), 9, 16),
        (date(2006, 11, 24), 9, 13),
        (date(2006, 11, 27), 9, 16),
    ]
    assets = at.trading.get_all_assets(GetAssetsRequest(status="active"))
    assert [(asset.symbol, asset.tradable, asset.fractionable) for asset in assets] == [
        (name, True, True) for name in ("AA", "BB", "CC")
    ]
    assert at.trading.get_asset("AA").id == at.trading.get_asset(str(assets[0].id)).id


def test_market_data_ends_at_the_clock_and_knows_only_what_has_printed(at: Clients) -> None:
    def bars(
        feed: DataFeed | None = None, adjustment: Adjustment = Adjustment.RAW
    ) -> dict[str, list[tuple[str, float]]]:
        asked = StockBarsRequest(
            symbol_or_symbols=["AA", "BB"],
            timeframe=TimeFrame.Day,
            start=NOVEMBER,
            feed=feed,
            adjustment=adjustment,
        )
        found = at.data.get_stock_bars(asked).data
        return {name: [(f"{bar.timestamp:%d}", bar.close) for bar in rows] for name, rows in found.items()}

    assert bars()["AA"] == [("20", 100.0)]
    at.until("point", "point")
    assert bars(DataFeed.IEX)["AA"] == [("20", 100.0), ("21", 102.0)]
    at.until("close")
    assert bars()["AA"] == [("20", 100.0), ("21", 95.0)]  # consolidated data is 15 minutes late
    at.admin.post("/admin/clock", json={"by": 20 * 60})
    assert bars()["AA"] == [("20", 100.0), ("21", 99.0)]
    at.until("close")
    at.admin.post("/admin/clock", json={"by": 20 * 60})
    assert bars()["BB"] == [("20", 100.0), ("21", 100.0), ("22", 50.0)]
    assert bars(adjustment=Adjustment.SPLIT)["BB"] == [("20", 50.0), ("21", 50.0), ("22", 50.0)]
    assert bars(adjustment=Adjustment.ALL)["BB"] == [("20", 49.75), ("21", 49.75), ("22", 50.0)]
    today = at.http.get("/v2/stocks/bars", params={"symbols": "AA", "timeframe": "1Day", "end": "2006-11-22"}).json()
    assert [bar["c"] for bar in today["bars"]["AA"]] == [100.0, 99.0, 100.0]
    recent = {"symbols": "AA", "timeframe": "1Day", "end": at.admin.get("/admin/clock").json()["now"]}
    assert at.http.get("/v2/stocks/bars", params=recent).json()["code"] == 42210000
    with pytest.raises(APIError):
        at.data.get_stock_latest_quote(StockLatestQuoteRequest(symbol_or_symbols="AA", feed=DataFeed.SIP))


def test_bars_come_in_pages_over_all_symbols(at: Clients) -> None:
    at.until("close", "close", "close", "close")
    at.admin.post("/admin/clock", json={"by": 20 * 60})
    token, pages = None, []
    while True:
        query = {"symbols": "CC,AA,BB", "timeframe": "1Day", "start": "2006-11-01", "limit": "4"}
        page = at.http.get("/v2/stocks/bars", params={**query, **({"page_token": token} if token else {})}).json()
        pages.append({name: len(rows) for name, rows in page["bars"].items()})
        token = page["next_page_token"]
        if token is None:
            break
    assert pages == [{"AA": 4}, {"AA": 1, "BB": 3}, {"BB": 2, "CC": 2}, {"CC": 3}]
    asked = StockBarsRequest(symbol_or_symbols=["AA", "BB", "CC"], timeframe=TimeFrame.Day, start=NOVEMBER)
    assert sum(map(len, at.data.get_stock_bars(asked).data.values())) == 15


def test_quotes_trades_and_snapshots(at: Clients) -> None:
    at.until("point", "point")
    quote = at.data.get_stock_latest_quote(StockLatestQuoteRequest(symbol_or_symbols="AA"))["AA"]
    trade = at.data.get_stock_latest_trade(StockLatestTradeRequest(symbol_or_symbols="AA"))["AA"]
    assert quote.bid_price == quote.ask_price == trade.price == 102.0
    shot = at.data.get_stock_snapshot(StockSnapshotRequest(symbol_or_symbols="AA"))["AA"]
    assert (shot.daily_bar.high, shot.daily_bar.close, shot.previous_daily_bar.close) == (102.0, 102.0, 100.0)
    asked = StockQuotesRequest(symbol_or_symbols="AA", start=datetime(2006, 11, 21, tzinfo=UTC), feed=DataFeed.IEX)
    assert [quote.ask_price for quote in at.data.get_stock_quotes(asked).data["AA"]] == [100.0, 102.0]


def test_corporate_actions_appear_on_their_day(at: Clients) -> None:
    asked = CorporateActionsRequest(symbols=["BB"], start=date(2006, 11, 1), end=date(2006, 11, 30))
    assert at.actions.get_corporate_actions(asked).data == {}
    at.until("close", "morning")
    found = at.actions.get_corporate_actions(asked).data
    assert [(split.new_rate, split.old_rate) for split in found["forward_splits"]] == [(2, 1)]
    assert [(paid.ex_date, paid.rate) for paid in found["cash_dividends"]] == [(DAYS[2], 0.25)]
    day_before = CorporateActionsRequest(symbols=["BB"], start=date(2006, 11, 1), end=DAYS[1])
    assert at.actions.get_corporate_actions(day_before).data == {}


def test_activities_by_the_raw_call(at: Clients) -> None:
    at.trading.submit_order(MarketOrderRequest(symbol="BB", qty=10, side=BUY, time_in_force=DAY))
    at.until("close", "close")
    found = at.trading.get("/account/activities", {"page_size": 2})
    more = at.trading.get("/account/activities", {"page_size": 2, "page_token": found[-1]["id"]})
    assert [entry["activity_type"] for entry in [*found, *more]] == ["DIV", "SPLIT", "FILL"]
    assert at.trading.get("/account/activities/DIV")[0]["net_amount"] == "5.00"


def test_the_stream_tells_each_event_and_replaces_a_lost_connection(at: Clients) -> None:
    with streaming(at.exchange) as (stream, heard):
        order = at.trading.submit_order(MarketOrderRequest(symbol="AA", qty=10, side=BUY, time_in_force=DAY))
        at.until("open")
        updates = [heard.get(timeout=60) for _ in range(3)]
        assert [update.event for update in updates] == ["accepted", "new", "fill"]
        fill = updates[-1]
        assert (fill.order.id, fill.qty, fill.price, fill.position_qty) == (order.id, 10.0, 100.0, 10.0)
        assert isinstance(fill.execution_id, UUID)
        text = '[[fault]]\nkind = "stream_drop"\nnth = [1]'
        at.admin.post("/admin/faults", json={"toml": text}).raise_for_status()
        gone = at.trading.submit_order(
            LimitOrderRequest(symbol="AA", qty=10, side=BUY, time_in_force=DAY, limit_price=5)
        )
        assert heard.get(timeout=60).order.id == gone.id
        stream.confirmed.get(timeout=60)
        at.trading.cancel_order_by_id(gone.id)
        assert heard.get(timeout=60).event == "canceled"

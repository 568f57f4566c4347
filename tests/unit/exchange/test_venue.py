"""Orders at the emulated exchange: types, times in force, states, arrival between the points, refusals.

Long by nature: one test a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from oomrl.exchange.emulator.orders import Status
from oomrl.exchange.emulator.refusals import Refusal
from oomrl.exchange.emulator.statements import account, activities, history, positions
from oomrl.exchange.emulator.terms import Terms
from oomrl.exchange.emulator.venue import Venue
from oomrl.exchange.friction import Friction
from tests.unit.exchange.venues import DAYS, DOWN_FIRST, QUIET, UP_FIRST, Desk, desk, tape_of


def held(shares: int = 100, *rows: Any, **settings: Any) -> Desk:
    """Return a desk that bought shares at 100 in a quiet session before the rows."""
    made = desk(QUIET, *rows, **settings)
    made.send("buy", shares)
    made.to("close")
    return made


def refused(what: Callable[[], object]) -> tuple[int, int, str]:
    with pytest.raises(Refusal) as refusal:
        what()
    return refusal.value.status, refusal.value.body["code"], refusal.value.body["message"]


@pytest.mark.parametrize(
    ("kind", "fields", "price", "moment"),
    [
        ("market", {}, "100.00", "open"),
        ("limit", {"limit_price": "101"}, "100.00", "open"),
        ("limit", {"limit_price": "96"}, "96.00", "second"),
        ("limit", {"limit_price": "94"}, None, "close"),
        ("stop", {"stop_price": "101"}, "101.00", "first"),
        ("stop", {"stop_price": "103"}, None, "close"),
        ("stop_limit", {"stop_price": "101", "limit_price": "101.5"}, "101.00", "first"),
        # Triggered on the way up at 101, above the limit; bought on the way down.
        ("stop_limit", {"stop_price": "101", "limit_price": "97"}, "97.00", "second"),
    ],
)
def test_buys_fill_where_the_path_meets_them(kind: str, fields: dict[str, str], price: str | None, moment: str) -> None:
    made = desk(UP_FIRST)
    order = made.send("buy", 10, kind, **fields)
    made.to(moment)
    assert made.prices(order) == ([price] if price else [])
    assert order.status is (Status.FILLED if price else Status.EXPIRED)


@pytest.mark.parametrize(
    ("kind", "fields", "price", "moment"),
    [
        ("limit", {"limit_price": "101.5"}, "101.50", "first"),
        ("stop", {"stop_price": "97"}, "97.00", "second"),
        ("stop_limit", {"stop_price": "97", "limit_price": "98.5"}, "98.50", "close"),
        # The best price is 102, so the stop stands at 99 when the path comes down.
        ("trailing_stop", {"trail_price": "3"}, "99.00", "second"),
        ("trailing_stop", {"trail_percent": "5"}, "96.90", "second"),
        ("trailing_stop", {"trail_price": "8"}, None, "close"),
    ],
)
def test_sales_fill_where_the_path_meets_them(
    kind: str, fields: dict[str, str], price: str | None, moment: str
) -> None:
    made = held(100, UP_FIRST)
    order = made.send("sell", 100, kind, **fields)
    made.to(moment)
    assert made.prices(order) == ([price] if price else [])
    assert made.venue.account.core.position("AA") == (0 if price else 100)


def test_a_stop_that_the_open_jumps_over_fills_at_the_open() -> None:
    made = held(100, (90.0, 91.0, 89.0, 90.0, 1e6, 0.0, 1.0))
    order = made.send("sell", 100, "stop", stop_price="97")
    made.to("open")
    assert made.prices(order) == ["90.00"]


def test_a_trailing_buy_follows_the_price_down() -> None:
    made = desk(DOWN_FIRST)
    order = made.send("buy", 10, "trailing_stop", trail_price="2.5")
    made.to("first")
    assert (order.hwm, order.stop) == (Decimal(98), Decimal("100.5"))
    made.to("second")
    assert made.prices(order) == ["100.50"]


@pytest.mark.parametrize(
    ("force", "fields", "price", "status", "moment"),
    [
        ("opg", {}, "100.00", Status.FILLED, "open"),
        ("opg", {"limit_price": "99"}, None, Status.CANCELED, "open"),
        ("cls", {}, "99.00", Status.FILLED, "close"),
        ("cls", {"limit_price": "98"}, None, Status.EXPIRED, "close"),
        ("ioc", {}, "100.00", Status.FILLED, "open"),
        ("ioc", {"limit_price": "99"}, None, Status.CANCELED, "open"),
        ("fok", {}, "100.00", Status.FILLED, "open"),
        ("gtc", {"limit_price": "94"}, None, Status.DONE_FOR_DAY, "close"),
    ],
)
def test_times_in_force(force: str, fields: dict[str, str], price: str | None, status: Status, moment: str) -> None:
    made = desk(UP_FIRST)
    made.to("morning")
    order = made.send("buy", 10, "limit" if fields else "market", time_in_force=force, **fields)
    made.to(moment)
    assert (made.prices(order), order.status) == ([price] if price else [], status)


def test_an_ioc_order_keeps_what_fills_and_a_fok_order_fills_whole_or_not() -> None:
    thin = (100.0, 100.0, 100.0, 100.0, 40.0, 0.0, 1.0)
    made = desk(thin)
    made.to("open")
    some, none = (made.send("buy", 50, time_in_force=force) for force in ("ioc", "fok"))
    assert (some.filled_qty, some.status) == (40, Status.CANCELED)
    assert (none.filled_qty, none.status) == (0, Status.CANCELED)


def test_orders_that_arrive_between_the_points_meet_the_last_point_and_then_live_along_the_path() -> None:
    made = desk(UP_FIRST)
    made.to("first")
    at_once, later = made.send("buy", 10), made.send("buy", 10, "limit", limit_price="96")
    assert made.prices(at_once) == ["102.00"]
    assert made.events(at_once) == ["new", "fill"]
    made.to("second")
    assert made.prices(later) == ["96.00"]


def test_a_good_till_cancelled_order_rests_over_night_and_ends_after_ninety_days() -> None:
    made = desk(QUIET, QUIET, UP_FIRST)
    order = made.send("buy", 10, "limit", time_in_force="gtc", limit_price="96")
    made.to("close", "close", "second")
    assert made.events(order) == ["accepted", *["new", "done_for_day"] * 2, "new", "fill"]
    assert made.prices(order) == ["96.00"]
    old = made.send("buy", 10, "limit", time_in_force="gtc", limit_price="50")
    old.entered -= timedelta(days=90)
    made.to("close")
    assert old.status is Status.CANCELED


def test_a_partly_filled_day_order_ends_cancelled_with_what_it_got() -> None:
    made = desk((100.0, 100.0, 100.0, 100.0, 40.0, 0.0, 1.0))
    order = made.send("buy", 50)
    made.to("close")
    assert (order.status, order.filled_qty) == (Status.CANCELED, 40)
    assert made.events(order) == ["accepted", "new", "partial_fill", "canceled"]


def test_an_order_after_the_close_waits_for_the_next_session_and_half_days_close_at_one() -> None:
    made = desk(QUIET)
    made.to("close")
    order = made.send("buy", 1)
    assert order.status is Status.ACCEPTED
    made.to("open")
    assert order.status is Status.FILLED
    hours = made.venue.hours.session(DAYS[3])
    assert hours is not None and (hours.closes - hours.opens) == timedelta(hours=3, minutes=30)


@pytest.mark.parametrize(
    ("force", "moment", "taken"),
    [("opg", "morning", True), ("opg", "lock_opg", False), ("cls", "second", True), ("cls", "lock_cls", False)],
)
def test_auction_orders_are_refused_after_their_cut_off(force: str, moment: str, taken: bool) -> None:
    made = desk(QUIET)
    made.to(moment)
    if taken:
        made.send("buy", 1, time_in_force=force)
    else:
        assert refused(lambda: made.send("buy", 1, time_in_force=force))[:2] == (422, 42210000)


def test_fractional_and_notional_orders_spend_what_they_say() -> None:
    made = desk((33.0, 33.0, 33.0, 33.0, 1e6, 0.0, 1.0), cash=1_000)
    part, money = made.send("buy", "0.123456789"), made.send("buy", None, notional="100.00")
    made.to("open")
    assert part.filled_qty == Decimal("0.123456789")
    assert money.filled_qty == Decimal("3.030303030")
    assert made.venue.account.cash == Decimal(1_000) - Decimal("4.07") - Decimal("100.00")
    made.send("sell", str(made.venue.account.core.position("AA")))
    assert made.venue.account.positions() == {}


def test_a_sale_for_dollars_never_sells_more_than_is_held_when_the_price_falls() -> None:
    made = held(10, (50.0, 50.0, 50.0, 50.0, 1e6, 0.0, 1.0))
    made.send("sell", None, notional="900.00")
    assert refused(lambda: made.send("sell", 2))[:2] == (403, 40310000)
    made.send("sell", 1)
    made.to("open")
    assert made.venue.account.positions() == {}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"qty": "0.5", "time_in_force": "gtc"}, 42210000),
        ({"qty": "0.5", "type": "limit", "limit_price": "100"}, 42210000),
        ({"qty": "0.1234567891"}, 40010001),
        ({"notional": "0.99"}, 40010001),
        ({"qty": "1", "notional": "5"}, 40010001),
        ({"qty": "0"}, 40010001),
        ({"qty": "1", "type": "limit", "limit_price": "100.001"}, 42210000),
        ({"qty": "1", "type": "limit"}, 42210000),
        ({"qty": "1", "limit_price": "100"}, 42210000),
        ({"qty": "1", "type": "stop", "stop_price": "99"}, 42210000),
        ({"qty": "1", "symbol": "ZZ"}, 42210000),
        ({"qty": "1", "client_order_id": "x" * 129}, 40010001),
        ({"qty": "1", "time_in_force": "eternal"}, 40010001),
        ({"qty": "1", "order_class": "bracket"}, 42210000),
        ({"qty": "1", "extended_hours": True}, 42210000),
    ],
)
def test_orders_that_break_the_rules_are_refused_and_leave_nothing(fields: dict[str, Any], code: int) -> None:
    made = desk(QUIET)
    status, found, _ = refused(
        lambda: made.send("buy", fields.get("qty"), fields.get("type", "market"), **_rest(fields))
    )
    assert (status, found) == (422, code)
    assert made.venue.account.orders == {} and made.updates == []


def _rest(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in ("qty", "type")}


def test_fractional_limits_where_so_set() -> None:
    made = desk(UP_FIRST, fractional_limits=True)
    order = made.send("buy", "0.5", "limit", limit_price="96")
    made.to("second")
    assert order.filled_qty == Decimal("0.5")


def test_a_client_order_id_is_used_once_even_after_a_cancel() -> None:
    made = desk(QUIET)
    order = made.send("buy", 1, client_order_id="mine")
    made.venue.cancel(order)
    assert refused(lambda: made.send("buy", 1, client_order_id="mine")) == (
        422,
        40010001,
        "client_order_id must be unique",
    )


def test_open_buys_reserve_buying_power_and_sales_free_it_only_once_filled() -> None:
    made = held(500, QUIET)
    assert made.venue.account.buying_power() == 50_000
    first = made.send("buy", 300, "limit", limit_price="100")
    assert made.venue.account.buying_power() == 20_000
    sale = refused(lambda: made.send("sell", 500))
    assert sale[:2] == (403, 40310000) and "wash trade" in sale[2]
    assert refused(lambda: made.send("buy", 201))[2] == "insufficient buying power"
    made.venue.cancel(first)
    made.send("sell", 500)
    assert made.venue.account.buying_power() == 50_000
    made.to("open")
    assert made.venue.account.buying_power() == 100_000


def test_a_margin_account_buys_for_twice_its_equity() -> None:
    made = desk(QUIET, multiplier=2)
    assert made.venue.account.buying_power() == 200_000
    made.send("buy", 1_800)
    made.to("open")
    assert (made.venue.account.cash, made.venue.account.buying_power()) == (-80_000, 20_000)
    assert refused(lambda: made.send("buy", 201))[2] == "insufficient buying power"


def test_buys_wait_for_cash_where_so_set() -> None:
    tape = tape_of(AA=[QUIET, QUIET, UP_FIRST], BB=[QUIET, QUIET, DOWN_FIRST])
    terms = Terms(cash=Decimal(10_000), friction=Friction.none(), cash_rule="wait")
    made = Desk(Venue(tape, terms, DAYS[1]))
    made.send("buy", 100)
    made.to("close")
    made.send("sell", 100)
    buy = made.send("buy", 102, symbol="BB")
    made.to("open")
    assert made.prices(buy) == []
    made.to("first")
    assert made.prices(buy) == ["98.00"]


def test_shares_on_sale_are_not_sold_twice() -> None:
    made = held(100, QUIET)
    made.send("sell", 60, "limit", limit_price="120")
    status, code, message = refused(lambda: made.send("sell", 41))
    assert (status, code) == (403, 40310000) and "available: 40" in message
    made.send("sell", 40, "limit", limit_price="120")
    assert positions(made.venue)[0]["qty_available"] == "0"


def test_nothing_is_sold_short() -> None:
    assert refused(lambda: desk(QUIET).send("sell", 1))[:2] == (403, 40310000)


@pytest.mark.parametrize(
    ("resting", "coming", "wash"),
    [
        ({"kind": "limit", "limit_price": "120"}, {"kind": "limit", "limit_price": "119"}, False),
        ({"kind": "limit", "limit_price": "120"}, {"kind": "limit", "limit_price": "120"}, True),
        ({"kind": "limit", "limit_price": "120"}, {"kind": "market"}, True),
        ({"kind": "stop", "stop_price": "80"}, {"kind": "limit", "limit_price": "50"}, True),
    ],
)
def test_wash_trades_are_refused(resting: dict[str, str], coming: dict[str, str], wash: bool) -> None:
    made = held(100, QUIET)
    first = made.send("sell", 10, **resting)
    if not wash:
        made.send("buy", 10, **coming)
        return
    with pytest.raises(Refusal) as refusal:
        made.send("buy", 10, **coming)
    assert refusal.value.body["existing_order_id"] == first.id


def test_a_cancel_ends_an_open_order_and_only_that() -> None:
    made = desk(QUIET)
    order = made.send("buy", 10)
    made.venue.cancel(order)
    assert made.events(order) == ["accepted", "canceled"]
    assert refused(lambda: made.venue.cancel(order))[:2] == (422, 42210000)
    made.to("close")
    assert made.venue.account.fills == []


def test_a_replacement_is_a_new_order_that_counts_what_was_filled() -> None:
    thin = (100.0, 100.0, 100.0, 100.0, 40.0, 0.0, 1.0)
    made = desk(thin, UP_FIRST)
    order = made.send("buy", 50, "limit", time_in_force="gtc", limit_price="100")
    made.to("close")
    assert refused(lambda: made.venue.replace(order, {"qty": Decimal(40)}))[:2] == (422, 42210000)
    shown = made.venue.replace(order, {"qty": Decimal(45), "limit": Decimal(96), "client_order_id": "new"})
    assert (shown["status"], shown["replaces"]) == ("pending_replace", order.id)
    new = made.venue.account.by_client_id["new"]
    assert (order.status, order.replaced_by, new.qty) == (Status.REPLACED, new.id, 5)
    assert refused(lambda: made.venue.replace(order, {"qty": Decimal(60)}))[:2] == (422, 42210000)
    made.to("second")
    assert (new.status, made.prices(new), made.venue.account.core.position("AA")) == (Status.FILLED, ["96.00"], 45)


def test_a_replaced_trailing_stop_keeps_the_best_price_it_saw() -> None:
    made = held(100, UP_FIRST)
    order = made.send("sell", 100, "trailing_stop", trail_price="9")
    made.to("first")
    made.venue.replace(order, {"trail": Decimal(6), "client_order_id": "new"})
    new = made.venue.account.by_client_id["new"]
    assert (new.hwm, new.stop) == (Decimal(102), Decimal(96))
    made.to("second")
    assert made.prices(new) == ["96.00"]


def test_a_replacement_may_use_the_buying_power_of_what_it_replaces() -> None:
    made = desk(QUIET)
    order = made.send("buy", 900, "limit", limit_price="100")
    made.venue.replace(order, {"qty": Decimal(1_000)})
    assert made.venue.account.buying_power() == 0


def test_splits_restate_positions_and_waiting_orders_and_dividends_pay() -> None:
    made = held(101, (50.0, 51.0, 49.0, 50.0, 1e6, 0.25, 2.0))
    order = made.send("sell", 50, "limit", limit_price="104")
    made.to("morning")
    assert (made.venue.account.core.position("AA"), order.qty, order.limit) == (202, 100, 52)
    kinds = {entry["activity_type"]: entry.get("net_amount") for entry in activities(made.venue)}
    assert kinds["DIV"] == "50.50" and kinds["SPLIT"] == "0.00"
    made.to("open")
    [shown] = positions(made.venue)
    assert (shown["qty"], shown["avg_entry_price"], shown["lastday_price"]) == ("202", "50", "50")


def test_orders_in_a_halted_name_are_suspended_and_go_on_when_it_trades_again() -> None:
    made = desk(None, UP_FIRST)
    kept = made.send("buy", 10, time_in_force="gtc")
    gone = made.send("buy", 10)
    made.to("close")
    assert (kept.status, gone.status) == (Status.SUSPENDED, Status.EXPIRED)
    made.to("open")
    assert made.prices(kept) == ["100.00"]


def test_a_delisted_position_is_paid_out_and_its_asset_goes_inactive() -> None:
    made = held(10, None, None, None, delist_after=2)
    order = made.send("sell", 5, time_in_force="gtc")
    made.to("close", "close")
    assert (made.venue.account.positions(), order.status) == ({}, Status.CANCELED)
    assert made.venue.account.cash == 100_000
    assert activities(made.venue)[0]["activity_type"] == "REORG"
    made.to("close")
    assert not made.venue.board.active("AA")
    assert refused(lambda: made.send("buy", 1))[2] == 'asset "AA" is not tradable'


def test_the_account_statement_adds_up() -> None:
    made = held(100, UP_FIRST)
    made.to("second")
    shown = account(made.venue)
    assert (shown["cash"], shown["long_market_value"], shown["equity"]) == ("90000.00", "9500.00", "99500.00")
    assert shown["last_equity"] == "100000.00"
    made.to("close")
    days = history(made.venue)
    assert days["equity"] == [100_000.0, 99_900.0] and days["base_value"] == 100_000.0
    assert days["profit_loss"] == [0.0, -100.0]


def test_activities_come_in_pages_without_gaps_or_doubles() -> None:
    made = desk(QUIET)
    for _ in range(25):
        made.send("buy", 1)
    made.to("open")
    seen: list[str] = []
    token = None
    while page := activities(made.venue, page_size=10, page_token=token):
        seen += [entry["id"] for entry in page]
        token = page[-1]["id"]
    assert len(seen) == len(set(seen)) == 25

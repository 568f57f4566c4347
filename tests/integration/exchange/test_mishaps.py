"""Faults over real sockets, as alpaca-py meets them, and the request limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import httpx
import pytest
import requests
from alpaca.common.exceptions import APIError
from alpaca.trading.enums import OrderSide, TimeInForce
from alpaca.trading.requests import LimitOrderRequest, MarketOrderRequest, ReplaceOrderRequest
from pydantic import ValidationError
from websockets.sync.client import connect

from oomrl.exchange.friction import Friction
from tests.integration.exchange.sockets import Clients, clients, streaming
from tests.unit.exchange.venues import QUIET, UP_FIRST, tape_of


@contextmanager
def with_fault(*lines: str, rate_limit: int = 0, rows: tuple[Any, ...] = (UP_FIRST,)) -> Iterator[Clients]:
    tape = tape_of(AA=[QUIET, *rows], BB=[])
    text = "[[fault]]\n" + "\n".join(lines)
    faults = text if lines else ""
    with clients(
        tape, 1, faults=faults, rate_limit=rate_limit, cash=Decimal(100_000), friction=Friction.none()
    ) as made:
        made.trading._retry_wait = 0
        yield made


def market(**fields: Any) -> MarketOrderRequest:
    return MarketOrderRequest(symbol="AA", qty=10, side=OrderSide.BUY, time_in_force=TimeInForce.DAY, **fields)


def limit(price: float, **fields: Any) -> LimitOrderRequest:
    return LimitOrderRequest(
        symbol="AA", qty=10, side=OrderSide.BUY, time_in_force=TimeInForce.DAY, limit_price=price, **fields
    )


def posts(at: Clients) -> dict[str, int]:
    found: dict[str, int] = at.admin.get("/admin/requests").json()
    return {name: count for name, count in found.items() if name.startswith("POST")}


def test_an_order_behind_a_504_exists_and_the_sdk_s_blind_retry_is_refused_as_a_duplicate() -> None:
    with with_fault('kind = "accepted_then_504"', "nth = [1]") as at:
        with pytest.raises(APIError) as error:
            at.trading.submit_order(market(client_order_id="mine"))
        assert (error.value.status_code, error.value.code) == (422, 40010001)
        assert posts(at) == {"POST /v2/orders 422": 1, "POST /v2/orders 504": 1}
        assert at.trading.get_order_by_client_id("mine").status.value == "accepted"


def test_without_a_client_order_id_the_same_retry_makes_a_second_order() -> None:
    with with_fault('kind = "accepted_then_504"', "nth = [1]") as at:
        at.trading.submit_order(market())
        assert len(at.books()["orders"]) == 2


@pytest.mark.parametrize(("applied", "orders"), [("true", 1), ("false", 0)])
def test_a_connection_is_reset_before_or_after_the_order_was_taken(applied: str, orders: int) -> None:
    with with_fault('kind = "reset"', f"applied = {applied}", "times = 1", 'endpoint = "POST *"') as at:
        with pytest.raises(requests.exceptions.ConnectionError):
            at.trading.submit_order(market())
        assert len(at.books()["orders"]) == orders


@pytest.mark.parametrize(("applied", "orders"), [("true", 1), ("false", 0)])
def test_a_gateway_answers_with_a_page(applied: str, orders: int) -> None:
    with with_fault('kind = "html_502"', f"applied = {applied}") as at:
        with pytest.raises(APIError) as error:
            at.trading.submit_order(market())
        assert error.value.status_code == 502
        with pytest.raises(ValueError, match="Expecting value"):
            _ = error.value.code
        assert len(at.books()["orders"]) == orders


def test_a_slow_answer_comes_after_the_order_was_taken() -> None:
    with with_fault('kind = "slow"', "seconds = 5", 'endpoint = "POST *"') as at:
        order = {"symbol": "AA", "side": "buy", "type": "market", "time_in_force": "day", "qty": "1"}
        with pytest.raises(httpx.ReadTimeout):
            at.http.post("/v2/orders", json=order, timeout=0.2)
        assert len(at.books()["orders"]) == 1


def test_a_429_says_when_to_come_back() -> None:
    with with_fault('kind = "rate_limited"', "nth = [1]") as at:
        answer = at.http.get("/v2/clock")
        assert answer.status_code == 429
        assert (answer.headers["X-Ratelimit-Remaining"], answer.headers["X-Ratelimit-Reset"]) == ("0", "1164058260")
        assert at.http.get("/v2/clock").status_code == 200


def test_the_request_limit_counts_minutes_of_the_virtual_clock() -> None:
    with with_fault(rate_limit=5) as at:
        left = [at.http.get("/v2/clock").headers["X-Ratelimit-Remaining"] for _ in range(5)]
        assert left == ["4", "3", "2", "1", "0"]
        refused = at.http.get("/v2/clock")
        assert (refused.status_code, refused.json()["message"]) == (429, "too many requests.")
        assert at.http.get("/v2/clock", headers={"APCA-API-KEY-ID": "other"}).status_code == 200
        assert at.http.get("/v2/stocks/AA/trades/latest").status_code == 200
        at.admin.post("/admin/clock", json={"by": 59})
        assert at.http.get("/v2/clock").status_code == 429
        at.admin.post("/admin/clock", json={"by": 1})
        assert at.http.get("/v2/clock").status_code == 200


def test_one_asset_with_an_unknown_value_breaks_the_sdk_s_whole_list() -> None:
    fault = ('kind = "unknown_enum"', 'endpoint = "GET /v2/assets"', 'field = "exchange"')
    with with_fault(*fault) as at, pytest.raises(ValidationError):
        at.trading.get_all_assets()


def test_a_field_is_null() -> None:
    fault = ('kind = "null_field"', 'endpoint = "GET /v2/account/portfolio/history"', 'field = "base_value"')
    with with_fault(*fault) as at:
        assert at.http.get("/v2/account/portfolio/history").json()["base_value"] is None


def test_a_cancel_that_is_ignored_leaves_the_order_working() -> None:
    with with_fault('kind = "cancel_ignored"') as at:
        order = at.trading.submit_order(limit(96))
        at.trading.cancel_order_by_id(order.id)
        assert at.trading.get_order_by_id(order.id).status.value == "pending_cancel"
        at.until("point", "point", "point")
        assert at.trading.get_order_by_id(order.id).status.value == "filled"


@pytest.mark.parametrize(
    ("kind", "price", "status", "filled"),
    [
        ("cancel_late", 100, "filled", "10"),
        ("cancel_late", 96, "canceled", "0"),
        ("cancel_then_fill", 100, "filled", "10"),
        ("cancel_then_fill", 96, "canceled", "0"),
    ],
)
def test_a_cancelled_order_may_fill_at_the_next_point(kind: str, price: float, status: str, filled: str) -> None:
    with with_fault(f'kind = "{kind}"') as at:
        order = at.trading.submit_order(limit(price))
        at.trading.cancel_order_by_id(order.id)
        at.until("close")
        found = at.trading.get_order_by_id(order.id)
        assert (found.status.value, found.filled_qty) == (status, filled)
        assert (found.canceled_at is not None) == (kind == "cancel_then_fill" or status == "canceled")


def test_a_replacement_that_comes_too_late_leaves_the_old_order() -> None:
    with with_fault('kind = "replace_too_late"') as at:
        order = at.trading.submit_order(limit(96))
        ghost = at.trading.replace_order_by_id(order.id, ReplaceOrderRequest(limit_price=97))
        with pytest.raises(APIError):
            at.trading.get_order_by_id(ghost.id)
        at.until("close")
        assert at.trading.get_order_by_id(order.id).filled_avg_price == "96"


def test_a_partial_fill_is_finished_at_the_next_point() -> None:
    with with_fault('kind = "partial_fill"', "fraction = 0.3", "nth = [1]") as at:
        order = at.trading.submit_order(market())
        at.until("open")
        found = at.trading.get_order_by_id(order.id)
        assert (found.status.value, found.filled_qty) == ("partially_filled", "3")
        at.until("point")
        assert [(fill["qty"], fill["price"]) for fill in at.books()["fills"]] == [("3", "100"), ("7", "102")]


def test_an_order_is_shown_in_a_state_that_it_is_not_in() -> None:
    with with_fault('kind = "order_state"', 'value = "calculated"') as at:
        order = at.trading.submit_order(limit(96))
        at.until("open")
        assert at.trading.get_order_by_id(order.id).status.value == "calculated"
        at.until("close")
        assert at.trading.get_order_by_id(order.id).status.value == "filled"


def test_a_reset_account_is_empty_and_its_keys_are_dead() -> None:
    with with_fault('kind = "reset_account"', "at = 2006-11-21T18:00:00Z") as at:
        before = at.trading.get_account()
        at.trading.submit_order(market())
        at.until("point", "point", "point")
        with pytest.raises(APIError) as error:
            at.trading.get_account()
        assert error.value.status_code == 401
        account = at.http.get("/v2/account", headers={"APCA-API-KEY-ID": "new"}).json()
        assert (account["cash"], account["id"] != str(before.id)) == ("100000.00", True)
        assert at.books()["orders"] == []


def test_a_name_turns_untradable_and_its_orders_are_rejected() -> None:
    with with_fault('kind = "untradable"', 'symbol = "AA"', "at = 2006-11-21T15:00:00Z") as at:
        order = at.trading.submit_order(limit(96))
        at.until("point", "point")
        assert at.trading.get_order_by_id(order.id).status.value == "rejected"
        assert not at.trading.get_asset("AA").tradable
        with pytest.raises(APIError, match="not tradable"):
            at.trading.submit_order(market())


@pytest.mark.parametrize(("hours", "shown"), [("closed", []), ("09:30-13:00", ["13:00"])])
def test_the_calendar_shows_what_the_market_does_not_keep(hours: str, shown: list[str]) -> None:
    with with_fault('kind = "calendar"', "day = 2006-11-21", f'hours = "{hours}"') as at:
        days = at.http.get("/v2/calendar", params={"start": "2006-11-21", "end": "2006-11-21"}).json()
        assert [day["close"] for day in days] == shown
        at.until("close")
        assert at.admin.get("/admin/clock").json()["now"] == "2006-11-21T21:00:00.000000Z"


def test_the_calendar_shows_a_day_on_which_the_market_turns_out_closed() -> None:
    with with_fault('kind = "calendar"', "day = 2006-11-25", 'hours = "09:30-16:00"') as at:
        days = at.http.get("/v2/calendar", params={"start": "2006-11-24", "end": "2006-11-27"}).json()
        assert [day["date"] for day in days] == ["2006-11-24", "2006-11-25", "2006-11-27"]


@pytest.mark.parametrize(
    ("fault", "events"),
    [
        (('kind = "drop_event"', "nth = [2]"), ["accepted", "fill"]),
        (('kind = "duplicate_event"', "nth = [2]"), ["accepted", "new", "new", "fill"]),
        (('kind = "reorder_events"', "nth = [2]"), ["accepted", "fill", "new"]),
        (('kind = "null_data"', "nth = [2]"), ["accepted", None, "fill"]),
        (('kind = "unknown_event"', "nth = [2]"), ["accepted", "something_new", "fill"]),
        # From the second event on the stream is silent for an hour, until after the fill.
        (('kind = "stream_silence"', "seconds = 3600", "nth = [2]"), ["accepted"]),
    ],
)
def test_the_stream_loses_repeats_and_mixes_up_events(fault: tuple[str, ...], events: list[str | None]) -> None:
    with with_fault(*fault) as at, streaming(at.exchange, raw_data=True) as (_, heard):
        at.trading.submit_order(market())
        at.until("open")
        at.admin.post("/admin/clock", json={"by": 7200}).raise_for_status()
        last = at.trading.submit_order(limit(5, client_order_id="last"))
        told: list[str | None] = []
        while True:
            data = heard.get(timeout=60)["data"]
            if data and data["order"]["id"] == str(last.id):
                break
            told.append(data["event"] if data else None)
        assert told == events


def test_a_second_connection_with_the_same_key_is_refused() -> None:
    with with_fault() as at, streaming(at.exchange), connect(at.exchange.stream_url) as second:
        for key, status in (("key", "unauthorized"), ("other", "authorized")):
            second.send(json.dumps({"action": "auth", "key": key, "secret": "s"}))
            assert status in str(second.recv(timeout=60))


def test_faults_are_changed_and_counted_while_it_runs() -> None:
    with with_fault('kind = "html_502"', "times = 1") as at:
        assert at.http.get("/v2/clock").status_code == 502
        assert at.admin.get("/admin/faults").json() == [{"kind": "html_502", "fitted": 1, "struck": 1}]
        wrong = at.admin.post("/admin/faults", json={"toml": '[[fault]]\nkind = "gremlins"'})
        assert wrong.status_code == 422 and "docs/faults.md" in wrong.json()["message"]
        at.admin.post("/admin/faults", json={"toml": ""}).raise_for_status()
        assert at.http.get("/v2/clock").status_code == 200

"""The emulator against Alpaca's own OpenAPI files: no 5xx, valid bodies, an Alpaca error body for each refusal.

The files come with the package alpaca-mcp-server. EMULATOR_EXAMPLES sets how many requests each endpoint gets
(`make contract N=... SEED=...`); without it they are few and always the same.
"""

from __future__ import annotations

import json
import os
import random
import warnings
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from oomrl.exchange.emulator import data_api, trading_api
from oomrl.exchange.emulator.orders import Kind, asset_id
from oomrl.exchange.emulator.server import Running, Settings, running
from oomrl.exchange.emulator.tickets import PRICES
from oomrl.testing.markets import Weather, made_up_tape

FIXED = "EMULATOR_EXAMPLES" not in os.environ
EXAMPLES = int(os.environ.get("EMULATOR_EXAMPLES", "8"))
KEYS = {"APCA-API-KEY-ID": "key", "APCA-API-SECRET-KEY": "secret"}
#: Seconds for an answer: machines that do other work as well are slow.
WAIT = 120
SYMBOLS = ["N000", "N001", "N002"]


def specification(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("alpaca_mcp_server").joinpath(f"specs/{name}.json").read_text("utf-8"))
    return found


def served(paths: list[str], document: dict[str, Any]) -> list[str]:
    """Return the document's paths that the emulator serves, whatever each calls its parameters."""
    ours = {_anonymous(path) for path in paths}
    return [path for path in document["paths"] if _anonymous(path) in ours]


def _anonymous(path: str) -> str:
    return "/".join("*" if part.startswith("{") else part for part in path.split("/"))


def schema_of(name: str, paths: list[str]) -> Any:
    document = specification(name)
    kept = served(paths, document)
    document["paths"] = {path: document["paths"][path] for path in kept}
    schema = schemathesis.openapi.from_dict(document)
    schema.config.generation.update(modes=list(schemathesis.GenerationMode))
    return schema


TRADING = schema_of("trading-api", [path for _, path, _ in trading_api.ROUTES])
DATA = schema_of("market-data-api", [path for path, _ in data_api.ROUTES])


@pytest.fixture(scope="module")
def exchange() -> Iterator[Running]:
    """An exchange in the middle of a session, with positions, open orders, dividends and splits."""
    weather = Weather(splits=0.02, dividends=0.05, absences=0.0, halts=0.0, jumps=0.0, late=0.0, delisted=0.0)
    tape = made_up_tape(4, sessions=60, names=3, weather=weather)
    with (
        running(tape, Settings(start=tape.days[20], rate_limit=0)) as exchange,
        httpx.Client(base_url=exchange.url, headers=KEYS, timeout=WAIT) as client,
    ):
        for symbol in SYMBOLS:
            order = {"symbol": symbol, "side": "buy", "type": "market", "time_in_force": "day", "qty": "50"}
            order["client_order_id"] = f"known-{symbol}"
            client.post("/v2/orders", json=order).raise_for_status()
        for until in ("close", "close", "point", "point"):
            client.post("/admin/clock", json={"until": until}).raise_for_status()
        yield exchange


@TRADING.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    return named(path_parameters)


@DATA.hook("map_path_parameters")
def map_data_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    return named(path_parameters)


@TRADING.hook
def map_query(context: Any, query: dict[str, Any] | None) -> dict[str, Any] | None:
    return named(query)


@DATA.hook("map_query")
def map_data_query(context: Any, query: dict[str, Any] | None) -> dict[str, Any] | None:
    return named(query)


@TRADING.hook
def map_body(context: Any, body: Any) -> Any:
    """Let about two thirds of the order requests be orders that could be taken, in all types and times in force."""
    if not isinstance(body, dict) or "time_in_force" not in body or "type" not in body:
        return body
    chance = random.Random(json.dumps(body, sort_keys=True, default=str))
    if chance.random() < 0.3:
        return body
    kind, side = chance.choice(list(Kind)), chance.choice(["buy", "sell"])
    order = {"symbol": chance.choice(SYMBOLS), "side": side, "type": kind.value, "qty": str(chance.randint(1, 3))}
    order["time_in_force"] = chance.choice(["day", "gtc", "day", "cls", "ioc", "fok"])
    for name in PRICES[kind]:
        order[name] = {"trail_price": "1.5", "trail_percent": "2"}.get(name, str(chance.randint(1, 200)))
    if kind is Kind.TRAILING_STOP:
        order.pop(chance.choice(["trail_price", "trail_percent"]))
    return order


def named(values: Any) -> Any:
    """Replace some made-up names by ones that the exchange knows."""
    if not isinstance(values, dict):
        return values
    chance = random.Random(json.dumps(values, sort_keys=True, default=str))
    out = dict(values)
    for name in values:
        if chance.random() < 0.3:
            continue
        if name in ("symbols",):
            out[name] = ",".join(chance.sample(SYMBOLS, 2))
        elif name in ("symbol", "symbol_or_asset_id"):
            out[name] = chance.choice([*SYMBOLS, asset_id("N001")])
        elif name == "timeframe":
            out[name] = chance.choice(["1Day", "1Week", "5Min"])
        elif name == "market":
            out[name] = "NYSE"
        elif name == "client_order_id":
            out[name] = "known-N001"
    return out


def clear(exchange: Running) -> None:
    """Let the account trade, with money and without open orders."""
    httpx.patch(f"{exchange.url}/v2/account/configurations", json={"suspend_trade": False}, headers=KEYS, timeout=WAIT)
    httpx.delete(f"{exchange.url}/v2/orders", headers=KEYS, timeout=WAIT)
    httpx.post(f"{exchange.url}/admin/deposit", json={"amount": "100000"}, timeout=WAIT)


def resting_order(exchange: Running) -> str:
    """Return the id of an open order that will not fill."""
    venue = exchange.exchange.venue
    found = next((order.id for order in venue.account.working.values() if order.open), None)
    if found is None:
        clear(exchange)
        order = {"symbol": "N002", "side": "buy", "type": "limit", "time_in_force": "gtc", "qty": "2"}
        response = httpx.post(
            f"{exchange.url}/v2/orders", json={**order, "limit_price": "0.5"}, headers=KEYS, timeout=WAIT
        )
        found = response.raise_for_status().json()["id"]
    return str(found)


def obeys(case: Any, exchange: Running) -> None:
    """Send one request and check the answer."""
    venue = exchange.exchange.venue
    parameters = case.path_parameters or {}
    if "order_id" in parameters and sum(map(ord, str(parameters["order_id"]))) % 3:
        parameters["order_id"] = resting_order(exchange)
    if "/positions" in case.path and len(venue.account.positions()) < len(SYMBOLS):
        clear(exchange)
        for symbol in SYMBOLS:
            order = {"symbol": symbol, "side": "buy", "type": "market", "time_in_force": "day", "qty": "50"}
            httpx.post(f"{exchange.url}/v2/orders", json=order, headers=KEYS, timeout=WAIT).raise_for_status()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        response = case.call(base_url=exchange.url, headers=KEYS)
    assert response.status_code < 500, (case.as_curl_command(), response.text)
    if response.status_code >= 400:
        body = response.json()
        assert isinstance(body["code"], int) and isinstance(body["message"], str)
        return
    if response.status_code == 207 and any(entry["status"] >= 400 for entry in response.json()):
        return  # the file says an order for each position; the SDK's model, and the broker, have refusals among them
    case.validate_response(response, checks=[response_schema_conformance, content_type_conformance])


quick = settings(
    max_examples=EXAMPLES, deadline=None, database=None, derandomize=FIXED, suppress_health_check=list(HealthCheck)
)


@TRADING.parametrize()
@quick
def test_trading_api(case: Any, exchange: Running) -> None:
    obeys(case, exchange)


@DATA.parametrize()
@quick
def test_market_data_api(case: Any, exchange: Running) -> None:
    obeys(case, exchange)


def test_all_endpoints_that_the_service_needs_are_among_them() -> None:
    trading = served([path for _, path, _ in trading_api.ROUTES], specification("trading-api"))
    data = served([path for path, _ in data_api.ROUTES], specification("market-data-api"))
    wanted = {
        "/v2/account",
        "/v2/account/configurations",
        "/v2/account/activities",
        "/v2/account/portfolio/history",
        "/v2/clock",
        "/v2/calendar",
        "/v2/assets",
        "/v2/positions",
        "/v2/orders",
        "/v2/orders/{order_id}",
        "/v2/orders:by_client_order_id",
    }
    assert wanted <= set(trading)
    names = {"bars", "quotes", "snapshots", "quotes/latest", "trades/latest"}
    assert {f"/v2/stocks/{name}" for name in names} | {"/v1/corporate-actions"} <= set(data)

"""The HTTP and WebSocket application: keys, the request limit, faults, and the endpoints behind them.

Everything runs in one thread. A request first lets the market catch up with the clock, then is answered at once; only
slow answers and streams wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute

from oomrl.errors import Mistake
from oomrl.exchange.emulator import admin, data_api, trading_api
from oomrl.exchange.emulator.answers import Answer, Asked, Handler
from oomrl.exchange.emulator.asking import body_of
from oomrl.exchange.emulator.clock import VirtualClock
from oomrl.exchange.emulator.faults import Faults, faults_of
from oomrl.exchange.emulator.limits import RateLimit
from oomrl.exchange.emulator.market_data import MarketData
from oomrl.exchange.emulator.mishaps import TOO_MANY, Mishaps
from oomrl.exchange.emulator.refusals import Refusal, invalid
from oomrl.exchange.emulator.stream import Hub
from oomrl.exchange.emulator.venue import Venue

Endpoint = Callable[[Request], Awaitable[Response]]
#: (request, JSON body, what shall go wrong inside) -> answer
Handle = Callable[[Request, Any, str | None], Answer]

UNAUTHORIZED = {"code": 40110000, "message": "request is not authorized"}
UNKNOWN = {"code": 40410000, "message": "endpoint not found."}


class Exchange:
    """A venue with a clock, as a web application."""

    def __init__(
        self,
        venue: Venue,
        clock: VirtualClock,
        *,
        rate_limit: int = 200,
        free_plan: bool = True,
        faults: Faults | None = None,
    ) -> None:
        self.venue, self.clock = venue, clock
        self.data = MarketData(venue, free_plan=free_plan)
        self.hub = Hub()
        self.trading_limit, self.data_limit = RateLimit(rate_limit), RateLimit(rate_limit)
        self.counts: Counter[str] = Counter()
        self._moved = asyncio.Event()
        self.keys: set[str] = set()
        self.dead_keys: set[str] = set()
        self.mishaps = Mishaps(venue, self.hub, self._forget_keys)
        self.mishaps.use(faults or Faults())

    def tick(self) -> None:
        """Let the market catch up with the clock."""
        self.mishaps.advance(self.clock.now())

    def application(self) -> Starlette:
        """Return the ASGI application."""
        routes = [Route(path, self._trading(path, run), methods=[verb]) for verb, path, run in trading_api.ROUTES]
        routes += [Route(path, self._data(path, run), methods=["GET"]) for path, run in data_api.ROUTES]
        routes += [
            Route("/admin/clock", self._admin(self._clock), methods=["GET", "POST"]),
            Route("/admin/books", self._admin(self._books), methods=["GET"]),
            Route("/admin/requests", self._admin(self._requests), methods=["GET"]),
            Route("/admin/deposit", self._admin(self._deposit), methods=["POST"]),
            Route("/admin/faults", self._admin(self._faults), methods=["GET", "POST"]),
            Route("/admin/reset", self._admin(self._reset), methods=["POST"]),
        ]
        return Starlette(
            routes=[*routes, WebSocketRoute("/stream", self.hub.serve)],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
            exception_handlers={HTTPException: _unknown},
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        running = asyncio.create_task(self._run_clock())
        yield
        self.hub.drop()
        running.cancel()

    async def _run_clock(self) -> None:
        """Wake for each event of the market; a clock that is moved wakes at once."""
        while (event := self.venue.next_event) is not None and self.clock.rate:
            self._moved.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait(), self.clock.seconds_until(event.at))
            self.tick()

    def _trading(self, path: str, run: Handler) -> Endpoint:
        def handle(request: Request, body: Any, mishap: str | None) -> Answer:
            return run(self.venue, Asked(request.query_params, request.path_params, body, mishap))

        return self._guarded(path, handle, self.trading_limit)

    def _data(self, path: str, run: data_api.Answering) -> Endpoint:
        def handle(request: Request, body: Any, mishap: str | None) -> Answer:
            return run(self.data, request.query_params, request.path_params)

        return self._guarded(path, handle, self.data_limit)

    def _guarded(self, path: str, handle: Handle, limit: RateLimit) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            try:
                raw = await request.body()
            except ClientDisconnect:  # whoever asked ended in the middle of it: nothing arrived
                return Response(status_code=400)
            self.tick()
            response = await self._guard(request, raw, handle, limit)
            self.counts[f"{request.method} {path} {response.status_code}"] += 1
            return response

        return endpoint

    async def _guard(self, request: Request, raw: bytes, handle: Handle, limit: RateLimit) -> Response:
        key, secret = (request.headers.get(f"apca-api-{part}") for part in ("key-id", "secret-key"))
        if not key or not secret or key in self.dead_keys:
            return JSONResponse(UNAUTHORIZED, 401)
        self.keys.add(key)
        passes, headers = limit.take(key, self.venue.now)
        if not passes:
            return JSONResponse(TOO_MANY, 429, headers)
        symbol = self._symbol(request, raw)
        response = self.mishaps.before(request, symbol)
        if response is None:
            response = self._answer(request, raw, handle, symbol)
            response.headers.update(headers)
            response = await self.mishaps.after(request, symbol, response)
        return response

    def _answer(self, request: Request, raw: bytes, handle: Handle, symbol: str | None) -> Response:
        try:
            body = body_of(raw) if raw and request.method in ("POST", "PATCH") else None
            answer = handle(request, body, self.mishaps.within(request, symbol))
        except Refusal as refusal:
            return _json(refusal.body, refusal.status)
        return Response(status_code=answer.status) if answer.body is None else _json(answer.body, answer.status)

    def _symbol(self, request: Request, raw: bytes) -> str | None:
        """Return the name that a request is about, where one request is about one name."""
        order = self.venue.account.orders.get(request.path_params.get("order_id", ""))
        if order is not None:
            return order.symbol
        if request.method != "POST":
            return request.path_params.get("symbol") or request.query_params.get("symbols")
        with contextlib.suppress(Refusal, AttributeError):
            return str(body_of(raw).get("symbol"))
        return None

    def _forget_keys(self) -> None:
        self.dead_keys |= self.keys
        self.keys = set()

    # Admin

    def _admin(self, run: Callable[[Request, Any], Any]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            raw = await request.body()
            self.tick()
            if "origin" in request.headers:
                return JSONResponse({"code": 40310000, "message": "not for pages in a browser"}, 403)
            try:
                return _json(run(request, body_of(raw) if raw else None), 200)
            except Refusal as refusal:
                return JSONResponse(refusal.body, refusal.status)

        return endpoint

    def _clock(self, request: Request, body: Any) -> Any:
        if request.method == "POST":
            self.clock.set(admin.target(self.venue, body))
            self._moved.set()
            self.tick()
        return admin.clock(self.venue)

    def _books(self, request: Request, body: Any) -> Any:
        return admin.books(self.venue)

    def _requests(self, request: Request, body: Any) -> Any:
        return dict(sorted(self.counts.items()))

    def _deposit(self, request: Request, body: Any) -> Any:
        self.venue.account.deposit(admin.amount_of(body, "amount"))
        return {"cash": str(self.venue.account.cash)}

    def _faults(self, request: Request, body: Any) -> Any:
        if request.method == "POST":
            try:
                self.mishaps.use(faults_of(body["toml"], "faults"))
            except (Mistake, KeyError, TypeError) as error:
                raise invalid(str(error)) from None
        return self.mishaps.faults.report()

    def _reset(self, request: Request, body: Any) -> Any:
        self.venue.reset(admin.amount_of(body, "cash") if body else self.venue.terms.cash)
        return {"account": self.venue.account.id}


def _json(body: Any, status: int) -> Response:
    return Response(json.dumps(body, separators=(",", ":")), status, media_type="application/json")


def _unknown(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    body = UNKNOWN if status == 404 else {"code": status * 100_000 + 10_000, "message": "method not allowed"}
    return JSONResponse(body, status, headers=getattr(error, "headers", None))

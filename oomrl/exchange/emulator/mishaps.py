"""Let the faults in force happen: to requests and answers, to the stream, to fills, to the account."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from oomrl.domain.market import Hours
from oomrl.exchange.emulator.faults import ANSWER, CANCEL, EVENT, FILL, ORDER, REPLACE, REQUEST, Fault, Faults
from oomrl.exchange.emulator.hours import at
from oomrl.exchange.emulator.orders import PaperOrder
from oomrl.exchange.emulator.paper_account import Update
from oomrl.exchange.emulator.stream import Hub, message_of
from oomrl.exchange.emulator.venue import Venue

BAD_GATEWAY = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
GATEWAY_TIMEOUT = "<html><head><title>504 Gateway Time-out</title></head><body><h1>504</h1></body></html>"
TOO_MANY = {"code": 42910000, "message": "too many requests."}


class Mishaps:
    """Apply faults to one venue and its stream. `forget_keys` is called when a reset changes the keys."""

    def __init__(self, venue: Venue, hub: Hub, forget_keys: Callable[[], None]) -> None:
        self.venue, self.hub, self.forget_keys = venue, hub, forget_keys
        self.faults = Faults()
        self._held: list[dict[str, Any]] = []
        self._silent_until: datetime | None = None
        venue.account.on_update = self.publish
        venue.matcher.partly = self._fraction
        venue.account.odd_state = self._state

    def use(self, faults: Faults) -> None:
        """Put other faults in force."""
        self.faults = faults
        self.venue.misprints = {day: self._hours(day, text) for day, text in faults.calendar().items()}

    def advance(self, to: datetime) -> None:
        """Let the market move up to an instant, with the faults of instants on the way."""
        for fault in sorted(self.faults.due(to), key=lambda fault: fault.at or to):
            self.venue.advance(min(fault.at or to, to))
            self._befall(fault)
        self.venue.advance(to)

    # Requests

    def before(self, request: Request, symbol: str | None) -> Response | None:
        """Return what a request gets instead of being carried out, if anything."""
        for fault in self.faults.at(REQUEST, self.venue.now, endpoint_of(request), symbol):
            if fault.kind == "rate_limited":
                reset = int((self.venue.now + timedelta(minutes=1)).timestamp())
                headers = {"X-Ratelimit-Limit": "200", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": str(reset)}
                return JSONResponse(TOO_MANY, 429, headers)
            if fault.kind == "reset":
                return reset_connection(request)
            return HTMLResponse(BAD_GATEWAY, 502)
        return None

    def within(self, request: Request, symbol: str | None) -> str | None:
        """Return what goes wrong inside the exchange while it carries out a cancel or a replacement."""
        if not request.url.path.startswith("/v2/orders"):
            return None
        site = {"DELETE": CANCEL, "PATCH": REPLACE}.get(request.method)
        found = self.faults.at(site, self.venue.now, symbol=symbol) if site else []
        return found[0].kind.removeprefix("cancel_").removeprefix("replace_") if found else None

    async def after(self, request: Request, symbol: str | None, response: Response) -> Response:
        """Return what is answered to a request that was carried out."""
        if response.status_code >= 400:
            return response
        for fault in self.faults.at(ANSWER, self.venue.now, endpoint_of(request), symbol):
            if fault.kind == "slow":
                await asyncio.sleep(fault.seconds)
            elif fault.kind == "accepted_then_504":
                response = HTMLResponse(GATEWAY_TIMEOUT, 504)
            elif fault.kind == "html_502":
                response = HTMLResponse(BAD_GATEWAY, 502)
            elif fault.kind == "reset":
                return reset_connection(request)
            else:
                response = _altered(response, fault)
        return response

    # The stream

    def publish(self, update: Update) -> None:
        """Send an update to the stream, or what the faults make of it."""
        message = message_of(update)
        struck = self.faults.at(EVENT, self.venue.now, symbol=update.order["symbol"])
        sent = [message]
        for fault in struck:
            if fault.kind == "stream_silence":
                self._silent_until = self.venue.now + timedelta(seconds=fault.seconds)
            elif fault.kind == "drop_event":
                sent = []
            elif fault.kind == "duplicate_event":
                sent *= 2
            elif fault.kind == "null_data":
                sent = [{"stream": "trade_updates", "data": None}]
            elif fault.kind == "unknown_event":
                odd = {**message["data"], "event": fault.value, "order": {**update.order, "status": fault.value}}
                sent = [{**message, "data": odd}]
        if any(fault.kind == "reorder_events" for fault in struck):
            self._held += sent
            return
        if self._silent_until is not None and self.venue.now < self._silent_until:
            return
        for frame in [*sent, *self._held]:
            self.hub.send(frame)
        self._held = []
        if any(fault.kind == "stream_drop" for fault in struck):
            self.hub.drop()

    # Orders and the account

    def _fraction(self, order: PaperOrder) -> float | None:
        found = self.faults.at(FILL, self.venue.now, symbol=order.symbol)
        return found[0].fraction if found else None

    def _state(self, order: PaperOrder) -> str | None:
        found = self.faults.at(ORDER, self.venue.now, symbol=order.symbol)
        return found[0].value if found else None

    def _befall(self, fault: Fault) -> None:
        if fault.kind == "reset_account":
            self.venue.reset(self.venue.terms.cash)
            self.forget_keys()
        elif fault.symbol is not None:
            self.venue.ban(fault.symbol)

    def _hours(self, day: Any, text: str) -> Hours | None:
        if text == "closed":
            return None
        opens, closes = (at(day, time.fromisoformat(part)) for part in text.split("-"))
        return Hours(day, opens, closes)


def endpoint_of(request: Request) -> str:
    """Return a request's method and path, as fault files name endpoints."""
    return f"{request.method} {request.url.path}"


def reset_connection(request: Request) -> Response:
    """Reset the connection of a request (RST, no answer). Returns what is then written nowhere."""
    transport = request.scope["transport"]
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
    return Response(status_code=502)


def _altered(response: Response, fault: Fault) -> Response:
    """Return a JSON answer with one field changed; of a list the first entry's."""
    try:
        body = json.loads(bytes(response.body))
    except ValueError:
        return response
    entry = body[0] if isinstance(body, list) and body else body
    if not isinstance(entry, dict):
        return response
    entry[fault.field] = None if fault.kind == "null_field" else fault.value
    headers = {name: value for name, value in response.headers.items() if name.startswith("x-ratelimit")}
    return JSONResponse(body, response.status_code, headers)

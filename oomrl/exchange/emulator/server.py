"""Start an exchange: in this process until it is told to end, or in a thread for as long as a block runs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from oomrl.errors import Mistake
from oomrl.exchange.emulator.app import Exchange
from oomrl.exchange.emulator.clock import VirtualClock, rate_of
from oomrl.exchange.emulator.faults import Faults
from oomrl.exchange.emulator.terms import Terms
from oomrl.exchange.emulator.venue import Venue
from oomrl.exchange.tape import Tape

LOOPBACK = "127.0.0.1"


class Connection(H11Protocol):
    """An HTTP connection that hands its transport to the application, which may have to reset it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        application = self.app

        async def with_transport(scope: Any, receive: Any, send: Any) -> None:
            scope["transport"] = transport
            await application(scope, receive, send)

        self.app = with_transport


@dataclass(frozen=True, slots=True)
class Settings:
    """What an exchange is started with.

    `start` is the first session still to come (None: the tape's first), `speed` `step`, `fast`, `real` or virtual
    seconds a second, `port` 0 for any free one, `rate_limit` requests a minute a key (0: none), `free_plan` whether
    consolidated data of the last 15 minutes is refused, `faults` what goes wrong on purpose.
    """

    start: date | None = None
    speed: str = "step"
    port: int = 0
    rate_limit: int = 200
    free_plan: bool = True
    terms: Terms = field(default_factory=Terms)
    faults: Faults = field(default_factory=Faults)


@dataclass(frozen=True, slots=True)
class Running:
    """A running exchange: base URL of both APIs (and of /admin), URL of the stream, and the exchange itself."""

    url: str
    stream_url: str
    exchange: Exchange


def exchange_of(tape: Tape, settings: Settings) -> Exchange:
    """Return an exchange that has not been started."""
    venue = Venue(tape, settings.terms, settings.start)
    clock = VirtualClock(venue.now, rate_of(settings.speed))
    return Exchange(venue, clock, rate_limit=settings.rate_limit, free_plan=settings.free_plan, faults=settings.faults)


def serve(tape: Tape, settings: Settings, announce: Callable[[Running], None]) -> None:
    """Serve until the process is told to end. `announce` hears where, once connections are taken."""
    exchange = exchange_of(tape, settings)
    with _listening(settings.port) as listening:
        announce(_running(exchange, listening))
        _server(exchange).run(sockets=[listening])


@contextlib.contextmanager
def running(tape: Tape, settings: Settings | None = None) -> Iterator[Running]:
    """Serve from a thread while the block runs."""
    settings = settings or Settings()
    exchange = exchange_of(tape, settings)
    server = _server(exchange)
    with _listening(settings.port) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield _running(exchange, listening)
        finally:
            server.should_exit = True
            thread.join()


def _listening(port: int) -> socket.socket:
    # Named TCP, so that asyncio turns off the delay of small answers.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
    except OSError as error:
        listening.close()
        raise Mistake(
            f"Expected port {port} on {LOOPBACK} to be free: {error.strerror}. Name another --port."
        ) from error
    listening.listen(128)
    return listening


def _running(exchange: Exchange, listening: socket.socket) -> Running:
    place = f"{LOOPBACK}:{listening.getsockname()[1]}"
    return Running(f"http://{place}", f"ws://{place}/stream", exchange)


def _server(exchange: Exchange) -> uvicorn.Server:
    config = uvicorn.Config(
        exchange.application(),
        http=Connection,
        ws="websockets-sansio",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=600,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)

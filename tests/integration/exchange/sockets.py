"""An exchange over a socket, with alpaca-py's own clients."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from alpaca.data.historical.corporate_actions import CorporateActionsClient
from alpaca.data.historical.stock import StockHistoricalDataClient
from alpaca.trading.client import TradingClient
from alpaca.trading.stream import TradingStream

from oomrl.exchange.emulator.faults import faults_of
from oomrl.exchange.emulator.server import Running, Settings, running
from oomrl.exchange.emulator.terms import Terms
from oomrl.exchange.tape import Tape


class Clients:
    """A running exchange, alpaca-py's clients for it, and a client for the admin endpoints."""

    def __init__(self, exchange: Running) -> None:
        self.exchange = exchange
        self.trading = TradingClient("key", "secret", url_override=exchange.url)
        self.data = StockHistoricalDataClient("key", "secret", url_override=exchange.url)
        self.actions = CorporateActionsClient("key", "secret", url_override=exchange.url)
        self.admin = httpx.Client(base_url=exchange.url)
        self.http = httpx.Client(
            base_url=exchange.url, headers={"APCA-API-KEY-ID": "key", "APCA-API-SECRET-KEY": "secret"}
        )

    def until(self, *events: str) -> None:
        """Step the clock to the next morning, open, point or close, one after another."""
        for event in events:
            self.admin.post("/admin/clock", json={"until": event}).raise_for_status()

    def books(self) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.get("/admin/books").raise_for_status().json()
        return found

    def close(self) -> None:
        for client in (self.trading, self.data, self.actions):
            client._session.close()
        self.admin.close()
        self.http.close()


@contextmanager
def clients(tape: Tape, start: int, *, faults: str = "", rate_limit: int = 0, **terms: Any) -> Iterator[Clients]:
    """Serve a tape from its session `start` on."""
    settings = Settings(
        start=tape.days[start], rate_limit=rate_limit, terms=Terms(**terms), faults=faults_of(faults, "faults")
    )
    with running(tape, settings) as exchange:
        made = Clients(exchange)
        try:
            yield made
        finally:
            made.close()


class Stream(TradingStream):
    """alpaca-py's stream, which also says when its subscription has been confirmed."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.confirmed: queue.Queue[str] = queue.Queue()
        self._reconnect_min_backoff = 0.05

    async def _dispatch(self, message: Any) -> None:
        if message["stream"] == "listening":
            self.confirmed.put("listening")
        await super()._dispatch(message)


@contextmanager
def streaming(exchange: Running, key: str = "key", **settings: Any) -> Iterator[tuple[Stream, queue.Queue[Any]]]:
    """Run alpaca-py's stream in a thread; yield it and the queue of what its handler hears."""
    heard: queue.Queue[Any] = queue.Queue()
    stream = Stream(key, "secret", url_override=exchange.stream_url, **settings)

    async def handler(update: Any) -> None:
        heard.put(update)

    stream.subscribe_trade_updates(handler)
    thread = threading.Thread(target=stream.run, daemon=True)
    thread.start()
    stream.confirmed.get(timeout=60)
    try:
        yield stream, heard
    finally:
        stream.stop()
        asyncio.run_coroutine_threadsafe(stream.close(), stream._loop).result(timeout=60)
        thread.join(timeout=60)

"""The trading stream: trade updates to whoever listens, as JSON in binary frames."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from oomrl.exchange.emulator.orders import plain, stamp
from oomrl.exchange.emulator.paper_account import Update


class Listener:
    """One connection: what it listens to, and what waits to be sent to it."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.streams: frozenset[str] = frozenset()
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue()


class Hub:
    """Hand trade updates to the listeners. One connection a key; a second one is refused."""

    def __init__(self) -> None:
        self.listeners: dict[str, Listener] = {}

    def send(self, message: dict[str, Any]) -> None:
        """Queue a message for everyone who listens to trade updates."""
        frame = json.dumps(message).encode()
        for listener in self.listeners.values():
            if "trade_updates" in listener.streams:
                listener.queue.put_nowait(frame)

    def drop(self) -> None:
        """Close every connection."""
        for listener in self.listeners.values():
            listener.queue.put_nowait(None)

    async def serve(self, socket: WebSocket) -> None:
        """Speak the protocol with one connection until it ends."""
        await socket.accept()
        listener: Listener | None = None
        sender: asyncio.Task[None] | None = None
        try:
            while True:
                request = _request(await socket.receive())
                if request is None:
                    await _say(socket, "error", {"error": "invalid message"})
                    continue
                action, data = request
                if action in ("authenticate", "auth"):
                    if listener is None:
                        listener = self._admit(data)
                        if listener is not None:
                            sender = asyncio.create_task(_send(socket, listener))
                    status = "authorized" if listener else "unauthorized"
                    await _say(socket, "authorization", {"status": status, "action": "authenticate"})
                elif action == "listen" and listener is not None:
                    wanted = data.get("streams")
                    known = [name for name in wanted if name == "trade_updates"] if isinstance(wanted, list) else []
                    listener.streams = frozenset(known)
                    await _say(socket, "listening", {"streams": known})
                else:
                    await _say(socket, "authorization", {"status": "unauthorized", "action": action})
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            if listener is not None:
                self.listeners.pop(listener.key, None)
            if sender is not None:
                sender.cancel()

    def _admit(self, data: dict[str, Any]) -> Listener | None:
        key, secret = data.get("key_id") or data.get("key"), data.get("secret_key") or data.get("secret")
        if not (isinstance(key, str) and key and isinstance(secret, str) and secret) or key in self.listeners:
            return None
        self.listeners[key] = Listener(key)
        return self.listeners[key]


def message_of(update: Update) -> dict[str, Any]:
    """Return a trade update as the stream shows it."""
    data: dict[str, Any] = {"event": update.event, "timestamp": stamp(update.at), "order": update.order}
    fill = update.fill
    if fill is not None:
        data |= {
            "event_id": fill.id,
            "execution_id": fill.id,
            "price": plain(fill.price),
            "qty": plain(fill.qty),
            "position_qty": plain(update.position_qty or fill.qty * 0),
        }
    return {"stream": "trade_updates", "data": data}


def _request(message: Any) -> tuple[str, dict[str, Any]] | None:
    """Return (action, data) of a frame. Raises `WebSocketDisconnect` where the connection ended."""
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code") or 1005)
    text = message.get("text") or message.get("bytes") or b""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("action"), str):
        return None
    data = found.get("data", found)
    return (found["action"], data) if isinstance(data, dict) else None


async def _say(socket: WebSocket, stream: str, data: dict[str, Any]) -> None:
    await socket.send_bytes(json.dumps({"stream": stream, "data": data}).encode())


async def _send(socket: WebSocket, listener: Listener) -> None:
    while (frame := await listener.queue.get()) is not None:
        await socket.send_bytes(frame)
    await socket.close(1011)

"""What stands before every route: security headers, a limit for bodies, a limit for requests, and where they come from.

Pure ASGI, so that streams (events, exports) pass through untouched.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oomrl.domain.people import Forbidden

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Links of invitations carry a secret: no other site is told where one comes from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def secure(headers: MutableHeaders, scope: Scope) -> None:
    """Put the security headers on an answer."""
    headers.update(HEADERS)
    if scope["scheme"] == "https":
        headers["Strict-Transport-Security"] = "max-age=31536000"
    if not scope["path"].startswith("/static/"):
        headers["Cache-Control"] = "no-store"


class Guard:
    """Wrap the application."""

    def __init__(self, app: ASGIApp, requests_a_minute: int, body_bytes: int) -> None:
        self.app, self.body_bytes = app, body_bytes
        self.rate = Rate(requests_a_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                secure(MutableHeaders(scope=message), scope)
            await send(message)

        client = scope.get("client")
        wait = self.rate.wait(client[0] if client else "")
        if wait:
            reply = PlainTextResponse("Too many requests: wait a little.", 429, {"Retry-After": str(math.ceil(wait))})
            await reply(scope, receive, with_headers)
            return
        if b"%00" in scope.get("query_string", b"") or "\0" in scope["path"]:
            # No name, word or place holds one, and PostgreSQL takes none.
            await PlainTextResponse("The request holds a NUL character.", 400)(scope, receive, with_headers)
            return
        given = Headers(scope=scope)
        length = given.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.body_bytes:
            await PlainTextResponse("The request is too large.", 413)(scope, receive, with_headers)
            return
        seen, last = 0, b""
        encoded = given.get("content-type", "").startswith("application/x-www-form-urlencoded")

        async def counted() -> Message:
            nonlocal seen, last
            message = await receive()
            body = message.get("body", b"")
            seen += len(body)
            if encoded and (b"%00" in last + body or b"\0" in body):
                raise HTTPException(422, "The form holds a NUL character.")
            last = body[-2:]
            if seen > self.body_bytes:
                # A body without a stated length that turns out to be too large.
                raise HTTPException(413, "The request is too large.")
            return message

        await self.app(scope, counted, with_headers)


class Rate:
    """A bucket of tokens for each key: `a_minute` on average, bursts of a third of that."""

    def __init__(self, a_minute: int, now: Callable[[], float] = time.monotonic, most: int = 10_000) -> None:
        self.a_second, self.burst, self.now, self.most = a_minute / 60, max(a_minute / 3, 1), now, most
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str) -> float:
        """Take one token; return 0, or the seconds until there is one."""
        at = self.now()
        left, since = self._left.pop(key, (self.burst, at))
        left = min(self.burst, left + (at - since) * self.a_second)
        self._left[key] = (left - 1 if left >= 1 else left, at)
        while len(self._left) > self.most:
            self._left.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / self.a_second


class Sent:
    """The one-time ids of forms that were sent: a second click is no second act. Kept in memory, the newest."""

    def __init__(self, most: int = 10_000) -> None:
        self.most = most
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, once: str) -> bool:
        """Take an id; return False where it was taken before."""
        with self._lock:
            if once in self._ids:
                return False
            self._ids[once] = None
            while len(self._ids) > self.most:
                self._ids.popitem(last=False)
            return True

    def give_back(self, once: str) -> None:
        """Let an id be taken again: what was sent with it was not done."""
        with self._lock:
            self._ids.pop(once, None)


def from_here(request: Request) -> None:
    """Raise `Forbidden` for a change that another site's page asks the browser for."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    here = request.headers.get("host", "")
    if site not in ("same-origin", "none") or (origin is not None and urlsplit(origin).netloc != here):
        raise Forbidden("Expected a change that was asked for on this page, was another site's.")

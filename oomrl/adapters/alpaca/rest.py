"""Requests to Alpaca through alpaca-py: timeouts, the rate limit, retries of reads alone, and errors in our words.

alpaca-py itself would retry a POST after a 504 and send one order four times, waits for ever, and fails on error pages
that are no JSON; so it gets raw data, no retries of its own, and a transport that knows time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from alpaca.common.exceptions import APIError
from alpaca.common.rest import RESTClient
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectTimeout, RequestException
from urllib3.exceptions import MaxRetryError, NewConnectionError

from oomrl.adapters.alpaca.allowance import Allowance
from oomrl.errors import BrokerRefusal, Halt, InDoubt, Refused, Unavailable
from oomrl.ports import Timer

#: Hosts that trade no money. Any other is refused.
PAPER_HOSTS = frozenset({"paper-api.alpaca.markets", "data.alpaca.markets", "127.0.0.1", "localhost", "::1"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

#: A refusal in these words may be taken back by itself: cash frees, an order ends.
NOT_NOW = re.compile(r"insufficient buying power|insufficient qty|wash trade|too many", re.IGNORECASE)
DUPLICATE = re.compile(r"client_order_id must be unique|client order id.*unique", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a connection and for an answer (seconds), and how often a read is asked again."""

    connect: float = 3.0
    read: float = 10.0
    retries: int = 5
    first_pause: timedelta = timedelta(seconds=1)


class Transport(HTTPAdapter):
    """Send each request within the allowance and with a timeout, which alpaca-py knows nothing of."""

    def __init__(self, allowance: Allowance, patience: Patience) -> None:
        super().__init__()
        self.allowance, self.patience = allowance, patience

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        options["timeout"] = (self.patience.connect, self.patience.read)
        self.allowance.take()
        response: Response | None = None
        try:
            response = super().send(request, *args, **options)
            return response
        finally:
            self.allowance.answered(*_limits(response))


class Rest:
    """One alpaca-py client, made safe. `get` retries; `send` is sent once."""

    def __init__(self, client: RESTClient, timer: Timer, allowance: Allowance, patience: Patience) -> None:
        host = urlsplit(str(getattr(client._base_url, "value", client._base_url))).hostname
        if host not in PAPER_HOSTS:
            raise Refused(f"Expected a paper account's address, was {host}: this service trades no money.")
        self.client, self.timer, self.allowance, self.patience = client, timer, allowance, patience
        transport = Transport(allowance, patience)
        client._session.mount("https://", transport)
        client._session.mount("http://", transport)
        client._session.trust_env = host not in LOOPBACK
        # The one public way to switch alpaca-py's own retries off: no status has this number.
        client._retry_codes = [0]

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        """Return what a read answers, asking again where that may help. Raises `Unavailable` where it did not."""
        pause = self.patience.first_pause
        for turn in range(self.patience.retries + 1):
            try:
                return self._once("GET", path, query)
            except InDoubt as error:
                if turn == self.patience.retries:
                    raise Unavailable(f"{error} ({turn + 1} tries)") from error
            except Unavailable:
                if turn == self.patience.retries:
                    raise
            self._pause(pause)
            pause *= 2
        raise AssertionError("the last turn raises")

    def send(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Send what changes something, once. `Unavailable`: it certainly did not arrive; `InDoubt`: nobody knows."""
        return self._once(method, path, body)

    def close(self) -> None:
        """Give the connections back."""
        self.client._session.close()

    def _once(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        what = f"{method} {path}"
        data = dict(body) if body is not None else None
        try:
            answer = self.client._request(method, path, data)
        except APIError as error:
            raise self._told(what, error.status_code, str(error), error.response) from error
        except RequestException as error:
            if _never_sent(error):
                raise Unavailable(f"{what}: no connection ({type(error).__name__})") from error
            raise InDoubt(f"{what}: no answer ({type(error).__name__})") from error
        return answer

    def _told(self, what: str, status: int | None, body: str, response: Response | None) -> Exception:
        code, message = _words(body)
        if status == 429:
            until = _limits(response)[1] or self.timer.now() + self.allowance.window
            self.allowance.refused(until)
            return Unavailable(f"{what}: rate limit, until {until:%H:%M:%S}")
        if status is None or status >= 500 or not message:
            return InDoubt(f"{what}: HTTP {status} {message or 'with a page that is no JSON'}")
        if status == 401:
            return Halt(f"Expected keys that the broker accepts, was refused: {message}. Paper resets change the keys")
        return BrokerRefusal(
            f"{message} (HTTP {status})",
            code,
            later=bool(NOT_NOW.search(message)),
            duplicate=bool(DUPLICATE.search(message)),
            missing=status == 404,
        )

    def _pause(self, length: timedelta) -> None:
        until = self.timer.now() + length
        while self.timer.now() < until:
            self.timer.wait(until)


def _never_sent(error: RequestException) -> bool:
    if isinstance(error, ConnectTimeout):
        return True
    reason = error.args[0] if error.args else None
    return isinstance(reason, MaxRetryError) and isinstance(reason.reason, NewConnectionError)


def _words(body: str) -> tuple[str, str]:
    """Return code and message of an error body; empty where it is no JSON object with a message."""
    try:
        told = json.loads(body)
    except ValueError:
        return "", ""
    if not isinstance(told, dict):
        return "", ""
    return str(told.get("code", "")), str(told.get("message", ""))


def _limits(response: Response | None) -> tuple[int | None, datetime | None]:
    if response is None:
        return None, None
    try:
        remaining = int(response.headers["X-RateLimit-Remaining"])
        reset = datetime.fromtimestamp(float(response.headers["X-RateLimit-Reset"]), UTC)
    except (KeyError, ValueError, OverflowError):
        return None, None
    return remaining, reset

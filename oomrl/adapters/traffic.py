"""Cassettes: what went over the wire to a model's endpoint, one file a prompt, for audits, restarts and replays.

A line is one exchange: the request, and the response or how the connection failed. Request headers are never written,
of a response's only those that say how to read it, and the key is cut out of whatever repeats it. The file is on disk
before the reply is read, so that a reply that a kill kept out of the store is taken from here and not bought twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import httpx2

from oomrl.errors import Mistake

#: The header that says which prompt a request asks.
PROMPT = "idempotency-key"
#: The folder of a state directory that cassettes are written to.
FOLDER = "traffic"
KEPT_HEADERS = ("content-type", "date", "retry-after", "x-request-id")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
Exchange = dict[str, Any]


def cassette(folder: Path, prompt_id: str) -> Path:
    """Return the file of a prompt's exchanges."""
    if not _NAME.fullmatch(prompt_id):
        raise Mistake(f"Expected the id of a prompt (letters, digits, - and _), was {prompt_id!r}")
    return folder / f"{prompt_id}.jsonl"


def digest(folder: Path, prompt_id: str) -> str | None:
    """Return the sha256 of a prompt's cassette, None where there is none."""
    place = cassette(folder, prompt_id)
    return hashlib.sha256(place.read_bytes()).hexdigest() if place.is_file() else None


def exchanges(place: Path) -> list[Exchange]:
    """Return what a cassette holds; a last line that a kill cut off is left out, other damage is a `Mistake`."""
    if not place.is_file():
        return []
    lines = place.read_text("utf-8").split("\n")
    try:
        return [json.loads(line) for line in lines[:-1]]
    except ValueError as error:
        raise Mistake(f"Expected one exchange a line in {place}, was damaged: {error}") from error


class Recorder(httpx2.BaseTransport):
    """Send requests by another transport and write down what came of each.

    A whole answer to the very same request, written by an earlier process, is given again once instead of asking.
    """

    def __init__(self, inner: httpx2.BaseTransport, folder: Path, secret: str) -> None:
        self._inner, self._folder, self._secret = inner, folder, secret
        self._seen: set[str] = set()
        self._lock = Lock()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        place = cassette(self._folder, request.headers.get(PROMPT, ""))
        asked = _asked(request)
        with self._lock:
            first = place.name not in self._seen
            self._seen.add(place.name)
        if first:
            _mend(place)
            for known in reversed(exchanges(place)):
                if _same(known["request"], asked, self._secret) and known.get("response", {}).get("status") == 200:
                    return _played(known, request)
        try:
            response = self._inner.handle_request(request)
            response.read()
        except httpx2.TransportError as error:
            self._write(place, {"request": asked, "failure": {"kind": type(error).__name__, "message": str(error)}})
            raise
        headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        answer = {"status": response.status_code, "headers": headers, "body": response.text}
        self._write(place, {"request": asked, "response": answer})
        return httpx2.Response(response.status_code, headers=headers, content=response.content, request=request)

    def close(self) -> None:
        self._inner.close()

    def _write(self, place: Path, exchange: Exchange) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        line = _stripped(json.dumps(exchange, sort_keys=True), self._secret)
        with place.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())


class Player(httpx2.BaseTransport):
    """Answer from cassettes alone: the exchanges of each prompt in their order, failures too."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise Mistake(f"Expected a folder of cassettes at {folder}, was none: set endpoint.cassettes")
        self._folder = folder
        self._left: dict[Path, Iterator[Exchange]] = {}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        place = cassette(self._folder, request.headers.get(PROMPT, ""))
        left = self._left.setdefault(place, iter(exchanges(place)))
        known = next(left, None)
        if known is None:
            raise Mistake(f"Expected another exchange in {place}, was none: it was recorded in another run")
        if not _same(known["request"], _asked(request), ""):
            raise Mistake(f"Expected the request that {place} holds, was another: the prompt or the settings differ")
        return _played(known, request)


def _asked(request: httpx2.Request) -> dict[str, Any]:
    return {"method": request.method, "path": request.url.path, "body": json.loads(request.content or b"null")}


def _same(known: dict[str, Any], asked: dict[str, Any], secret: str) -> bool:
    return known == json.loads(_stripped(json.dumps(asked), secret))


def _stripped(text: str, secret: str) -> str:
    """Return a text without the key, or anything shaped like one."""
    plain = text.replace(json.dumps(secret)[1:-1], "[key]") if secret else text
    return re.sub(r"\bsk-[\w*-]{8,}", "[key]", plain)


def _played(known: Exchange, request: httpx2.Request) -> httpx2.Response:
    failure = known.get("failure")
    if failure is not None:
        kind = getattr(httpx2, failure["kind"], httpx2.TransportError)
        raise kind(failure["message"], request=request)
    answer = known["response"]
    content = answer["body"].encode("utf-8")
    return httpx2.Response(answer["status"], headers=answer["headers"], content=content, request=request)


def _mend(place: Path) -> None:
    """Cut off a half line that a kill left at the end."""
    if place.is_file():
        data = place.read_bytes()
        if data and not data.endswith(b"\n"):
            place.write_bytes(data[: data.rfind(b"\n") + 1])

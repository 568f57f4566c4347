"""A model endpoint on a real socket that plays a script: one step for each request, the last one for ever."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from oomrl.adapters import traffic


@dataclass(frozen=True)
class Step:
    """What the endpoint does with one request. `cut` sends only so many bytes of the body that it promised."""

    status: int = 200
    body: str = ""
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0
    cut: int | None = None


def chat(text: str, finish: str = "stop", usage: tuple[int, int] | None = (100, 20), **message: Any) -> Step:
    """Return a good chat completion."""
    body: dict[str, Any] = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        ],
    }
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    return Step(body=json.dumps(body))


def response(text: str, status: str = "completed") -> Step:
    """Return a good answer of the responses interface."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    body = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "m-1",
        "status": status,
        "output": [{"id": "o1", "type": "message", "role": "assistant", "status": status, "content": content}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
    }
    return Step(body=json.dumps(body))


def error(status: int, message: str, code: str | None = None, param: str | None = None, **headers: str) -> Step:
    body = json.dumps({"error": {"message": message, "code": code, "param": param, "type": "x"}})
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Step(status, body, headers=named)


def recorded(place: Path) -> list[Step]:
    """Return the steps of a cassette: what an endpoint once answered, or how it broke off."""
    steps = []
    for exchange in traffic.exchanges(place):
        answer = exchange.get("response")
        if answer is None:
            steps.append(Step(body="{}" * 20, cut=10))
        else:
            steps.append(Step(answer["status"], answer["body"], answer["headers"].get("content-type", "")))
    return steps


@dataclass
class Endpoint:
    url: str
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, _, body in self.requests]


@contextmanager
def serving(steps: Sequence[Step] | Callable[[int], Step]) -> Iterator[Endpoint]:
    """Serve the steps (or what a function says of the request's number, from 0) while the block lasts."""
    seen = Endpoint("")
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            with lock:
                number = len(seen.requests)
                seen.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(raw)))
            step = steps(number) if callable(steps) else steps[min(number, len(steps) - 1)]
            time.sleep(step.delay)
            data = step.body.encode()
            try:
                self.send_response(step.status)
                self.send_header("content-type", step.kind)
                self.send_header("content-length", str(len(data)))
                for name, value in step.headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data if step.cut is None else data[: step.cut])
            except (BrokenPipeError, ConnectionResetError):
                pass
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        seen.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

"""Health, readiness and metrics over HTTP: for Prometheus, a load balancer, or a person with curl."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from oomrl.errors import Mistake

#: What is left free on the disk before each open: a day's fills and a backup must have room.
MIN_FREE_BYTES = 200_000_000

Answer = tuple[int, Mapping[str, Any]]


def serve(listen: str, health: Callable[[], Answer], ready: Callable[[], Answer], metrics: Callable[[], bytes]) -> Any:
    """Serve /healthz, /readyz and /metrics in a thread; return the server, whose `close` ends it.

    `health` fails where the process should be restarted, `ready` where it does not do the work now (a standby).
    """
    host, _, port = listen.rpartition(":")
    if not port.isdigit():
        raise Mistake(f"Setting service.listen: expected HOST:PORT, was {listen!r}.")

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._send(200, "text/plain; version=0.0.4; charset=utf-8", metrics())
            elif self.path in ("/healthz", "/readyz"):
                code, told = (health if self.path == "/healthz" else ready)()
                self._send(code, "application/json", json.dumps(told, default=str).encode())
            else:
                self._send(404, "text/plain", b"Expected /healthz, /readyz or /metrics.\n")

        def _send(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def close(self) -> None:
            self.shutdown()
            self.server_close()

    try:
        server = Server((host.strip("[]") or "127.0.0.1", int(port)), Handler)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise Mistake(f"Setting service.listen: could not listen on {listen}: {why}.") from error
    threading.Thread(target=server.serve_forever, name="health", daemon=True, kwargs={"poll_interval": 1}).start()
    return server

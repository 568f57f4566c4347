"""A model endpoint on a real socket that plays arenas by one of their own policies: a model that knows the answers."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from oomrl.arenas.engine import Action, Observation, Policy, plain
from oomrl.arenas.registry import QUALIFYING, find


class Mirror:
    """The same episode as the asker's, played beside it, so that even an oracle can answer through the wire."""

    def __init__(self, policy: str) -> None:
        self.policy = policy
        self.arenas = {task: find(name) for name in QUALIFYING for task in find(name).tasks}

    def start(self, task: str, seed: int) -> None:
        arena = self.arenas[task]
        self.engine = arena.make()
        self.seen: Observation = self.engine.reset(seed, task)
        self.act: Policy = arena.policies[self.policy](seed, self.engine)

    def answer(self) -> Action:
        action: Action = plain(self.act(self.seen))
        self.seen = self.engine.step(action)
        return action


@contextmanager
def playing(policy: str) -> Iterator[str]:
    """Serve chat completions while the block lasts; yields the address."""
    mirror = Mirror(policy)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if len(asked["messages"]) == 2:
                task = re.search(r"^Task: .* \((\S+), at most", asked["messages"][0]["content"], re.MULTILINE)
                assert task is not None
                mirror.start(task[1], asked["seed"])
            message = {"role": "assistant", "content": json.dumps(mirror.answer())}
            body = json.dumps(
                {
                    "id": "c",
                    "object": "chat.completion",
                    "created": 1,
                    "model": asked["model"],
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
                }
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

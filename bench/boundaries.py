"""Where a life of the service can be ended: before and after each commit and each HTTP request, counted by kind."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import event

from oomrl.adapters.alpaca.rest import Rest
from oomrl.adapters.database import Store


@dataclass(frozen=True)
class Kill:
    """When to end a life: at its n-th boundary, or at the n-th of one kind."""

    number: int
    kind: str | None = None


class Boundaries:
    """Count what a life crosses, and end it where it shall end. The last line of the file is where it was."""

    def __init__(self, place: Path, kill: Kill | None) -> None:
        self.place, self.kill = place, kill
        self.kinds: Counter[str] = Counter()

    def cross(self, kind: str) -> None:
        self.kinds[kind] += 1
        count = sum(self.kinds.values()) if self.kill is None or self.kill.kind is None else self.kinds[self.kill.kind]
        if self.kill is not None and count == self.kill.number and self.kill.kind in (None, kind):
            self.write(kind)
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, killed: str = "") -> None:
        self.place.write_text(json.dumps({"killed": killed, "kinds": self.kinds}), "utf-8")

    def watch_requests(self, rest: Rest) -> None:
        """Cross a boundary before and after each request."""
        transport = rest.client._session.get_adapter("http://")
        send = transport.send

        def crossing(request: Any, *args: Any, **options: Any) -> Any:
            kind = f"{request.method} {_endpoint(request.path_url)}"
            self.cross(f"before {kind}")
            try:
                return send(request, *args, **options)
            finally:
                self.cross(f"after {kind}")

        transport.send = crossing  # type: ignore[method-assign]

    def watch_commits(self, store: WatchedStore) -> None:
        """Cross a boundary before and after each commit, named by what it writes."""
        store.crossed = self.cross
        engine = store.engine

        @event.listens_for(engine, "before_cursor_execute")
        def executed(_c: Any, _k: Any, statement: str, *_: Any) -> None:
            for verb, mark, name in WRITES:
                if statement.startswith(verb) and mark in statement[:60]:
                    store.written.append(name)

        @event.listens_for(engine, "commit")
        def committing(_connection: Any) -> None:
            if store.written:
                self.cross(f"before commit of {store.what}")


#: Which statement makes a commit one of what; the first that fits names it.
WRITES = (
    ("INSERT", "broker_fills", "fills"),
    ("INSERT", "placements", "intents"),
    ("UPDATE", "placements", "outcomes"),
    ("INSERT", "cash_moves", "account lines"),
    ("INSERT", "mismatches", "mismatches"),
    ("INSERT", "marks", "a close"),
    ("INSERT", "checkpoints", "a decision"),
)


class WatchedStore(Store):
    """A store that says when a transaction has committed."""

    crossed: Callable[[str], None] = staticmethod(lambda kind: None)

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.written: list[str] = []

    @property
    def what(self) -> str:
        return next(name for _, _, name in WRITES if name in self.written)

    @contextmanager
    def begin(self) -> Iterator[Any]:
        self.written.clear()
        with super().begin() as work:
            yield work
        if self.written:
            self.crossed(f"after commit of {self.what}")
            self.written.clear()


def _endpoint(url: str) -> str:
    path = url.split("?")[0]
    return "/v2/orders/{id}" if path.startswith("/v2/orders/") else path

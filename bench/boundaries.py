"""Where the daemon and its jobs can be ended: before and after each commit and each HTTP request, counted by kind.

What is watched is the process itself, not copies of its parts: every commit of any database through SQLAlchemy, every
request of any broker's transport. A daemon that is forked with this in place hands it on to the jobs that it forks.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

from oomrl.adapters.alpaca.rest import Transport
from oomrl.daemon.children import PARENT

#: What a kill within a job takes: the job alone; the daemon alone, whose end the kernel tells the job; both at once.
Takes = Literal["job", "daemon", "both"]

#: Which statement makes a commit one of what; the first that fits names it.
WRITES = (
    ("INSERT", "broker_fills", "fills"),
    ("INSERT", "placements", "intents"),
    ("UPDATE", "placements", "outcomes"),
    ("INSERT", "cash_moves", "account lines"),
    ("INSERT", "mismatches", "mismatches"),
    ("INSERT", "marks", "a close"),
    ("INSERT", "decisions", "a decision"),
    ("INSERT", "deployments", "the first deployment"),
    ("INSERT", "runs", "a run"),
    ("INSERT", "notices", "a notice"),
    ("INSERT", "attestations", "an attestation"),
    ("UPDATE", "attempts=", "a job's beginning"),
    ("UPDATE", "jobs", "a job's end"),
    ("INSERT", "jobs", "jobs that are due"),
)


@dataclass(frozen=True)
class Kill:
    """When to end what runs: at the n-th boundary of an account's lives, or at the n-th of one kind."""

    number: int
    kind: str | None = None
    takes: Takes = "both"


class Boundaries:
    """Count what an account's lives cross, over all processes, and end the one that crosses where it shall end.

    `crossed` and `killed` in the folder have a line for each boundary and each kill. Only one process of a case works
    at a time, so that a line and the count after it belong together.
    """

    def __init__(self, folder: Path, kills: Sequence[Kill] = ()) -> None:
        self.crossed, self.killed, self.kills = folder / "crossed", folder / "killed", kills

    def lines(self) -> list[str]:
        """Return the kinds of all boundaries that were crossed, in their order."""
        return self.crossed.read_text("utf-8").splitlines() if self.crossed.exists() else []

    def struck(self) -> list[dict[str, str]]:
        """Return each kill so far: `kind` of boundary, and what it `took`."""
        if not self.killed.exists():
            return []
        return [json.loads(line) for line in self.killed.read_text("utf-8").splitlines()]

    def cross(self, kind: str) -> None:
        """Cross a boundary, or end there."""
        with self.crossed.open("a") as file:
            file.write(f"{kind}\n")
        lines = self.lines()
        counts = {None: len(lines), kind: lines.count(kind)}
        for kill in self.kills:
            if counts.get(kill.kind) == kill.number:
                self._end(kind, kill.takes)

    def _end(self, kind: str, takes: Takes) -> None:
        parent = os.environ.get(PARENT)
        with self.killed.open("a") as file:
            took = takes if parent is not None else "daemon"
            file.write(json.dumps({"kind": kind, "took": took}) + "\n")
        if parent is not None and takes != "job":
            os.kill(int(parent), signal.SIGKILL)
        if parent is None or takes != "daemon":
            os.kill(os.getpid(), signal.SIGKILL)
        # The daemon is gone: the kernel ends this job before long, as it does where a daemon is killed.

    def watch(self) -> None:
        """Cross a boundary before and after each commit and each request of this process and those it forks."""
        written: dict[int, list[str]] = {}

        @event.listens_for(Engine, "before_cursor_execute")
        def executed(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            for verb, mark, name in WRITES:
                if statement.startswith(verb) and mark in statement[:60]:
                    written.setdefault(id(_driver(connection.connection)), []).append(name)
                    break

        commit, rollback, send = DefaultDialect.do_commit, DefaultDialect.do_rollback, Transport.send

        def committing(dialect: DefaultDialect, connection: Any) -> None:
            names = written.pop(id(_driver(connection)), [])
            what = next((name for _, _, name in WRITES if name in names), None)
            if what is not None:
                self.cross(f"before commit of {what}")
            commit(dialect, connection)
            if what is not None:
                self.cross(f"after commit of {what}")

        def undoing(dialect: DefaultDialect, connection: Any) -> None:
            written.pop(id(_driver(connection)), None)
            rollback(dialect, connection)

        def sending(transport: Transport, request: Any, *args: Any, **options: Any) -> Any:
            kind = f"{request.method} {_endpoint(request.path_url)}"
            self.cross(f"before {kind}")
            try:
                return send(transport, request, *args, **options)
            finally:
                self.cross(f"after {kind}")

        DefaultDialect.do_commit = committing  # type: ignore[method-assign]
        DefaultDialect.do_rollback = undoing  # type: ignore[method-assign]
        Transport.send = sending  # type: ignore[method-assign]


def _driver(connection: Any) -> object:
    """Return the driver's own connection of what SQLAlchemy hands around."""
    return getattr(connection, "driver_connection", connection)


def _endpoint(url: str) -> str:
    path = url.split("?")[0]
    return "/v2/orders/{id}" if path.startswith("/v2/orders/") else path

"""Episode logs: one canonical JSON record a line, each bound to all lines before it by a hash.

A line is {"body", "hash", "kind", "previous"} in canonical bytes, with hash = SHA-256 of the bytes
`previous:kind:body`. The hash of the last line stands for the whole episode. Nothing in a log depends on a
clock or a machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from oomrl.arenas.engine import Json, canonical
from oomrl.errors import Mistake, Refused

GENESIS = "0" * 64
FORMAT = 1


def _line(previous: str, kind: str, body: Json) -> tuple[str, str]:
    """Return a record's hash and its line."""
    text = canonical(body).decode()
    digest = hashlib.sha256(f"{previous}:{kind}:{text}".encode()).hexdigest()
    return digest, f'{{"body":{text},"hash":"{digest}","kind":"{kind}","previous":"{previous}"}}'


class EpisodeLog:
    """An append-only chain of records, kept in memory as lines ready to be written."""

    def __init__(self) -> None:
        self.head = GENESIS
        self.lines: list[str] = []

    def append(self, kind: str, body: Json) -> str:
        """Add a record and return its hash. `body` must be finite JSON values, `kind` a plain word."""
        if not kind.isalpha():
            raise ValueError(f"Expected kind to be a word, was {kind!r}")
        self.head, line = _line(self.head, kind, body)
        self.lines.append(line)
        return self.head

    def records(self) -> list[Json]:
        """Return the records, parsed anew, so that nobody holds a reference into the log."""
        return [json.loads(line) for line in self.lines]

    def text(self) -> str:
        """Return the log as JSONL."""
        return "".join(line + "\n" for line in self.lines)


def read(lines: Iterable[str]) -> EpisodeLog:
    """Return a log from its lines. Raises `Mistake` where a line is no record, `Refused` where one was changed."""
    log = EpisodeLog()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            kind, body, digest = record["kind"], record["body"], record["hash"]
            same = record["previous"] == log.head and log.append(kind, body) == digest
        except (ValueError, KeyError, TypeError) as problem:
            raise Mistake(f"Expected an episode record in line {number}, was none: {problem}") from None
        if not same:
            raise Refused(f"Expected line {number} to follow the chain, was changed or moved")
    if not log.lines:
        raise Mistake("Expected an episode record in line 1, was none: the log is empty")
    return log

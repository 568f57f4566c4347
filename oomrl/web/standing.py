"""What is the case by now, kept in memory and carried on: marks, holdings, costs, and the index of the audit chain.

All of it is a fold over rows that never change once a session is committed, so what was read once is never read again.
"""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from oomrl.adapters.database import Store
from oomrl.domain.attribution import PARTS
from oomrl.domain.records import Mark


@dataclass(slots=True)
class Cost:
    """What trading one name has cost so far, in dollars, and how many fills it took."""

    traded: float = 0.0
    spread: float = 0.0
    impact: float = 0.0
    fees: float = 0.0
    fills: int = 0


@dataclass(slots=True)
class Holding:
    """Shares of one name (1e-9), the cash it has moved (cents), and the price of its last fill in dollars."""

    shares: int = 0
    cents: int = 0
    price: float = 0.0


class Standing:
    """The folds of one run. Safe to ask from several threads."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._lock = threading.Lock()
        self._until = date.min
        self._marks: list[Mark] = []
        self._holdings: dict[str, Holding] = {}
        self._costs: dict[str, Cost] = {}
        self._parts: dict[str, float] = {}

    def carry_on(self) -> None:
        """Fold the sessions that were committed since."""
        with self._lock, self._store.read() as view:
            last = view.reading.last_day(self._run)
            if last is None or last <= self._until:
                return
            new = view.sessions.marks(self._run, after=self._until, until=last)
            self._marks += new
            for name in {name for mark in new for name in mark.parts}:
                more = sum(float(mark.parts.get(name, 0)) for mark in new)
                self._parts[name] = self._parts.get(name, 0.0) + more
            for symbol, shares, cents in view.reading.holdings_since(self._run, self._until, last):
                holding = self._holdings.setdefault(symbol, Holding())
                holding.shares += int(shares)
                holding.cents += int(cents)
            for symbol, traded, spread, impact, fees, fills in view.reading.costs_since(self._run, self._until, last):
                cost = self._costs.setdefault(symbol, Cost())
                cost.traded += traded
                cost.spread += spread
                cost.impact += impact
                cost.fees += fees
                cost.fills += fills
            for symbol, price in view.reading.last_prices(self._run, self._until, last).items():
                self._holdings.setdefault(symbol, Holding()).price = price
            self._until = last

    def marks(self) -> list[Mark]:
        """Return every mark, oldest first."""
        self.carry_on()
        return self._marks

    def parts(self) -> dict[str, float]:
        """Return what all profit and loss was made of, in dollars by part of the decomposition."""
        self.carry_on()
        return {name: self._parts[name] for name in PARTS if name in self._parts}

    def holdings(self) -> dict[str, Holding]:
        """Return what is held or was, by symbol."""
        self.carry_on()
        return dict(sorted(self._holdings.items()))

    def costs(self) -> dict[str, Cost]:
        """Return what trading has cost, by symbol."""
        self.carry_on()
        return dict(sorted(self._costs.items()))


@dataclass(frozen=True, slots=True)
class Link:
    """One statement of the audit chain: its place, what it is about, its kind, its facts, the hash over all so far."""

    index: int
    name: str
    kind: str
    facts: dict[str, Any]
    hash: str


@dataclass
class Chain:
    """An index of audit.jsonl, carried on as the file grows.

    It checks that each line names the hash of the one before; signatures are the business of `oomrl audit verify`.
    """

    path: Path
    links: list[Link] = field(default_factory=list)
    broken: str = ""
    _offset: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def about(self, *names: str) -> list[Link]:
        """Return the statements whose subject, or proposal, is one of some names."""
        self._carry_on()
        wanted = set(names)
        return [
            link
            for link in self.links
            if link.facts.get("proposal") in wanted or link.facts.get("subject") in wanted or link.name in wanted
        ]

    def head(self) -> str:
        """Return how many statements there are and the hash over them."""
        self._carry_on()
        return f"{len(self.links)}:{self.links[-1].hash}" if self.links else "0:" + "0" * 64

    def _carry_on(self) -> None:
        with self._lock:
            if not self.path.is_file() or self.path.stat().st_size <= self._offset:
                return
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._offset += len(whole)
            for raw in whole.splitlines():
                self._add(json.loads(raw))

    def _add(self, line: dict[str, Any]) -> None:
        before = self.links[-1].hash if self.links else "0" * 64
        if line["previous"] != before and not self.broken:
            self.broken = f"statement {line['index']} does not follow the one before it: run `oomrl audit verify`"
        body = json.loads(base64.b64decode(line["envelope"]["payload"]))
        name = body["subject"][0]["name"]
        kind = body["predicateType"].split(":")[-2]
        self.links.append(Link(line["index"], name, kind, body["predicate"], line["hash"]))

"""What a handler of the trading API gets and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oomrl.exchange.emulator.asking import Query
from oomrl.exchange.emulator.venue import Venue


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and a JSON body (None: empty)."""

    body: Any = None
    status: int = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the handlers see it. `mishap` names what shall go wrong inside the exchange, if anything."""

    query: Query
    path: dict[str, str]
    body: Any = None
    mishap: str | None = None


Handler = Callable[[Venue, Asked], Answer]

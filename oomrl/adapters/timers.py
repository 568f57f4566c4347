"""Clocks that can be waited on: the wall's, and the virtual one of an exchange on loopback."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Event
from typing import Any

from oomrl.errors import Unavailable


class WallTimer:
    """The wall's clock. `wake` ends a wait early: the broker's stream sets it when something happened.

    Implements `ports.Timer`.
    """

    def __init__(self, wake: Event | None = None) -> None:
        self.wake = wake or Event()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def wait(self, until: datetime) -> None:
        left = (until - self.now()).total_seconds()
        if left > 0 and self.wake.wait(left):
            self.wake.clear()


class ExchangeTimer:
    """The virtual clock of our own exchange: waiting moves it. Implements `ports.Timer`."""

    def __init__(self, url: str) -> None:
        import requests  # only a simulation's order path needs it

        self._place = f"{url}/admin/clock"
        self._session = requests.Session()
        self._session.trust_env = False
        self._now = self._told(self._session.get(self._place, timeout=10))

    def now(self) -> datetime:
        return self._now

    def wait(self, until: datetime) -> None:
        if until > self._now:
            self._now = self._told(self._session.post(self._place, json={"to": until.isoformat()}, timeout=60))

    def close(self) -> None:
        """Give the connection back."""
        self._session.close()

    def _told(self, answer: Any) -> datetime:
        if answer.status_code != 200:
            raise Unavailable(f"Expected the exchange's clock to move, was HTTP {answer.status_code}: {answer.text}")
        told: Any = answer.json()
        return datetime.fromisoformat(told["now"])

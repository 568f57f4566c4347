"""The broker's stream of order events, as a reason to look sooner. Nothing is booked from it.

Events may be dropped, repeated, out of order, or never come while the line is open; the order path polls anyway, so the
worst that a silent stream does is that we look a cycle later. Each (re)connection is a reason to reconcile.
"""

from __future__ import annotations

import threading
from typing import Any

from alpaca.trading.stream import TradingStream


class Listening:
    """Listen in a thread of its own. Each frame sets `wake`, which ends a wait of `oomrl.adapters.timers.WallTimer`."""

    def __init__(self, key: str, secret: str, url: str, wake: threading.Event) -> None:
        self._stream = _Stream(key, secret, url, wake)
        self._thread = threading.Thread(target=self._stream.run, name="order events", daemon=True)

    def start(self) -> None:
        """Connect, and stay connected until `close`."""
        self._thread.start()

    def reconnected(self) -> bool:
        """Return whether the stream has (re)connected since this was last asked."""
        was, self._stream.fresh = self._stream.fresh, False
        return was

    def close(self) -> None:
        """Disconnect and wait for the thread to end."""
        if self._thread.is_alive() and self._stream._loop is not None:
            self._stream.stop()
            self._thread.join(timeout=10)


class _Stream(TradingStream):  # type: ignore[misc]
    def __init__(self, key: str, secret: str, url: str, wake: threading.Event) -> None:
        super().__init__(key, secret, paper=True, raw_data=True, url_override=url)
        self.wake, self.fresh = wake, False
        self.subscribe_trade_updates(self._heard)

    async def _start_ws(self) -> None:
        await super()._start_ws()
        self.fresh = True
        self.wake.set()

    async def _heard(self, frame: Any) -> None:
        self.wake.set()

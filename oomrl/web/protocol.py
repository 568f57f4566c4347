"""HTTP with a deadline: who opens connections and asks nothing, or asks by a byte a minute, keeps nobody else out."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds within which a whole request must have arrived.
PATIENCE = 15.0
#: Connections at once; more are closed unheard. A process may open at least 1,024 files by default.
MOST = 400


class PatientProtocol(H11Protocol):
    """Close a connection whose request does not arrive in time, and any beyond the most at once."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.close()
        else:
            self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        asked = self.cycle is not None and not self.cycle.response_complete
        if asked and not self.cycle.more_body:
            self._forget()
        elif self._deadline is None:
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        self._deadline = self.loop.call_later(PATIENCE, self.transport.close)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

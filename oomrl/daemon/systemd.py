"""Tell systemd how the daemon is, by the datagram that `sd_notify` documents; nothing where systemd is not there."""

from __future__ import annotations

import os
import socket

#: Seconds to wait for whoever reads the socket: the lease is renewed by the same thread.
PATIENCE = 1.0


class Notifier:
    """Send states such as READY=1 to the socket that systemd named."""

    def __init__(self, address: str | None = None, watchdog_us: str | None = None) -> None:
        named = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        self._address = "\0" + named[1:] if named.startswith("@") else named
        usec = os.environ.get("WATCHDOG_USEC", "") if watchdog_us is None else watchdog_us
        #: Seconds within which systemd wants to hear of the daemon, None where it does not.
        self.watchdog = int(usec) / 1e6 if usec.isdigit() and int(usec) else None

    def tell(self, *states: str) -> None:
        """Send states. That nobody listens, or reads what it was sent, is no error of the daemon's."""
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.settimeout(PATIENCE)
            try:
                channel.sendto("\n".join(states).encode(), self._address)
            except OSError:
                return

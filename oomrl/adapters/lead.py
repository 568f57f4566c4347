"""Who may send orders: one daemon of several, by a lease in the database that every order checks.

The lease outlives any request to a broker, so that an order sent under it has been answered or given up before another
daemon can lead. A leader that was paused between check and request sends an id whose intent is durable: the new leader
sends the same one, and the broker refuses the second.
"""

from __future__ import annotations

import fcntl
import os
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from oomrl.adapters.database import Store, Work
from oomrl.adapters.database.place import place
from oomrl.domain.market import Session
from oomrl.domain.records import Lease
from oomrl.domain.trading import Execution, Orders
from oomrl.errors import Halt
from oomrl.ports import Broker
from oomrl.settings import Settings

NAME = "lead"


def myself() -> str:
    """Return a name that no other daemon has, nor this one after a restart."""
    return f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"


@dataclass(slots=True)
class Lead:
    """Take, renew and check the lease. `margin` is the longest that one request to a broker takes."""

    store: Store
    life: timedelta
    margin: timedelta
    holder: str = field(default_factory=myself)
    lease: Lease | None = None
    #: The database's clock at the last renewal: what other hosts go by.
    database_time: datetime | None = None

    def renew(self) -> bool:
        """Take or renew the lease; return whether this daemon leads. A database that does not answer is no lead."""
        try:
            with self.store.begin(beside=True) as work:
                self.database_time = work.leases.now()
                self.lease = work.leases.take(NAME, self.holder, self.database_time, self.life)
        except Halt:
            self.lease = self.database_time = None
        return self.lease is not None

    def demand(self) -> None:
        """Raise `Halt` unless this daemon leads for longer than one request takes. Before each order."""
        with self.store.read() as view:
            self.check(view)
            assert self.lease is not None
            view.leases.demand(self.lease, view.leases.now(), self.margin)

    def check(self, work: Work) -> None:
        """Raise `Halt` unless this daemon leads, as the transaction of `work` sees it."""
        if self.lease is None:
            raise Halt("Expected to lead, was standing by: another daemon works")
        work.leases.demand(self.lease, work.leases.now())

    def release(self) -> None:
        """Give the lease up, so that a standby takes over at once."""
        if self.lease is not None:
            with self.store.begin(beside=True) as work:
                work.leases.release(self.lease, work.leases.now())
            self.lease = None


class HostLead:
    """Lead by a lock on a file, where the store is a file too and one host alone can run daemons.

    The lock ends with the process, however it ends, and never before: a paused leader still leads.
    """

    lease: Lease | None = None
    database_time: datetime | None = None

    def __init__(self, state: Path) -> None:
        self._file = (state / "daemon.lock").open("a")  # noqa: SIM115 - held for the daemon's life
        self._leads = False

    def renew(self) -> bool:
        """Take the lock unless another process holds it."""
        if not self._leads:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._leads = True
            except BlockingIOError:
                return False
        return True

    def check(self, work: Work) -> None:
        """Raise `Halt` unless this daemon leads."""
        if not self._leads:
            raise Halt("Expected to lead, was standing by: another daemon of this host works")

    def release(self) -> None:
        """Give the lock up."""
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._leads = False


@contextmanager
def demanding(state: Path, settings: Settings, lease: Lease) -> Iterator[Callable[[], None]]:
    """Give a check that raises `Halt` unless the lease holds for longer than one request to the broker takes."""
    margin = timedelta(seconds=settings.service.http_timeout)
    with Store.open(place(state, settings)) as store:

        def demand() -> None:
            with store.read() as view:
                view.leases.demand(lease, view.leases.now(), margin)

        yield demand


class Led:
    """A broker that takes the orders decided on `day` only while `demand` lets it; older ones it knows already."""

    def __init__(self, broker: Broker, demand: Callable[[], None], day: date) -> None:
        self._broker, self._demand, self._day = broker, demand, day

    def submit(self, orders: Orders) -> None:
        if orders.decided_on >= self._day:
            self._demand()
        self._broker.submit(orders)

    def collect(self, session: Session) -> Execution:
        return self._broker.collect(session)

    def deposit(self, amount: Decimal) -> None:
        self._broker.deposit(amount)

    def cash(self) -> Decimal:
        return self._broker.cash()

    def positions(self) -> Mapping[str, Decimal]:
        return self._broker.positions()

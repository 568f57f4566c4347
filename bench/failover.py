"""`make failover N=100`: leaders killed, paused and cut off under load: who takes over, when, and what went out twice.

Two daemons' cores (the real service, table of jobs, lease and store, on a PostgreSQL of the campaign's own) share a
virtual calendar of one session a second and a half and send each session's orders, by HTTP, to an exchange in this
process, which keeps its own books. Orders are intents first; their ids follow from what was decided.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from bench.campaign import Campaign, arguments
from oomrl.adapters.database import Store
from oomrl.adapters.lead import Lead
from oomrl.calendar import Calendar
from oomrl.daemon.schedule import Anchor, Late, Task
from oomrl.daemon.serve import BEAT, STANDBY_BEAT
from oomrl.daemon.service import Outcome, Service
from oomrl.domain.records import Job, JobState, OrderEvent, OrderState, Run
from oomrl.domain.trading import Orders
from oomrl.errors import Halt
from oomrl.settings import Settings
from oomrl.testing import postgres

SERVICE = Settings().service
RUN = "orders"
ORDERS = 12
#: Virtual time: one day of it takes this many real seconds.
DAY_SECONDS = 1.5
BEGIN = datetime(2005, 1, 3, 12, tzinfo=UTC)
LIMIT_SECONDS = 10.0


# -- the exchange


@dataclass
class Exchange:
    """Books of all orders that arrived: who sent each, when, and what was refused as a duplicate."""

    accepted: dict[str, tuple[str, float]] = field(default_factory=dict)
    meant: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    last: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, order: dict[str, str], latency: float) -> int:
        """Take an order unless its id was taken; answer an HTTP status."""
        with self.lock:
            self.last[order["holder"]] = time.monotonic()
            if order["id"] in self.accepted:
                self.refused += 1
                status = 422
            else:
                self.accepted[order["id"]] = (order["holder"], time.monotonic())
                self.meant[order["meant"]] += 1
                status = 200
        time.sleep(latency)
        return status

    def serve(self) -> ThreadingHTTPServer:
        exchange = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = exchange.take(order, 0.005)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                return

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                return  # a daemon that was killed in mid-request

        server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


# -- a cable between a daemon and the database, which can be cut


class Cable:
    """Forward a TCP port to the database's socket until it is cut."""

    def __init__(self, target: Path) -> None:
        self.target, self.whole = target, True
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            if not self.whole:
                near.close()
                continue
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(self.target))
            self._pairs.append((near, far))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65_536):
                other.sendall(data)
        except OSError:
            pass
        # A close alone does not reach the server while the other thread still reads.
        self._end((one, other))

    def cut(self) -> None:
        self.whole = False
        for pair in self._pairs:
            self._end(pair)
        self._pairs.clear()

    def _end(self, pair: tuple[socket.socket, socket.socket]) -> None:
        for end in pair:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def mend(self) -> None:
        self.whole = True


# -- a daemon


class Silent:
    def began(self, job: Job) -> None:
        return

    def ended(self, job: Job, state: JobState, note: str, seconds: float) -> None:
        return


def virtual(epoch: float) -> datetime:
    """Return the virtual instant now: the campaign began at `epoch` of the wall clock."""
    return BEGIN + timedelta(days=(time.time() - epoch) / DAY_SECONDS)


def orders_of(day: date) -> Orders:
    """Return a session's orders. Their ids say what they are meant for, so that the same intent has the same id."""
    chance = np.random.default_rng(day.toordinal())
    shares = np.where(chance.random(ORDERS) < 0.5, -1.0, 1.0) * (1 + np.floor(100 * chance.random(ORDERS)))
    return Orders(
        decided_on=day,
        ids=tuple(f"{day:%Y%m%d}-S{row}-1" for row in range(ORDERS)),
        symbols=tuple(f"S{row}" for row in range(ORDERS)),
        shares=shares,
        limit=np.full(ORDERS, np.nan),
        participation=np.full(ORDERS, 0.1),
        reasons=("",) * ORDERS,
    )


class Desk:
    """Send a session's orders as an order path does: intent, check of the lead, request, outcome."""

    def __init__(self, store: Store, lead: Lead, port: int) -> None:
        self.store, self.lead, self.port = store, lead, port

    def __call__(self, account: str, job: str, session: date) -> Outcome:
        batch = orders_of(session)
        with self.store.begin() as work:
            work.orders.save(RUN, batch, session)
        with self.store.read() as view:
            left = [o for o in view.orders.decided_on(RUN, session) if o.state is OrderState.INTENDED]
        for order in left:
            self.lead.demand()
            status = self._post(order.client_order_id, f"{session}/{order.symbol}")
            event = OrderEvent(order.client_order_id, 1, datetime.now(UTC), "accepted", {"status": status})
            with self.store.begin() as work:
                work.orders.move(RUN, event, OrderState.WORKING)
        return Outcome(True)

    def _post(self, name: str, meant: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SERVICE.http_timeout)
        try:
            body = json.dumps({"id": name, "meant": meant, "holder": self.lead.holder})
            connection.request("POST", "/orders", body, {"Content-Type": "application/json"})
            return connection.getresponse().status
        finally:
            connection.close()


def daemon(url: str, port: int, epoch: float) -> None:
    """Lead or stand by, and do what is due, until killed."""
    store = Store.open(url)
    lead = Lead(store, timedelta(seconds=SERVICE.lease_seconds), timedelta(seconds=SERVICE.http_timeout))
    calendar = Calendar("XNYS", date(2005, 1, 1), date(2024, 12, 31))
    # However late, so that there is always something to send: a real rebalance's window would be a fifth of a second.
    tasks = (Task("rebalance", Anchor.OPEN, timedelta(minutes=30), Late.RUN),)
    service = Service(
        store, calendar, ("main",), Desk(store, lead, port), Silent(), lambda: virtual(epoch), lead, tasks
    )
    print(lead.holder, flush=True)
    while True:
        leads = lead.renew()
        if leads:
            service.wake()
        time.sleep(0.25 if leads else STANDBY_BEAT)


# -- the campaign


@dataclass
class Process:
    popen: subprocess.Popen[str]
    cable: Cable
    holder: str

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def end(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        assert self.popen.stdout is not None
        self.popen.stdout.close()


def start(server: postgres.Server, port: int, epoch: float) -> Process:
    cable = Cable(server.folder / ".s.PGSQL.5432")
    url = f"postgresql+psycopg://{postgres.USER}@127.0.0.1:{cable.port}/postgres?connect_timeout=2"
    popen = subprocess.Popen(
        [sys.executable, "-m", "bench.failover", "--daemon", url, str(port), str(epoch)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert popen.stdout is not None
    return Process(popen, cable, popen.stdout.readline().strip())


def wait_for_orders(exchange: Exchange, holder: str, since: float, limit: float) -> float | None:
    """Return the seconds until a holder's first order after an instant; None where none came."""
    while time.monotonic() - since < limit:
        if exchange.last.get(holder, 0.0) > since:
            return exchange.last[holder] - since
        time.sleep(0.02)
    return None


def measure(size: int, seed: int, out: Path) -> int:
    """Trouble the leader `size` times: mostly SIGKILL, else a pause or a cut longer than the lease."""
    campaign = Campaign("failover", size, seed, out)
    chance, exchange, epoch = random.Random(seed), Exchange(), time.time()
    web = exchange.serve()
    port = web.server_address[1]
    with postgres.server() as server:
        with Store.open(server.url) as store, store.begin() as work:
            work.runs.start(Run(RUN, "orders", {}, 0, "", datetime.now(UTC)))
        leader = start(server, port, epoch)
        assert wait_for_orders(exchange, leader.holder, time.monotonic() - 1, 60) is not None
        standby = start(server, port, epoch)
        takeovers: list[float] = []
        unanswered = 0
        for case in range(size):
            kind = "pause" if case % 10 == 4 else "partition" if case % 10 == 9 else "kill"
            time.sleep(chance.uniform(0.2, 1.2))
            begun = time.monotonic()
            if kind == "kill":
                leader.signal(signal.SIGKILL)
            elif kind == "pause":
                leader.signal(signal.SIGSTOP)
            else:
                leader.cable.cut()
            took = wait_for_orders(exchange, standby.holder, begun, 60)
            if took is None:
                unanswered += 1
            else:
                takeovers.append(took)
            if kind == "pause":
                leader.signal(signal.SIGCONT)
                time.sleep(0.5)
            elif kind == "partition":
                leader.cable.mend()
                time.sleep(0.5)
            late = exchange.last.get(leader.holder, 0.0) > begun + SERVICE.lease_seconds
            campaign.add(f"{case}-{kind}", seed, kind=kind, seconds=None if took is None else round(took, 3), late=late)
            print(f"{case + 1}/{size} {kind}: {took and round(took, 2)} s", file=sys.stderr, flush=True)
            leader.end()
            leader, standby = standby, start(server, port, epoch)
        leader.end()
        standby.end()
        with Store.open(server.url) as store, store.read() as view:
            intended = view.orders.counts(RUN)[0]
    web.shutdown()
    web.server_close()
    duplicates = sum(count - 1 for count in exchange.meant.values())
    p95 = float(np.quantile(takeovers, 0.95)) if takeovers else float("inf")
    return campaign.finish(
        passed=p95 <= LIMIT_SECONDS and duplicates == 0 and unanswered == 0,
        takeover_p95_s=round(p95, 3),
        takeover_median_s=round(float(np.median(takeovers)), 3),
        takeover_max_s=round(max(takeovers), 3),
        duplicate_orders=duplicates,
        refused_as_duplicates=exchange.refused,
        orders=len(exchange.accepted),
        intents=intended,
        not_taken_over=unanswered,
        lease_seconds=SERVICE.lease_seconds,
        beat_seconds=BEAT,
    )


def main() -> int:
    """Run the campaign, or one of its daemons."""
    if sys.argv[1:2] == ["--daemon"]:
        daemon(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    asked = arguments("failover", 100, "how often the leader is troubled").parse_args()
    lack = postgres.missing()
    if lack:
        print(f"Expected PostgreSQL's programs for this campaign, was without {lack}.", file=sys.stderr)
        return 2
    return measure(asked.size, asked.seed, asked.out)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Halt as error:
        sys.exit(f"Error: {error}")

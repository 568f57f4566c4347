"""`make soak N=252`: a virtual year of N sessions with three accounts, and everything that goes wrong in a year.

The daemon is the process that a person runs (leads, scrapes, signals and logs included) on a clock that is set. Two
accounts trade on the embedded exchange, the third by alpaca-py at the emulator, a process of its own. Each job is the
real one in a process of its own, forked where it has been loaded already (bench.forks). Jobs are killed in the middle,
PostgreSQL is stopped without warning, requests are cut off, the exchange does not answer, market data stays away, the
clock jumps, an unscheduled closure is learned of the evening before. The daemon is killed in the first month alone:
what its memory grows by in the other eleven is measured in one process.

Over 400 lines: the year, its troubles and its count belong to one story.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import requests
from click.testing import CliRunner
from sqlalchemy import func, select

from bench.campaign import Campaign, arguments
from bench.idle import rss_mb
from oomrl.adapters.database import Store
from oomrl.adapters.database.place import RUN, place
from oomrl.adapters.database.place import folder as account_folder
from oomrl.adapters.database.tables import fills, orders
from oomrl.calendar import Calendar
from oomrl.cli.main import oomrl
from oomrl.cli.options import state_settings
from oomrl.daemon import logs
from oomrl.daemon.children import Started, started
from oomrl.daemon.schedule import TASKS, planned
from oomrl.daemon.serve import Daemon
from oomrl.daemon.service import run_of
from oomrl.domain.ledger import Book
from oomrl.domain.records import JobState
from oomrl.exchange.tape import Tape
from oomrl.settings import load
from oomrl.testing import calendar_tapes, postgres
from oomrl.testing.virtual import wake_ups

ACCOUNTS = ("main", "second", "third")
BEGIN = date(2024, 1, 2)
WARMUP = 260
#: Unscheduled: a day of mourning that the calendar does not know.
MOURNING = date(2024, 10, 9)
EVENING = datetime.combine(MOURNING - timedelta(days=1), datetime.min.time(), UTC) + timedelta(hours=22)
MOST_GROWTH = 0.05
KILLED_JOBS = 0.01
#: What the emulator does wrong, beside what it is asked to: the files of docs/faults.md.
FAULTS = """
seed = {seed}
[[fault]]
kind = "accepted_then_504"
probability = 0.02
[[fault]]
kind = "reset"
applied = true
endpoint = "* /v2/orders*"
probability = 0.01
[[fault]]
kind = "html_502"
endpoint = "GET *"
probability = 0.005
[[fault]]
kind = "partial_fill"
fraction = 0.5
probability = 0.2
"""


#: The closure is shown by the broker's calendar only once it is known.
UNAWARE = f"""
[[fault]]
kind = "calendar"
day = {MOURNING}
hours = "09:30-16:00"
"""


class Clock:
    """An instant that processes share: a number in a file."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(bytes(8))
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), 8)

    def set(self, instant: datetime) -> None:
        struct.pack_into("d", self._shared, 0, instant.timestamp())

    def now(self) -> datetime:
        seconds: float = struct.unpack_from("d", self._shared)[0]
        return datetime.fromtimestamp(seconds, UTC)


# -- the daemon's process


def daemon(state: Path) -> None:
    """Serve as `oomrl run` does, on the shared clock, and look for work when a line on the input says so."""
    logs.configure()
    client = [sys.executable, "-S", "-E", str(Path(__file__).with_name("fork_client.py")), str(state.parent / "forks")]

    def start(command: Sequence[str], environment: Mapping[str, str]) -> Started:
        return started([*client, *command[command.index("once") :]], environment)

    served = Daemon(state, lambda: state_settings(state, None), now=Clock(state.parent / "clock").now, start=start)
    threading.Thread(target=listen, args=[served], daemon=True).start()
    served.run()


def listen(served: Daemon) -> None:
    """See to all accounts for each line, as a trigger does, and answer once nothing is under way."""
    for _ in sys.stdin:
        while not served.leads:
            time.sleep(0.05)
        wait(served.due())
        print("looked", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)  # the campaign is gone


# -- the campaign's year


@dataclass
class Year:
    """The processes, the clock, and the troubles so far."""

    folder: Path
    settings: dict[str, Any]
    tape: Tape
    seed: int
    first: date
    server: postgres.Server | None
    troubles: Counter[str] = field(default_factory=Counter)
    reviews: Counter[str] = field(default_factory=Counter)
    data_from: datetime | None = None
    shown: date | None = None

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.state, self.file = self.folder / "state", self.folder / "market.parquet"
        self.state.mkdir(exist_ok=True)
        self.clock = Clock(self.folder / "clock")
        self._log = (self.folder / "log").open("ab")

    def start(self) -> None:
        """Start what stays for the year, then the daemon. The emulator's market is the whole year's."""
        here = [sys.executable, "-m"]
        whole = self.folder / "whole.parquet"
        calendar_tapes.write(self.tape, whole, self.tape.days[-1])
        (self.folder / "faults.toml").write_text(FAULTS.format(seed=self.seed) + UNAWARE)
        asked = ["oomrl", "exchange", "serve", "--tape", whole, "--port", "0", "--from", self.first.isoformat()]
        asked += ["--rules", "paper", "--rate-limit", "0", "--faults", self.folder / "faults.toml", "--json"]
        self.exchange = self._begin([*here, *map(str, asked)])
        self.url: str = json.loads(self._line(self.exchange))["url"]
        self.web = requests.Session()
        self.web.trust_env = False
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.settings["service"]["listen"] = f"127.0.0.1:{probe.getsockname()[1]}"
        self.settings["broker"] |= {"base_url": self.url, "data_url": self.url}
        self.configure()
        before = max(day for day in self.tape.days if day < self.first)
        calendar_tapes.write(self.tape, self.folder / "own.parquet", before)
        forks = ["bench.forks", self.folder / "forks", self.seed, KILLED_JOBS]
        self.forks = self._begin([*here, *map(str, forks)])
        self._line(self.forks)
        self.serve()

    def configure(self) -> None:
        """Write the settings file."""
        lines = []
        for name, values in self.settings.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
        (self.state / "oomrl.toml").write_text("\n".join(lines) + "\n", "utf-8")

    def serve(self) -> None:
        """Start the daemon."""
        self.daemon = self._begin([sys.executable, "-m", "bench.soak", "--daemon", str(self.state)])

    def _begin(self, command: list[str]) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "APCA_API_KEY_ID": "key", "APCA_API_SECRET_KEY": "a-secret-of-the-year"}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, env=environment)

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        return process.stdout.readline()

    def close(self) -> None:
        """End every process."""
        for process in (self.daemon, self.forks, self.exchange):
            process.kill()
            process.communicate()
        self.web.close()
        self._log.close()

    def show(self, closed: date | None) -> None:
        """Add to the tape what has closed, unless the data stays away, and move the exchange's clock."""
        now = self.clock.now()
        if self.data_from is None or now >= self.data_from:
            self.data_from = None
            if closed is not None and closed != self.shown:
                calendar_tapes.write(self.tape, self.file, closed)
                self.shown = closed
        there = datetime.fromisoformat(self.web.get(f"{self.url}/admin/clock", timeout=60).json()["now"])
        if now > there:
            self.web.post(f"{self.url}/admin/clock", json={"to": now.isoformat()}, timeout=600).raise_for_status()

    def ask(self) -> None:
        assert self.daemon.stdin is not None
        self.daemon.stdin.write(b"look\n")
        self.daemon.stdin.flush()

    def look(self) -> None:
        """Let the daemon do what is due."""
        self.ask()
        if not self._line(self.daemon):
            raise RuntimeError(f"Expected the daemon to serve, was gone: see {self.folder}/log")

    def trouble(self) -> None:
        """Let something go wrong, now and then, while the daemon looks."""
        dice, now = self.chance.random(), self.clock.now()
        if now < self._month(1) and dice < 0.06:
            self.troubles["daemon_killed"] += 1
            self.ask()
            time.sleep(self.chance.uniform(0.0, 1.0))
            self.daemon.kill()
            self.daemon.communicate()
            self.serve()
        elif dice < 0.004:
            self.troubles["data_cuts"] += 1
            self.data_from = now + timedelta(hours=self.chance.uniform(1, 20))
        elif dice < 0.008:
            self.troubles["clock_jumps"] += 1
            self.clock.set(now + timedelta(hours=self.chance.uniform(-30, 3)))
            self.look()
            self.clock.set(now)
        elif dice < 0.012 and self.server is not None:
            self.troubles["database_restarts"] += 1
            self.ask()
            time.sleep(self.chance.uniform(0.0, 0.5))
            self.server.stop()
            time.sleep(self.chance.uniform(0.0, 1.0))
            self.server.start()
            self._line(self.daemon)
        elif dice < 0.018:
            self.troubles["exchange_silent"] += 1
            self.exchange.send_signal(signal.SIGSTOP)
            self.ask()
            time.sleep(self.chance.uniform(1.0, 6.0))
            self.exchange.send_signal(signal.SIGCONT)
            self._line(self.daemon)

    def _month(self, after: int) -> datetime:
        return datetime.combine(self.first + timedelta(days=30 * after), datetime.min.time(), UTC)

    def mourn(self) -> None:
        """Learn of the unscheduled closure: write it into the settings and have them read again."""
        faults = {"toml": FAULTS.format(seed=self.seed)}
        self.web.post(f"{self.url}/admin/faults", json=faults, timeout=60).raise_for_status()
        self.settings["service"]["closures"] = [MOURNING.isoformat()]
        self.configure()
        read = self.said("settings read again")
        self.daemon.send_signal(signal.SIGHUP)
        while self.said("settings read again") == read:
            time.sleep(0.1)

    def said(self, event: str) -> int:
        """Return how often the daemon's log has an event."""
        return sum(line.get("event") == event for line in self.lines())

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of the daemon's log."""
        with (self.folder / "log").open(encoding="utf-8", errors="replace") as log:
            for line in log:
                with contextlib.suppress(ValueError):
                    yield json.loads(line)

    def review(self) -> None:
        """Approve, as two people, what has passed the gate."""
        settings = load(self.state / "oomrl.toml")
        for account in ACCOUNTS:
            with Store.open(place(self.state, settings, account)) as store, store.read() as view:
                if view.runs.get(RUN) is None:
                    continue
                passed = [proposal.id for proposal in view.reading.proposals(RUN, ("passed",), most=10)]
            for proposal in passed:
                for who in ("olga", "ben"):
                    told = [proposal, "--as", who, "--state", str(account_folder(self.state, account))]
                    for command in (["show", *told], ["approve", *told, "--reason", "It passed."]):
                        ran = CliRunner().invoke(oomrl, ["review", *command])
                self.reviews[f"review exit code {ran.exit_code}"] += 1

    def scrape(self) -> None:
        """Read the metrics, as Prometheus does."""
        with urllib.request.urlopen(f"http://{self.settings['service']['listen']}/metrics", timeout=60) as answer:
            answer.read()

    def books(self) -> dict[str, Any]:
        """Return the exchange's own books."""
        found: dict[str, Any] = self.web.get(f"{self.url}/admin/books", timeout=60).json()
        return found


@contextlib.contextmanager
def database() -> Iterator[postgres.Server | None]:
    """Run a PostgreSQL where there is one, else use files."""
    if postgres.missing():
        yield None
        return
    with postgres.server() as server:
        yield server


def chosen(folder: Path, url: str | None) -> dict[str, Any]:
    """Return the settings: one strategy as shipped, the one of phase 1, and one at the exchange's process."""
    market = str(folder / "market.parquet")
    # The emulator's quotes change four times a day.
    broker = {"stale_seconds": 4 * 3600, "straggler_seconds": 3600, "cycle_seconds": 900}
    values: dict[str, Any] = {
        "loop": {"reviewer": "person"},
        "model": {"provider": "offline"},
        "service": {},
        "broker": broker,
        "accounts.main": {"tape": market},
        "accounts.second": {"tape": market, "start": "phase1", "endowment": "2000000"},
        "accounts.third": {"tape": str(folder / "own.parquet"), "broker": "alpaca"},
    }
    return values if url is None else {"database": {"url": url}, **values}


def measure(size: int, seed: int, out: Path) -> int:
    """Live through `size` sessions, then count what was due, done, skipped, doubled and lost."""
    campaign = Campaign("soak", size, seed, out)
    calendar = Calendar("XNYS", date(2022, 6, 1), date(2026, 6, 30), closures=[MOURNING])
    days = [hours.day for hours in calendar.hours]
    first = days.index(BEGIN)
    span = days[first : first + size]
    tape = calendar_tapes.market(days[first - WARMUP : first + size + 3])
    with database() as server, tempfile.TemporaryDirectory(prefix="oomrl-soak-") as temporary:
        folder = Path(temporary)
        year = Year(folder, chosen(folder, server and server.url), tape, seed, span[0], server)
        year.clock.set(datetime.combine(span[0], datetime.min.time(), UTC) - timedelta(hours=4))
        try:
            year.start()
            expected, memory = live(year, calendar, span)
            return count(campaign, year, expected, memory)
        finally:
            year.close()


def live(
    year: Year, calendar: Calendar, span: list[date]
) -> tuple[dict[tuple[str, date], datetime], dict[int, list[float]]]:
    """Be awake shortly after each instant at which something is due; return what was, and the memory by month."""
    year.look()
    until = calendar.session(span[-1])
    assert until is not None
    end = until.closes + timedelta(hours=4)
    expected = {
        (task.name, hours.day): due
        for task in TASKS
        for hours, due in planned(task, calendar, span[0] - timedelta(days=1), end)
    }
    memory: dict[int, list[float]] = {}
    last = None

    def closed() -> date | None:
        found = calendar.last_closed(year.clock.now(), timedelta(minutes=20))
        return found and found.day

    for moment in wake_ups(sorted(set(expected.values())), year.chance, outage=0.004, longest=timedelta(days=3)):
        year.clock.set(max(min(moment, end), year.clock.now()))
        if year.clock.now() >= EVENING and "closures" not in year.settings["service"]:
            year.mourn()
        year.show(closed())
        year.trouble()
        year.look()
        today = year.clock.now().date()
        if today != last:
            last = today
            year.scrape()
            year.review()
            memory.setdefault(today.month, []).append(rss_mb(year.daemon.pid))
            if today.weekday() == 0:
                print(f"{today}: {memory[today.month][-1]:.1f} MB, {dict(year.troubles)}", file=sys.stderr, flush=True)
    year.data_from = None
    for _ in range(20):
        year.clock.set(year.clock.now() + timedelta(minutes=20))
        year.show(closed())
        year.look()
    return expected, memory


def count(
    campaign: Campaign, year: Year, expected: dict[tuple[str, date], datetime], memory: dict[int, list[float]]
) -> int:
    """Compare the tables, the log and the exchange's books with what was due."""
    settings = load(year.state / "oomrl.toml")
    ended = Counter(
        (line["run"], line["job"], line["session"]) for line in year.lines() if line.get("event") == "job done"
    )
    doubled = sum(times - 1 for times in ended.values())
    done = skipped = lost = 0
    for account in ACCOUNTS:
        with Store.open(place(year.state, settings)) as store, store.read() as view:
            table = {(job.job, job.session): job for job in view.jobs.all(run_of(account))}
        missing = [key for key in expected if key not in table]
        states = Counter(table[key].state.value for key in expected if key in table)
        judged = sorted({day for job, day in expected if job == "judge"})
        with Store.open(place(year.state, settings, account)) as store, store.read() as view:
            marked = [mark.day for mark in view.sessions.marks(RUN)]
            over = overfilled(view.connection, view.runs.key(RUN))
            figures: dict[str, Any] = dict(zip(("orders", "fills"), view.orders.counts(RUN), strict=True))
            figures["diagnostics"] = len(view.losses.diagnostics(RUN))
            figures["deployments"] = len(view.deployments.all(RUN)) - 1
            if account == "third":
                figures["differs"] = differences(year.books(), view)
        gone = len(missing) + len(set(judged) - set(marked)) + states["due"] + states["running"] + states["failed"]
        done, skipped = done + states["done"], skipped + states["skipped"]
        lost, doubled = lost + gone, doubled + over + len(marked) - len(set(marked))
        lost += len(figures.get("differs", []))
        campaign.add(account, campaign.seed, **states, lost=gone, **figures)
        for key_, job in sorted(table.items(), key=lambda item: item[1].due_at):
            if key_ in expected and job.state not in (JobState.DONE, JobState.SKIPPED):
                print(f"{account} {key_}: {job.state.value} {job.note[:120]}", file=sys.stderr)
    growth = None
    if len(memory) >= 12:
        growth = float(np.mean(memory[12]) / np.mean(memory[2]) - 1)
    notes = Counter(f"{line['job']}: {line['note'][:90]}" for line in year.lines() if line.get("event") == "job failed")
    return campaign.finish(
        passed=lost == 0 and doubled == 0 and (growth is None or growth < MOST_GROWTH),
        due=len(ACCOUNTS) * len(expected),
        ran=done,
        skipped_by_policy=skipped,
        doubled=doubled,
        lost=lost,
        memory_growth_month_2_to_12=None if growth is None else round(growth, 4),
        rss_mb={month: round(float(np.mean(values)), 1) for month, values in memory.items()},
        jobs_killed=sum("SIGKILL" in line.get("note", "") for line in year.lines()),
        lead_lost=year.said("lost the lead: another daemon or no database"),
        **year.troubles,
        **year.reviews,
        skipped_rebalances=sum(n for note, n in skips(year).items() if note.startswith("rebalance")),
        notes=dict(notes.most_common(30)),
    )


def skips(year: Year) -> Counter[str]:
    """Return why jobs were skipped, and how often."""
    return Counter(f"{line['job']}: {line['note']}" for line in year.lines() if line.get("event") == "job skipped")


def overfilled(connection: Any, run: int) -> int:
    """Return how many orders were filled beyond what was asked."""
    sums = (
        select(fills.c.client_order_id, func.sum(fills.c.shares).label("filled"))
        .where(fills.c.run_id == run)
        .group_by(fills.c.client_order_id)
        .subquery()
    )
    rows = connection.execute(
        select(orders.c.shares, sums.c.filled).where(
            orders.c.run_id == run, orders.c.client_order_id == sums.c.client_order_id
        )
    ).all()
    return sum(abs(filled) > abs(shares) for shares, filled in rows)


def differences(books: dict[str, Any], view: Any) -> list[str]:
    """Return where the ledger and the exchange's own books differ: fills, cash, shares."""
    entries = view.ledger.entries(RUN)
    here: Counter[str] = Counter()
    for line in entries:
        if line.book is Book.BOTH and line.symbol:
            here[line.symbol] += line.shares
    shares = {symbol: Decimal(number) for symbol, number in books["positions"].items()}
    found = []
    if len(books["fills"]) != sum(bool(line.shares) for line in entries):
        found.append(f"{len(books['fills'])} fills there, {sum(bool(line.shares) for line in entries)} here")
    if view.ledger.cash(RUN, Book.BOTH) != Decimal(books["cash"]):
        found.append(f"cash {books['cash']} there, {view.ledger.cash(RUN, Book.BOTH)} here")
    if {symbol: number for symbol, number in here.items() if number} != shares:
        found.append("shares")
    names = [order["client_order_id"] for order in books["orders"]]
    if len(names) != len(set(names)):
        found.append("one id, two orders")
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--daemon"]:
        daemon(Path(sys.argv[2]))
        sys.exit()
    asked = arguments("soak", 252, "sessions").parse_args()
    sys.exit(measure(asked.size, asked.seed, asked.out))

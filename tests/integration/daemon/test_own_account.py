"""Sessions of the daemon's work at a person's own account: alpaca-py, sockets and the emulator, on a virtual clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import requests

from oomrl import bootstrap
from oomrl.adapters.alpaca.data import download
from oomrl.adapters.database import Store
from oomrl.adapters.own_account import reached, stopped
from oomrl.adapters.timers import ExchangeTimer
from oomrl.calendar import Calendar
from oomrl.daemon.jobs import Desk, dry_trade, perform
from oomrl.daemon.schedule import TASKS, planned
from oomrl.daemon.service import Outcome, Service, run_of
from oomrl.domain.ledger import Book, Kind
from oomrl.domain.reconciliation import MismatchKind, Policy
from oomrl.domain.records import Job, JobState
from oomrl.domain.trading import ALPACA_PAPER
from oomrl.exchange.emulator.server import Settings, running
from oomrl.exchange.emulator.venue import Terms
from oomrl.exchange.tape_files import load_tape
from oomrl.testing import calendar_tapes
from tests import databases

#: A Friday: the first decision is due after Monday's close, and trades on Tuesday.
FRIDAY = date(2024, 3, 1)
CASH = Decimal(1_000_000)
KEYS = {"APCA_API_KEY_ID": "key", "APCA_API_SECRET_KEY": "secret"}


class Told:
    """Write down how jobs ended."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def began(self, job: Job) -> None:
        return

    def ended(self, job: Job, state: JobState, note: str, seconds: float) -> None:
        self.notes.append(f"{job.session} {job.job} {state.value}: {note}")


class Served:
    """The daemon's core over one account at the emulator, on the emulator's clock."""

    def __init__(self, url: str, folder: Path, days: list[date], calendar: Calendar) -> None:
        self.url, self.days, self.calendar, self.told = url, days, calendar, Told()
        self.timer = ExchangeTimer(url)
        self.tape = folder / "history.parquet"
        # Quotes of the emulator change at the four points of its path alone.
        broker = {"base_url": url, "data_url": url, "stale_seconds": 4 * 3600, "straggler_seconds": 3600}
        account = {"tape": str(self.tape), "broker": "alpaca"}
        self.settings = databases.settings(folder / "state", {"broker": broker, "accounts": {"main": account}})
        self.desk = Desk(folder / "state", self.settings, timer=self.timer)
        self.desk.folder.mkdir()
        self.store = Store.open(databases.place(self.desk.folder))
        self.service = Service(self.store, calendar, ["main"], self.work, self.told, self.timer.now)

    def work(self, account: str, job: str, session: date) -> Outcome:
        return perform(self.desk, job, session)

    def until(self, last: date, job: str = "housekeeping") -> None:
        """Be awake at each instant at which something is due, up to one job of one session."""
        end = next(task for task in TASKS if task.name == job).due(self.calendar.session(last))  # type: ignore[arg-type]
        dues = {due for task in TASKS for _, due in planned(task, self.calendar, self.days[0], end)}
        for due in sorted(dues):
            self.timer.wait(due + timedelta(seconds=1))
            self.service.work_off("main")

    def books(self) -> dict[str, Any]:
        """Return the exchange's own books."""
        with requests.Session() as session:
            session.trust_env = False
            answer: dict[str, Any] = session.get(f"{self.url}/admin/books", timeout=30).json()
        return answer

    def counts(self) -> tuple[int, int]:
        with self.store.read() as view:
            return view.orders.counts(bootstrap.RUN)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    calendar = Calendar("XNYS", date(2022, 12, 1), date(2024, 6, 28))
    days = [hours.day for hours in calendar.between(date(2023, 1, 1), date(2024, 3, 29))]
    terms = Terms(cash=CASH, rules=ALPACA_PAPER)
    with running(calendar_tapes.market(days), Settings(start=FRIDAY, terms=terms)) as exchange:
        place = Served(exchange.url, tmp_path, [day for day in days if day >= FRIDAY], calendar)
        broker = reached(place.settings.broker, place.timer, KEYS, 5)
        names = exchange.exchange.venue.tape.symbols
        download(broker, place.tape, names, days[0], days[days.index(FRIDAY) - 1])
        broker.close()
        yield place
        place.store.close()
        place.timer.close()


def test_a_flattened_account_is_judged_and_reconciled_like_any_other(served: Served) -> None:
    _, monday, tuesday, wednesday, thursday = served.days[:5]
    served.until(tuesday)
    broker = reached(served.settings.broker, served.timer, KEYS, 5)
    held = {holding.symbol for holding in broker.holdings()}
    served.timer.wait(served.calendar.session(wednesday).opens + timedelta(minutes=5))  # type: ignore[union-attr]
    assert stopped(broker, served.settings.accounts["main"], True, served.timer.now()) == (0, len(held))
    broker.close()
    served.until(thursday)

    books = served.books()
    assert not books["positions"]
    with served.store.read() as view:
        marks = view.sessions.marks(bootstrap.RUN)
        cash = view.ledger.cash(bootstrap.RUN, Book.BOTH)
        sales = [line for line in view.ledger.entries(bootstrap.RUN) if line.kind is Kind.SELL]
        mismatches = view.placements.mismatches(bootstrap.RUN)
    assert [mark.day for mark in marks] == [monday, tuesday, wednesday, thursday]
    assert cash == Decimal(books["cash"]) == marks[-1].broker_cash
    assert {line.symbol for line in sales} == held and {line.day for line in sales} == {wednesday}
    assert {(m.kind, m.subject, m.policy) for _, m in mismatches} == {
        (MismatchKind.FLATTENED, name, Policy.ADOPT) for name in held
    }
    assert not [note for note in served.told.notes if "failed" in note]


def test_a_week_ends_with_the_same_books_here_and_there(served: Served) -> None:
    _, monday, tuesday = served.days[:3]
    served.until(monday)
    assert not served.books()["orders"]

    before = served.counts()
    shown = dry_trade(served.desk, tuesday)
    assert served.counts() == before and not served.books()["orders"]
    served.until(served.days[4])

    books = served.books()
    sent = [order for order in books["orders"] if order["client_order_id"].split("-")[1] == f"{monday:%Y%m%d}"]
    assert sorted(line.split(":")[0].split()[:3] for line in shown) == sorted(
        [order["side"], order["qty"], order["symbol"]] for order in sent
    )
    with served.store.read() as view:
        lines = view.ledger.entries(bootstrap.RUN)
        cash = view.ledger.cash(bootstrap.RUN, Book.BOTH)
        jobs = view.jobs.all(run_of("main"))
        mismatches = view.placements.mismatches(bootstrap.RUN)
    shares: Counter[str] = Counter()
    for line in lines:
        if line.book is Book.BOTH and line.symbol:
            shares[line.symbol] += line.shares  # type: ignore[assignment]
    assert len(books["fills"]) == sum(bool(line.shares) for line in lines) > 0
    assert cash == Decimal(books["cash"])
    assert {s: n for s, n in shares.items() if n} == {s: Decimal(n) for s, n in books["positions"].items()}
    assert not mismatches
    assert {(job.job, job.state) for job in jobs if job.session in served.days[1:4]} == {
        (task.name, JobState.DONE) for task in TASKS
    }, served.told.notes
    assert load_tape(served.tape).days[-1] == served.days[4]


def test_a_calendar_that_differs_days_ahead_stops_trading_and_not_judging(served: Served) -> None:
    _, monday, tuesday = served.days[:3]
    served.until(monday)
    fault = f'[[fault]]\nkind = "calendar"\nday = {served.days[8]}\nhours = "closed"\n'
    with requests.Session() as session:
        session.trust_env = False
        session.post(f"{served.url}/admin/faults", json={"toml": fault}, timeout=30).raise_for_status()
    served.until(tuesday)
    with served.store.read() as view:
        ended = {job.job: job for job in view.jobs.all(run_of("main")) if job.session == tuesday}
    assert ended["rebalance"].state is JobState.SKIPPED and "closures" in ended["rebalance"].note
    assert {name for name, job in ended.items() if job.state is JobState.DONE} == set(ended) - {"rebalance"}
    assert not served.books()["orders"]

"""What each job of an account does. Each runs in a process of its own, and doing one again does nothing new."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from oomrl import bootstrap
from oomrl.adapters import kill_switch
from oomrl.adapters.audit import Audit
from oomrl.adapters.database import Store
from oomrl.adapters.database.place import MAIN, folder, place
from oomrl.adapters.folders import made
from oomrl.adapters.lead import Led, demanding
from oomrl.adapters.notify import Notifier
from oomrl.adapters.strategies import sandboxed
from oomrl.adapters.timers import WallTimer
from oomrl.calendar import Calendar
from oomrl.daemon import backup, digest, retention
from oomrl.daemon.health import MIN_FREE_BYTES
from oomrl.daemon.service import Outcome, run_of, wall_clock
from oomrl.daemon.tracing import Traces
from oomrl.domain.account import SessionRecord
from oomrl.domain.capital import Capital
from oomrl.domain.ledger import Book
from oomrl.domain.loss import Loss
from oomrl.domain.market import Session
from oomrl.domain.records import Deployment, Lease, Proposal, StoredDiagnostic, StoredVerdict
from oomrl.domain.trading import Execution, Orders
from oomrl.errors import Halt, Mistake, OomrlError, Unavailable
from oomrl.exchange.tape import Tape
from oomrl.exchange.tape_files import load_tape
from oomrl.ports import Broker, Timer
from oomrl.settings import AccountOf, Settings
from oomrl.stages import Facts

#: The stages of the loop that a job carries out on its session.
STAGES: Mapping[str, frozenset[str]] = {
    "judge": frozenset({"watch"}),
    "propose": frozenset({"watch", "diagnose", "propose"}),
    "gate": frozenset({"watch", "diagnose", "propose", "gate"}),
    "deployment": frozenset({"watch", "deploy"}),
    "rebalance": frozenset({"trade"}),
}
#: Jobs before a close work on the session before: the last one that is known.
BEFORE_CLOSE = ("deployment", "rebalance")


@dataclass(frozen=True, slots=True)
class Desk:
    """One account, as its jobs see it. `lease` is the lead under which orders may be sent; None where there is one
    daemon alone. `timer` is the clock that orders at a broker are worked by, None the wall's.
    """

    state: Path
    settings: Settings
    account: str = MAIN
    lease: Lease | None = None
    timer: Timer | None = None

    def __post_init__(self) -> None:
        if self.account not in self.settings.accounts:
            known = ", ".join(self.settings.accounts)
            way = f"the accounts are {known}" if known else "`oomrl init` writes one"
            raise Mistake(f"Expected [accounts.{self.account}] in the settings, was missing: {way}.")

    @property
    def folder(self) -> Path:
        return folder(self.state, self.account)

    @property
    def terms(self) -> AccountOf:
        return self.settings.accounts[self.account]

    def demand(self) -> AbstractContextManager[Callable[[], None]]:
        """Give the check before each order."""
        return nullcontext(lambda: None) if self.lease is None else demanding(self.state, self.settings, self.lease)

    def calendar(self) -> Calendar:
        return Calendar(self.settings.service.calendar, closures=self.settings.service.closures)

    def open(self) -> Store:
        return Store.open(place(self.state, self.settings, self.account))


def perform(desk: Desk, job: str, session: date) -> Outcome:
    """Do one job for one session. Raises `OomrlError`s; anything but an outcome that is done is tried again."""
    made(desk.folder)
    if job in STAGES:
        return stage(desk, job, session)
    return JOBS[job](desk, session)


def stage(desk: Desk, job: str, session: date) -> Outcome:
    """Carry the loop's stages of a job out, after everything before them."""
    if job == "rebalance" and desk.terms.broker != "alpaca":
        # Orders of an account at a broker ask the switch one by one: what is open there is still worked to its end.
        kill_switch.demand(desk.folder)
    day = session
    if job in BEFORE_CLOSE:
        before = desk.calendar().before(session)
        if before is None:
            return Outcome(True, "no session before")
        day = before.day
    tape = market_of(desk, day)
    known = day in set(tape.days)
    if not known and tape.days[-1] < day:
        raise Unavailable(f"Expected the session of {day} on the tape, was {tape.days[-1]} at its end")
    if not known:
        raise Halt(f"Expected a session on {day} as the calendar says, but the tape has none: see [service] closures")
    if job in BEFORE_CLOSE and not _served(desk):
        return Outcome(True, "nothing is known yet: the first session has not been judged")
    with desk.demand() as demand:
        return _worked(desk, job, day, demand)


def _worked(desk: Desk, job: str, day: date, demand: Callable[[], None]) -> Outcome:
    """Run the loop up to the close of `day` for what a job may do."""
    heard = Heard(Traces(os.environ))
    made = bootstrap.assemble(
        bootstrap.Simulation(
            state=desk.folder,
            settings=desk.settings.of(desk.account),
            tape=desk.terms.tape,
            from_day=_first(desk, day),
            start=desk.terms.start,
            growing=True,
            name=desk.account,
            may=STAGES[job],
            holding=lambda broker: broker if desk.lease is None else Led(broker, demand, day),
            broker="alpaca" if desk.terms.broker == "alpaca" else "inprocess",
            terms=desk.terms,
            timer=desk.timer,
            guard=demand if desk.terms.broker == "alpaca" else lambda: None,
        ),
        heard,
    )
    with made.store, made.closing:
        waiting = made.loop.run(until=day)
        if job == "rebalance":
            made.work()
        note = "; ".join(heard.lines) if job != "rebalance" else _orders(made.store, made.run, day)
        untold = tell(desk, made.store)
    heard.traces.close()
    note = f"{note}; {untold}" if untold else note
    if waiting is not None:
        note = f"{note}; waits for a {waiting.what}: {waiting.subject}" if note else f"waits for a {waiting.what}"
    return Outcome(True, note)


def market_of(desk: Desk, day: date) -> Tape:
    """Return the account's tape. One that ends before `day` is added to from the broker's data service first."""
    tape = load_tape(desk.terms.tape)
    if desk.terms.broker != "alpaca" or tape.days[-1] >= day or not desk.terms.tape.endswith(".parquet"):
        return tape
    from oomrl.adapters import own_account  # a second of imports that only an account of one's own needs

    own_account.extend(desk.settings, tape, Path(desk.terms.tape), day, desk.timer or WallTimer(), os.environ)
    return load_tape(desk.terms.tape)


def dry_trade(desk: Desk, session: date) -> list[str]:
    """Return the orders that trading in a session would send, a line each with its reason; nothing is sent or written.

    Everything before the decision is folded from the store, so the session before must have been judged.
    """
    before = desk.calendar().before(session)
    if before is None or not _served(desk):
        return ["No orders: the first session has not been judged yet."]
    unsent = Unsent()
    made = bootstrap.assemble(
        bootstrap.Simulation(
            state=desk.folder,
            settings=desk.settings.of(desk.account),
            tape=desk.terms.tape,
            from_day=before.day,
            start=desk.terms.start,
            growing=True,
            name=desk.account,
            may=STAGES["rebalance"],
            holding=unsent.over,
            broker="alpaca" if desk.terms.broker == "alpaca" else "inprocess",
            terms=desk.terms,
            timer=desk.timer,
        ),
        Heard(Traces({})),
    )
    with made.store, made.closing:
        if made.loop.facts.progress()[0] < before.day:
            return [f"No orders: the session of {before.day} has not been judged yet."]
        made.loop.facts = Unwritten(made.loop.facts)
        made.loop.run(until=before.day)
    batch = unsent.orders
    if batch is None or batch.decided_on != before.day:
        return [f"No orders after {before.day}: the strategy was not due, or holds."]
    lines = []
    for row in range(len(batch)):
        order = batch.record(row)
        limit = "at market" if order.limit_price is None else f"limit {order.limit_price}"
        lines.append(
            f"{order.side.value:4} {order.qty:f} {order.symbol} {limit}: {order.reason or 'towards its weight'}"
        )
    return lines


class Unsent:
    """Stand before a broker and keep orders from it; the last batch is what would be sent."""

    def __init__(self) -> None:
        self.orders: Orders | None = None
        self._broker: Broker | None = None

    def over(self, broker: Broker) -> Broker:
        self._broker = broker
        return self  # type: ignore[return-value]

    def submit(self, orders: Orders) -> None:
        self.orders = orders

    def collect(self, session: Session) -> Execution:
        assert self._broker is not None
        if self.orders is not None:
            self._broker.submit(self.orders)
            self.orders = None
        return self._broker.collect(session)

    def deposit(self, amount: Decimal) -> None:
        assert self._broker is not None
        self._broker.deposit(amount)


class Unwritten:
    """Stand before the facts and let nothing be written."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        return (lambda *_: None) if name.startswith("save_") else getattr(self._facts, name)


def tell(desk: Desk, store: Store) -> str:
    """Send what is new to people; say why it could not be sent, which is no failure of the job: it stays due."""
    try:
        Notifier(desk.folder, store, bootstrap.RUN, desk.settings, wall_clock).tell()
    except OomrlError as error:
        return f"nobody was told: {error}"
    return ""


def _served(desk: Desk) -> bool:
    """Say whether an account has begun: a revision trades."""
    with desk.open() as store, store.read() as view:
        return view.runs.get(bootstrap.RUN) is not None and bool(view.deployments.all(bootstrap.RUN))


def _first(desk: Desk, day: date) -> date:
    """Return the session that an account begins with, if it has not: the first that is owed a judgement, else `day`.

    A judge that was interrupted waits before it is tried again, and a later session's may run in the meantime.
    """
    if _served(desk):
        return day
    with Store.open(place(desk.state, desk.settings)) as store, store.read() as view:
        run = run_of(desk.account)
        owed = view.jobs.unfinished(run) if view.runs.get(run) is not None else []
    return min([day, *(job.session for job in owed if job.job == "judge")])


def _orders(store: Store, run: str, day: date) -> str:
    """Say how many orders a decision led to, and why none."""
    with store.read() as view:
        count = len(view.orders.decided_on(run, day))
        decided = next((d for d in view.sessions.decisions(run) if d.day == day), None)
    if count:
        return f"{count} orders"
    return f"no orders: {digest.why_none(decided)}"


def pre_open_check(desk: Desk, session: date) -> Outcome:
    """Refuse to trade on a damaged store, a full disk, a broken chain or a calendar that the market contradicts.

    A machine without a sandbox cannot run the strategy either: that is said here, half an hour before the open.
    """
    sandboxed()
    free = shutil.disk_usage(desk.folder).free
    if free < MIN_FREE_BYTES:
        raise Halt(f"Expected {MIN_FREE_BYTES:,} bytes free on the disk, was {free:,}: make room")
    with desk.open() as store:
        store.check()
    tape, calendar = load_tape(desk.terms.tape), desk.calendar()
    known = [hours.day for hours in calendar.between(tape.days[0], tape.days[-1])][-20:]
    missing = sorted(set(known) - set(tape.days))
    extra = sorted({day for day in tape.days[-20:] if calendar.session(day) is None})
    if missing or extra:
        raise Halt(
            f"Expected the market's sessions as the calendar {calendar.name} says; missing {missing or 'none'}, "
            f"unexpected {extra or 'none'}: see [service] closures"
        )
    if (desk.folder / "audit.jsonl").exists():
        Audit(desk.folder).log.verify()
    return Outcome(True, "sound")


def reconcile(desk: Desk, session: date) -> Outcome:
    """Compare the broker's book with the ledger to the cent."""
    with desk.open() as store, store.read() as view:
        mark = view.sessions.last_mark(bootstrap.RUN)
        booked = view.ledger.cash(bootstrap.RUN, Book.BOTH)
    if mark is None:
        return Outcome(True, "nothing is known yet")
    if mark.broker_cash != booked:
        raise Halt(f"Expected the broker's cash {mark.broker_cash} in the ledger on {mark.day}, was {booked}")
    return Outcome(True, f"cash {booked} agrees on {mark.day}")


def take_backup(desk: Desk, session: date) -> Outcome:
    """Copy everything of the account, check the copy, and keep the newest ones."""
    made = backup.take(desk.state, desk.settings, desk.account, backup.folder(desk.folder), f"{session}")
    backup.prune(backup.folder(desk.folder), desk.settings.service.backups)
    return Outcome(True, f"{made.name}: {made.stat().st_size:,} bytes, verified")


def write_digest(desk: Desk, session: date) -> Outcome:
    """Write the day's digest into the account's folder."""
    text = digest.compose(desk.state, desk.settings, desk.account, session, desk.calendar())
    target = desk.folder / "digests" / f"{session}.txt"
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, "utf-8")
    return Outcome(True, text.splitlines()[0])


def housekeeping(desk: Desk, session: date) -> Outcome:
    """Export what is older than the retention, and drop what can be made again."""
    return Outcome(True, retention.tidy(desk.state, desk.settings, desk.account, session))


JOBS: Mapping[str, Callable[[Desk, date], Outcome]] = {
    "pre_open_check": pre_open_check,
    "reconcile": reconcile,
    "backup": take_backup,
    "digest": write_digest,
    "housekeeping": housekeeping,
}


class Heard:
    """Write down in a line each what the loop did. Implements `oomrl.stages.Watcher`."""

    def __init__(self, traces: Traces) -> None:
        self.lines: list[str] = []
        self.traces = traces

    def closed(self, record: SessionRecord, capital: Capital, loss: Loss | None) -> None:
        self.lines = [f"{record.day} equity {record.equity} {capital.state.value}"]
        if loss is not None:
            self.lines.append(f"loss {loss.trigger.value}")

    def diagnosed(self, loss: Loss, diagnostic: StoredDiagnostic) -> None:
        self.lines.append(f"diagnosed {diagnostic.id}: {diagnostic.status}")

    def proposed(self, proposal: Proposal) -> None:
        self.lines.append(f"proposed {proposal.id} by {proposal.author}")

    def judged(self, proposal: Proposal, verdict: StoredVerdict) -> None:
        self.lines.append(f"gate {proposal.id}: {verdict.outcome}")
        self.traces.judged(proposal.id, verdict, time.time_ns())

    def deployed(self, deployment: Deployment) -> None:
        if deployment.sequence > 1:
            self.lines.append(f"{deployment.kind.value} {deployment.revision[:12]}")

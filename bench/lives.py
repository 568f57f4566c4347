"""One life of the service at the emulator, in a process that may be ended at any boundary it crosses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.boundaries import Boundaries, Kill, WatchedStore
from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.alpaca.calendar import hours_told
from oomrl.adapters.alpaca.rest import Patience
from oomrl.adapters.database import Store
from oomrl.adapters.database.engine import open_engine
from oomrl.adapters.facts import StoredFacts, opening
from oomrl.adapters.journal import StoredJournal
from oomrl.adapters.timers import ExchangeTimer
from oomrl.domain import capital, loss
from oomrl.domain.account import Account
from oomrl.domain.capital import Levels, Thresholds
from oomrl.domain.records import Deployment, DeploymentKind, Run
from oomrl.domain.sizing import Limits
from oomrl.domain.trading import ALPACA_PAPER, AccountRules
from oomrl.domain.working import Tactics
from oomrl.errors import OomrlError
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape import Tape
from oomrl.judging import Judge
from oomrl.loop import Loop, Rules
from oomrl.order_path import Opening, OrderPath
from oomrl.testing.fakes import RandomWorker
from oomrl.testing.markets import Weather, made_up_tape

RUN = "crash"
CASH = Decimal(200_000)
NAMES, SESSIONS, WARM = 6, 3, 3
VARIANTS = {"paper": ALPACA_PAPER, "funded": AccountRules()}


@dataclass(frozen=True)
class Case:
    """One account: which rules it has, which three sessions it trades, and how its lives end."""

    variant: str
    number: int
    seed: int
    kills: tuple[Kill | None, ...]

    @property
    def id(self) -> str:
        aim = self.kills[0].kind if self.kills and self.kills[0] else None
        return f"{self.variant}-{self.number}" + (f"@{aim}" if aim else "")


class Strategy:
    """A strategy that trades every session, in this process: what is killed here is the service."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def start(self, revision: str) -> RandomWorker:
        return RandomWorker(self.seed, busy=1.0)

    def cadence(self, revision: str) -> str:
        return "daily"


class Silent:
    """Hear of everything and say nothing. A loss would be a mistake of the case: there is nobody to repair it."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **options: None


def market(seed: int, cases: int) -> Tape:
    """Return the tape that all cases of a variant trade on, three sessions each."""
    weather = Weather(splits=0.0, dividends=0.03, absences=0.0, halts=0.01, jumps=0.0, late=0.0, delisted=0.0)
    return made_up_tape(seed, sessions=cases * SESSIONS + WARM + 2, names=NAMES, weather=weather)


def days_of(case: Case, tape: Tape) -> tuple[date, date, Tape]:
    """Return a case's first and last session, and the tape that its loop sees."""
    at = WARM + case.number * SESSIONS
    seen = slice(at - WARM, at + SESSIONS)
    columns = {name: values[seen] for name, values in tape.columns.items()}
    return tape.days[at], tape.days[at + SESSIONS - 1], Tape(tape.name, tape.symbols, tape.days[seen], columns)


def live(case: Case, tape: Tape, url: str, folder: Path, kill: Kill | None) -> int:
    """Be the service for one life; return its exit code: 0 done, 3 halted. Runs in a process of its own."""
    boundaries = Boundaries(folder / "life.json", kill)
    begin, last, shown = days_of(case, tape)
    rules = VARIANTS[case.variant]
    store = WatchedStore(open_engine(folder / "oomrl.db", durable=False))
    boundaries.watch_commits(store)
    timer = ExchangeTimer(url)
    brokerage = AlpacaBrokerage(
        timer,
        case.id,
        "secret",
        base_url=url,
        data_url=url,
        patience=Patience(read=20.0, retries=8),
    )
    for rest in (brokerage.trading, brokerage.data):
        boundaries.watch_requests(rest)
    try:
        loop_of(case, shown, begin, rules, store, brokerage, timer).run(until=last)
    except OomrlError as error:
        (folder / "halt.txt").write_text(f"{type(error).__name__}: {error}", "utf-8")
        boundaries.write()
        return 3
    boundaries.write()
    return 0


def loop_of(
    case: Case,
    shown: Tape,
    begin: date,
    rules: AccountRules,
    store: Store,
    brokerage: AlpacaBrokerage,
    timer: ExchangeTimer,
) -> Loop:
    """Return the loop over the store and the exchange, as a start finds them."""
    before = begin - timedelta(days=1)
    with store.begin() as work:
        work.runs.start(Run(RUN, RUN, {}, case.seed, "", datetime(2010, 1, 1, tzinfo=UTC)))
        if work.deployments.current(RUN) is None:
            work.deployments.save(
                Deployment(RUN, 1, "r" * 40, "", DeploymentKind.START, begin, timer.now(), "", "crash")
            )
            work.ledger.post(RUN, [opening(CASH, begin)])
    facts = StoredFacts(store, RUN, Silent(), timer.now, keep_bars=False)  # type: ignore[arg-type]
    account = Account(limits=Limits(collar_bps=60.0 if case.seed % 3 else None), rules=rules, cadence="daily")
    account.endow([opening(CASH, begin)])
    levels = Levels(0.5, 0.6, 0.7, 0.8)
    tactics = Tactics(
        at_open=case.seed % 4 == 0,
        stale_after=timedelta(hours=8),
        straggler_after=timedelta(minutes=60),
        cycle=timedelta(minutes=80),
        max_slices=1 + case.seed % 3,
        collar_bps=Decimal(case.seed % 30),
    )
    path = OrderPath(
        brokerage=brokerage,
        journal=StoredJournal(store, RUN),
        timer=timer,
        calendar=hours_told(brokerage.trading, before, shown.days[-1] + timedelta(days=10)),
        opening=Opening(before, CASH),
        costs=Friction(),
        rules=rules,
        tactics=tactics,
        closed=max(facts.progress()[0], before),
    )
    judge = Judge(Thresholds(levels, levels), loss.Rules(), capital.found(begin, CASH))
    judge.symbols = account.observed.roster.symbols
    silent: Any = Silent()
    return Loop(
        Rules(from_day=begin), shown, path, account, judge, facts, Strategy(case.seed), silent, silent, silent, silent
    )  # type: ignore[arg-type]

"""Replay strategies over recorded sessions: the same account and exchange that simulate, without a store behind."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import islice, zip_longest
from typing import Protocol

import numpy as np

from oomrl.domain.account import Account, Cadence, SessionRecord
from oomrl.domain.attribution import FEES, IMPACT, PARTS, SPREAD, whole_cents
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.market import Floats, Ints, Roster, Session, padded
from oomrl.domain.observed import Observed
from oomrl.domain.sizing import Goals, LimitHit, Limits, Work
from oomrl.domain.trading import AccountRules, Decision, Portfolio
from oomrl.errors import StrategyFailure
from oomrl.exchange.exchange import Batch, PaperExchange, traded_of
from oomrl.exchange.friction import Friction
from oomrl.exchange.prints import Prints
from oomrl.exchange.stretch import Stretch
from oomrl.ports import StrategyWorker

#: Sessions that are taken from the market at once.
READ_AHEAD = 128


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which a replay trades: capital in dollars, cadence, friction, limits, the account's rules."""

    capital: Decimal = Decimal(1_000_000)
    cadence: Cadence | str = Cadence.WEEKLY
    friction: Friction = field(default_factory=Friction)
    limits: Limits = field(default_factory=Limits)
    rules: AccountRules = field(default_factory=AccountRules)
    revision: str = "r0"
    delisting_recovery: float = 1.0
    sales_fund_at_once: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ReplayResult:
    """What a replay did, one row a session from its first trading day on.

    `equity_cents` (T,), `benchmark` total returns (T,), `parts` (T, 12) exact dollars in the order of `PARTS` and
    `parts_cents` the same in whole cents that sum to the change of equity, `by_name` (12, names) dollars over all
    sessions with names as in `symbols`, `traded` dollars bought plus sold, `exposure` positions over equity,
    `orders` and `fills` counts, `friction` dollars of spread, impact and fees (>= 0 when paid), `suspected` dollars
    of suspected unrecorded actions. `failure` is what ended trading, if anything did: later rows only mark.
    """

    days: tuple[date, ...]
    symbols: tuple[str, ...]
    equity_cents: Ints
    benchmark: Floats
    parts: Floats
    parts_cents: Ints
    by_name: Floats
    traded: Floats
    exposure: Floats
    orders: Ints
    fills: Ints
    friction: Floats
    suspected: Floats
    hits: tuple[tuple[date, LimitHit], ...]
    failure: StrategyFailure | None
    capital_cents: int

    @property
    def equity(self) -> Floats:
        """Equity in dollars at each close, (T,)."""
        return self.equity_cents / 100

    @property
    def returns(self) -> Floats:
        """Simple returns of equity from the second row on, (T - 1,)."""
        equity = self.equity
        return equity[1:] / equity[:-1] - 1

    @property
    def totals(self) -> dict[str, Decimal]:
        """The decomposition over all sessions, dollars and whole cents by part."""
        cents = self.parts_cents.sum(axis=0)
        return {name: Decimal(int(value)).scaleb(-2) for name, value in zip(PARTS, cents, strict=True)}


@dataclass(frozen=True, slots=True, eq=False)
class Lived:
    """One session's orders as they lived in it, by the roster's numbers: `shares` signed, `participation` the share of
    the session's `volume` that each might take, (orders,) all."""

    day: date
    roster: Roster
    rows: Ints
    shares: Floats
    participation: Floats
    volume: Floats

    @property
    def symbols(self) -> list[str]:
        """The orders' names."""
        return [self.roster.symbols[n] for n in self.rows.tolist()]


class Watch(Protocol):
    """Look on while a replay trades."""

    def decided(self, day: date, goals: Goals | None) -> None:
        """See that orders were made after a day's close, for the next session; None where older goals go on."""
        ...

    def traded(self, orders: Lived) -> None:
        """See a session in which orders lived."""
        ...


def replay(
    market: Iterable[Session],
    worker: StrategyWorker,
    terms: Terms | None = None,
    *,
    from_day: date | None = None,
    on_record: Callable[[SessionRecord], None] | None = None,
    watch: Watch | None = None,
) -> ReplayResult:
    """Replay one worker. It is shown every session of the market and trades from `from_day` on.

    `on_record` sees the record of each session; sessions without orders then cost as much as those with them.
    """
    each = None if on_record is None else lambda _, record: on_record(record)
    return replay_together(market, [(worker, terms or Terms())], from_day=from_day, on_record=each, watches=[watch])[0]


def replay_together(
    market: Iterable[Session],
    runs: Sequence[tuple[StrategyWorker, Terms]],
    *,
    from_day: date | None = None,
    on_record: Callable[[int, SessionRecord], None] | None = None,
    watches: Sequence[Watch | None] = (),
) -> list[ReplayResult]:
    """Replay several workers, each with an account of its own, in one pass over the sessions.

    `on_record` sees (number of the run, record) of each session, `watches` look on at their runs. A worker's failure
    ends its own trading only. The market is read ahead, but a worker is shown nothing before it has decided all that
    comes before.
    """
    observed = Observed()
    prints = Prints(observed.roster)
    heard = [None if on_record is None else partial(on_record, number) for number in range(len(runs))]
    lanes = [
        _Lane(worker, terms, observed, prints, record, watch, beside=len(runs) > 1)
        for (worker, terms), record, watch in zip_longest(runs, heard, watches)
    ]
    daily = any(lane.account.cadence is Cadence.DAILY for lane in lanes)
    coming, week = iter(market), (0, 0)
    sessions: list[Session] = []
    while sessions := [*sessions, *islice(coming, READ_AHEAD - len(sessions))]:
        bars = observed.take(sessions)
        count = len(bars)
        stretch = Stretch(sessions[:count], bars, prints.see(sessions[:count]))
        sessions = sessions[count:]
        first = 0 if from_day is None else bisect_left(bars.days, from_day)
        for lane in lanes if first else ():
            lane.look_on(stretch, first)
        for at, day in enumerate(bars.days):
            before, week = week, day.isocalendar()[:2]
            if at >= first and (daily or week != before or at == count - 1):
                # One lane after another, so that each worker thinks while the engine is with the other lanes.
                for lane in lanes:
                    lane.plan()
                    lane.settle(stretch, first, at)
                    lane.ask()
                first = at + 1
        for lane in lanes if first == count else ():
            lane.explain(stretch, count)
            lane.plan()
    return [lane.result(observed.roster) for lane in lanes]


class _Lane:
    """One worker with its account and exchange."""

    def __init__(
        self,
        worker: StrategyWorker,
        terms: Terms,
        observed: Observed,
        prints: Prints,
        on_record: Callable[[SessionRecord], None] | None,
        watch: Watch | None,
        beside: bool,
    ) -> None:
        self.worker, self.on_record, self.watch, self.beside = worker, on_record, watch, beside
        self.exchange = PaperExchange(
            terms.capital,
            terms.friction,
            terms.rules,
            delisting_recovery=terms.delisting_recovery,
            sales_fund_at_once=terms.sales_fund_at_once,
            prints=prints,
        )
        self.account = Account(
            observed, limits=terms.limits, rules=terms.rules, cadence=terms.cadence, revision=terms.revision
        )
        endowment = Entry("endowment", date.min, Kind.ENDOWMENT, Book.BOTH, terms.capital)
        self.account.endow([endowment])
        self.failure: StrategyFailure | None = None
        self.record: SessionRecord | None = None
        self.work: Work | None = None
        self.batches: list[Batch | None] = []
        self.asked: Portfolio | None = None
        self.settled = False
        self.days: list[date] = []
        self.rows: list[tuple[int, int, float, float, float, int, int, float]] = []
        self.parts: list[Floats] = []
        self.by_name: Floats = np.zeros((12, 0))
        self.hits: list[tuple[date, LimitHit]] = []

    def look_on(self, stretch: Stretch, count: int) -> None:
        """Go through the first sessions of a stretch without trading."""
        self._show(stretch.sessions[:count])
        self.exchange.rest(stretch, 0, count)
        self.account.observe(stretch.sessions[count - 1], stretch.bars.bar(count - 1))

    def settle(self, stretch: Stretch, first: int, last: int) -> None:
        """Show sessions to the worker and settle them; what is planned after the last one is left to `plan`."""
        self.settled = True
        self._show(stretch.sessions[first : last + 1])
        at = first
        while at <= last:
            count = self._settle_at_once(stretch, at, last)
            if not count:
                self.explain(stretch, at)
                self._settle_one(stretch, at)
                count = 1
            at += count
            if at <= last and not (self.record is None and self.account.resting):
                self._planned(None)

    def _settle_at_once(self, stretch: Stretch, at: int, last: int) -> int:
        """Settle sessions that may be explained later; return how many."""
        account, exchange = self.account, self.exchange
        if self.on_record is not None or (not at and stretch.bars.jumps) or not account.plain:
            return 0
        if account.resting:
            count, dividends = exchange.rest(stretch, at, last + 1)
            if count:
                account.rest(stretch.bars, at, dividends, count)
                self.batches += [None] * count
            return count
        work = self.work
        batch = exchange.trade(stretch, at, work)
        if batch is None:
            return 0
        self.work = None
        if work is not None and len(work.rows):
            asked = work.goals.participation[work.rows]
            self._lived(stretch.bars.days[at], work.rows, work.shares, asked, stretch.bars.volume[at])
        account.trade(stretch.bars, at, batch.rows, batch.filled, batch.lacking, batch.cents)
        self.batches.append(batch)
        return 1

    def _settle_one(self, stretch: Stretch, at: int) -> None:
        work, self.work = self.work, None
        if work is not None:
            self.exchange.submit(work.sized(self.account.revision, self.account.observed.roster).orders)
        execution = self.exchange.collect(stretch.sessions[at], stretch.seen, at)
        self.record = self.account.settle(stretch.sessions[at], execution, bar=stretch.bars.bar(at))

    def explain(self, stretch: Stretch, end: int) -> None:
        """Explain and keep the sessions before number `end` that were settled at once."""
        batches, self.batches = self.batches, []
        if not batches:
            return
        first = end - len(batches)
        explained = self.account.explained(traded_of(stretch, first, batches))
        self.days += stretch.bars.days[first:end]
        self.parts += list(explained.exact)
        self._fit(explained.by_name.shape[2])
        for at in range(len(batches)):
            self.by_name += explained.by_name[:, at]
        columns = (explained.equity_cents, explained.pnl_cents, stretch.bars.benchmark[first:end], explained.exposure)
        for batch, equity, pnl, benchmark, exposure in zip(batches, *[c.tolist() for c in columns], strict=True):
            traded, orders, fills = (0.0, 0, 0) if batch is None else batch.figures
            self.rows.append((equity, pnl, benchmark, traded, exposure, orders, fills, 0.0))

    def ask(self) -> None:
        """Ask the worker where its cadence has it decide."""
        if self.failure is None and self.account.due():
            self.asked = self.account.portfolio()
            try:
                self.worker.ask(self.asked)
            except StrategyFailure as failure:
                self.failure = failure

    def plan(self) -> None:
        """Plan after the last session that was settled, where nothing is planned yet."""
        if not self.settled:
            return
        decision, asked, self.asked, self.settled = None, self.asked, None, False
        if asked is not None and self.failure is None:
            try:
                decision = self.worker.decide(asked)
            except StrategyFailure as failure:
                self.failure = failure
        self._planned(decision)

    def _show(self, sessions: Sequence[Session]) -> None:
        if self.failure is None:
            try:
                for session in sessions:
                    self.worker.show(session)
                # One alone goes with the next question, and all of them where other workers think meanwhile: a message
                # more costs both sides what they could gain.
                if len(sessions) > 1 and not self.beside:
                    self.worker.flush()
            except StrategyFailure as failure:
                self.failure = failure

    def _planned(self, decision: Decision | None) -> None:
        """Keep what is decided or still works for the next session, and the session that waited for it."""
        sized = None
        if self.failure is None:
            try:
                self.work = self.account.worked(decision)
            except StrategyFailure as failure:
                self.failure = failure
        if self.work is not None:
            self.hits += [(self.work.decided_on, hit) for hit in self.work.hits]
            if self.watch is not None:
                self.watch.decided(self.work.decided_on, None if self.work.attempt else self.work.goals)
            if self.on_record is not None:
                sized = self.work.sized(self.account.revision, self.account.observed.roster)
        record, self.record = self.record, None
        if record is not None:
            self._keep(record)
            orders = record.execution.orders
            if len(orders):
                self._lived(record.day, record.order_rows, orders.shares, orders.participation, record.bar.volume)
            if self.on_record is not None:
                self.on_record(record if self.failure else replace(record, decision=decision, sized=sized))

    def _lived(self, day: date, rows: Ints, shares: Floats, participation: Floats, volume: Floats) -> None:
        """Let whoever watches see orders; `volume` (names,) is the session's."""
        if self.watch is not None:
            self.watch.traded(Lived(day, self.account.observed.roster, rows, shares, participation, volume[rows]))

    def _keep(self, record: SessionRecord) -> None:
        split = record.decomposition
        self.days.append(record.day)
        self.parts.append(split.exact)
        self._fit(split.by_name.shape[1])
        self.by_name += split.by_name
        self.rows.append(
            (
                record.equity_cents,
                split.pnl_cents,
                record.benchmark,
                record.traded,
                record.exposure,
                len(record.execution.orders),
                len(record.execution.fills),
                split.suspected,
            )
        )

    def _fit(self, size: int) -> None:
        if self.by_name.shape[1] < size:
            self.by_name = padded(self.by_name, size)

    def result(self, roster: Roster) -> ReplayResult:
        equity, pnl, benchmark, traded, exposure, orders, fills, suspected = (
            zip(*self.rows, strict=True) if self.rows else [()] * 8
        )
        parts = np.array(self.parts).reshape(-1, 12)
        return ReplayResult(
            days=tuple(self.days),
            symbols=tuple(roster.symbols[: self.by_name.shape[1]]),
            equity_cents=np.array(equity, dtype=np.int64),
            benchmark=np.array(benchmark, dtype=np.float64),
            parts=parts,
            parts_cents=whole_cents(parts, np.array(pnl, dtype=np.int64)),
            by_name=self.by_name,
            traded=np.array(traded, dtype=np.float64),
            exposure=np.array(exposure, dtype=np.float64),
            orders=np.array(orders, dtype=np.int64),
            fills=np.array(fills, dtype=np.int64),
            friction=-parts[:, [SPREAD, IMPACT, FEES]].sum(axis=1),
            suspected=np.array(suspected, dtype=np.float64),
            hits=tuple(self.hits),
            failure=self.failure,
            capital_cents=self.account.books.endowed_cents,
        )

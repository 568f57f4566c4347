"""Replay strategies over recorded sessions: the same account and exchange that simulate, without a store behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

import numpy as np

from oomrl.domain.account import Account, Cadence, SessionRecord
from oomrl.domain.attribution import FEES, IMPACT, PARTS, SPREAD, whole_cents
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.market import Floats, Ints, Roster, Session, padded
from oomrl.domain.observed import Observed
from oomrl.domain.sizing import LimitHit, Limits
from oomrl.domain.trading import AccountRules
from oomrl.errors import StrategyFailure
from oomrl.exchange.exchange import PaperExchange
from oomrl.exchange.friction import Friction
from oomrl.ports import StrategyWorker


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


def replay(
    market: Iterable[Session],
    worker: StrategyWorker,
    terms: Terms | None = None,
    *,
    from_day: date | None = None,
    on_record: Callable[[SessionRecord], None] | None = None,
) -> ReplayResult:
    """Replay one worker. It is shown every session of the market and trades from `from_day` on."""
    watch = None if on_record is None else lambda _, record: on_record(record)
    return replay_together(market, [(worker, terms or Terms())], from_day=from_day, on_record=watch)[0]


def replay_together(
    market: Iterable[Session],
    runs: Sequence[tuple[StrategyWorker, Terms]],
    *,
    from_day: date | None = None,
    on_record: Callable[[int, SessionRecord], None] | None = None,
) -> list[ReplayResult]:
    """Replay several workers, each with an account of its own, in one pass over the sessions.

    `on_record` sees (number of the run, record) after each session. A worker's failure ends its own trading only.
    """
    observed = Observed()
    lanes = [_Lane(worker, terms, observed) for worker, terms in runs]
    for session in market:
        observed.show(session)
        trading = from_day is None or session.day >= from_day
        for number, lane in enumerate(lanes):
            record = lane.step(session, trading)
            if record is not None and on_record is not None:
                on_record(number, record)
    return [lane.result(observed.roster) for lane in lanes]


class _Lane:
    """One worker with its account and exchange."""

    def __init__(self, worker: StrategyWorker, terms: Terms, observed: Observed) -> None:
        self.worker, self.terms = worker, terms
        self.exchange = PaperExchange(
            terms.capital,
            terms.friction,
            terms.rules,
            delisting_recovery=terms.delisting_recovery,
            sales_fund_at_once=terms.sales_fund_at_once,
        )
        self.account = Account(
            observed, limits=terms.limits, rules=terms.rules, cadence=terms.cadence, revision=terms.revision
        )
        endowment = Entry("endowment", date.min, Kind.ENDOWMENT, Book.BOTH, terms.capital)
        self.account.endow([endowment])
        self.failure: StrategyFailure | None = None
        self.days: list[date] = []
        self.rows: list[tuple[int, int, float, float, float, int, int, float]] = []
        self.parts: list[Floats] = []
        self.by_name: Floats = np.zeros((12, 0))
        self.hits: list[tuple[date, LimitHit]] = []

    def step(self, session: Session, trading: bool) -> SessionRecord | None:
        """Settle a session and plan the next; None while the account does not trade yet."""
        execution = self.exchange.collect(session)
        if not trading:
            self.account.observe(session)
            self._show(session)
            return None
        account = self.account
        record = account.settle(session, execution)
        self._show(session)
        record = self._plan(record)
        self._keep(record)
        return record

    def _show(self, session: Session) -> None:
        if self.failure is None:
            try:
                self.worker.show(session)
            except StrategyFailure as failure:
                self.failure = failure

    def _plan(self, record: SessionRecord) -> SessionRecord:
        if self.failure is not None:
            return record
        account = self.account
        try:
            decision = self.worker.decide(account.portfolio()) if account.due() else None
            record = account.plan(record, decision)
        except StrategyFailure as failure:
            self.failure = failure
            return record
        if record.sized is not None:
            self.exchange.submit(record.sized.orders)
            self.hits += [(record.day, hit) for hit in record.sized.hits]
        return record

    def _keep(self, record: SessionRecord) -> None:
        split = record.decomposition
        self.days.append(record.day)
        self.parts.append(split.exact)
        if self.by_name.shape[1] < split.by_name.shape[1]:
            self.by_name = padded(self.by_name, split.by_name.shape[1])
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

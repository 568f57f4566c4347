"""One account, session by session: what happened is settled and explained, what is decided becomes orders.

Pure: the caller collects the execution from a broker, asks the worker for the decision, submits the orders and keeps
the record. The replay and the live loop share it:

    account.observe(session)                         # warm-up: sessions before the account trades
    record = account.settle(session, execution)      # post, mark, decompose
    if account.due(): decision = worker.decide(account.portfolio())
    record = account.plan(record, decision)          # record.sized.orders go to the broker

A replay that nobody looks into goes faster: `rest` and `trade` settle what `settle` would, and `explained` tells the
rest of many sessions at once.

`snapshot` and `restore` carry the account; the market's side is restored by showing the same sessions again.

Over 400 lines, because both ways, and what is carried, change the same few numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any

import numpy as np

from oomrl.domain.attribution import Attribution, Decomposition, Followed
from oomrl.domain.books import Books, entries_of
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.market import TICKS_PER_CENT, Floats, Ints, Session, padded
from oomrl.domain.observed import Bar, Bars, Observed
from oomrl.domain.sizing import Goals, Holdings, Limits, Sized, Work, goals_of, work_for
from oomrl.domain.span import Explained, Span, Traded
from oomrl.domain.supplement import supplemented
from oomrl.domain.trading import (
    AccountRules,
    Decision,
    Execution,
    Portfolio,
    TargetPortfolio,
)
from oomrl.errors import Halt, Mistake


class Cadence(StrEnum):
    """How often a strategy is asked: after each session, or after the first session of each ISO week."""

    DAILY = "daily"
    WEEKLY = "weekly"


@dataclass(frozen=True, slots=True, eq=False)
class SessionRecord:
    """All that one session did to the account. Money in whole cents or exact dollars as named.

    `execution` includes what counts in the economic book alone; `flows` are endowments and bills of the day; `bar` is
    the market as the account saw it; `order_rows` each executed order's place in its arrays; `shares` what the economic
    book holds at the close, (names,); `traded` the dollars bought plus sold, `exposure` the share of equity in
    positions at the close; `decision` and `sized` are None until `Account.plan`.
    """

    day: date
    bar: Bar
    execution: Execution
    flows: tuple[Entry, ...]
    decomposition: Decomposition
    equity_cents: int
    economic_cash_cents: int
    broker_cash_cents: int
    endowed_cents: int
    traded: float
    exposure: float
    suspected: tuple[str, ...]
    quarantined: tuple[str, ...]
    order_rows: Ints
    shares: Floats
    decision: Decision | None = None
    sized: Sized | None = None

    @property
    def equity(self) -> Decimal:
        return Decimal(self.equity_cents).scaleb(-2)

    @property
    def broker_cash(self) -> Decimal:
        return Decimal(self.broker_cash_cents).scaleb(-2)

    @property
    def benchmark(self) -> float:
        return self.bar.benchmark

    @property
    def entries(self) -> list[Entry]:
        """The ledger's lines of the session, as `Books.post` takes them."""
        return [*self.flows, *entries_of(self.execution)]


class Account:
    """Keep books, attribution and working orders of one strategy's account.

    `observed` may be shared between accounts that follow the same market; whoever shares it shows each session once
    and hands its bar to the accounts. `rules` say what the broker's account does by itself.
    """

    def __init__(
        self,
        observed: Observed | None = None,
        *,
        limits: Limits | None = None,
        rules: AccountRules | None = None,
        cadence: Cadence | str = Cadence.WEEKLY,
        revision: str = "r0",
    ) -> None:
        self.observed = observed or Observed()
        self.limits = limits or Limits()
        self.rules = rules or AccountRules()
        self.cadence = Cadence(cadence)
        self.revision = revision
        self.books = Books(self.observed.roster)
        self.attribution = Attribution(self.observed.roster)
        self._shown: Bar | tuple[Bars, int] | None = None
        self._ticks = 0
        self._cents = 0
        self._goals: Goals | None = None
        self._attempt = 0
        self._sessions_worked = 0
        self._last: date | None = None
        self._new_week = False
        self._span: Span | None = None

    @property
    def day(self) -> date | None:
        """The last session that was observed or settled."""
        return self._last

    def endow(self, entries: Sequence[Entry]) -> None:
        """Post money that is there before the first session; later endowments go through `settle`."""
        _, endowed = self._post(entries)
        self._cents += endowed
        self._ticks += endowed * TICKS_PER_CENT

    def adopt(self, positions: Mapping[str, Decimal], key: str, day: date) -> list[Entry]:
        """Take over shares that the broker already holds, endowed at the last known close. Returns the entries.

        Raises `Mistake` for a name that the market never showed, and for fractions of a share.
        """
        bar, entries = self._bar(), []
        for symbol, shares in positions.items():
            row = self.observed.roster.find(symbol)
            if row is None:
                raise Mistake(f"Expected positions in names that the market shows, was {symbol}. Use the symbol fence.")
            if shares != int(shares):
                raise Mistake(
                    f"Expected whole shares, was {shares} of {symbol}. Sell the fraction, or use the symbol fence."
                )
            value = Decimal(int(float(shares) * bar.close_ticks[row] / 100)).scaleb(-2)
            stem = f"{key}/adopt/{symbol}"
            entries.append(Entry(f"{stem}/endowment", day, Kind.ENDOWMENT, Book.BOTH, value, symbol))
            entries.append(Entry(f"{stem}/shares", day, Kind.BUY, Book.BOTH, -value, symbol, shares))
        self.books.post(entries)
        self.attribution.adopt(self.books.shares)
        self._ticks = self.books.equity_ticks(bar.close_ticks)
        self._cents = (self._ticks + TICKS_PER_CENT // 2) // TICKS_PER_CENT
        return entries

    def observe(self, session: Session, bar: Bar | None = None) -> Bar:
        """Show a session without settling it (warm-up, or re-showing history after a restart).

        `bar` is the session over the roster where the caller has shown it to `observed`.
        """
        if bar is None:
            if session.day > self.observed.day:
                self.observed.show(session)
            bar = self.observed.bar
        if bar is None or bar.day != session.day:
            raise ValueError(f"Expected the session of {self.observed.day}, the last shown, was {session.day}")
        self._shown = bar
        self._tick(session.day)
        return bar

    def settle(
        self, session: Session, execution: Execution, flows: Sequence[Entry] = (), bar: Bar | None = None
    ) -> SessionRecord:
        """Post a closed session's execution and the day's flows, mark the books, and explain the result.

        `flows` are endowments and model bills of the day; endowments count from the close on. `bar` as in `observe`.
        """
        bar = self.observe(session, bar)
        self._known(execution)
        before = self.books.shares
        execution = supplemented(execution, bar, self.books, self.rules)
        self.books.settle(execution)
        after = self.books.shares
        bills, endowed = self._post(flows)
        ticks = self.books.equity_ticks(bar.close_ticks)
        cents = (ticks + TICKS_PER_CENT // 2) // TICKS_PER_CENT
        decomposition = self.attribution.session(
            bar,
            execution,
            before,
            after,
            ticks=ticks - self._ticks - endowed * 100,
            pnl_cents=cents - self._cents - endowed,
            equity=cents / 100,
            bills_cents=bills,
        )
        self._ticks, self._cents = ticks, cents
        self._work_on(bar, execution)
        value = ticks / 100 - self.books.economic_cents
        return SessionRecord(
            day=session.day,
            bar=bar,
            execution=execution,
            flows=tuple(flows),
            decomposition=decomposition,
            equity_cents=cents,
            economic_cash_cents=self.books.economic_cents,
            broker_cash_cents=self.books.broker_cents,
            endowed_cents=self.books.endowed_cents,
            traded=float(np.abs(execution.fills.cents).sum()) / 100,
            exposure=value / cents if cents > 0 else 0.0,
            suspected=session.suspected,
            quarantined=session.quarantined,
            order_rows=self.observed.roster.rows(execution.orders.symbols),
            shares=after,
        )

    @property
    def plain(self) -> bool:
        """Whether a session without splits, jumps and delistings needs no `settle`: the broker's account does all that
        the economic book needs, and goals know every name."""
        rules, goals = self.rules, self._goals
        does_all = rules.applies_splits and rules.pays_dividends and rules.charges_fees and not self.books.apart
        return does_all and (goals is None or len(goals.sessions) == len(self.observed.roster.symbols))

    @property
    def resting(self) -> bool:
        """Whether nothing works."""
        return self._goals is None

    def rest(self, bars: Bars, first: int, dividends: Floats | None, sessions: int) -> None:
        """Settle sessions of `bars` from `first` on, in which nothing but dividends happened: `plain` and `resting`.

        `dividends` are whole cents by session and name, or None for none. What `settle` tells, `explained` does.
        """
        within, books = slice(first, first + sessions), self.books
        for day in bars.days[within][-2:]:
            self._tick(day)
        last = first + sessions - 1
        self._shown = (bars, last)
        cash = books.rest(bars.days[last], sessions, dividends)
        ticks = cash * TICKS_PER_CENT + books.values_ticks(bars.close_ticks[within])
        followed = self.attribution.follow(books.shares)
        self._go_on(bars, first, books.shares, ticks, cash, followed)

    def trade(self, bars: Bars, at: int, rows: Ints, filled: Floats, lacking: Floats | None, cents: int) -> None:
        """Settle one session of `bars`, in which nothing but fills and dividends happened, while `plain`.

        `rows` (orders,) are the names of the orders, `filled` the signed shares that each took, `lacking` what it
        missed for lack of cash or None, `cents` the broker's cash at the close. `explained` tells the rest.
        """
        books, day = self.books, bars.days[at]
        self._tick(day)
        self._shown = (bars, at)
        before = books.shares
        books.trade(day, rows, filled, cents)
        ticks = np.array([books.equity_ticks(bars.close_ticks[at])])
        followed = self.attribution.follow(books.shares, rows, lacking)
        self._go_on(bars, at, before, ticks, np.array([books.economic_cents]), followed)
        self._sessions_worked += 1
        goals = self._goals
        if goals is not None and (goals.plain or not np.count_nonzero(goals.sessions > self._sessions_worked)):
            self._goals = None

    def explained(self, traded: Traded) -> Explained:
        """Decompose the sessions that `rest` and `trade` went through since it was asked last, one at least.

        `traded` are their fills. Exactly what `settle` tells of each. Raises `Halt` as `settle` does.
        """
        span, self._span = self._span, None
        assert span is not None
        return span.explained(traded)

    def switch(self, revision: str, cadence: Cadence | str) -> None:
        """Let another revision of the strategy decide from now on, at its own cadence."""
        self.revision, self.cadence = revision, Cadence(cadence)

    def due(self) -> bool:
        """Return whether the cadence asks for a decision after the last session."""
        return self._last is not None and (self.cadence is Cadence.DAILY or self._new_week)

    def portfolio(self) -> Portfolio:
        """Return what the strategy is told of the account."""
        shares = self.observed.roster.named(self.books.shares)
        return Portfolio(self._bar().day, self._cents / 100, self.books.broker_cents / 100, shares)

    def plan(self, record: SessionRecord, decision: Decision | None) -> SessionRecord:
        """Turn a decision into the next session's orders; None and `Hold` let working orders go on.

        Raises `StrategyFailure` for a decision that is no portfolio; the account is then as before.
        """
        return replace(record, decision=decision, sized=self.sized(decision))

    def sized(self, decision: Decision | None) -> Sized | None:
        """Do as `plan` does and return the orders alone, None when nothing works."""
        work = self.worked(decision)
        return None if work is None else work.sized(self.revision, self.observed.roster)

    def worked(self, decision: Decision | None) -> Work | None:
        """Do as `sized` does, with names by their numbers."""
        holdings = self._holdings()
        if isinstance(decision, TargetPortfolio):
            goals = goals_of(decision, self.observed.roster, self._bar(), holdings, self.limits)
            self.attribution.decided(goals.target, goals.limited)
            self._goals, self._attempt, self._sessions_worked = goals, 0, 0
        return self._work(holdings)

    def stop_working(self) -> None:
        """Give up what orders of the last decision still miss; the gap stays in the attribution as unfilled."""
        self._goals = None

    def snapshot(self) -> dict[str, Any]:
        """Return the account's state as plain JSON-able values."""
        return {
            "books": self.books.snapshot(),
            "attribution": self.attribution.snapshot(),
            "ticks": self._ticks,
            "cents": self._cents,
            "last": self._last.isoformat() if self._last else None,
            "new_week": self._new_week,
            "attempt": self._attempt,
            "sessions_worked": self._sessions_worked,
            "goals": self._goals_snapshot(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become what `snapshot` described. The sessions up to its day must have been observed before."""
        last = date.fromisoformat(state["last"]) if state["last"] else date.min
        self._shown = self.observed.bar
        if self.observed.day != last:
            raise ValueError(f"Expected the sessions up to {last} to be shown before, was {self.observed.day}")
        self.books.restore(state["books"])
        self.attribution.restore(state["attribution"])
        self._ticks, self._cents = int(state["ticks"]), int(state["cents"])
        self._last = date.fromisoformat(state["last"]) if state["last"] else None
        self._new_week = bool(state["new_week"])
        self._attempt, self._sessions_worked = int(state["attempt"]), int(state["sessions_worked"])
        self._goals = self._goals_restored(state["goals"])

    def _bar(self) -> Bar:
        if self._shown is None:
            raise ValueError("Expected at least one session to be shown before")
        if isinstance(self._shown, tuple):
            bars, at = self._shown
            self._shown = bars.bar(at)
        return self._shown

    def _tick(self, day: date) -> None:
        if self._last is not None and day < self._last:
            raise ValueError(f"Expected a session after {self._last}, was {day}")
        if day != self._last:
            self._new_week = self._last is None or self._last.isocalendar()[:2] != day.isocalendar()[:2]
            self._last = day

    def _post(self, entries: Sequence[Entry]) -> tuple[int, int]:
        """Post flows; return (bills, endowments) in cents as the books took them."""
        if not entries:
            return 0, 0
        cents, endowed = self.books.economic_cents, self.books.endowed_cents
        self.books.post(entries)
        moved, given = self.books.economic_cents - cents, self.books.endowed_cents - endowed
        return given - moved, given

    def _known(self, execution: Execution) -> None:
        index = self.observed.roster.index
        names = [*execution.orders.symbols, *(action.symbol for action in execution.actions)]
        strange = next((name for name in names if name not in index), None)
        if strange is not None:
            raise Halt(
                f"Expected executions in names that the market showed, was {strange}. Check the broker's account."
            )

    def _holdings(self) -> Holdings:
        books = self.books
        return Holdings(self._cents / 100, books.broker_cents / 100, books.shares, books.broker_shares)

    def _go_on(self, bars: Bars, at: int, before: Floats, ticks: Ints, cash: Ints, followed: Followed) -> None:
        """Keep sessions from number `at` on until they are explained: equity in ticks and cash in cents (sessions,)."""
        if self._span is None:
            self._span = Span(bars, at, self._ticks, self._cents)
        cents = (ticks + TICKS_PER_CENT // 2) // TICKS_PER_CENT
        self._span.add(followed, before, self.books.shares, ticks, cents, cash)
        self._ticks, self._cents = int(ticks[-1]), int(cents[-1])

    def _work(self, holdings: Holdings) -> Work | None:
        """Return the orders of the names whose plan still runs, or None when nothing works."""
        goals = self._goals
        if goals is None:
            return None
        working = goals.sessions > self._sessions_worked
        work = work_for(goals, working, self._attempt, self._bar(), holdings, self.limits)
        self._attempt += 1
        return work

    def _work_on(self, bar: Bar, execution: Execution) -> None:
        """Restate goals after a session, or drop them once no plan runs on. The attribution has them as of now."""
        self._sessions_worked += 1
        goals = self._goals
        if goals is None:
            return
        if not (goals.sessions > self._sessions_worked).any():
            self._goals = None
        elif bar.eventful or execution.actions or len(goals.sessions) < len(bar.close):
            size = len(bar.close)
            self._goals = replace(
                goals,
                target=self.attribution.target,
                limited=self.attribution.goal,
                sessions=np.concatenate([goals.sessions, np.zeros(size - len(goals.sessions), dtype=np.int64)]),
                participation=padded(goals.participation, size, 1.0),
                limit_price=np.round(padded(goals.limit_price, size, np.nan) / bar.split, 4),
            )

    def _goals_snapshot(self) -> dict[str, Any] | None:
        goals, roster = self._goals, self.observed.roster
        if goals is None:
            return None
        limits = {roster.symbols[n]: float(v) for n, v in enumerate(goals.limit_price) if not np.isnan(v)}
        return {
            "decided_on": goals.decided_on.isoformat(),
            "target": roster.named(goals.target),
            "limited": roster.named(goals.limited),
            "sessions": roster.named(goals.sessions.astype(np.float64)),
            "participation": roster.named(goals.participation),
            "limit_price": limits,
            "reasons": dict(goals.reasons),
        }

    def _goals_restored(self, state: Mapping[str, Any] | None) -> Goals | None:
        if state is None:
            return None
        roster = self.observed.roster
        limit = np.full(len(roster), np.nan)
        for symbol, price in state["limit_price"].items():
            limit[roster.row(symbol)] = price
        return Goals(
            decided_on=date.fromisoformat(state["decided_on"]),
            target=roster.array(state["target"]),
            limited=roster.array(state["limited"]),
            sessions=roster.array(state["sessions"]).astype(np.int64),
            participation=roster.array(state["participation"]),
            limit_price=limit,
            reasons=dict(state["reasons"]),
        )

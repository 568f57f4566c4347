"""Mark and judge: what a session did to the capital, and whether money was lost that demands an answer.

A fold over session records: showing the same records and events again leads to the same losses and states.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

import numpy as np

from oomrl.domain import capital as capital_rules
from oomrl.domain.account import SessionRecord
from oomrl.domain.attribution import PARTS
from oomrl.domain.capital import Capital, Friction, Reward, State, Thresholds
from oomrl.domain.deployment import Trip, Watched, tripped
from oomrl.domain.ledger import Kind
from oomrl.domain.loss import DayRecord, Loss, Rules, detect
from oomrl.domain.market import padded
from oomrl.domain.observed import Bar
from oomrl.domain.records import CapitalEvent, CapitalKind, Deployment, Review
from oomrl.errors import Refused, StrategyFailure

FAILURE = "strategy failure"
#: Sessions whose records are kept: the longest window of a loss, and a little more.
MEMORY = 260
#: Sessions whose bars are kept: a year for the longest window of a signal, and half a year of decisions.
SIGNAL_MEMORY = 400


@dataclass
class Judge:
    """Keep the day records, the state of the capital and the losses found so far.

    `symbols` is the roster's own growing list of names, in the order of the records' arrays. `friction` and `penalty`
    state the reward (Eq. 1 and 2); `reward` is that of the last session.
    """

    thresholds: Thresholds
    rules: Rules
    capital: Capital
    symbols: list[str] = field(default_factory=list)
    days: list[DayRecord] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    records: deque[SessionRecord] = field(default_factory=lambda: deque(maxlen=MEMORY))
    friction: Friction = field(default_factory=Friction)
    penalty: float = 100.0
    reward: Reward | None = None
    bars: deque[Bar] = field(default_factory=lambda: deque(maxlen=SIGNAL_MEMORY))
    since: date | None = None
    limits_hit: tuple[str, ...] = ()
    person_halted: bool = False

    @property
    def may_trade(self) -> bool:
        return self.capital.may_trade

    @property
    def halted_by_failure(self) -> bool:
        return self.halted_by_itself and self.capital.reason.startswith(FAILURE)

    @property
    def halted_by_itself(self) -> bool:
        """Say whether a threshold or a failure halted the account, and no person did."""
        return self.capital.state is State.HALTED and not self.person_halted

    def observe(self, bar: Bar) -> None:
        """Take in a session before the account trades, or of it: what the declared signal is recomputed from."""
        self.bars.append(bar)

    def judge(self, record: SessionRecord) -> Loss | None:
        """Take a settled session; return the loss that it completes, if any.

        An account that may not trade loses or wins without the strategy: nothing there is a reason to repair it.
        """
        traded = self.capital.may_trade
        self.capital = capital_rules.mark(self.capital, record.day, record.equity, self.thresholds)
        self.reward = self._reward(record)
        self.days.append(self._day(record))
        self.records.append(record)
        self.observe(record.bar)
        if not traded:
            return None
        loss = detect(self.days, self.capital, self.thresholds, self.rules, self.losses, self.since)
        if loss is not None:
            self.losses.append(loss)
        return loss

    def planned(self, record: SessionRecord) -> None:
        """Keep what was decided after the last close; the next day's record names the limits that cut it."""
        hits = record.sized.hits if record.sized else ()
        self.limits_hit = tuple(sorted({hit.limit for hit in hits}))
        self.records[-1] = record

    def failed(self, failure: StrategyFailure, day: date) -> Loss | None:
        """Halt for a strategy that failed after a close; return the loss to record unless it is known already."""
        self.capital = capital_rules.halt(self.capital, day, f"{FAILURE}: {failure}")
        self.days[-1] = replace(self.days[-1], failure=failure.kind)
        loss = detect(self.days, self.capital, self.thresholds, self.rules, self.losses, self.since)
        if loss is not None:
            self.losses.append(loss)
        return loss

    def act(self, event: CapitalEvent) -> None:
        """Apply what a person (or a failure) did to the capital after a close."""
        if event.kind is CapitalKind.HALT:
            self.capital = capital_rules.halt(self.capital, event.day, event.reason)
            self.person_halted = True
        elif event.kind is CapitalKind.RESUME and self.capital.state is State.HALTED:
            self.capital = capital_rules.resume(self.capital, event.day, event.by, event.reason, self.thresholds)
            self.person_halted = False
        elif event.kind is CapitalKind.ENDOW:
            try:
                self.capital = capital_rules.endow(
                    self.capital, event.day, event.amount, event.by, event.reason, self.thresholds
                )
            except Refused:  # too little to end out of money: it is booked all the same, for it was given
                self.capital = capital_rules.added(self.capital, event.day, event.amount)

    def tripwire(self, watched: Watched) -> Trip | None:
        """Return the tripwire that a deployment under watch sets off after the last close, or None."""
        known = list(self.records)
        return tripped(watched, self.days[-len(known) :], [record.exposure for record in known]) if known else None

    def switched(self, day: date) -> None:
        """A new revision decides from this close on; tests of a revision's own record start with the next session."""
        self.since = day + timedelta(days=1)

    def _reward(self, record: SessionRecord) -> Reward | None:
        """Return R~ of the session: what the shares held at its close returned since the last one, less friction.

        Weights and their change are at the last close (in today's shares), as fractions of the equity then.
        """
        flow = sum(entry.amount for entry in record.flows if entry.kind is Kind.ENDOWMENT)
        before = float(record.equity - record.decomposition.pnl - flow)
        if before <= 0:
            return None
        bar, batch, tau = record.bar, record.execution, self.thresholds.principal.out_of_money
        price = bar.previous / bar.split / before
        traded = np.zeros(len(price))
        np.add.at(traded, record.order_rows[batch.fills.order], batch.fills.shares)
        return capital_rules.reward(
            np.nan_to_num(padded(record.shares, len(price)) * price),
            bar.returns,
            np.nan_to_num(traded * price),
            self.capital.principal_loss,
            self.friction,
            math.inf if tau is None else tau,
            self.penalty,
        )

    def _day(self, record: SessionRecord) -> DayRecord:
        parts = dict(zip(PARTS, record.decomposition.exact.tolist(), strict=True))
        equity = float(record.equity)
        friction = -(parts["spread"] + parts["impact"] + parts["fees"])
        flow = sum(float(entry.amount) for entry in record.flows if entry.kind is Kind.ENDOWMENT)
        return DayRecord(
            day=record.day,
            equity=equity,
            flow=flow,
            pnl=float(record.decomposition.pnl),
            benchmark_return=record.benchmark,
            parts=parts,
            turnover=record.traded / 2 / equity if equity > 0 else 0.0,
            friction_bps=friction / record.traded * 1e4 if record.traded else 0.0,
            limits_hit=self.limits_hit,
            quarantined=_suspected(record, self.symbols),
        )


def rolled_back(deployment: Deployment) -> CapitalEvent:
    """Return the act by which going back to a revision that did not fail lets it trade again."""
    return CapitalEvent(
        key=f"resume/{deployment.revision}",
        run=deployment.run,
        kind=CapitalKind.RESUME,
        day=deployment.day,
        at=deployment.at,
        by="service",
        reason=f"rolled back: {deployment.reason}",
    )


def resumed_by(review: Review, day: date) -> CapitalEvent:
    """Return the act by which approving a repair lets an account trade again that its loss had halted."""
    return CapitalEvent(
        key=f"resume/{review.id}",
        run=review.run,
        kind=CapitalKind.RESUME,
        day=day,
        at=review.at,
        by=review.reviewer,
        reason=f"approved the repair {review.proposal}",
    )


def _suspected(record: SessionRecord, symbols: Sequence[str]) -> dict[str, float]:
    by_name = record.decomposition.by_name.sum(axis=0)
    rows = {symbol: row for row, symbol in enumerate(symbols)} if record.suspected else {}
    return {symbol: float(by_name[rows[symbol]]) for symbol in record.suspected}

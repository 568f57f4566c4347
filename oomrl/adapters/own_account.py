"""A person's own paper account: how it is reached, what it holds when the books begin, and its order path.

The opening is stored before the first order: the broker's cash, and the shares inside the fence that were adopted.
Every later start reconciles against it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np

from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.alpaca.calendar import differences, hours_told
from oomrl.adapters.alpaca.data import Downloaded, download
from oomrl.adapters.alpaca.rest import Patience
from oomrl.adapters.kill_switch import ours
from oomrl.calendar import KnownHours
from oomrl.domain.account import Account
from oomrl.domain.brokerage import FLATTEN, BrokerAccount, CashMove, Holding, Ticket
from oomrl.domain.collected import Costs
from oomrl.domain.ledger import Entry
from oomrl.domain.market import Session
from oomrl.domain.reconciliation import Mismatch, Policies, Policy
from oomrl.domain.sizing import Limits
from oomrl.domain.trading import ALPACA_PAPER, Side
from oomrl.domain.working import Tactics
from oomrl.errors import BrokerRefusal, Halt, Mistake, Refused
from oomrl.exchange.tape import Tape
from oomrl.order_path import Journal, Opening, OrderPath
from oomrl.ports import Brokerage, Timer
from oomrl.settings import AccountOf, BrokerSettings, Settings

#: The kind under which the opening stands among the lines of the account.
OPENING = "OPENING"


def reached(
    chosen: BrokerSettings, timer: Timer, environment: Mapping[str, str], http_timeout: float, retries: int = 5
) -> AlpacaBrokerage:
    """Return the brokerage that the settings name, with the keys of the environment. Raises `Mistake` without keys."""
    key, secret = environment.get(chosen.key_env, ""), environment.get(chosen.secret_env, "")
    if not key or not secret:
        raise Mistake(f"Expected {chosen.key_env} and {chosen.secret_env} in the environment, was empty.")
    return AlpacaBrokerage(
        timer,
        key,
        secret,
        base_url=chosen.base_url,
        data_url=chosen.data_url,
        feed=chosen.feed,
        requests_per_minute=chosen.requests_per_minute,
        patience=Patience(read=http_timeout, retries=retries),
    )


def extend(
    settings: Settings, tape: Tape, place: Path, until: date, timer: Timer, environment: Mapping[str, str]
) -> Downloaded:
    """Add a tape's newest sessions up to a day to its file, for all names that it has."""
    broker = reached(settings.broker, timer, environment, settings.service.http_timeout)
    try:
        return download(broker, place, tape.symbols, tape.days[-1] + timedelta(days=1), until)
    finally:
        broker.close()


def begun(journal: Journal, broker: Brokerage, terms: AccountOf, before: date) -> Opening:
    """Return how the books began: as stored, else as the account is now, by the choice of the settings.

    `before` is the last session before the first that trades. Raises `Refused` for shares that nobody said what to do
    about, `Mistake` for what cannot be taken over.
    """
    fence = frozenset(terms.symbols) or None
    stored = journal.moves(before)
    if not any(move.kind == OPENING for move in stored):
        account, held = stock(broker, terms)
        journal.keep(before, taken(account.cash, held, before))
        stored = journal.moves(before)
    lines = [move for move in stored if move.kind == OPENING]
    cash = sum((move.amount for move in lines), Decimal(0))
    positions = {move.symbol: move.qty for move in lines if move.symbol is not None}
    return Opening(before, cash, positions, shared=fence is not None or terms.capital is not None, symbols=fence)


def stock(broker: Brokerage, terms: AccountOf) -> tuple[BrokerAccount, list[Holding]]:
    """Return the account's money and the shares that the service would take over. Raises `Refused` where it may not
    begin, `Mistake` for shares that it cannot take over."""
    account = broker.account()
    if account.blocked:
        raise Refused(f"Expected an account that may trade, was {account.blocked}.")
    held = inside(broker.holdings(), frozenset(terms.symbols) or None)
    if held and terms.existing == "refuse":
        names = ", ".join(f"{holding.qty:f} {holding.symbol}" for holding in held)
        raise Refused(
            f"The account holds {names}. Choose: `oomrl init --adopt` takes them over, `symbols` fences the service "
            "into other names, or sell them first."
        )
    for holding in held:
        if holding.qty != holding.qty.to_integral_value() or holding.qty < 0:
            raise Mistake(
                f"Expected whole shares held long, was {holding.qty:f} {holding.symbol}: "
                "close the rest, or fence the name off."
            )
    return account, held


def taken(cash: Decimal, held: Sequence[Holding], day: date) -> list[CashMove]:
    """Return the opening as lines of the account."""
    lines = [CashMove(f"opening/{h.symbol}", OPENING, day, Decimal(0), h.symbol, h.qty, note="adopted") for h in held]
    return [CashMove("opening/cash", OPENING, day, cash, note="the broker's cash"), *lines]


def inside(holdings: Sequence[Holding], fence: frozenset[str] | None) -> list[Holding]:
    """Return the positions that the fence leaves to this service."""
    return [holding for holding in holdings if holding.qty and (fence is None or holding.symbol in fence)]


def worth(tape: Tape, positions: Mapping[str, Decimal], before: date) -> Decimal:
    """Return what adopted shares were worth at their last close up to a day, each in whole cents rounded down.

    Raises `Mistake` for a name that the tape does not have: its history must be downloaded first.
    """
    total = Decimal(0)
    sessions = sum(day <= before for day in tape.days)
    for symbol, shares in positions.items():
        if symbol not in tape.symbols:
            raise Mistake(
                f"Expected the history of {symbol}, which the account holds, on the tape: `oomrl data download`."
            )
        closes = tape.columns["close"][:sessions, tape.symbols.index(symbol)]
        known = closes[~np.isnan(closes)]
        if not len(known):
            raise Mistake(f"Expected a close of {symbol} up to {before} on the tape, was none: `oomrl data download`.")
        total += Decimal(int(float(shares) * round(float(known[-1]) * 10_000) / 100)).scaleb(-2)
    return total


def stopped(broker: Brokerage, terms: AccountOf, flatten: bool, at: datetime) -> tuple[int, int]:
    """Cancel the service's open orders and, if so asked, sell what it holds; return how many of each.

    Needs no database: the service's orders are known by the form of their ids. On an account that it has to itself
    everything is sold; inside a fence the names of the fence; with a sub-capital alone nobody but the database knows
    which shares are the service's, and `Refused` is raised after the cancels. Doing it again sells nothing twice:
    shares that an open order sells are not offered. A name that the broker refuses keeps no other from being sold;
    `Refused` names it at the end.
    """
    orders = ours(broker.open_orders())
    for order in orders:
        with contextlib.suppress(BrokerRefusal):
            broker.cancel(order.id)
    if not flatten:
        return len(orders), 0
    if terms.capital is not None and not terms.symbols:
        raise Refused(
            "Expected a fence of symbols to sell by, was a sub-capital alone: sell by hand what is the service's."
        )
    held = inside(broker.holdings(), frozenset(terms.symbols) or None)
    sold, kept = 0, []
    for holding in held:
        if holding.available <= 0:
            continue
        name = f"{FLATTEN}{at:%Y%m%d%H%M%S}-{holding.symbol}"
        try:
            broker.place(Ticket(name, holding.symbol, Side.SELL, holding.available))
            sold += 1
        except BrokerRefusal as refusal:
            kept.append(f"{holding.available:f} {holding.symbol} ({refusal})")
    if kept:
        raise Refused(f"Expected the broker to sell everything, was refused for {', '.join(kept)}; {sold} were sold.")
    return len(orders), sold


@dataclass
class Adopting:
    """A market that lets the account take adopted shares over before its first traded session. Implements
    `ports.Market`."""

    tape: Tape
    account: Account
    positions: Mapping[str, Decimal]
    begin: date
    posted: Callable[[list[Entry]], None]
    name: str = field(init=False)
    _done: bool = False

    def __post_init__(self) -> None:
        self.name = self.tape.name

    def sessions(self, after: date | None = None, until: date | None = None) -> Iterator[Session]:
        for session in self.tape.sessions(after=after, until=until):
            if session.day >= self.begin and not self._done and self.account.day is not None:
                self._done = True
                if self.positions:
                    self.posted(self.account.adopt(self.positions, "opening", self.begin))
            yield session


@dataclass(frozen=True)
class OwnAccount:
    """One person's account: the brokerage, how the books began, and what that means for the loop."""

    chosen: BrokerSettings
    terms: AccountOf
    broker: AlpacaBrokerage
    journal: Journal
    timer: Timer
    calendar: KnownHours
    tape: Tape
    opening: Opening
    reconnected: Callable[[], bool] = lambda: False

    @property
    def cash(self) -> Decimal:
        """The cash that the books begin with: all of the account's, or what the settings let it work with."""
        return self.opening.cash if self.terms.capital is None else min(self.terms.capital, self.opening.cash)

    @property
    def value(self) -> Decimal:
        """The first endowment: that cash, and what the adopted shares were worth."""
        return self.cash + worth(self.tape, self.opening.positions, self.opening.day)

    def limits(self, base: Limits) -> Limits:
        """Return the limits within the fence and the sub-capital."""
        capital = None if self.terms.capital is None else float(self.terms.capital)
        return replace(base, symbols=self.opening.symbols, capital=capital)

    def path(
        self,
        costs: Costs,
        closed: date,
        guard: Callable[[], None],
        alert: Callable[[Mismatch], None],
        given: Callable[[], Decimal],
        trades: bool = True,
    ) -> OrderPath:
        """Return the order path. Where it `trades`, halt first if the broker keeps another calendar than the exchange:
        what happened is booked and judged all the same."""
        if trades:
            self._same_calendar()
        chosen = self.chosen
        return OrderPath(
            brokerage=self.broker,
            journal=self.journal,
            timer=self.timer,
            calendar=self.calendar,
            opening=self.opening,
            costs=costs,
            rules=ALPACA_PAPER,
            tactics=Tactics(
                collar_bps=chosen.collar_bps,
                stale_after=timedelta(seconds=chosen.stale_seconds),
                straggler_after=timedelta(seconds=chosen.straggler_seconds),
                sweep_before=timedelta(minutes=chosen.sweep_minutes),
                cycle=timedelta(seconds=chosen.cycle_seconds),
            ),
            policies=Policies(
                foreign_order=Policy(chosen.foreign_order),
                unknown_position=Policy(chosen.unknown_position),
                cash_difference=Policy(chosen.cash_difference),
            ),
            guard=guard,
            alert=alert,
            reconnected=self.reconnected,
            given=given,
            closed=max(closed, self.opening.day),
        )

    def _same_calendar(self) -> None:
        today = self.timer.now().date()
        last = today + timedelta(days=14)
        ours = self.calendar.between(today - timedelta(days=1), last)
        found = differences(ours, hours_told(self.broker.trading, today, last).hours, Policy.HALT)
        if found:
            self.journal.note(found, self.timer.now())
            raise Halt("; ".join(str(mismatch) for mismatch in found) + ": see [service] closures")

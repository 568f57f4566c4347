"""What the loop needs of the outside, one small protocol each. Adapters and fakes implement them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

from oomrl.domain.brokerage import (
    BrokerAccount,
    BrokerFill,
    BrokerOrder,
    CashMove,
    Holding,
    Quote,
    Ticket,
)
from oomrl.domain.market import Session
from oomrl.domain.trading import Decision, Execution, Orders, Portfolio


class Clock(Protocol):
    """Tell the time. In simulation it is the close of the last session that was shown."""

    def now(self) -> datetime:
        """Return an aware UTC instant."""
        ...


class Market(Protocol):
    """Show sessions one by one, never one that has not closed."""

    name: str

    def sessions(self, after: date | None = None, until: date | None = None) -> Iterator[Session]:
        """Yield the sessions with after < day <= until, oldest first."""
        ...


class Broker(Protocol):
    """Take orders and say what became of them. Submitting the same client order id twice changes nothing."""

    def submit(self, orders: Orders) -> None:
        """Queue a batch for the next session; rows are worked in their order."""
        ...

    def collect(self, session: Session) -> Execution:
        """Return all that happened in a session that has closed. Each session is collected once."""
        ...

    def deposit(self, amount: Decimal) -> None:
        """Hear of an endowment that is booked after the session collected last. A simulated account gets the money;
        into a person's own account it was transferred, and from now on it must show there."""
        ...

    def cash(self) -> Decimal:
        """Return the broker's cash in dollars and whole cents."""
        ...

    def positions(self) -> Mapping[str, Decimal]:
        """Return shares by symbol, zero positions left out."""
        ...


class Timer(Clock, Protocol):
    """A clock that can be waited on: the wall's, or a virtual one that waiting moves."""

    def wait(self, until: datetime) -> None:
        """Return at an instant or soon after an event at the broker, whichever is first."""
        ...


class Brokerage(Protocol):
    """A broker's account, one order at a time. `oomrl.testing.conformance` holds what an adapter must keep to.

    Reads may raise `Unavailable` (asked again a few times before). What changes something is sent once: `InDoubt`
    where no answer came, `BrokerRefusal` where the answer is no.
    """

    name: str

    def account(self) -> BrokerAccount:
        """Return the account's money and whether it may trade."""
        ...

    def holdings(self) -> Sequence[Holding]:
        """Return all positions."""
        ...

    def place(self, ticket: Ticket) -> BrokerOrder:
        """Send one order. A client order id is taken once for ever: a second one is refused as `duplicate`."""
        ...

    def find(self, client_order_id: str) -> BrokerOrder | None:
        """Return the order of a client order id, None where the broker has none."""
        ...

    def orders(self, since: datetime, symbols: Sequence[str] = ()) -> Sequence[BrokerOrder]:
        """Return all orders in any state that were submitted since an instant, oldest first."""
        ...

    def open_orders(self) -> Sequence[BrokerOrder]:
        """Return all orders that may still trade, however many."""
        ...

    def cancel(self, order: str) -> None:
        """Ask to cancel an order by the broker's id. That it was asked says nothing about what became of it."""
        ...

    def cancel_all(self) -> None:
        """Ask to cancel every open order."""
        ...

    def close_all(self) -> None:
        """Ask to cancel every open order and to sell every position at the market."""
        ...

    def fills(self, since: datetime) -> Sequence[BrokerFill]:
        """Return all executions since an instant, oldest first."""
        ...

    def cash_moves(self, after: date) -> Sequence[CashMove]:
        """Return the lines of the account that are no trades and are dated later than a day, oldest first."""
        ...

    def quotes(self, symbols: Sequence[str]) -> Mapping[str, Quote]:
        """Return the newest quote of each name that has one."""
        ...


class StrategyWorker(Protocol):
    """Run one strategy revision outside this process. Every method may raise `StrategyFailure`."""

    def show(self, session: Session) -> None:
        """Send one closed session; it may wait for the next question."""
        ...

    def flush(self) -> None:
        """Send what waits, so that the strategy takes it in while the caller does something else."""
        ...

    def ask(self, portfolio: Portfolio) -> None:
        """Ask ahead of `decide` with the same portfolio, so that several workers think beside one another."""
        ...

    def decide(self, portfolio: Portfolio) -> Decision:
        """Ask for a decision, given all sessions shown so far."""
        ...

    def close(self) -> None:
        """End the worker and everything it started."""
        ...


@dataclass(frozen=True, slots=True)
class Attempt:
    """An earlier answer to the same diagnostic: the canonical diff (tests, then logic), and what refused it.

    Findings are texts such as "GR203 src/strategy/sizing.py:12 Expected ..."; what a hidden check saw is never
    among them.
    """

    number: int
    patch: str
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What a prompt was made of, as values, for models that do not read (the rule-based repairer).

    `diagnostic` is the JSON object; `tree` the strategy's files by path; `bounds` what policy.toml allows each
    key of strategy.toml to become; `editable` the globs that the phase may change; `attempt` counts from 1.
    """

    diagnostic: Mapping[str, object]
    mandate: str
    tree: Mapping[str, bytes]
    bounds: Mapping[str, Mapping[str, object]]
    editable: tuple[str, ...]
    attempt: int = 1
    earlier: tuple[Attempt, ...] = ()
    parameters_file: str = "strategy.toml"


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply and what it cost in dollars. `finish` is "stop", or "length" where it was cut off."""

    text: str
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)
    finish: str = "stop"


class Model(Protocol):
    """Answer a prompt with text, or say that the answer is not there yet by returning None.

    What is no language model is asked for repairs alone: it has no causes to draft, tests to write or diffs to attack.
    """

    name: str
    is_language_model: bool

    def answer(self, prompt_id: str, role: str, prompt: str, context: Context) -> Reply | None:
        """Return the reply, its tokens and its price; None while a person or agent still has to answer.

        Asking again under the same id is safe. Raise `Unavailable` where the model cannot be reached now.
        """
        ...

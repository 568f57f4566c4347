"""The Alpaca adapter where the broker or the network goes wrong: what is asked again, what is not, what is believed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
import requests

from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.alpaca.calendar import hours_told
from oomrl.adapters.alpaca.rest import Patience
from oomrl.adapters.journal import MemoryJournal
from oomrl.adapters.own_account import OwnAccount
from oomrl.adapters.timers import ExchangeTimer
from oomrl.calendar import KnownHours
from oomrl.domain.brokerage import Ticket
from oomrl.domain.records import OrderState
from oomrl.domain.trading import ALPACA_PAPER, Side
from oomrl.domain.working import Tactics
from oomrl.errors import BrokerRefusal, Halt, InDoubt, Unavailable
from oomrl.exchange.emulator.faults import faults_of
from oomrl.exchange.emulator.server import Running, Settings, running
from oomrl.exchange.emulator.venue import Terms
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape import Tape
from oomrl.order_path import Opening, OrderPath
from oomrl.settings import AccountOf, BrokerSettings
from oomrl.testing.markets import CALM, made_up_tape

TAPE = made_up_tape(6, sessions=12, names=3, weather=CALM)
DAY = TAPE.days[8]
CASH = Decimal(1_000_000)


class At:
    """The adapter at an exchange in an open session, and the exchange's own count of requests."""

    def __init__(self, exchange: Running, tape: Tape) -> None:
        self.exchange, self.tape = exchange, tape
        self.timer = ExchangeTimer(exchange.url)
        self.broker = AlpacaBrokerage(
            self.timer, "key", "secret", base_url=exchange.url, data_url=exchange.url, patience=Patience(read=1.0)
        )

    def ticket(self, name: str = "one", qty: int = 5, limit: Decimal | None = None) -> Ticket:
        return Ticket(name, self.tape.symbols[0], Side.BUY, Decimal(qty), limit)

    @property
    def seen(self) -> int:
        """How many requests the first fault was there for, answered or not."""
        with requests.Session() as session:
            session.trust_env = False
            told: list[dict[str, int]] = session.get(f"{self.exchange.url}/admin/faults", timeout=10).json()
        return told[0]["fitted"]


@contextmanager
def at(*faults: str, rate_limit: int = 0) -> Iterator[At]:
    text = "\n".join(f"[[fault]]\n{fault}" for fault in faults)
    terms = Terms(cash=CASH, rules=ALPACA_PAPER)
    asked = Settings(start=DAY, terms=terms, rate_limit=rate_limit, faults=faults_of(text, "test"))
    with running(TAPE, asked) as exchange:
        made = At(exchange, TAPE)
        made.timer.wait(exchange.exchange.venue.hours.session(DAY).opens + timedelta(minutes=1))
        yield made
        made.broker.close()
        made.timer.close()


@pytest.mark.parametrize(
    ("fault", "arrived"),
    [
        ('kind = "accepted_then_504"', True),
        ('kind = "html_502"\nendpoint = "POST *"', False),
        ('kind = "html_502"\nendpoint = "POST *"\napplied = true', True),
        ('kind = "reset"\nendpoint = "POST *"', False),
        ('kind = "reset"\nendpoint = "POST *"\napplied = true', True),
        ('kind = "slow"\nendpoint = "POST *"\nseconds = 2.0', True),
    ],
)
def test_an_order_without_an_answer_is_in_doubt_sent_once_and_found_by_its_own_id(fault: str, arrived: bool) -> None:
    with at(fault) as here:
        with pytest.raises(InDoubt):
            here.broker.place(here.ticket())
        found = here.broker.find("one")
        assert (found is not None) == arrived
        assert len(here.exchange.exchange.venue.account.orders) == arrived
        assert here.seen == 1


@pytest.mark.parametrize(
    "fault",
    [
        'kind = "html_502"\nendpoint = "GET /v2/account"',
        'kind = "reset"\nendpoint = "GET /v2/account"',
        'kind = "rate_limited"\nendpoint = "GET /v2/account"',
        'kind = "slow"\nendpoint = "GET /v2/account"\nseconds = 2.0',
    ],
)
def test_a_read_is_asked_again_until_it_is_answered(fault: str) -> None:
    with at(f"{fault}\nnth = [1, 2]") as here:
        assert here.broker.account().cash == CASH
        assert here.seen == 3


def test_a_read_that_is_never_answered_is_given_up() -> None:
    with at('kind = "html_502"\nendpoint = "GET /v2/account"') as here:
        with pytest.raises(Unavailable, match="6 tries"):
            here.broker.account()
        assert here.seen == 6


def test_an_order_refused_by_the_rate_limit_certainly_did_not_arrive_and_nothing_goes_out_before_the_reset() -> None:
    with at('kind = "rate_limited"\nendpoint = "POST *"\nnth = [1]') as here:
        begun = here.timer.now()
        with pytest.raises(Unavailable, match="rate limit"):
            here.broker.place(here.ticket())
        assert here.seen == 1
        here.broker.place(here.ticket())
        assert here.timer.now() - begun >= timedelta(seconds=59)


def test_a_word_that_nobody_knows_spoils_neither_its_order_nor_the_others() -> None:
    with at('kind = "unknown_enum"\nendpoint = "GET /v2/orders"\nfield = "status"') as here:
        for name in ("one", "two"):
            here.broker.place(here.ticket(name, limit=Decimal("1.00")))
        listed = here.broker.open_orders()
        assert {(order.client_order_id, order.state, order.final) for order in listed} == {
            (name, OrderState.WORKING, False) for name in ("one", "two")
        }
        assert {order.status for order in listed} >= {"something_new"}


def test_all_open_orders_are_told_however_many_pages_they_fill() -> None:
    with at() as here:
        for number in range(520):
            here.broker.place(here.ticket(f"o{number}", 1, Decimal("1.00")))
        assert len(here.broker.open_orders()) == 520
        for order in here.broker.open_orders():
            here.broker.cancel(order.id)
        assert not here.broker.open_orders()


def test_a_name_that_turned_untradable_is_refused_for_good() -> None:
    when = "2010-01-01T00:00:00Z"
    with at(f'kind = "untradable"\nsymbol = "{TAPE.symbols[0]}"\nat = {when}') as here:
        with pytest.raises(BrokerRefusal) as refused:
            here.broker.place(here.ticket())
        assert not refused.value.later and not refused.value.duplicate


def path_of(here: At) -> OrderPath:
    return OrderPath(
        brokerage=here.broker,
        journal=MemoryJournal(),
        timer=here.timer,
        calendar=hours_told(here.broker.trading, TAPE.days[6], TAPE.days[-1]),
        opening=Opening(TAPE.days[7], CASH),
        costs=Friction(),
        rules=ALPACA_PAPER,
        tactics=Tactics(stale_after=timedelta(hours=4)),
        closed=TAPE.days[7],
    )


def test_an_account_that_was_reset_halts() -> None:
    hour_later = f"{DAY}T16:00:00Z"
    with at(f'kind = "reset_account"\nat = {hour_later}') as here:
        here.broker.place(here.ticket("by-hand"))
        path = path_of(here)
        with pytest.raises(Halt, match="unknown_position"):
            path.reconcile()
        here.timer.wait(here.timer.now() + timedelta(hours=3))
        with pytest.raises(Halt, match="Paper resets change the keys"):
            path.reconcile()


@pytest.mark.parametrize("hours", ["closed", "09:30-13:00"])
def test_a_calendar_that_disagrees_halts_before_the_order_path_is_there(hours: str) -> None:
    with at(f'kind = "calendar"\nday = {TAPE.days[9]}\nhours = "{hours}"') as here:
        venue, journal = here.exchange.exchange.venue, MemoryJournal()
        ours = KnownHours("tape", venue.hours.between(TAPE.days[0], TAPE.days[-1] + timedelta(days=30)))
        own = OwnAccount(
            BrokerSettings(),
            AccountOf(tape="t"),
            here.broker,
            journal,
            here.timer,
            ours,
            TAPE,
            Opening(TAPE.days[7], CASH),
        )

        def nothing(*_: object) -> Decimal:
            return Decimal(0)

        with pytest.raises(Halt, match=f"calendar {TAPE.days[9]}"):
            own.path(Friction(), DAY, nothing, nothing, nothing)
        assert [mismatch.subject for mismatch in journal.mismatches] == [f"{TAPE.days[9]}"]


def test_a_cancel_that_is_acknowledged_and_not_done_is_asked_again_until_the_listing_says_so() -> None:
    with at('kind = "cancel_ignored"\ntimes = 2') as here:
        order = here.broker.place(here.ticket(limit=Decimal("1.00")))
        for _ in range(2):
            here.broker.cancel(order.id)
            assert [open_.id for open_ in here.broker.open_orders()] == [order.id]
        here.broker.cancel(order.id)
        assert not here.broker.open_orders()

"""A simulation's broker over HTTP: the emulator on loopback, and the order path that trades there through alpaca-py."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from functools import partial

import requests

from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.alpaca.calendar import hours_told
from oomrl.adapters.journal import MemoryJournal
from oomrl.adapters.timers import ExchangeTimer
from oomrl.domain.trading import AccountRules
from oomrl.domain.working import Tactics
from oomrl.exchange.emulator.server import Settings, running
from oomrl.exchange.emulator.venue import Terms
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape import Tape
from oomrl.order_path import Opening, OrderPath


@contextlib.contextmanager
def simulated(tape: Tape, begin: date, cash: Decimal, friction: Friction, rules: AccountRules) -> Iterator[OrderPath]:
    """Serve the tape from its session `begin` on and yield the broker that trades there, for as long as the block runs.

    The whole batch goes out after the close of the decision, as in process; what the exchange then does is the same
    to the cent. Its memory is the process: a start folds the past again by trading it again.
    """
    terms = Terms(cash=cash, friction=friction, rules=rules, cash_rule="wait")
    with running(tape, Settings(start=begin, terms=terms)) as exchange, contextlib.ExitStack() as closing:
        timer = ExchangeTimer(exchange.url)
        closing.callback(timer.close)
        brokerage = AlpacaBrokerage(
            timer, "simulated", "simulated", base_url=exchange.url, data_url=exchange.url, participation=True
        )
        closing.callback(brokerage.close)
        before = begin - timedelta(days=1)
        yield OrderPath(
            brokerage=brokerage,
            journal=MemoryJournal(),
            timer=timer,
            calendar=hours_told(brokerage.trading, before, tape.days[-1] + timedelta(days=30)),
            opening=Opening(before, cash),
            costs=friction,
            rules=rules,
            tactics=Tactics(at_open=True),
            deposited=partial(deposited, exchange.url),
            closed=before,
        )


def deposited(url: str, amount: Decimal) -> None:
    """Put an endowment into the exchange's account."""
    with requests.Session() as session:
        session.trust_env = False
        session.post(f"{url}/admin/deposit", json={"amount": str(amount)}, timeout=10).raise_for_status()

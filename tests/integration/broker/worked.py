"""The order path over the emulator, as a person's own paper account is traded: through the session, on quotes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial

from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.alpaca.calendar import hours_told
from oomrl.adapters.http_exchange import deposited
from oomrl.adapters.journal import MemoryJournal
from oomrl.adapters.timers import ExchangeTimer
from oomrl.domain.trading import ALPACA_PAPER, AccountRules
from oomrl.domain.working import Tactics
from oomrl.exchange.emulator.server import Settings, running
from oomrl.exchange.emulator.venue import Terms
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape import Tape
from oomrl.order_path import Opening, OrderPath

#: Requests a minute, as at Alpaca.
LIMIT = 200


@dataclass(frozen=True)
class Worked:
    """One account at the emulator: where it is, its clock, the adapter, and the order path over both."""

    url: str
    timer: ExchangeTimer
    broker: AlpacaBrokerage
    path: OrderPath


@contextmanager
def worked(
    tape: Tape, first: date, cash: Decimal, tactics: Tactics, rules: AccountRules = ALPACA_PAPER
) -> Iterator[Worked]:
    """Serve a tape from its session `first` on to an order path whose books begin with the session before."""
    before = tape.days[tape.days.index(first) - 1]
    settings = Settings(start=first, rate_limit=LIMIT, terms=Terms(cash=cash, rules=rules))
    with running(tape, settings) as exchange:
        timer = ExchangeTimer(exchange.url)
        broker = AlpacaBrokerage(timer, "key", "secret", base_url=exchange.url, data_url=exchange.url)
        path = OrderPath(
            brokerage=broker,
            journal=MemoryJournal(),
            timer=timer,
            calendar=hours_told(broker.trading, before, tape.days[-1]),
            opening=Opening(before, cash),
            costs=Friction(),
            rules=rules,
            tactics=tactics,
            deposited=partial(deposited, exchange.url),
            closed=before,
        )
        try:
            yield Worked(exchange.url, timer, broker, path)
        finally:
            broker.close()
            timer.close()

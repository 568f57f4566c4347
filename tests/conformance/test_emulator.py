"""The Alpaca adapter passes both conformance suites against the emulator, through alpaca-py and over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest

from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.alpaca.calendar import hours_told
from oomrl.adapters.http_exchange import deposited, simulated
from oomrl.adapters.journal import MemoryJournal
from oomrl.adapters.timers import ExchangeTimer
from oomrl.domain.trading import ALPACA_PAPER, AccountRules
from oomrl.domain.working import Tactics
from oomrl.exchange.emulator.server import Settings, running
from oomrl.exchange.emulator.venue import Terms
from oomrl.exchange.friction import Friction
from oomrl.order_path import Opening, OrderPath
from oomrl.testing.conformance.broker import BrokerConformance, Trading
from oomrl.testing.conformance.brokerage import BrokerageConformance, Stage
from oomrl.testing.markets import CALM, made_up_tape


class TestEmulator(BrokerageConformance):
    @pytest.fixture
    def stage(self) -> Iterator[Stage]:
        tape = made_up_tape(3, sessions=30, names=4, weather=CALM)
        settings = Settings(start=tape.days[25], terms=Terms(cash=Decimal(100_000)))
        with running(tape, settings) as exchange:
            timer = ExchangeTimer(exchange.url)
            broker = AlpacaBrokerage(timer, "key", "secret", base_url=exchange.url, data_url=exchange.url)
            opens = exchange.exchange.venue.hours.session(tape.days[25]).opens
            timer.wait(opens + timedelta(minutes=1))
            yield Stage(broker, timer, (tape.symbols[0], tape.symbols[1]))
            broker.close()
            timer.close()


class TestOrderPathOverEmulator(BrokerConformance):
    @pytest.fixture(params=[AccountRules(), ALPACA_PAPER], ids=["funded", "paper"])
    def trading(self, request: pytest.FixtureRequest) -> Iterator[Trading]:
        tape = made_up_tape(3, sessions=30, names=4, weather=CALM)
        with simulated(tape, tape.days[25], Decimal(100_000), Friction(), request.param) as path:
            for last in tape.sessions(until=tape.days[24]):
                path.collect(last)
            coming = tape.sessions(after=tape.days[24])
            yield Trading(path, last, coming, (tape.symbols[0], tape.symbols[1]))


class TestOrdersWorkedOverEmulator(BrokerConformance):
    """As a person's own account is traded: marketable limits in slices through the session, on quotes."""

    @pytest.fixture
    def trading(self) -> Iterator[Trading]:
        tape, cash = made_up_tape(3, sessions=30, names=4, weather=CALM), Decimal(100_000)
        settings = Settings(start=tape.days[25], terms=Terms(cash=cash, rules=ALPACA_PAPER))
        with running(tape, settings) as exchange:
            timer = ExchangeTimer(exchange.url)
            broker = AlpacaBrokerage(timer, "key", "secret", base_url=exchange.url, data_url=exchange.url)
            path = OrderPath(
                brokerage=broker,
                journal=MemoryJournal(),
                timer=timer,
                calendar=hours_told(broker.trading, tape.days[20], tape.days[-1]),
                opening=Opening(tape.days[24], cash),
                costs=Friction(),
                rules=ALPACA_PAPER,
                # The emulator's quotes change at the four points of its path alone.
                tactics=Tactics(stale_after=timedelta(hours=4), cycle=timedelta(minutes=20)),
                closed=tape.days[24],
                deposited=partial(deposited, exchange.url),
            )
            for last in tape.sessions(until=tape.days[24]):
                path.collect(last)
            coming = tape.sessions(after=tape.days[24])
            yield Trading(path, last, coming, (tape.symbols[0], tape.symbols[1]))
            broker.close()
            timer.close()

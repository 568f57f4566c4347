"""The Alpaca adapter passes the conformance suite against the emulator, through alpaca-py and over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest

from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.timers import ExchangeTimer
from oomrl.exchange.emulator.server import Settings, running
from oomrl.exchange.emulator.venue import Terms
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

"""The Alpaca adapter passes both conformance suites against the emulator, through alpaca-py and over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest

from oomrl.adapters.http_exchange import simulated
from oomrl.domain.trading import ALPACA_PAPER, AccountRules
from oomrl.domain.working import Tactics
from oomrl.exchange.friction import Friction
from oomrl.testing.conformance.broker import BrokerConformance, Trading
from oomrl.testing.conformance.brokerage import BrokerageConformance, Stage
from oomrl.testing.markets import CALM, made_up_tape
from tests.integration.broker.worked import worked

CASH = Decimal(100_000)
#: The emulator's quotes change at the four points of its path alone.
TACTICS = Tactics(stale_after=timedelta(hours=4), cycle=timedelta(minutes=20))


class TestEmulator(BrokerageConformance):
    @pytest.fixture
    def stage(self) -> Iterator[Stage]:
        tape = made_up_tape(3, sessions=30, names=4, weather=CALM)
        with worked(tape, tape.days[25], CASH, TACTICS, AccountRules()) as at:
            at.timer.wait(at.path.calendar.after(tape.days[24]).opens + timedelta(minutes=1))
            yield Stage(at.broker, at.timer, (tape.symbols[0], tape.symbols[1]))


class TestOrderPathOverEmulator(BrokerConformance):
    @pytest.fixture(params=[AccountRules(), ALPACA_PAPER], ids=["funded", "paper"])
    def trading(self, request: pytest.FixtureRequest) -> Iterator[Trading]:
        tape = made_up_tape(3, sessions=30, names=4, weather=CALM)
        with simulated(tape, tape.days[25], CASH, Friction(), request.param) as path:
            for last in tape.sessions(until=tape.days[24]):
                path.collect(last)
            coming = tape.sessions(after=tape.days[24])
            yield Trading(path, last, coming, (tape.symbols[0], tape.symbols[1]))


class TestOrdersWorkedOverEmulator(BrokerConformance):
    """As a person's own account is traded: marketable limits in slices through the session, on quotes."""

    @pytest.fixture
    def trading(self) -> Iterator[Trading]:
        tape = made_up_tape(3, sessions=30, names=4, weather=CALM)
        with worked(tape, tape.days[25], CASH, TACTICS) as at:
            for last in tape.sessions(until=tape.days[24]):
                at.path.collect(last)
            coming = tape.sessions(after=tape.days[24])
            yield Trading(at.path, last, coming, (tape.symbols[0], tape.symbols[1]))

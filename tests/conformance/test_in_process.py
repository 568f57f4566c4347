"""The in-process exchange passes the suite of what trades a session's orders."""

from __future__ import annotations

from decimal import Decimal

import pytest

from oomrl.domain.trading import ALPACA_PAPER, AccountRules
from oomrl.exchange.exchange import PaperExchange
from oomrl.exchange.friction import Friction
from oomrl.testing.conformance.broker import BrokerConformance, Trading
from oomrl.testing.markets import CALM, made_up_tape


class TestInProcess(BrokerConformance):
    @pytest.fixture(params=[AccountRules(), ALPACA_PAPER], ids=["funded", "paper"])
    def trading(self, request: pytest.FixtureRequest) -> Trading:
        tape = made_up_tape(3, sessions=30, names=4, weather=CALM)
        broker, coming = PaperExchange(Decimal(100_000), Friction(), request.param), tape.sessions()
        for session in coming:
            broker.collect(session)
            if session.day == tape.days[24]:
                break
        return Trading(broker, session, coming, (tape.symbols[0], tape.symbols[1]))

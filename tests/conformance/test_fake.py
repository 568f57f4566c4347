"""The fake passes both conformance suites, so that tests on it say something about real adapters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from oomrl.testing.brokerage import FakeBrokerage
from oomrl.testing.clocks import SteppedTimer
from oomrl.testing.conformance.broker import BrokerConformance, Trading
from oomrl.testing.conformance.brokerage import BrokerageConformance, Stage
from tests.unit.broker.stage import MONDAY, bars, desk


class TestFake(BrokerageConformance):
    @pytest.fixture
    def stage(self) -> Stage:
        timer = SteppedTimer(datetime(2010, 1, 4, 15, 0, tzinfo=UTC))
        prices = {"AA": (Decimal("10.00"), Decimal("10.02")), "BB": (Decimal("55.10"), Decimal("55.20"))}
        return Stage(FakeBrokerage(timer, Decimal(100_000), prices), timer, ("AA", "BB"))


class TestOrderPathOverFake(BrokerConformance):
    @pytest.fixture
    def trading(self) -> Trading:
        at = desk()
        at.path.deposited = lambda amount: setattr(at.broker, "money", at.broker.money + amount)
        coming = (bars(MONDAY + timedelta(days=later)) for later in range(1, 5))
        return Trading(at.path, bars(MONDAY), coming, ("AA", "BB"))

"""The fake passes the conformance suite, so that tests on it say something about real adapters."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from oomrl.testing.brokerage import FakeBrokerage
from oomrl.testing.clocks import SteppedTimer
from oomrl.testing.conformance.brokerage import BrokerageConformance, Stage


class TestFake(BrokerageConformance):
    @pytest.fixture
    def stage(self) -> Stage:
        timer = SteppedTimer(datetime(2010, 1, 4, 15, 0, tzinfo=UTC))
        prices = {"AA": (Decimal("10.00"), Decimal("10.02")), "BB": (Decimal("55.10"), Decimal("55.20"))}
        return Stage(FakeBrokerage(timer, Decimal(100_000), prices), timer, ("AA", "BB"))

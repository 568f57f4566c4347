"""The conformance suite against a real paper account, where the environment holds its keys. It trades a few shares."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from oomrl.adapters.own_account import reached
from oomrl.adapters.timers import WallTimer
from oomrl.settings import BrokerSettings
from oomrl.testing.conformance.brokerage import BrokerageConformance, Stage

NAMES = ("APCA_API_KEY_ID", "APCA_API_SECRET_KEY")
MISSING = [name for name in NAMES if not os.environ.get(name)]


@pytest.mark.skipif(bool(MISSING), reason=f"NO PAPER ACCOUNT: set {', '.join(MISSING)}; Alpaca itself is unchecked")
class TestPaperAccount(BrokerageConformance):
    @pytest.fixture
    def stage(self) -> Iterator[Stage]:
        timer = WallTimer()
        broker = reached(BrokerSettings(), timer, os.environ, 10)
        if not broker.trading.get("/clock")["is_open"]:
            broker.close()
            pytest.skip("MARKET CLOSED: the paper account can only be checked in a session")
        yield Stage(broker, timer, ("SPY", "IWM"))
        broker.cancel_all()
        broker.close()

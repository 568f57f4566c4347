"""The stream wakes whoever waits, and says when it connected; the emulator speaks it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from threading import Event

import pytest

from oomrl.adapters.alpaca.stream import Listening
from oomrl.adapters.own_account import reached
from oomrl.adapters.timers import ExchangeTimer, WallTimer
from oomrl.domain.brokerage import Ticket
from oomrl.domain.trading import Side
from oomrl.exchange.emulator.faults import faults_of
from oomrl.exchange.emulator.server import Settings, running
from oomrl.settings import BrokerSettings
from oomrl.testing.markets import CALM, made_up_tape

# alpaca-py uses an interface of websockets that is going away.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_a_stream_that_was_dropped_connects_again_and_says_so() -> None:
    tape = made_up_tape(4, sessions=8, names=2, weather=CALM)
    drop = faults_of('[[fault]]\nkind = "stream_drop"\nnth = [1]\n', "test")
    with running(tape, Settings(start=tape.days[5], rate_limit=0, faults=drop)) as exchange:
        timer = ExchangeTimer(exchange.url)
        chosen = BrokerSettings(base_url=exchange.url, data_url=exchange.url)
        broker = reached(chosen, timer, {"APCA_API_KEY_ID": "key", "APCA_API_SECRET_KEY": "secret"}, 5)
        wake = Event()
        stream = Listening("key", "secret", exchange.stream_url, wake)
        stream.start()
        try:
            assert wake.wait(30), "never connected"
            assert stream.reconnected()
            wake.clear()
            broker.place(Ticket("one", tape.symbols[0], Side.BUY, Decimal(1)))
            # The event itself may wake as well, before the line is there again.
            while not stream.reconnected():
                assert wake.wait(60), "never connected again"
                wake.clear()
        finally:
            stream.close()
            broker.close()
            timer.close()


def test_an_event_at_the_broker_ends_a_wait_early() -> None:
    tape = made_up_tape(4, sessions=8, names=2, weather=CALM)
    with running(tape, Settings(start=tape.days[5], rate_limit=0)) as exchange:
        timer = ExchangeTimer(exchange.url)
        chosen = BrokerSettings(base_url=exchange.url, data_url=exchange.url)
        broker = reached(chosen, timer, {"APCA_API_KEY_ID": "key", "APCA_API_SECRET_KEY": "secret"}, 5)
        wake = Event()
        stream = Listening("key", "secret", exchange.stream_url, wake)
        stream.start()
        try:
            assert wake.wait(30), "never connected"
            assert stream.reconnected() and not stream.reconnected()
            wake.clear()
            broker.place(Ticket("one", tape.symbols[0], Side.BUY, Decimal(1)))
            wall = WallTimer(wake)
            begun = wall.now()
            wall.wait(begun + timedelta(seconds=120))
            assert wall.now() - begun < timedelta(seconds=100)
        finally:
            stream.close()
            broker.close()
            timer.close()

"""500 names against 200 requests a minute: nothing is refused, and the allowance is used to the full."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import numpy as np
import requests

from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.alpaca.calendar import hours_told
from oomrl.adapters.journal import MemoryJournal
from oomrl.adapters.timers import ExchangeTimer
from oomrl.domain.trading import ALPACA_PAPER, Orders
from oomrl.domain.working import Tactics
from oomrl.exchange.emulator.server import Settings, running
from oomrl.exchange.emulator.venue import Terms
from oomrl.exchange.friction import Friction
from oomrl.order_path import Opening, OrderPath
from oomrl.testing.markets import CALM, made_up_tape

NAMES, LIMIT = 500, 200


def batch(day, shares: dict[str, int]) -> Orders:  # type: ignore[no-untyped-def]
    names = tuple(shares)
    ids = tuple(f"r0-{day:%Y%m%d}-{name}-{'b' if shares[name] > 0 else 's'}-0" for name in names)
    many = len(names)
    wanted = np.array([float(shares[name]) for name in names])
    return Orders(day, ids, names, wanted, np.full(many, np.nan), np.ones(many), ("",) * many)


def test_a_rebalance_of_500_names_uses_the_whole_allowance_and_no_more() -> None:
    tape = made_up_tape(1, sessions=5, names=NAMES, weather=CALM)
    first, second = tape.days[2], tape.days[3]
    cash = Decimal(10_000_000)
    terms = Terms(cash=cash, rules=ALPACA_PAPER)
    sessions = {session.day: session for session in tape.sessions()}
    with running(tape, Settings(start=first, rate_limit=LIMIT, terms=terms)) as exchange:
        timer = ExchangeTimer(exchange.url)
        broker = AlpacaBrokerage(timer, "key", "secret", base_url=exchange.url, data_url=exchange.url)
        path = OrderPath(
            brokerage=broker,
            journal=MemoryJournal(),
            timer=timer,
            calendar=hours_told(broker.trading, tape.days[0], tape.days[-1]),
            opening=Opening(tape.days[1], cash),
            costs=Friction(),
            rules=ALPACA_PAPER,
            # The emulator's quotes change at the four points of its path alone.
            tactics=Tactics(stale_after=timedelta(hours=3)),
            closed=tape.days[1],
        )
        half = tape.symbols[: NAMES // 2]
        path.submit(batch(tape.days[1], dict.fromkeys(half, 40)))
        path.collect(sessions[first])
        assert len(path.positions()) == NAMES // 2

        path.submit(batch(first, {name: -40 if name in half else 30 for name in tape.symbols}))
        timer.wait(path.calendar.after(first).opens + timedelta(minutes=1))
        begun, asked = timer.now(), broker.requests
        path.work()
        took, sent = timer.now() - begun, broker.requests - asked
        counts = requests.get(f"{exchange.url}/admin/requests", timeout=30).json()
        execution = path.collect(sessions[second])
        broker.close()
        timer.close()
    assert np.all(execution.unfilled == 0) and len(execution.orders) == NAMES
    assert not [kind for kind in counts if kind.endswith("429")]
    assert sent <= 1.3 * NAMES, sent
    assert took <= 1.05 * sent / LIMIT * timedelta(minutes=1), (took, sent)

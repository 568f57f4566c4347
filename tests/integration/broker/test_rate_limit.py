"""500 names against 200 requests a minute: nothing is refused, and the allowance is used to the full."""

from __future__ import annotations

import sys
from datetime import timedelta
from decimal import Decimal

import numpy as np
import requests

from oomrl.domain.trading import Orders
from oomrl.domain.working import Tactics
from oomrl.testing.markets import CALM, made_up_tape
from tests.integration.broker.worked import LIMIT, worked

NAMES = 500


def batch(day, shares: dict[str, int]) -> Orders:  # type: ignore[no-untyped-def]
    names = tuple(shares)
    ids = tuple(f"r0-{day:%Y%m%d}-{name}-{'b' if shares[name] > 0 else 's'}-0" for name in names)
    many = len(names)
    wanted = np.array([float(shares[name]) for name in names])
    return Orders(day, ids, names, wanted, np.full(many, np.nan), np.ones(many), ("",) * many)


def test_a_rebalance_of_500_names_uses_the_whole_allowance_and_no_more() -> None:
    tape = made_up_tape(1, sessions=5, names=NAMES, weather=CALM)
    first, second = tape.days[2], tape.days[3]
    sessions = {session.day: session for session in tape.sessions()}
    # The emulator's quotes change at the four points of its path alone.
    tactics = Tactics(stale_after=timedelta(hours=3))
    with worked(tape, first, Decimal(10_000_000), tactics) as at:
        path, timer = at.path, at.timer
        half = tape.symbols[: NAMES // 2]
        path.submit(batch(tape.days[1], dict.fromkeys(half, 40)))
        path.collect(sessions[first])
        assert len(path.positions()) == NAMES // 2

        path.submit(batch(first, {name: -40 if name in half else 30 for name in tape.symbols}))
        timer.wait(path.calendar.after(first).opens + timedelta(minutes=1))
        begun, asked = timer.now(), at.broker.requests
        path.work()
        took, sent = timer.now() - begun, at.broker.requests - asked
        counts = requests.get(f"{at.url}/admin/requests", timeout=30).json()
        execution = path.collect(sessions[second])
    allowance = sent / LIMIT * timedelta(minutes=1)
    sys.stdout.write(f"{sent} requests for {NAMES} orders in {took}: {took / allowance:.3f} of what they may take\n")
    assert np.all(execution.unfilled == 0) and len(execution.orders) == NAMES
    assert not [kind for kind in counts if kind.endswith("429")]
    assert sent <= 1.3 * NAMES, sent
    assert took <= 1.05 * allowance, (took, sent)

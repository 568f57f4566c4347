"""What prints teach does not depend on how many sessions are looked at together."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.domain.observed import Observed
from oomrl.exchange.prints import Prints
from oomrl.testing.markets import Weather, made_up_tape


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_sessions_seen_at_once_teach_what_they_teach_one_by_one(seed: int) -> None:
    tape = made_up_tape(seed, sessions=80, names=5, weather=Weather(jumps=0.01, late=0.5, delisted=0.5))
    sessions = list(tape.sessions())
    observed, together, singly = Observed(), Prints(), Prints()
    while sessions:
        count = len(observed.take(sessions))
        seen = together.see(sessions[:count])
        for at, session in enumerate(sessions[:count]):
            rows = singly.roster.rows(session.symbols)
            singly.fit()
            np.testing.assert_array_equal(seen.volatility(at, np.arange(len(rows))), singly.volatility(rows))
            singly.see([session])
            silent = np.zeros(len(singly.roster)) if seen.missing is None else seen.missing[at]
            np.testing.assert_array_equal(silent, singly.missing)
        for name in ("close", "variance", "returns", "missing"):
            np.testing.assert_array_equal(getattr(together, name), getattr(singly, name), name)
        sessions = sessions[count:]

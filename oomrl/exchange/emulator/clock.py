"""The virtual clock: it stands until it is stepped, or runs at a rate."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from oomrl.errors import Mistake

#: Virtual seconds a second. `fast` passes a session in 6.5 seconds and a day in 24.
SPEEDS = {"step": 0.0, "fast": 3600.0, "real": 1.0}


def rate_of(speed: str) -> float:
    """Return the rate that `step`, `fast`, `real` or a number names."""
    if speed in SPEEDS:
        return SPEEDS[speed]
    try:
        rate = float(speed)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1e9:
        raise Mistake(f"Expected a speed of {', '.join(SPEEDS)} or virtual seconds a second above 0, was {speed!r}.")
    return rate


class VirtualClock:
    """Tell the exchange's time, an aware UTC instant, from a start and a rate in virtual seconds a second."""

    def __init__(self, start: datetime, rate: float = 0.0) -> None:
        self.rate = rate
        self._base, self._since = start, time.monotonic()

    def now(self) -> datetime:
        if not self.rate:
            return self._base
        return self._base + timedelta(seconds=(time.monotonic() - self._since) * self.rate)

    def set(self, instant: datetime) -> None:
        """Move the clock to an instant; it goes on from there."""
        self._base, self._since = instant, time.monotonic()

    def seconds_until(self, instant: datetime) -> float:
        """Return the real seconds until a virtual instant of a clock that runs."""
        return max(0.0, (instant - self.now()).total_seconds() / self.rate)

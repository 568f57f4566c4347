"""Notice that the host slept, or that somebody set its clock: three clocks that should move together."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds of the wall clock, of time since boot with sleep, and of time since boot without."""

    wall: float
    boot: float
    awake: float


def read() -> Reading:
    """Read the host's clocks."""
    return Reading(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), time.monotonic())


@dataclass(frozen=True, slots=True)
class Change:
    """What happened between two looks: seconds slept, and seconds by which the wall clock was set (+ forward)."""

    slept: float
    jumped: float


class ClockWatch:
    """Compare the clocks at each look. Less than `tolerance` seconds is the drift of an ordinary clock."""

    def __init__(self, look: Callable[[], Reading] = read, tolerance: float = 2.0) -> None:
        self._look, self._tolerance = look, tolerance
        self._last = look()

    def check(self) -> Change | None:
        """Return what happened since the last look, None for nothing."""
        last, now = self._last, self._look()
        self._last = now
        slept = (now.boot - last.boot) - (now.awake - last.awake)
        jumped = (now.wall - last.wall) - (now.boot - last.boot)
        if max(abs(slept), abs(jumped)) < self._tolerance:
            return None
        return Change(round(slept, 3), round(jumped, 3))

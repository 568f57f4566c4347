"""A daemon's year in a minute: a clock that is set, work that is written down, and everything that goes wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

Key = tuple[str, str, date]


@dataclass
class VirtualClock:
    """Tell the instant that it was set to."""

    instant: datetime

    def now(self) -> datetime:
        return self.instant


class Killed(BaseException):
    """The process ended here, as by SIGKILL: nothing after this line runs."""


@dataclass
class Deeds:
    """Work that only counts how often it was done, and fails or dies as told. Survives its daemon."""

    random: random.Random
    now: Callable[[], datetime]
    outcome: Callable[[bool, str], Any]
    failing: float = 0.0
    dying: float = 0.0
    done: Counter[Key] = field(default_factory=Counter)
    at: dict[Key, datetime] = field(default_factory=dict)

    def __call__(self, account: str, job: str, session: date) -> Any:
        key = (account, job, session)
        chance = self.random.random()
        if chance < self.failing:
            return self.outcome(False, "the network is down")
        if chance < self.failing + self.dying:
            raise Killed
        self.at.setdefault(key, self.now())
        self.done[key] += 1
        if chance > 1 - self.dying:
            raise Killed  # after the work, before the table hears of it
        return self.outcome(True, "")


def wake_ups(dues: Sequence[datetime], chance: random.Random, outage: float, longest: timedelta) -> Iterator[datetime]:
    """Yield the instants at which a daemon is awake: shortly after each due one, but for outages, and now and then at
    any other time; sorted, as a clock that only goes forward."""
    until = dues[0]
    moments = []
    for due in dues:
        if due < until:
            continue
        if chance.random() < outage:
            until = due + longest * chance.random()
            moments.append(until)
            continue
        moments.append(due + timedelta(seconds=chance.choice([0, 1, 59])))
        if chance.random() < 0.1:
            moments.append(due + timedelta(minutes=chance.uniform(1, 200)))
    yield from sorted(moments)

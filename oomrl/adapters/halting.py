"""Stop at once, by page, token or command: the switch first, then the broker, then the record.

Each step works where the others cannot: the switch needs neither database nor broker, the broker no database.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from oomrl.adapters.kill_switch import KillSwitch
from oomrl.errors import OomrlError, Partly
from oomrl.settings import Settings

SWITCH = "the switch"


@dataclass
class Halted:
    """What was done about a halt: each step (the switch, the broker, the record) ended or failed."""

    steps: Mapping[str, Callable[[], list[str]]]
    said: list[str] = field(default_factory=list)
    failed: dict[str, OomrlError] = field(default_factory=dict)

    def attempt(self, name: str) -> None:
        """Take a step, for the first time or again."""
        try:
            self.said += self.steps[name]()
            self.failed.pop(name, None)
        except OomrlError as error:
            self.failed[name] = error

    def complete(self) -> None:
        """Raise `Partly` where a step failed: with the switch engaged, trading has stopped all the same."""
        if self.failed:
            what = "; ".join(f"{name}: {error}" for name, error in self.failed.items())
            begin = "Not halted: not" if SWITCH in self.failed else "Halted, but not"
            raise Partly(f"{begin} everything could be done. {what}")


def halt(state: Path, by: str, reason: str, at: datetime, steps: Mapping[str, Callable[[], list[str]]]) -> Halted:
    """Engage the switch, then take each step, whatever became of the ones before."""

    def engage() -> list[str]:
        KillSwitch(state).engage(by, reason, at)
        return []

    halted = Halted({SWITCH: engage, **steps})
    for name in halted.steps:
        halted.attempt(name)
    return halted


def cancel_all(settings: Settings, at: datetime, flatten: bool = False) -> list[str]:
    """Cancel this service's open orders at every broker of the settings, and sell what it may sell, if so asked.

    Return a line for each broker. Every broker is asked, whatever the others answer; the first error is raised.
    """
    accounts = [terms for terms in settings.accounts.values() if terms.broker == "alpaca"]
    if not accounts:
        return []
    from oomrl.adapters.own_account import reached, stopped
    from oomrl.adapters.timers import WallTimer

    lines, errors = [], []
    for terms in accounts:
        try:
            broker = reached(settings.broker, WallTimer(), os.environ, settings.service.http_timeout, retries=1)
            try:
                cancelled, sold = stopped(broker, terms, flatten, at)
            finally:
                with suppress(OomrlError):
                    broker.close()
            lines.append(f"At the broker: {cancelled} orders cancelled, {sold} positions sold.")
        except OomrlError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return lines

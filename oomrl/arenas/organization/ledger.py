"""The delayed reward: 60 % at once, 40 % later, penalties taken from what was earned until they are paid."""

from __future__ import annotations

from dataclasses import dataclass

from oomrl.arenas.organization.rules import AT_ONCE, RELEASE_EVERY


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of the ledger; `reward` = `immediate` + `released`."""

    earned: float
    penalty: float
    immediate: float
    released: float

    @property
    def reward(self) -> float:
        """Return what the step pays out."""
        return self.immediate + self.released


class DelayedLedger:
    """Book earned marks and penalties so that paid out = earned - penalties at the end of every episode.

    A penalty beyond what a step earned stays as debt and is taken from later steps, so that no step pays less
    than nothing and no penalty is lost while anything is still earned.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.pending = 0.0
        self.debt = 0.0

    def book(self, earned: float, penalty: float, last: bool) -> Entry:
        """Book a step; every fifth and the last one release what was held back."""
        due = self.debt + penalty
        taken = min(due, earned)
        self.debt = due - taken
        net = earned - taken
        immediate = AT_ONCE * net
        self.pending += net - immediate
        released = 0.0
        if last or (len(self.entries) + 1) % RELEASE_EVERY == 0:
            released, self.pending = self.pending, 0.0
        entry = Entry(earned, taken, immediate, released)
        self.entries.append(entry)
        return entry

"""RO-Lock (Algorithm 1 of the paper): creator and judge are never the same at once, within one repair cycle.

    open -> test genesis -> locked -> logic genesis -> committed        (any -> abandoned)

There is no way back but a new cycle. Tests may change in test genesis only, source in logic genesis only,
nothing else ever; digests of all three areas are compared before and after each step. A lock is a frozen
record; every step returns a new one with a transition to attest, and a refused attempt the tree as it was.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from guardrails.policy import Policy
from guardrails.tree import Tree


class State(StrEnum):
    """Where a cycle stands. Only the two geneses are writable, each in its own area."""

    OPEN = "open"
    TEST_GENESIS = "test genesis"
    LOCKED = "locked"
    LOGIC_GENESIS = "logic genesis"
    COMMITTED = "committed"
    ABANDONED = "abandoned"


WAYS = {
    State.OPEN: (State.TEST_GENESIS, State.LOCKED),
    State.TEST_GENESIS: (State.LOCKED,),
    State.LOCKED: (State.LOGIC_GENESIS,),
    State.LOGIC_GENESIS: (State.COMMITTED,),
}
WRITABLE = {State.TEST_GENESIS: "tests", State.LOGIC_GENESIS: "source"}


class LockViolation(Exception):
    """A step that the lock forbids; nothing changed."""


@dataclass(frozen=True)
class Anchors:
    """Digests of the three areas: what logic may edit, what tests may edit, and all the rest."""

    source: str
    tests: str
    rest: str

    @classmethod
    def of(cls, tree: Tree, policy: Policy) -> Anchors:
        """Take the anchors of a tree."""
        areas: dict[str, dict[str, bytes]] = {"source": {}, "tests": {}, "rest": {}}
        for path, data in tree.items():
            areas[area(path, policy)][path] = data
        return cls(*(Tree(areas[name]).digest() for name in ("source", "tests", "rest")))

    def changed(self, other: Anchors) -> set[str]:
        """Return the areas that differ."""
        return {name for name in ("source", "tests", "rest") if getattr(self, name) != getattr(other, name)}


def area(path: str, policy: Policy) -> str:
    """Return the area of a path. A path that both phases could edit is in neither."""
    logic, tests = (
        any(policy.may(action, path, phase) for action in ("edit", "create", "delete")) for phase in ("logic", "tests")
    )
    if logic == tests:
        return "rest"
    return "source" if logic else "tests"


@dataclass(frozen=True)
class Transition:
    """One step, ready to be attested."""

    cycle: str
    step: int
    event: str
    before: State
    after: State
    tree: str
    anchors: Anchors
    verdict: str = ""

    def predicate(self) -> dict[str, Any]:
        """Return plain JSON for a statement."""
        return {
            "cycle": self.cycle,
            "step": self.step,
            "event": self.event,
            "before": self.before.value,
            "after": self.after.value,
            "anchors": vars(self.anchors),
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Lock:
    """A cycle's lock: its state, the anchors that must still hold, and the attempts and budget left."""

    cycle: str
    state: State
    anchors: Anchors
    tree: str
    attempts_left: int
    budget_left: float
    step: int = 0

    @classmethod
    def open(cls, cycle: str, tree: Tree, policy: Policy, *, budget: float = float("inf")) -> Lock:
        """Open a cycle on a tree; everything is read-only."""
        anchors = Anchors.of(tree, policy)
        return cls(cycle, State.OPEN, anchors, tree.digest(), policy.limits.attempts, budget)

    def move(self, to: State, tree: Tree, policy: Policy) -> tuple[Lock, Transition]:
        """Go to the next state. The tree must be the one that the last step left."""
        if to is not State.ABANDONED and to not in WAYS.get(self.state, ()):
            raise LockViolation(f"Expected a way on from {self.state.value!r}, was {to.value!r}: open a new cycle.")
        if self.state in (State.COMMITTED, State.ABANDONED):
            raise LockViolation(f"Expected an open cycle, was {self.state.value!r}: open a new one.")
        self._check(tree, policy)
        return self._step(to.value, to, self.anchors, self.tree)

    def offer(
        self, before: Tree, after: Tree, policy: Policy, *, passed: bool, verdict: str = "", cost: float = 0.0
    ) -> tuple[Lock, Transition, Tree]:
        """Take in one judged attempt: the new tree where it passed, the old one where it did not.

        Raises:
            LockViolation: nothing is writable now, the tree is not the anchored one, attempts or budget are
                used up, or the attempt changed an area that this phase may not write.
        """
        self._check(before, policy)
        writable = WRITABLE.get(self.state)
        if writable is None:
            raise LockViolation(f"Expected a writable phase, was {self.state.value!r}.")
        if self.attempts_left <= 0 or cost > self.budget_left:
            raise LockViolation(f"Expected attempts and budget, was {self.attempts_left} and {self.budget_left}.")
        left = replace(self, attempts_left=self.attempts_left - 1, budget_left=self.budget_left - cost)
        if not passed:
            lock, transition = left._step("refused", self.state, self.anchors, self.tree, verdict)
            return lock, transition, before
        anchors = Anchors.of(after, policy)
        foreign = self.anchors.changed(anchors) - {writable}
        if foreign:
            raise LockViolation(f"Expected changes of {writable} only, was a change of {', '.join(sorted(foreign))}.")
        lock, transition = left._step("accepted", self.state, anchors, after.digest(), verdict)
        return lock, transition, after

    def _check(self, tree: Tree, policy: Policy) -> None:
        changed = self.anchors.changed(Anchors.of(tree, policy))
        if changed or tree.digest() != self.tree:
            raise LockViolation(f"Expected the anchored tree, was a change of {', '.join(sorted(changed)) or 'it'}.")

    def _step(self, event: str, to: State, anchors: Anchors, tree: str, verdict: str = "") -> tuple[Lock, Transition]:
        lock = replace(self, state=to, anchors=anchors, tree=tree, step=self.step + 1)
        return lock, Transition(self.cycle, lock.step, event, self.state, to, tree, anchors, verdict)


def seed_for(secret: bytes, *parts: object) -> int:
    """Return the seed of hidden checks: an HMAC of the judge's secret and the attempt; runs repeat."""
    text = "\n".join(str(part) for part in parts).encode()
    return int.from_bytes(hmac.new(secret, text, hashlib.sha256).digest()[:8], "big")

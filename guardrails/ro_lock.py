"""RO-Lock (Algorithm 1 of the paper): creator and judge are never the same at once, within one repair cycle.

    open -> test genesis -> locked -> logic genesis -> committed        (any -> abandoned)

There is no way back but a new cycle. Tests may change in test genesis only, source in logic genesis only,
nothing else ever; digests of all three areas are compared before and after each step. A lock is a frozen
record; every step returns a new one with a transition to attest, and a refused attempt the tree as it was.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
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
    patch: str = ""

    def predicate(self) -> dict[str, Any]:
        """Return plain JSON for a statement whose subject is the tree; `patch` is the sha256 of what was offered."""
        return {
            "cycle": self.cycle,
            "step": self.step,
            "event": self.event,
            "before": self.before.value,
            "after": self.after.value,
            "tree": self.tree,
            "anchors": vars(self.anchors),
            "patch": self.patch,
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
        self, before: Tree, after: Tree, policy: Policy, *, passed: bool, patch: str = "", cost: float = 0.0
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
            lock, transition = left._step("refused", self.state, self.anchors, self.tree, patch)
            return lock, transition, before
        anchors = Anchors.of(after, policy)
        foreign = self.anchors.changed(anchors) - {writable}
        if foreign:
            raise LockViolation(f"Expected changes of {writable} only, was a change of {', '.join(sorted(foreign))}.")
        lock, transition = left._step("accepted", self.state, anchors, after.digest(), patch)
        return lock, transition, after

    def _check(self, tree: Tree, policy: Policy) -> None:
        changed = self.anchors.changed(Anchors.of(tree, policy))
        if changed or tree.digest() != self.tree:
            raise LockViolation(f"Expected the anchored tree, was a change of {', '.join(sorted(changed)) or 'it'}.")

    def _step(self, event: str, to: State, anchors: Anchors, tree: str, patch: str = "") -> tuple[Lock, Transition]:
        lock = replace(self, state=to, anchors=anchors, tree=tree, step=self.step + 1)
        return lock, Transition(self.cycle, lock.step, event, self.state, to, tree, anchors, patch)


@dataclass(frozen=True)
class Offer:
    """What one writable phase came to: the patch's sha256, the tree it leads to, and whether it may go on."""

    phase: State
    patch: str
    tree: Tree
    passed: bool


def walk(cycle: str, tree: Tree, offers: Sequence[Offer], policy: Policy) -> tuple[Transition, ...]:
    """Take a cycle through what was judged, in its order; what is refused abandons it and leaves the tree alone.

    Tests alone end locked, logic ends accepted: committing it is the business of whoever deploys (`commit`).

    Raises:
        LockViolation: what passed changed an area that its phase may not write.
    """
    lock, made = Lock.open(cycle, tree, policy), list[Transition]()
    for offer in offers:
        ways = [State.TEST_GENESIS] if offer.phase is State.TEST_GENESIS else [State.LOGIC_GENESIS]
        if offer.phase is State.LOGIC_GENESIS and lock.state is not State.LOCKED:
            ways.insert(0, State.LOCKED)
        for to in ways:
            lock, transition = lock.move(to, tree, policy)
            made.append(transition)
        lock, transition, tree = lock.offer(tree, offer.tree, policy, passed=offer.passed, patch=offer.patch)
        made.append(transition)
        to = State.LOCKED if offer.phase is State.TEST_GENESIS else lock.state
        if not offer.passed:
            to = State.ABANDONED
        if to is not lock.state:
            lock, transition = lock.move(to, tree, policy)
            made.append(transition)
        if not offer.passed:
            break
    return tuple(made)


def commit(last: Mapping[str, Any], tree: Tree, policy: Policy) -> Transition:
    """Commit a walk that ended with accepted logic, by its last transition's predicate and the tree to be deployed.

    Raises:
        LockViolation: the walk ended otherwise, or this is another tree than the one that was accepted.
    """
    held = Lock(last["cycle"], State(last["after"]), Anchors(**last["anchors"]), last["tree"], 0, 0.0, last["step"])
    if last["event"] != "accepted":
        raise LockViolation(f"Expected accepted logic, was {last['event']!r}.")
    return held.move(State.COMMITTED, tree, policy)[1]


def seed_for(secret: bytes, *parts: object) -> int:
    """Return the seed of hidden checks: an HMAC of the judge's secret and the attempt; runs repeat."""
    text = "\n".join(str(part) for part in parts).encode()
    return int.from_bytes(hmac.new(secret, text, hashlib.sha256).digest()[:8], "big")

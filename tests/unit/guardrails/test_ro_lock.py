"""The lock walks one way, and no walk commits tests that changed after it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import guardrails
from guardrails.ro_lock import Anchors, Lock, LockViolation, Offer, State, Transition, area, commit, seed_for, walk
from guardrails.tree import Tree
from tests.unit.guardrails import small

POLICY = small.policy()
AREAS = {
    "source": "src/strategy/signal.py",
    "tests": "tests/generated/test_standing.py",
    "rest": "pyproject.toml",
}
MODEL = Path(guardrails.__file__).parent / "formal" / "ro_lock.pml"


class Cycle(RuleBasedStateMachine):
    """A proposer who tries everything, and an intruder who writes behind the lock's back."""

    @initialize(budget=st.sampled_from([2.0, 100.0]))
    def start(self, budget: float) -> None:
        self.tree = self.opened = small.tree()
        self.lock = Lock.open("c1", self.tree, POLICY, budget=budget)
        self.locked: Tree | None = None
        self.committed: Tree | None = None
        self.steps = 0

    @rule(to=st.sampled_from(list(State)))
    def move(self, to: State) -> None:
        before = self.lock
        try:
            self.lock, transition = self.lock.move(to, self.tree, POLICY)
        except LockViolation:
            assert self.lock is before
            return
        assert transition.before is before.state and transition.after is to and transition.step == before.step + 1
        if to is State.LOCKED:
            self.locked = self.tree
        if to is State.COMMITTED:
            self.committed = self.tree

    @rule(
        touched=st.sets(st.sampled_from(list(AREAS)), min_size=1),
        passed=st.booleans(),
        cost=st.sampled_from([0.0, 1.5]),
    )
    def offer(self, touched: set[str], passed: bool, cost: float) -> None:
        self.steps += 1
        after = self.tree.replace({AREAS[name]: self.tree[AREAS[name]] + b"# %d\n" % self.steps for name in touched})
        before = self.lock
        try:
            self.lock, _, kept = self.lock.offer(self.tree, after, POLICY, passed=passed, cost=cost)
        except LockViolation:
            return
        assert self.lock.attempts_left == before.attempts_left - 1
        assert kept == (after if passed else self.tree)
        self.tree = kept

    @precondition(lambda self: self.committed is None)
    @rule(name=st.sampled_from(list(AREAS)))
    def intrude(self, name: str) -> None:
        whole, self.tree = self.tree, self.tree.replace({AREAS[name]: b"# intruder\n"})
        with pytest.raises(LockViolation):
            self.lock.move(State.ABANDONED, self.tree, POLICY)
        with pytest.raises(LockViolation):
            self.lock.offer(self.tree, whole, POLICY, passed=True)
        self.tree = whole

    @invariant()
    def no_commit_in_which_tests_changed_after_the_lock(self) -> None:
        if getattr(self, "committed", None) is None:
            return
        then, now = Anchors.of(self.locked, POLICY), Anchors.of(self.committed, POLICY)
        assert then.changed(now) <= {"source"}
        assert Anchors.of(self.opened, POLICY).changed(then) <= {"tests"}

    @invariant()
    def limits_hold(self) -> None:
        if hasattr(self, "lock"):
            assert self.lock.attempts_left >= 0 and self.lock.budget_left >= 0.0
            assert self.lock.tree == self.tree.digest()


TestCycle = Cycle.TestCase
TestCycle.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def moved(lock: Lock, tree: Tree, *states: State) -> Lock:
    for state in states:
        lock, _ = lock.move(state, tree, POLICY)
    return lock


def test_a_cycle_without_new_tests_goes_straight_to_the_lock() -> None:
    tree = small.tree()
    lock = moved(Lock.open("c1", tree, POLICY), tree, State.LOCKED, State.LOGIC_GENESIS)
    after = tree.replace({AREAS["source"]: b"LIMIT = 2\n"})
    lock, transition, kept = lock.offer(tree, after, POLICY, passed=True, patch="p")
    assert kept is after and transition.predicate()["patch"] == "p"
    assert moved(lock, after, State.COMMITTED).state is State.COMMITTED


def events(steps: Sequence[Transition]) -> list[str]:
    return [step.event for step in steps]


def test_a_judged_pair_walks_from_tests_to_logic() -> None:
    tree = small.tree()
    tested = tree.replace({AREAS["tests"]: b"# more\n"})
    after = tested.replace({AREAS["source"]: b"LIMIT = 2\n"})
    tests, logic = Offer(State.TEST_GENESIS, "t", tested, True), Offer(State.LOGIC_GENESIS, "l", after, True)
    steps = walk("c1", tree, [tests, logic], POLICY)
    assert events(steps) == ["test genesis", "accepted", "locked", "logic genesis", "accepted"]
    assert [step.step for step in steps] == [1, 2, 3, 4, 5] and {step.cycle for step in steps} == {"c1"}
    assert [step.tree for step in steps] == [tree.digest(), *[tested.digest()] * 3, after.digest()]
    assert all(one.after is two.before for one, two in pairwise(steps))
    assert events(walk("c1", tree, [tests], POLICY)) == ["test genesis", "accepted", "locked"]
    assert events(walk("c1", tested, [logic], POLICY)) == ["locked", "logic genesis", "accepted"]


def test_what_is_refused_abandons_the_cycle_and_leaves_the_tree() -> None:
    tree = small.tree()
    tested = tree.replace({AREAS["tests"]: b"# more\n"})
    after = tested.replace({AREAS["source"]: b"LIMIT = 2\n"})
    tests, logic = Offer(State.TEST_GENESIS, "t", tested, True), Offer(State.LOGIC_GENESIS, "l", after, False)
    steps = walk("c1", tree, [tests, logic], POLICY)
    assert events(steps)[-2:] == ["refused", "abandoned"] and steps[-1].tree == tested.digest()
    steps = walk("c1", tree, [replace(tests, passed=False), logic], POLICY)
    assert events(steps) == ["test genesis", "refused", "abandoned"] and steps[-1].tree == tree.digest()


def test_what_changed_outside_its_phase_is_no_walk() -> None:
    tree = small.tree()
    for name, phase in (("source", State.TEST_GENESIS), ("tests", State.LOGIC_GENESIS), ("rest", State.LOGIC_GENESIS)):
        after = tree.replace({AREAS[name]: b"X = 1\n"})
        with pytest.raises(LockViolation, match=name):
            walk("c1", tree, [Offer(phase, "p", after, True)], POLICY)


def test_only_the_accepted_tree_is_committed() -> None:
    tree = small.tree()
    after = tree.replace({AREAS["source"]: b"LIMIT = 2\n"})
    steps = walk("c1", tree, [Offer(State.LOGIC_GENESIS, "l", after, True)], POLICY)
    done = commit(steps[-1].predicate(), after, POLICY)
    assert (done.event, done.after, done.step, done.tree) == ("committed", State.COMMITTED, 4, after.digest())
    for name in AREAS.values():
        with pytest.raises(LockViolation):
            commit(steps[-1].predicate(), after.replace({name: b"# another\n"}), POLICY)
    for earlier in steps[:-1]:
        with pytest.raises(LockViolation):
            commit(earlier.predicate(), tree, POLICY)
    refused = walk("c1", tree, [Offer(State.LOGIC_GENESIS, "l", after, False)], POLICY)
    with pytest.raises(LockViolation):
        commit(refused[-1].predicate(), tree, POLICY)


def test_a_path_that_both_phases_could_edit_belongs_to_neither() -> None:
    both = replace(POLICY.phases["tests"], editable=("src/**/*.py", "tests/**"))
    policy = replace(POLICY, phases={**POLICY.phases, "tests": both})
    assert area(AREAS["source"], policy) == "rest" and area(AREAS["source"], POLICY) == "source"


def test_seeds_repeat_and_differ_by_attempt_and_secret() -> None:
    seeds = {seed_for(secret, attempt) for secret in (b"a", b"b") for attempt in range(50)}
    assert len(seeds) == 100 and seed_for(b"a", 1) == seed_for(b"a", 1)


def spin(folder: Path, model: str, claim: str) -> bool:
    """Say whether a claim holds in every reachable state."""
    (folder / "model.pml").write_text(model)
    subprocess.run(["spin", "-a", "model.pml"], cwd=folder, check=True, capture_output=True)
    subprocess.run(["cc", "-w", "-o", "pan", "pan.c"], cwd=folder, check=True, capture_output=True)
    out = subprocess.run(["./pan", "-a", "-N", claim], cwd=folder, check=True, capture_output=True, text=True).stdout
    assert "State-vector" in out
    return "errors: 0" in out


needs_spin = pytest.mark.skipif(
    not (shutil.which("spin") and shutil.which("cc")),
    reason="SKIPPED LOUDLY: install spin and a C compiler to prove the lock",
)


@needs_spin
@pytest.mark.parametrize("claim", ["tests_fixed", "source_fixed", "tests_genesis_only", "one_commit"])
def test_the_model_holds(tmp_path: Path, claim: str) -> None:
    assert spin(tmp_path, MODEL.read_text(), claim)


@needs_spin
@pytest.mark.parametrize(
    ("guard", "claim"),
    [
        (" && t == tests_anchor && anchored", "tests_fixed"),
        (" && s == source_anchor && anchored", "source_fixed"),
    ],
)
def test_the_model_fails_without_a_guard(tmp_path: Path, guard: str, claim: str) -> None:
    model = MODEL.read_text()
    assert guard in model and not spin(tmp_path, model.replace(guard, ""), claim)

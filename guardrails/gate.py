"""The gate: one patch in, one verdict out, cheapest stage first. A stage that crashes refuses."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from guardrails.bench import Bench
from guardrails.cross_validation import NewTests
from guardrails.environment import GateEnvironment
from guardrails.policy import PhaseName, Policy
from guardrails.ro_lock import LockViolation, Offer, State, walk
from guardrails.runs import judge_fault
from guardrails.stages import ExtraJudge, Outcome
from guardrails.tree import Tree
from guardrails.verdict import Decision, Stage, Verdict

LAYERS = frozenset(
    ("patch", "static", "protected", "lock", "tests", "coverage", "acceptance", "hidden", "references")
    + ("probes", "mutants", "extra")
)
RUNS = LAYERS - {"patch", "static", "protected", "lock", "extra"}
#: Stages whose passing is remembered: their answer depends on nothing but the question.
KEPT = frozenset(("static", "protected", "acceptance", "hidden", "probes", "mutants"))


def check(
    tree: Tree,
    patch: bytes,
    phase: PhaseName,
    policy: Policy,
    *,
    after: bytes | None = None,
    then: bytes | None = None,
    seed: int = 0,
    attempt: int = 0,
    secret: bytes = b"",
    environment: GateEnvironment | None = None,
    bench: Bench | None = None,
    stop_at_first_refusal: bool = True,
    layers: Collection[str] = LAYERS,
    cache: MutableMapping[str, Any] | None = None,
    extra_judges: Sequence[ExtraJudge] = (),
    cycle: str = "",
) -> Verdict:
    """Judge a patch against a tree.

    With `after`, a tests patch, logic is judged on the tree after it, and the two as a pair: a new test may fail
    before the logic and must pass after. With `then`, the logic patch to come, tests are judged as the first
    part of such a pair. `layers` leaves stages out, for an ablation; such a verdict
    says so and allows nothing. `environment` names the interpreters; `bench` stands in for a sandbox. `cycle` names the
    lock's cycle; without one it is named by what is judged.
    """
    known = cache if cache is not None else {}
    asked = (policy, seed, attempt, secret, frozenset(layers), known, environment, stop_at_first_refusal)
    gate = _Gate(tree, patch, phase, *asked, extra_judges, bench, then)
    try:
        if then is not None:
            gate = gate.remembered()
        else:
            if after is not None:
                gate.pair(after)
            gate.run()
    finally:
        if gate.bench is not None:
            gate.bench.rest()
    return gate.locked(gate.verdict(), cycle)


class _Gate(NewTests):
    """The order of the stages and what they come to."""

    def run(self) -> None:
        """Run the stages until one refuses, or all of them where nothing stops."""
        refused = bool(self.findings) or (self.tests is not None and self.tests.decision != "pass")
        for name, step in self.steps():
            on = self.layers & (RUNS if name == "sandbox" else {name})
            if refused and (self.stop or self.result is None or self.failed()):
                self.stages.append(Stage(name, "skipped"))
            elif on or name == "patch":
                refused = not self.stage(name, step) or refused
            if not on:
                self.stages = [item for item in self.stages if item.name != name] + [Stage(name, "off")]

    def steps(self) -> Iterator[tuple[str, Callable[[], Outcome]]]:
        """Yield the stages of the phase, cheapest first."""
        yield "patch", self.judge_patch
        yield "static", lambda: self.judge_static("static")
        yield "protected", lambda: self.judge_static("protected")
        yield "lock", self.judge_lock
        yield "sandbox", self.judge_sandbox
        if self.phase == "tests":
            yield "tests", self.judge_new_tests
            yield "references", self.judge_references
        else:
            yield "tests", self.judge_tests
            yield "coverage", self.judge_coverage
            if self.unproved:
                yield "references", self.judge_pair_tests
            yield "acceptance", self.judge_acceptance
            yield "hidden", self.judge_hidden
            yield "probes", self.judge_probes
            yield "mutants", self.judge_mutants
        yield "extra", self.judge_extra

    def stage(self, name: str, step: Callable[[], Outcome]) -> bool:
        """Run one stage. This is the boundary where any exception becomes a refusal."""
        began = time.monotonic()
        try:
            found, evidence = self.answer(name, step)
            status: Any = "refuse" if found else "pass"
        except Exception as error:  # noqa: BLE001  a check that crashed refuses, whatever it was
            found = judge_fault(name, f"{type(error).__name__}: {error}")
            evidence, status = {}, "error"
        self.findings += found
        self.stages.append(Stage(name, status, time.monotonic() - began, evidence))
        return not found

    def answer(self, name: str, step: Callable[[], Outcome]) -> Outcome:
        """Run a stage, or remember that it passed on the same question. A refusal is found out anew."""
        if name not in KEPT:
            return step()
        key = f"stage:{name}:{self.question(name)}"
        if key in self.cache:
            evidence = self.cache[key]
            if name == "mutants":
                self.measured["mutation"] = evidence
            return [], {**evidence, "cached": True}
        found, evidence = step()
        if not found:
            self.cache[key] = evidence
        return found, evidence

    def question(self, name: str) -> str:
        """Return the digest of all that a stage's answer depends on, beside the gate itself, which is this process."""
        absent = sorted((path, sorted(names)) for path, names in self.absent.items())
        parts: list[object] = [self.base.digest(), self.tree().digest(), self.phase, self.policy.digest]
        parts += [absent, self.then]
        if name in RUNS:
            parts += [self.seed, self.attempt, self.secret, self.environment, self.ready().profile]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def failed(self) -> bool:
        """Say whether some stage could not finish."""
        return any(item.status == "error" for item in self.stages)

    def verdict(self) -> Verdict:
        """Return what the stages came to. Everything on and passed, or no pass."""
        tests, bench = self.tests, self.bench
        decision: Decision = "pass" if self.stages and self.result is not None else "error"
        if self.findings or (tests and tests.decision != "pass"):
            decision = "refuse"
        if self.failed() or (tests and tests.decision == "error"):
            decision = "error"
        return Verdict(
            decision=decision,
            phase=self.phase,
            findings=tuple(sorted(set(self.findings))),
            stages=tuple(self.stages),
            base_tree=self.base.digest(),
            result_tree=self.result.digest() if self.result is not None else "",
            patch_digest=hashlib.sha256(self.patch).hexdigest(),
            canonical_diff=self.canonical.decode("utf-8", "replace"),
            policy_digest=self.policy.digest,
            sandbox={"profile": bench.profile, "canaries": dict(bench.canaries)}
            if bench
            else {"profile": "none", "canaries": {}},
            coverage=self.measured.get("coverage", {}),
            mutation=self.measured.get("mutation", {}),
            attempt=self.attempt,
            repairs=self.repairs,
            tests=tests.to_json() if tests else None,
        )

    def locked(self, verdict: Verdict, cycle: str) -> Verdict:
        """Take the lock through its cycle as judged. What it forbids is no pass, whatever the stages said."""
        tests, phase = self.tests, State.TEST_GENESIS if self.phase == "tests" else State.LOGIC_GENESIS
        offers = [Offer(phase, verdict.patch_digest, self.result or self.base, verdict.allowed)]
        if tests is not None:
            offers.insert(0, Offer(State.TEST_GENESIS, tests.patch_digest, self.base, tests.decision == "pass"))
        judged = "".join((self.opened.digest(), *(offer.patch for offer in offers)))
        try:
            made = walk(cycle or hashlib.sha256(judged.encode()).hexdigest(), self.opened, offers, self.policy)
        except LockViolation as error:
            found = (*verdict.findings, *judge_fault("lock", str(error)))
            return replace(verdict, decision="error", findings=tuple(sorted(set(found))))
        return replace(verdict, transitions=tuple(step.predicate() for step in made))

    def pair(self, after: bytes) -> None:
        """Judge the tests patch first, or remember how it was judged; logic is judged on the tree after it."""
        known = replace(self, patch=after, phase="tests", extra=(), then=self.patch).remembered()
        self.bench = known.bench if self.bench is None else self.bench
        self.tests, self.base = known.verdict(), known.result or self.base
        self.absent, self.unproved = known.absent, known.unproved

    def remembered(self) -> _Gate:
        """Run the first part of a pair, or return it as it was run before and passed."""
        parts = [self.secret, self.patch, self.then or b"", self.base.digest().encode(), self.policy.digest.encode()]
        asked = f"{self.seed}:{self.attempt}:{sorted(self.layers)}:{self.stop}:{len(self.extra)}"
        key = f"pair:{':'.join(hashlib.sha256(part).hexdigest() for part in parts)}:{asked}"
        known: _Gate = self.cache.get(key, self)
        if known is self:
            self.run()
            if self.verdict().decision == "pass":
                self.cache[key] = self
        return known

"""The gate: one patch in, one verdict out, cheapest stage first. A stage that crashes refuses."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from guardrails.acceptance import (
    PROPERTIES,
    failing_cases,
    failing_properties,
    failing_scenarios,
    parameters_of,
    read_cases,
)
from guardrails.bench import Bench, open_bench
from guardrails.checks.codes import finding
from guardrails.checks.index import Module, build_index
from guardrails.checks.named import function_lines, named_lines, number_lines, skipped_bodies, statement_lines
from guardrails.checks.parameters import read_parameters
from guardrails.checks.static import judge_static
from guardrails.environment import GateEnvironment
from guardrails.mutation import Mutant
from guardrails.patch import changed_lines, judge_patch
from guardrails.policy import PhaseName, Policy
from guardrails.ro_lock import Anchors, seed_for
from guardrails.runs import (
    TestRun,
    changed_coverage,
    claims_defect,
    judge_coverage,
    judge_extra,
    judge_fault,
    judge_lock,
    judge_mutants,
    judge_new_tests,
    judge_numbers,
    judge_pair,
    judge_probes,
    judge_profile,
    judge_run,
    judge_share,
    judge_steady,
    shares,
)
from guardrails.tree import Tree
from guardrails.verdict import Decision, Finding, Stage, Verdict

LAYERS = frozenset(
    ("patch", "static", "protected", "lock", "tests", "coverage", "acceptance", "hidden", "references")
    + ("probes", "mutants", "extra")
)
RUNS = LAYERS - {"patch", "static", "protected", "lock", "extra"}
Outcome = tuple[list[Finding], dict[str, Any]]


class ExtraJudge(Protocol):
    """A judge of the service's own, such as the promotion rule: a reason to refuse or none, and evidence."""

    name: str

    def __call__(self, base: Tree, result: Tree, phase: PhaseName) -> tuple[str, Mapping[str, Any]]:
        """Judge the resulting tree against the base."""
        ...


def check(
    tree: Tree,
    patch: bytes,
    phase: PhaseName,
    policy: Policy,
    *,
    after: bytes | None = None,
    seed: int = 0,
    attempt: int = 0,
    secret: bytes = b"",
    environment: GateEnvironment | None = None,
    bench: Bench | None = None,
    stop_at_first_refusal: bool = True,
    layers: Collection[str] = LAYERS,
    cache: MutableMapping[str, Any] | None = None,
    extra_judges: Sequence[ExtraJudge] = (),
) -> Verdict:
    """Judge a patch against a tree.

    With `after`, a tests patch, logic is judged on the tree after it, and the two as a pair: the new tests
    must fail before the logic and pass after. `layers` leaves stages out, for an ablation; such a verdict
    says so and allows nothing. `environment` names the interpreters; `bench` stands in for a sandbox.
    """
    known = cache if cache is not None else {}
    asked = (policy, seed, attempt, secret, frozenset(layers), known, environment, stop_at_first_refusal)
    gate = _Gate(tree, patch, phase, *asked, extra_judges, bench)
    if after is not None:
        gate.pair(after)
    gate.run()
    return gate.verdict()


@dataclass
class _Gate:
    base: Tree
    patch: bytes
    phase: PhaseName
    policy: Policy
    seed: int
    attempt: int
    secret: bytes
    layers: frozenset[str]
    cache: MutableMapping[str, Any]
    environment: GateEnvironment | None
    stop: bool
    extra: Sequence[ExtraJudge]
    bench: Bench | None
    tests: Verdict | None = field(default=None, init=False)
    findings: list[Finding] = field(default_factory=list, init=False)
    stages: list[Stage] = field(default_factory=list, init=False)
    result: Tree | None = field(default=None, init=False)
    canonical: bytes = field(default=b"", init=False)
    repairs: tuple[str, ...] = field(default=(), init=False)
    changed: tuple[str, ...] = field(default=(), init=False)
    today: TestRun = field(default=TestRun({}), init=False)
    measured: dict[str, Any] = field(default_factory=dict, init=False)

    # -- order and outcome

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
            yield "acceptance", self.judge_acceptance
            yield "hidden", self.judge_hidden
            yield "probes", self.judge_probes
            yield "mutants", self.judge_mutants
        yield "extra", self.judge_extra

    def stage(self, name: str, step: Callable[[], Outcome]) -> bool:
        """Run one stage. This is the boundary where any exception becomes a refusal."""
        began = time.monotonic()
        try:
            found, evidence = step()
            status: Any = "refuse" if found else "pass"
        except Exception as error:  # noqa: BLE001  a check that crashed refuses, whatever it was
            found = judge_fault(name, f"{type(error).__name__}: {error}")
            evidence, status = {}, "error"
        self.findings += found
        self.stages.append(Stage(name, status, time.monotonic() - began, evidence))
        return not found

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

    # -- the pair

    def pair(self, after: bytes) -> None:
        """Judge the tests patch first, or remember how it was judged; logic is judged on the tree after it."""
        asked = (
            f"{self.seed}:{self.attempt}:{sorted(self.layers)}:{self.stop}:{hashlib.sha256(self.secret).hexdigest()}"
        )
        key = f"pair:{self.base.digest()}:{hashlib.sha256(after).hexdigest()}:{self.policy.digest}:{asked}"
        known = self.cache.get(key)
        if known is None:
            gate = replace(self, patch=after, phase="tests", extra=())
            gate.run()
            verdict, self.bench = gate.verdict(), gate.bench
            passed = verdict.decision == "pass"
            known = (verdict, gate.result, gate.new() if passed and "tests" in self.layers else None)
            if passed:
                self.cache[key] = known
        self.tests, result, new = known
        self.base = result or self.base
        self.findings += [] if new is None else judge_pair(new, self.policy.tests.defect_prefix)

    # -- stages

    def tree(self) -> Tree:
        """Return the resulting tree; without one no later stage may run."""
        if self.result is None:
            raise RuntimeError("Expected a resulting tree, was none")
        return self.result

    def judge_patch(self) -> Outcome:
        enforce = "patch" in self.layers
        judged = judge_patch(self.base, self.patch, self.phase, self.policy, enforce=enforce)
        self.result, self.canonical, self.repairs = judged.result, judged.canonical, judged.repairs
        self.changed = judged.changed
        return list(judged.findings), {"changed": list(judged.changed)}

    def judge_static(self, layer: str) -> Outcome:
        return judge_static(self.base, self.tree(), self.changed, self.phase, self.policy, {layer}), {}

    def judge_lock(self) -> Outcome:
        before, after = Anchors.of(self.base, self.policy), Anchors.of(self.tree(), self.policy)
        return judge_lock(before.changed(after), self.phase), {"before": vars(before), "after": vars(after)}

    def judge_sandbox(self) -> Outcome:
        bench = self.bench = self.bench or open_bench(self.environment, self.policy)
        return judge_profile(bench.profile, self.policy.sandbox.minimum), {"profile": bench.profile}

    def shown(self, tree: Tree) -> Tree:
        """Return what tests may see of a tree: everything but the baseline."""
        folder = self.policy.layout.baseline
        return Tree({path: data for path, data in tree.items() if not folder or not path.startswith(f"{folder}/")})

    def ready(self) -> Bench:
        """Return the bench; stages that need one come after the one that opens it."""
        if self.bench is None:
            raise RuntimeError("Expected an open sandbox, was none")
        return self.bench

    def run_of(self, tree: Tree, *, cover: bool = False) -> TestRun:
        """Return the run of all tests of a tree, from memory where it is known and was whole."""
        shown = self.shown(tree)
        key = f"tests:{cover}:{shown.digest()}:{self.policy.digest}:{self.environment}:{self.ready().profile}"
        run = self.cache.get(key)
        if run is None:
            run = self.ready().test(shown, cover=cover)
            if not run.fault:
                self.cache[key] = run
        found: TestRun = run
        return found

    def ids(self, tree: Tree) -> frozenset[str]:
        """Return the test ids of a tree that was judged before."""
        return frozenset(self.run_of(tree).outcomes)

    def tested(self) -> TestRun:
        """Return the run of the locked tests on the resulting tree."""
        self.today = self.run_of(self.tree(), cover=True)
        return self.today

    def judge_tests(self) -> Outcome:
        self.tested()
        evidence = {"tests": len(self.today.outcomes), "passed": len(self.today.passed())}
        return judge_run(self.today, self.ids(self.base)), evidence

    def judge_coverage(self) -> Outcome:
        statements, branches = shares(self.tested())
        changed = {path: rows for path, rows in self.code_lines(statement_lines).items() if path in self.today.lines}
        self.measured["coverage"] = {
            "statements": statements,
            "branches": branches,
            "files": len(self.today.lines),
            "changed": {
                path: {kind: {"possible": possible, "missed": missed} for kind, (possible, missed) in kinds.items()}
                for path, kinds in changed_coverage(self.today, changed).items()
            },
        }
        if not self.today.lines:
            return [finding("GR510", "", 0, "none", "a coverage report")], {}
        return judge_coverage(self.today, changed, self.policy.coverage), self.measured["coverage"]

    def code_lines(self, around: Callable[[Module, Collection[int]], set[int]]) -> dict[str, set[int]]:
        """Return the lines of the package around what changed: statements as coverage counts them, or functions."""
        index, _ = build_index(self.tree(), self.policy)
        lines = changed_lines(self.base, self.tree())
        return {
            module.path: around(module, lines[module.path]) for module in index.modules.values() if module.path in lines
        }

    def judge_acceptance(self) -> Outcome:
        bench, folder = self.ready(), self.policy.layout.baseline
        baseline = self.base.under(folder) if folder else Tree({})
        cases = read_cases(baseline, folder)
        failing = failing_cases(cases, lambda: bench.worker(self.tree(), {}))
        own = parameters_of(read_parameters(self.tree().get(self.policy.layout.parameters, b"")) or {})
        scenarios, missed = failing_scenarios(baseline, own, lambda params: bench.worker(self.tree(), params))
        total, done = len(cases) + scenarios, len(cases) + scenarios - len(failing) - len(missed)
        found = judge_share("GR601", done, total, 1.0, "golden cases and scenarios met")
        return found, {"cases": len(cases), "scenarios": scenarios, "failing": [*failing, *missed]}

    def judge_hidden(self) -> Outcome:
        layout, bench = self.policy.layout, self.ready()
        if not self.policy.acceptance.strategy:
            return [], {"properties": 0}
        values = read_parameters(self.tree().get(layout.parameters, b"")) or {}
        seed = seed_for(self.secret, self.seed, self.attempt, "hidden")
        failing = failing_properties(self.policy, values, lambda params: bench.worker(self.tree(), params), seed)
        waived = self.policy.acceptance.waived
        tried = len(set(PROPERTIES) - set(waived))
        held = judge_share("GR602", tried - len(failing), tried, 1.0, "hidden properties held")
        return held, {"failing": sorted(failing), "waived": dict(waived)}

    def judge_probes(self) -> Outcome:
        run, index = self.tested(), build_index(self.tree(), self.policy)[0]
        every = {(path, line) for path, (possible, covered) in run.lines.items() for line in possible & covered}
        for module in index.modules.values():
            bodies, (_, taken) = skipped_bodies(module), run.branches.get(module.path, (frozenset(), frozenset()))
            # A branch past a body has no line of its own: its probe is an else, asked for by the negative line.
            every |= {(module.path, -a) for a, b in taken if a in bodies and b not in bodies[a]}
        rows = self.code_lines(statement_lines)
        must = {place for place in every if abs(place[1]) in rows.get(place[0], ())}
        rest = sorted(every - must)
        chance = random.Random(seed_for(self.secret, self.seed, self.attempt, "probes"))
        places = sorted(must) + chance.sample(rest, min(len(rest), max(0, self.policy.coverage.probes)))
        found = judge_probes(self.ready().unreached(self.shown(self.tree()), places))
        return found, {"probed": len(places), "changed": len(must)}

    def judge_mutants(self) -> Outcome:
        rules, lines = self.policy.mutation, self.code_lines(function_lines)
        seed = seed_for(self.secret, self.seed, self.attempt, "mutants")
        shown = self.shown(self.tree())
        numbers = self.code_lines(number_lines)
        tried = self.ready().mutants(shown, lines, seed=seed, most=rules.most, numbers=numbers) if lines else ()
        self.measured["mutation"] = _mutation(tried, "no function of the package changed")
        found = judge_mutants([end for _, end in tried], rules.minimum)
        return found + judge_numbers(tried, numbers), self.measured["mutation"]

    # -- new tests

    def new(self) -> list[str]:
        """Return the ids that the patch added."""
        return sorted(frozenset(self.today.outcomes) - self.ids(self.base))

    def judge_new_tests(self) -> Outcome:
        shown, rules, bench = self.shown(self.tree()), self.policy.tests, self.ready()
        self.today = self.run_of(self.tree())
        new = self.new()
        found = judge_new_tests(new, self.today, rules.defect_prefix)
        old = {name: outcome for name, outcome in self.today.outcomes.items() if name not in new}
        found += judge_run(TestRun(old), self.ids(self.base)) if not found else []
        if not found:
            chance = random.Random(seed_for(self.secret, self.seed, self.attempt, "order"))
            # All together once; the new ones among themselves; and one case of each function alone.
            orders = [bench.test(shown, shuffle=chance.getrandbits(32))]
            orders += [bench.test(shown, only=new, shuffle=chance.getrandbits(32)) for _ in range(rules.repeats - 1)]
            first = {name.partition("[")[0]: name for name in reversed(new)}
            found += judge_steady([self.today, *orders, *(bench.test(shown, only=[name]) for name in first.values())])
        claims = sum(claims_defect(name, rules.defect_prefix) for name in new)
        return found, {"new": len(new), "defects": claims}

    def judge_references(self) -> Outcome:
        """Run the new tests on curated versions and on mutants of the code they name."""
        new, bench, rules = self.new(), self.ready(), self.policy.tests
        good, bad = self.references("good"), self.references("bad")
        kept = sum(self.keeps(bench.test(self.shown(tree), only=new), new) for tree in good)
        found = judge_share("GR704", kept, len(good), 1.0, "good references passed")
        sound = [name for name in new if not claims_defect(name, rules.defect_prefix)]
        lines = self.named_lines()
        near = [tree for tree in bad if any(tree.get(path) != self.base.get(path) for path in lines)] if sound else []
        killed = sum(bool(bench.test(self.shown(tree), only=sound).asserted) for tree in near)
        seed = seed_for(self.secret, self.seed, self.attempt, "references")
        tried: Sequence[tuple[Mutant, str]] = ()
        if lines and sound:
            most = self.policy.mutation.most
            tried = bench.mutants(self.shown(self.tree()), lines, seed=seed, most=most, only=sound)
            found += judge_mutants([end for _, end in tried], rules.kill_share, "GR705", spared=0)
        if sound and not tried:
            found.append(finding("GR705", "", 0, "none", "mutants of a function that the new tests name"))
        why = "every new test claims a defect" if not sound else "the new tests name no function of the package"
        self.measured["mutation"] = _mutation(tried, why) | {"bad": len(near), "bad_killed": killed}
        return found, {"good": len(good), "kept": kept, **self.measured["mutation"]}

    def keeps(self, run: TestRun, new: Collection[str]) -> bool:
        """Say whether a good version meets new tests. It may have the defect that some claim, but not break them."""
        claims = {name for name in new if claims_defect(name, self.policy.tests.defect_prefix)}
        shown = {name: "passed" if name in claims & run.asserted else end for name, end in run.outcomes.items()}
        return not judge_run(TestRun(shown, fault=run.fault), new)

    def references(self, kind: str) -> list[Tree]:
        """Return the tree once for each curated version: `base/` in place of the package, the version over it."""
        folder = f"{self.policy.layout.baseline}/references/"
        files = {path.removeprefix(folder): data for path, data in self.base.items() if path.startswith(folder)}
        start: dict[str, bytes | None] = {path: data for path, data in files.items() if path.startswith("base/")}
        start = {path.removeprefix("base/"): data for path, data in start.items()}
        package = dict.fromkeys(self.base.under(self.policy.package_folder)) if start else {}
        versions: dict[str, dict[str, bytes | None]] = {}
        for path, data in files.items():
            if path.startswith(f"{kind}/") and path.count("/") > 1:
                _, name, inner = path.split("/", 2)
                versions.setdefault(name, {**package, **start})[inner] = data
        return [self.tree().replace(changes) for _, changes in sorted(versions.items())]

    def named_lines(self) -> dict[str, set[int]]:
        """Return the lines of the package's functions and classes that the changed tests import by name."""
        return named_lines(self.tree(), self.changed, self.policy)

    def judge_extra(self) -> Outcome:
        found, evidence = list[Finding](), {}
        for judge in self.extra:
            reason, facts = judge(self.base, self.tree(), self.phase)
            evidence[judge.name] = dict(facts)
            found += judge_extra(judge.name, reason)
        return found, evidence


def _mutation(tried: Sequence[tuple[Mutant, str]], why_none: str) -> dict[str, Any]:
    """Return the figures of mutants, the survivors by place for whoever reviews, and why there were none."""
    ends = [end for _, end in tried]
    survivors = [vars(mutant) for mutant, end in tried if end in ("survived", "unreached")]
    counts: dict[str, Any] = {"made": len(ends), "mutants": len(ends) - ends.count("crashed")}
    counts |= {end: ends.count(end) for end in ("killed", "crashed", "survived", "unreached")}
    return counts | ({"survivors": survivors} if ends else {"none": why_none})

"""The stages of a logic patch: each asks one layer and returns its findings and evidence."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from guardrails.acceptance import (
    PROPERTIES,
    Alike,
    Before,
    Start,
    failing_cases,
    failing_properties,
    failing_scenarios,
    parameters_of,
    read_cases,
    scenarios_of,
)
from guardrails.bench import Bench, open_bench
from guardrails.bounded import judge_bounded
from guardrails.checks.absent import absent_names, with_absent
from guardrails.checks.choices import new_choices
from guardrails.checks.codes import finding
from guardrails.checks.index import Module, build_index
from guardrails.checks.instead import PART, SWAP, fewer, instead, new_statements, renamed
from guardrails.checks.named import (
    function_lines,
    new_numbers,
    skipped_bodies,
    statement_lines,
)
from guardrails.checks.parameters import read_parameters
from guardrails.checks.static import STATIC_LAYERS
from guardrails.decisions import Compared
from guardrails.environment import GateEnvironment
from guardrails.mutation import CHOICE, LIKE, Mutant
from guardrails.odd import breaks, decides_alike
from guardrails.patch import changed_lines, judge_patch
from guardrails.policy import PhaseName, Policy
from guardrails.ro_lock import Anchors, seed_for
from guardrails.runs import (
    TestRun,
    changed_coverage,
    judge_conditions,
    judge_coverage,
    judge_extra,
    judge_lock,
    judge_mutants,
    judge_numbers,
    judge_parts,
    judge_probes,
    judge_profile,
    judge_run,
    judge_share,
    judge_swaps,
    shares,
)
from guardrails.tree import Tree
from guardrails.untold import MOST_UNITS, TooManyUnits, as_before
from guardrails.verdict import Finding, Stage, Verdict

Outcome = tuple[list[Finding], dict[str, Any]]
#: Share of the memory and time of production in made-up markets: there are longer and wider ones in the world.
TRIAL = 0.25
#: Changes that are tried in what a patch brings, at most: each is a run of the tests that reach it.
MOST_ASKED = 2_000
#: By this name a policy waives that code which no test tells from the code before trades as it did.
ALIKE = "alike"
#: What stands among scenarios for inputs that no market has.
ODD = "odd inputs"


class ExtraJudge(Protocol):
    """A judge of the service's own, such as the promotion rule: a reason to refuse or none, and evidence."""

    name: str

    def __call__(self, base: Tree, result: Tree, phase: PhaseName) -> tuple[str, Mapping[str, Any]]:
        """Judge the resulting tree against the base."""
        ...


@dataclass
class Stages:
    """What is asked about, and what is known so far.

    `today` is the run of the tests on the code before, `opened` the tree before a pair's tests.
    """

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
    then: bytes | None
    tests: Verdict | None = field(default=None, init=False)
    findings: list[Finding] = field(default_factory=list, init=False)
    stages: list[Stage] = field(default_factory=list, init=False)
    result: Tree | None = field(default=None, init=False)
    canonical: bytes = field(default=b"", init=False)
    repairs: tuple[str, ...] = field(default=(), init=False)
    changed: tuple[str, ...] = field(default=(), init=False)
    today: TestRun = field(default=TestRun({}), init=False)
    absent: Mapping[str, Collection[str]] = field(default_factory=dict, init=False)
    unproved: Collection[str] = field(default=(), init=False)
    measured: dict[str, Any] = field(default_factory=dict, init=False)
    opened: Tree = field(init=False)
    read: list[Finding] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.opened = self.base

    def to_come(self) -> Tree | None:
        """Return the tree after the logic that follows these tests, or none where none is known or it does not fit."""
        return judge_patch(self.tree(), self.then, "logic", self.policy).result if self.then is not None else None

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
        come = self.to_come() if judged.result is not None else None
        self.absent = absent_names(self.base, come, self.policy) if come is not None else self.absent
        return list(judged.findings), {"changed": list(judged.changed)}

    def judge_static(self, layer: str) -> Outcome:
        if self.read is None:  # both layers in one go; where that came to no end, each says so
            asked = self.base, self.tree(), self.changed, self.phase, self.policy, STATIC_LAYERS, self.to_come()
            self.read = judge_bounded(*asked)
        return [item for item in self.read if item.layer not in STATIC_LAYERS - {layer}], {}

    def judge_lock(self) -> Outcome:
        before, after = Anchors.of(self.base, self.policy), Anchors.of(self.tree(), self.policy)
        return judge_lock(before.changed(after), self.phase), {"before": vars(before), "after": vars(after)}

    def judge_sandbox(self) -> Outcome:
        bench = self.bench = self.bench or open_bench(self.environment, self.policy)
        return judge_profile(bench.profile, self.policy.sandbox.minimum), {"profile": bench.profile}

    def shown(self, tree: Tree) -> Tree:
        """Return what tests may see of a tree: everything but the baseline, and names to come as absent."""
        folder, tree = self.policy.layout.baseline, with_absent(tree, self.absent, self.policy)
        return Tree({path: data for path, data in tree.items() if not folder or not path.startswith(f"{folder}/")})

    def ready(self) -> Bench:
        """Return the bench; stages that need one come after the one that opens it."""
        if self.bench is None:
            raise RuntimeError("Expected an open sandbox, was none")
        return self.bench

    def run_of(self, tree: Tree, *, cover: bool = False, strict: bool = False) -> TestRun:
        """Return the run of all tests of a tree, from memory where it is known and was whole."""
        shown = self.shown(tree)
        key = f"tests:{cover}:{strict}:{shown.digest()}:{self.policy.digest}:{self.environment}:{self.ready().profile}"
        run = self.cache.get(key)
        if run is None:
            run = self.ready().test(shown, cover=cover, strict=strict)
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
        found = judge_run(self.today, self.ids(self.base))
        # Once more without a warning. Nothing else is judged by this run: code could tell it from the worker.
        return found or judge_run(self.run_of(self.tree(), strict=True), self.ids(self.base)), evidence

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
        own, old = (
            parameters_of(read_parameters(tree.get(self.policy.layout.parameters, b"")) or {})
            for tree in (self.tree(), self.base)
        )
        seed = seed_for(self.secret, self.seed, self.attempt, "scenarios")
        key = f"{seed}:{self.base.digest()}:{self.policy.digest}:{self.environment}:{bench.profile}"
        known = self.cache.setdefault("before", {})
        if key not in known:  # of one seed alone: the next asks of other worlds
            known.clear()
            known[key] = ({}, {})
        before = Before(partial(bench.worker, self.base, share=TRIAL), old, *known[key])
        try:
            free = not self.policy.acceptance.strategy or ALIKE in self.policy.acceptance.waived
            plain = self.tree() if free else self.as_before()
        except TooManyUnits as many:
            expected = f"at most {MOST_UNITS} changed functions and constants where tests demand some of them"
            return [finding("GR102", "", 0, f"{many}", expected)], {}
        if self.same_code(plain, self.tree()):
            alike = None
        else:
            part = Before(partial(bench.worker, plain, share=TRIAL), own)
            alike = Alike(before if self.same_code(plain, self.base) else part, self.policy.bounds, self.good())
        scenarios, missed, other = failing_scenarios(
            baseline,
            own,
            partial(bench.worker, self.tree(), share=TRIAL),
            seed,
            before,
            alike,
            tuned=self.same_code(self.tree(), self.base),
        )
        small = [content.get("params", {}) for _, content in scenarios_of(baseline) if "trend" in content]
        given, trial = [own, *({**own, **params} for params in small)], partial(bench.worker, self.tree(), share=TRIAL)
        if not missed and not other and alike:
            other = [] if decides_alike(alike, trial, given, seed) else [ODD]
        asked = bool(alike and alike.code is before) or self.same_code(self.tree(), self.base)
        if not missed and not other and not asked and self.policy.acceptance.strategy:
            scenarios, missed = scenarios + 1, [ODD] if breaks(before, trial, given, self.policy, seed) else []
        total, done = len(cases) + scenarios, len(cases) + scenarios - len(failing) - len(missed)
        found = judge_share("GR601", done, total, 1.0, "golden cases and scenarios met")
        every = scenarios + bool(alike)
        found += judge_share("GR603", every - len(other), every, 1.0, "markets and odd inputs decided as before")
        evidence = {"cases": len(cases), "scenarios": scenarios, "failing": [*failing, *missed], "otherwise": other}
        untold = "nothing" if alike is None else "all" if alike.code is before else "a part"
        markets, odd = Compared.all(before.compared), Compared.all(before.odd_compared)
        return found, evidence | {"untold": untold, **vars(markets), "odd": vars(odd)}

    def as_before(self) -> Tree:
        """Return the tree with those changes of the code put back that no test misses: see `guardrails.untold`."""
        return as_before(
            self.base, self.tree(), self.policy, lambda tree: not judge_run(self.run_of(tree), self.ids(self.base))
        )

    def good(self) -> Start | None:
        """Return how the curated version is started that all others stand on, or none where there is none."""
        folder = f"{self.policy.layout.baseline}/references/base/"
        curated = {path.removeprefix(folder): data for path, data in self.base.items() if path.startswith(folder)}
        package = dict.fromkeys(self.base.under(self.policy.package_folder))
        return partial(self.ready().worker, self.base.replace({**package, **curated})) if curated else None

    def same_code(self, one: Tree, other: Tree) -> bool:
        """Say whether two trees have the same package."""
        folder = self.policy.package_folder
        return one.under(folder).digest() == other.under(folder).digest()

    def judge_hidden(self) -> Outcome:
        layout, bench = self.policy.layout, self.ready()
        if not self.policy.acceptance.strategy:
            return [], {"properties": 0}
        values = read_parameters(self.tree().get(layout.parameters, b"")) or {}
        seed = seed_for(self.secret, self.seed, self.attempt, "hidden")
        failing = failing_properties(
            self.policy, values, lambda params: bench.worker(self.tree(), params, share=TRIAL), seed
        )
        waived = self.policy.acceptance.waived
        tried = len(set(PROPERTIES) - set(waived))  # what else is waived is asked elsewhere
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
        found = judge_probes(self.ready().unreached(self.shown(self.tree()), places, must))
        return found, {"probed": len(places), "changed": len(must)}

    def judge_mutants(self) -> Outcome:
        rules, lines = self.policy.mutation, self.code_lines(function_lines)
        seed = seed_for(self.secret, self.seed, self.attempt, "mutants")
        shown = self.shown(self.tree())
        before, now = (
            {module.path: module for module in build_index(tree, self.policy)[0].modules.values()}
            for tree in (self.base, self.tree())
        )
        rows = {
            path: {*lines}
            - (renamed(now[path].tree, before[path].tree) if path in now.keys() & before.keys() else set())
            for path, lines in changed_lines(self.base, self.tree()).items()
        }
        numbers, must = dict[str, set[tuple[int, int]]](), dict[str, set[tuple[int, ...]]]()
        for path in now.keys() & rows.keys():
            standing = before.get(path)
            numbers[path] = new_numbers(now[path], standing, rows[path])
            choices = new_choices(now[path].tree, standing.tree if standing else None, rows[path])
            must[path] = {*numbers[path], *choices, *(place[:2] for place in choices)}
        names, pair = (
            self.parameters(),
            [{path: module.tree for path, module in each.items()} for each in (now, before)],
        )
        other = instead(pair[0], pair[1], rows, names, LIKE, self.curated())
        statements = new_statements(pair[0], pair[1], rows, self.curated())
        for path, places in statements.items():
            must[path] |= places
        asked = sum(len(found) for spans in other.values() for found in spans.values()) + sum(map(len, must.values()))
        if asked > MOST_ASKED:
            return [finding("GR102", "", 0, f"{asked}", f"at most {MOST_ASKED} changes to try in what is new")], {}
        bench, most = self.ready(), rules.most
        tried = bench.mutants(shown, lines, seed=seed, most=most, must=must, others=other).ends if lines else ()
        self.measured["mutation"] = mutation_figures(tried, "no function of the package changed")
        found = judge_mutants([end for mutant, end in tried if mutant.kind not in (CHOICE, SWAP, PART)], rules.minimum)
        found += judge_numbers(tried, numbers) + judge_conditions(tried, rows) + judge_parts(tried, statements)
        found += judge_swaps(tried, fewer(pair[0], pair[1], names))
        return found, self.measured["mutation"]

    def curated(self) -> list[dict[str, ast.Module]]:
        """Return the modules of the curated good versions, what they stand on first: what they say needs no test."""
        folder, found = f"{self.policy.layout.baseline}/references/", dict[str, dict[str, ast.Module]]()
        for path in sorted(self.base) if self.policy.layout.baseline else ():
            kind, _, inner = path.removeprefix(folder).partition("/")
            if path.startswith(folder) and kind in ("base", "good") and path.endswith(".py"):
                version = kind if kind == "base" else inner.partition("/")[0]
                found.setdefault(version, {})[path] = ast.parse(self.base[path])
        return list(found.values())

    def parameters(self) -> set[str]:
        """Return the names of the strategy's parameters, before and after."""
        path = self.policy.layout.parameters
        return {
            name
            for tree in (self.base, self.tree())
            for name in parameters_of(read_parameters(tree.get(path, b"")) or {})
        }

    def judge_extra(self) -> Outcome:
        found, evidence = list[Finding](), {}
        for judge in self.extra:
            reason, facts = judge(self.base, self.tree(), self.phase)
            evidence[judge.name] = dict(facts)
            found += judge_extra(judge.name, reason)
        return found, evidence


def mutation_figures(tried: Sequence[tuple[Mutant, str]], why_none: str) -> dict[str, Any]:
    """Return the figures of mutants, the survivors by place for whoever reviews, and why there were none."""
    ends = [end for _, end in tried]
    survivors = [vars(mutant) for mutant, end in tried if end in ("survived", "unreached")]
    counts: dict[str, Any] = {"made": len(ends), "mutants": len(ends) - ends.count("crashed")}
    counts |= {end: ends.count(end) for end in ("killed", "crashed", "survived", "unreached")}
    return counts | ({"survivors": survivors} if ends else {"none": why_none})

"""Cross-validation of new tests: on today's code, in any order, on curated versions and on mutants."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import replace

from guardrails.bench import Tried
from guardrails.checks.codes import finding
from guardrails.checks.named import (
    Unit,
    function_lines,
    lines_of,
    named_units,
)
from guardrails.mutation import Mutant
from guardrails.patch import changed_lines
from guardrails.ro_lock import seed_for
from guardrails.runs import (
    TestRun,
    claims_defect,
    judge_mutants,
    judge_new_tests,
    judge_pace,
    judge_run,
    judge_share,
    judge_steady,
)
from guardrails.stages import Outcome, Stages, mutation_figures
from guardrails.tree import Tree
from guardrails.verdict import Finding

#: New tests that reach so many mutants of a function which they name, and tell none from the original, do not test it.
LEAST_REACHED = 3
#: Share of the memory and time of a run of tests that all tests may take once new ones join them.
SPARE = 0.5
#: Processor seconds that a new test may take: all later verdicts run it many times.
MOST_SECONDS = 3.0


class NewTests(Stages):
    """The stages of a tests patch, alone or as the first part of a pair."""

    def new(self) -> list[str]:
        """Return the ids that the patch added, or changed on a person's word."""
        return sorted(frozenset(self.today.outcomes) - self.standing())

    def standing(self) -> set[str]:
        """Return the ids that must go on holding: those of the base, but for what a person lets the patch change."""
        freed = [name for name in self.policy.tests.may_change if name.partition("::")[0] in self.changed]
        return {name for name in self.ids(self.base) if "::".join(name.partition("[")[0].split("::")[:2]) not in freed}

    def judge_new_tests(self) -> Outcome:
        shown, rules, bench = self.shown(self.tree()), self.policy.tests, self.ready()
        self.today = self.run_of(self.tree())
        new = self.new()
        if self.then is not None and not self.claims():
            self.then = None  # no pair but two patches, one after the other: the tests are judged as such
        found = judge_new_tests(new, self.today, rules.defect_prefix, self.then is not None)
        self.unproved = sorted(set(new) - (self.claims() & self.today.asserted)) if self.then is not None else ()
        found += judge_pace({name: self.today.seconds.get(name, 0.0) for name in new}, MOST_SECONDS)
        old = {name: outcome for name, outcome in self.today.outcomes.items() if name not in new}
        found += judge_run(TestRun(old), self.standing()) if not found else []
        if not found:
            chance = random.Random(seed_for(self.secret, self.seed, self.attempt, "order"))
            # All together once, as a logic phase will run them, with room to spare and without a warning; the new ones
            # among themselves, with sets in other orders; one case of each alone.
            orders = [bench.test(shown, shuffle=chance.getrandbits(32), cover=True, strict=True, share=SPARE)]
            for hash_seed in range(1, rules.repeats):
                orders.append(bench.test(shown, only=new, shuffle=chance.getrandbits(32), hash_seed=hash_seed))
            first = {name.partition("[")[0]: name for name in reversed(new)}
            orders += [bench.test(shown, only=[name]) for name in first.values()]
            found += [item for run in orders if run.fault for item in judge_run(run, ())]
            found += judge_steady([self.today, *orders])
        return found, {"new": len(new), "defects": len(self.claims()), "unproved": list(self.unproved)}

    def judge_references(self) -> Outcome:
        """Run the new tests on curated versions and on mutants of the code they name."""
        new, bench = self.new(), self.ready()
        good, bad = self.references("good"), self.references("bad")
        runs = [bench.test(self.shown(tree), only=new) for tree in good]
        kept = sum(self.keeps(run, new) for run in runs)
        # What no curated version does is demanded by the author of these tests alone: for whoever reviews.
        alone = sorted(self.claims() - {name for run in runs for name in run.passed()})
        found = judge_share("GR704", kept, len(good), 1.0, "good references passed")
        sound = [name for name in new if name not in self.claims()] if self.then is None else []
        units = named_units(self.tree(), sound, self.policy)
        lines = lines_of(units)
        near = [tree for tree in bad if any(tree.get(path) != self.base.get(path) for path in lines)] if sound else []
        killed = sum(bool(bench.test(self.shown(tree), only=sound).asserted) for tree in near)
        seed = seed_for(self.secret, self.seed, self.attempt, "references")
        tried, idle = Tried()
        if lines and sound:
            most = self.policy.mutation.most
            tried, idle = bench.mutants(self.shown(self.tree()), lines, seed=seed, most=most, only=sound)
        found += self.judge_kills(tried, units) if sound else []
        why = "every new test claims a defect" if not sound else "the new tests name no function of the package"
        why = why if self.then is None else "tests of a pair are judged on what its logic changes"
        self.measured["mutation"] = mutation_figures(tried, why) | {"bad": len(near), "bad_killed": killed}
        told = {"alone": alone, "idle": list(idle)}
        return found, {"good": len(good), "kept": kept, **told, **self.measured["mutation"]}

    def keeps(self, run: TestRun, new: Collection[str]) -> bool:
        """Say whether a good version meets new tests. It may have the defect that some claim, but not break them."""
        may = self.claims() & (run.asserted | set(self.unproved))
        shown = {name: "passed" if name in may and end == "failed" else end for name, end in run.outcomes.items()}
        return not judge_run(TestRun(shown, fault=run.fault), new)

    def claims(self) -> set[str]:
        """Return the new tests that claim a defect: by their name, or in a pair by failing today."""
        prefix, pair = self.policy.tests.defect_prefix, self.then is not None
        failed = {name for name, outcome in self.today.outcomes.items() if pair and outcome == "failed"}
        return {name for name in self.new() if name in failed or claims_defect(name, prefix)}

    def judge_pair_tests(self) -> Outcome:
        """Judge a pair's tests that no assertion failed before: of the changed code they reach, mutants must die."""
        lines, only = self.code_lines(function_lines), [*self.unproved]
        seed = seed_for(self.secret, self.seed, self.attempt, "references")
        most = self.policy.mutation.most
        shown, tried, idle = self.shown(self.tree()), *Tried()
        if lines:
            tried, idle = self.ready().mutants(shown, lines, seed=seed, most=most, only=only)
        # What crashed before may be told from what crashes again, where there is little else to judge by.
        if sum(end in ("killed", "survived") for _, end in tried) < LEAST_REACHED:
            tried = [(mutant, "killed" if end == "crashed" else end) for mutant, end in tried]
        near = changed_lines(
            self.base, self.tree()
        )  # a unit that the logic changes in one place is judged by that place
        units = [
            replace(unit, lines=near.get(unit.path, set()) & {*unit.lines})
            for unit in named_units(self.tree(), only, self.policy)
        ]
        return self.judge_kills(tried, units), {
            "unproved": only,
            "idle": list(idle),
            **mutation_figures(tried, "no function of the package changed"),
        }

    def judge_kills(self, tried: Sequence[tuple[Mutant, str]], units: Sequence[Unit]) -> list[Finding]:
        """Judge new tests by the mutants that they reach: a share of all must die, and one of each unit they name."""
        reached = [(mutant, end) for mutant, end in tried if end != "unreached"]
        if not reached:
            return [finding("GR705", "", 0, "none", "mutants that the new tests reach")]
        found = judge_mutants([end for _, end in reached], self.policy.tests.kill_share, "GR705", spared=0)
        for unit in units:
            ends = [end for mutant, end in reached if mutant.path == unit.path and mutant.line in unit.lines]
            if len(ends) >= LEAST_REACHED and set(ends) == {"survived"}:
                found.append(finding("GR705", "", 0, "none", f"a mutant of {unit.name!r} to die"))
        return found

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

"""What a run in the sandbox must show: plain facts in, findings out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from guardrails.checks.codes import finding
from guardrails.checks.instead import PART, SWAP
from guardrails.mutation import CHOICE, CONDITIONS, NUMBERS, REMOVED, Mutant
from guardrails.policy import Coverage
from guardrails.verdict import Finding

Line = int
Arc = tuple[int, int]
#: The share of mutants that must end without a crash for their deaths to say anything.
LEAST_JUDGED = 0.1
#: How many characters of an expression a finding shows.
SHOWN = 80


@dataclass(frozen=True)
class TestRun:
    """One run of tests: outcome by id, the ids that failed by an assertion, and what was covered.

    `lines` and `branches` map a path to (possible, covered), `seconds` an id to the processor time it took. `fault`
    says how the run itself went wrong: time-out, crash, flood, or a report that does not add up.
    """

    __test__: ClassVar[bool] = False  # a record, not a test class

    outcomes: Mapping[str, str]
    asserted: frozenset[str] = frozenset()
    fault: str = ""
    lines: Mapping[str, tuple[frozenset[Line], frozenset[Line]]] = field(default_factory=dict)
    branches: Mapping[str, tuple[frozenset[Arc], frozenset[Arc]]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def passed(self) -> frozenset[str]:
        """Return the ids that passed."""
        return frozenset(name for name, outcome in self.outcomes.items() if outcome == "passed")


def judge_run(run: TestRun, expected: Collection[str]) -> list[Finding]:
    """Refuse a run that broke, tests that did not pass, and any id missing or added."""
    if run.fault:
        return [finding("GR503", "", 0, run.fault)]
    missing, added = set(expected) - set(run.outcomes), set(run.outcomes) - set(expected)
    findings = [finding("GR502", "", 0, "not run", f"the test {name!r}") for name in sorted(missing)]
    findings += [finding("GR502", "", 0, "run", f"no test {name!r}") for name in sorted(added)]
    for name, outcome in sorted(run.outcomes.items()):
        if outcome != "passed":
            findings.append(finding("GR501", "", 0, outcome, f"{name!r} to pass"))
    return findings


def shares(run: TestRun, paths: Collection[str] | None = None) -> tuple[float, float]:
    """Return the covered shares of statements and of branches, 1.0 where there is nothing to cover."""
    result = []
    for table in (run.lines, run.branches):
        chosen = [table[path] for path in table if paths is None or path in paths]
        possible = sum(len(p) for p, _ in chosen)
        covered = sum(len(p & c) for p, c in chosen)
        result.append(covered / possible if possible else 1.0)
    return result[0], result[1]


def judge_coverage(run: TestRun, changed: Mapping[str, Collection[Line]], policy: Coverage) -> list[Finding]:
    """Refuse shares below the policy, in all, per file and on changed lines, of statements and branches."""
    findings = []
    scopes = [("", policy.total, None), *((path, policy.per_file, [path]) for path in sorted(run.lines))]
    for path, least, paths in scopes:
        for kind, share in zip(("statements", "branches"), shares(run, paths), strict=True):
            if share < least:
                findings.append(finding("GR510", path, 0, f"{share:.1%}", f"{least:.0%} of {kind} covered"))
    for path, kinds in changed_coverage(run, changed).items():
        for kind, (possible, missed) in kinds.items():
            share = 1 - len(missed) / possible if possible else 1.0
            if share < policy.changed:
                expected = f"{policy.changed:.0%} of changed {kind} covered"
                findings.append(finding("GR511", path, missed[0], f"{share:.1%}", expected))
    return findings


def changed_coverage(
    run: TestRun, changed: Mapping[str, Collection[Line]]
) -> dict[str, dict[str, tuple[int, list[Line]]]]:
    """Return by path, for statements and for branches of the changed lines: how many, and where one was missed."""
    found = {}
    for path, numbers in sorted(changed.items()):
        possible, covered = run.lines.get(path, (frozenset(), frozenset()))
        arcs, taken = run.branches.get(path, (frozenset(), frozenset()))
        lines, forks = possible & set(numbers), {arc for arc in arcs if arc[0] in numbers}
        found[path] = {
            "statements": (len(lines), sorted(lines - covered)),
            "branches": (len(forks), sorted(start for start, _ in forks - taken)),
        }
    return found


def judge_probes(unreached: Collection[tuple[str, Line]]) -> list[Finding]:
    """Refuse what the report claims and no test notices when a raise stands there; -N: past the body of line N."""
    return [finding("GR512", path, abs(line), "not") for path, line in sorted(unreached)]


def judge_share(code: str, done: int, total: int, least: float, what: str) -> list[Finding]:
    """Refuse a share of killed mutants or references below what the policy asks."""
    if total == 0 or done / total >= least:
        return []
    return [finding(code, "", 0, f"{done} of {total}", f"{least:.0%} of {what}")]


def judge_mutants(ends: Sequence[str], least: float, code: str = "GR701", spared: int = 2) -> list[Finding]:
    """Refuse too many survivors among mutants, each killed (by an assertion), crashed, survived or unreached.

    A crash is no kill, since a suite without assertions has crashes too, and no survival, since it shows; where
    hardly any mutant was judged otherwise, nothing is known. `spared` survivors may be the same program said
    otherwise, so that few mutants are refused only where none died.
    """
    killed, judged = ends.count("killed"), len(ends) - ends.count("crashed")
    if judged < len(ends) * LEAST_JUDGED:
        expected = f"{LEAST_JUDGED:.0%} of mutants to end otherwise than by a crash"
        return [finding(code, "", 0, f"{judged} of {len(ends)}", expected)]
    survived = judged - killed
    if survived > spared or (killed == 0 and survived > spared // 2):
        return judge_share(code, killed, judged, least, "mutants killed")
    return []


def judge_numbers(
    tried: Sequence[tuple[Mutant, str]], places: Mapping[str, Collection[tuple[int, int]]]
) -> list[Finding]:
    """Refuse new numbers (line, column) that no test pins: a wrong bound there would pass as well as the right one."""
    return _told(
        "GR710",
        (
            mutant
            for mutant in _lived(tried)
            if mutant.kind in NUMBERS and (mutant.line, mutant.column) in places.get(mutant.path, ())
        ),
    )


def judge_swaps(tried: Sequence[tuple[Mutant, str]], fewer: Collection[str]) -> list[Finding]:
    """Refuse expressions of parameters in whose place another parameter may stand without any test failing.

    One other is let pass in place of a parameter alone, since two often have one value in tests; not where the package
    reads that one less often (`fewer`) than before.
    """
    others: dict[tuple[str, int, str], list[Mutant]] = {}
    for mutant in _lived(tried):
        if mutant.kind == SWAP:
            others.setdefault((mutant.path, mutant.line, mutant.before), []).append(mutant)
    return _told(
        "GR711",
        (
            mutant
            for (_, _, before), mutants in others.items()
            for mutant in mutants
            if len(mutants) > 1 or re.fullmatch(r"[\w.]+", before) is None or mutant.after.rpartition(".")[2] in fewer
        ),
    )


def judge_parts(
    tried: Sequence[tuple[Mutant, str]], statements: Mapping[str, Collection[tuple[int, int]]]
) -> list[Finding]:
    """Refuse new expressions in whose place a part of them, nothing or one does, and needless new statements.

    `statements` are the places (line, column) of new ones, by path.
    """
    return _told(
        "GR712",
        (
            mutant
            for mutant in _lived(tried)
            if mutant.kind == PART
            or (mutant.kind == REMOVED and (mutant.line, mutant.column) in statements.get(mutant.path, ()))
        ),
    )


def judge_conditions(tried: Sequence[tuple[Mutant, str]], rows: Mapping[str, Collection[Line]]) -> list[Finding]:
    """Refuse conditions on changed lines that may be turned round, and choices one side of which may be taken always,
    without any test failing."""
    return _told(
        "GR780",
        (
            mutant
            for mutant in _lived(tried)
            if mutant.kind == CHOICE or (mutant.kind in CONDITIONS and mutant.line in rows.get(mutant.path, ()))
        ),
    )


def _lived(tried: Sequence[tuple[Mutant, str]]) -> list[Mutant]:
    return [mutant for mutant, end in tried if end in ("survived", "unreached")]


def _told(code: str, loose: Iterable[Mutant]) -> list[Finding]:
    """Return one finding for each place where a mutant lived, with what stands there.

    The tests are open and these mutants follow from the patch alone: whoever asks could find out by himself.
    """
    places = sorted({(mutant.path, mutant.line, mutant.before) for mutant in loose})
    shown = [(path, line, text if len(text) <= SHOWN else f"{text[:SHOWN]}...") for path, line, text in places]
    return [finding(code, path, line, f"none for {text!r}") for path, line, text in shown]


def judge_new_tests(new: Collection[str], today: TestRun, prefix: str, pair: bool = False) -> list[Finding]:
    """Judge new tests on today's code: they pass; those that claim a defect fail by an assertion.

    In a pair a test may fail today whatever its name, and by what only the logic brings; who fails otherwise than by an
    assertion is judged once more after it.
    """
    if today.fault:
        return [finding("GR503", "", 0, today.fault)]
    if not new:
        return [finding("GR708", "", 0, "none")]
    findings = []
    for name in sorted(new):
        outcome, claims = today.outcomes.get(name, "absent"), claims_defect(name, prefix)
        if pair and outcome == "failed":
            continue
        if claims and not (outcome == "failed" and name in today.asserted):
            expected = f"{name!r} to fail on today's code by an assertion"
            findings.append(finding("GR703", "", 0, outcome, expected))
        elif not claims and outcome != "passed":
            findings.append(finding("GR702", "", 0, outcome, f"{name!r} to pass on today's code"))
    return findings


def judge_pace(seconds: Mapping[str, float], most: float) -> list[Finding]:
    """Refuse tests that take longer than all later verdicts can wait for."""
    slow = sorted(name for name, spent in seconds.items() if spent > most)
    return [finding("GR503", "", 0, "more", f"{name!r} to end within {most:g} processor seconds") for name in slow]


def claims_defect(name: str, prefix: str) -> bool:
    """Say whether a test id claims a defect of today's code."""
    return name.rsplit("::", 1)[-1].startswith(prefix)


def judge_steady(runs: Collection[TestRun]) -> list[Finding]:
    """Refuse tests whose outcome depends on order, company or repetition."""
    seen: dict[str, set[str]] = {}
    for run in runs:
        for name, outcome in run.outcomes.items():
            seen.setdefault(name, set()).add(outcome)
    unsteady = sorted(name for name, outcomes in seen.items() if len(outcomes) > 1)
    return [finding("GR706", "", 0, "several", f"one outcome of {name!r}") for name in unsteady]


def judge_profile(profile: str, minimum: str) -> list[Finding]:
    """Refuse a sandbox below the minimum."""
    if profile in ("S2", "S3") and profile >= minimum:
        return []
    return [finding("GR500", "", 0, f"{profile}", f"at least {minimum}")]


def judge_lock(changed: Collection[str], phase: str) -> list[Finding]:
    """Refuse a change outside the area of the phase."""
    foreign = set(changed) - {"source" if phase == "logic" else "tests"}
    return [finding("GR801", "", 0, f"{area}", f"{phase} to change its own area") for area in sorted(foreign)]


def judge_fault(stage: str, fault: str) -> list[Finding]:
    """Turn a fault of the judge itself into a finding: a check that crashed refuses."""
    return [finding("GR901", "", 0, f"{fault}", f"{stage} to finish")] if fault else []


def judge_extra(name: str, reason: str) -> list[Finding]:
    """Turn the reason of a judge from outside into a finding."""
    return [finding("GR902", "", 0, reason, f"{name} to agree")] if reason else []

"""Every code of the table: its accepted sample passes without it, its refused sample shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import guardrails
from guardrails.checks.codes import Code, codes, explain, finding
from guardrails.checks.instead import PART
from guardrails.checks.static import judge_static
from guardrails.mutation import Mutant
from guardrails.patch import agrees, judge_patch, parse_patch
from guardrails.policy import Coverage
from guardrails.runs import (
    TestRun,
    judge_conditions,
    judge_coverage,
    judge_extra,
    judge_fault,
    judge_lock,
    judge_mutants,
    judge_new_tests,
    judge_numbers,
    judge_parts,
    judge_probes,
    judge_profile,
    judge_run,
    judge_share,
    judge_steady,
    judge_swaps,
)
from guardrails.tree import Tree
from guardrails.verdict import Finding
from tests.unit.guardrails import small

FILLERS = {
    "{MANY}": "\n".join(f"+LINE_{at} = {at}" for at in range(1200)),
    "{TABLE}": "\n".join(f"-{row}" for row in small.TABLE),
    "{BELL}": "\x07",
    "{BIDI}": "\u202e",
    "{LONG}": "x" * 300,
    "{DEEP}": " + ".join(["1"] * 200),
}
STATIC = {
    "code": "src/strategy/sample.py",
    "test": "tests/generated/test_sample.py",
    "protected": "src/strategy/returns.py",
    "recalled": "src/strategy/window.py",
}


def judge(row: Code, sample: str) -> list[Finding]:
    for key, text in FILLERS.items():
        sample = sample.replace(key, text)
    base, policy = small.tree(), small.policy()
    if row.kind == "patch":
        return list(judge_patch(base, sample.encode(), "logic", policy).findings)
    if row.kind == "pair":
        shown, read = (part.lstrip("\n").encode() for part in sample.split("=== read as ===\n"))
        return [] if agrees(shown, parse_patch(read, policy.limits, [])) else [finding(row.code, "", 0, "")]
    if row.kind == "facts":
        return judge_facts(json.loads(sample))
    path = STATIC.get(row.kind, "strategy.toml") if row.code != "GR411" else "tests/generated/test_standing.py"
    if row.kind == "parameters":
        from guardrails.checks.parameters import judge_parameters

        return judge_parameters(base[path], base.replace({path: sample.encode()}), policy)
    result = base.replace({path: sample.lstrip("\n").encode()})
    return judge_static(base, result, [path], "tests" if row.kind == "test" else "logic", policy)


def judge_facts(facts: dict[str, Any]) -> list[Finding]:
    """Give facts of a run to the judge that they name."""
    run = TestRun(
        facts.get("outcomes", {}),
        frozenset(facts.get("asserted", ())),
        facts.get("fault", ""),
        {path: (frozenset(a), frozenset(b)) for path, (a, b) in facts.get("lines", {}).items()},
    )
    judges: dict[str, Callable[[], list[Finding]]] = {
        "profile": lambda: judge_profile(facts["profile"], facts["minimum"]),
        "run": lambda: judge_run(run, facts["expected"]),
        "coverage": lambda: judge_coverage(run, facts.get("changed", {}), Coverage(total=0.6, per_file=0.6)),
        "probes": lambda: judge_probes([(path, line) for path, line in facts["unreached"]]),
        "share": lambda: judge_share(facts["code"], facts["done"], facts["total"], facts["least"], "cases"),
        "mutants": lambda: judge_mutants(facts["ends"], 0.6),
        "numbers": lambda: judge_numbers(
            [(Mutant("a.py", line, kind, "1", "2"), end) for kind, line, end in facts["mutants"]], {"a.py": {(4, 0)}}
        ),
        "conditions": lambda: judge_conditions(
            [(Mutant("a.py", line, kind, "1", "2"), end) for kind, line, end in facts["mutants"]],
            {"a.py": {4}},
        ),
        "parts": lambda: judge_parts(
            [(Mutant("a.py", line, kind, "1", "2"), end) for kind, line, end in facts["mutants"]], {"a.py": {(4, 0)}}
        ),
        "swaps": lambda: judge_swaps(
            [(Mutant("a.py", line, kind, "p.a", f"p.{end}"), end) for kind, line, end in facts["mutants"]], ()
        ),
        "new": lambda: judge_new_tests(list(facts["outcomes"]), run, "test_defect_"),
        "steady": lambda: judge_steady([TestRun(outcomes) for outcomes in facts["runs"]]),
        "lock": lambda: judge_lock(facts["changed"], facts["phase"]),
        "fault": lambda: judge_fault("a stage", facts["fault"]),
        "extra": lambda: judge_extra("promotion", facts["reason"]),
    }
    return judges[facts["judge"]]()


@pytest.mark.parametrize("code", codes())
def test_a_code_accepts_and_refuses_its_samples(code: str) -> None:
    row = codes()[code]
    assert [item.code for item in judge(row, row.accepted)] == []
    assert code in {item.code for item in judge(row, row.refused)}


def test_what_lived_is_told_place_by_place() -> None:
    at = [(7, "min(rows, count)"), (7, "min(rows, count)"), (3, "x" * 200)]
    tried = [(Mutant("a.py", line, PART, before, f"{place}"), "survived") for place, (line, before) in enumerate(at)]
    long, short = judge_parts([*tried, (Mutant("a.py", 9, PART, "told", "0"), "killed")], {})
    assert (short.path, short.line) == ("a.py", 7) and "was none for 'min(rows, count)'" in short.reason
    assert long.line == 3 and long.reason.endswith("x...'.") and len(long.reason) < 200


def test_a_code_is_explained_in_full() -> None:
    for code, row in codes().items():
        text = explain(code.lower())
        assert row.why in text and row.fix in text and row.title in text


def test_each_code_in_the_source_is_in_the_table_and_the_reverse() -> None:
    folder = Path(guardrails.__file__).parent
    used = {code for path in folder.rglob("*.py") for code in re.findall(r'"(GR\d{3})"', path.read_text("utf-8"))}
    assert used == set(codes())


def test_nothing_is_found_in_a_tree_without_changes() -> None:
    base = small.tree()
    assert judge_static(base, Tree(dict(base)), [], "logic", small.policy()) == []

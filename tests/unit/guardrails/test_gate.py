"""The gate runs its stages in order, refuses on any doubt, and tells the proposer no more than it should.

Long, because all of it scripts one and the same bench.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import guardrails
from guardrails.acceptance import PROPERTIES, WorkerFault
from guardrails.bench import Tried
from guardrails.checks.absent import absent_names, with_absent
from guardrails.checks.codes import finding
from guardrails.checks.index import Module, parse_module
from guardrails.checks.instead import Instead
from guardrails.checks.named import new_numbers
from guardrails.environment import GateEnvironment
from guardrails.gate import LAYERS, check
from guardrails.mutation import Mutant, Place
from guardrails.policy import Acceptance
from guardrails.ro_lock import State
from guardrails.runs import TestRun
from guardrails.tree import Tree
from guardrails.verdict import Verdict
from tests.unit.guardrails import small
from tests.unit.guardrails.test_acceptance import TREND, ByDate, Momentum, Ranked, TenthLess
from tests.unit.guardrails.test_patch import EDIT

SCHEMA = json.loads((Path(guardrails.__file__).parent / "schemas" / "verdict.schema.json").read_text())
SIGNAL = "src/strategy/signal.py"
TESTS = b"""--- /dev/null
+++ b/tests/generated/test_loss.py
@@ -0,0 +1,5 @@
+from strategy.signal import change
+
+
+def test_defect_of_the_loss():
+    assert change(1.0, 3.0) == 1.0
"""
SOUND = TESTS.replace(b"test_defect_of_the_loss", b"test_more").replace(b"== 1.0", b"== 2.0")
LOCKED = ("tests/test_signal.py::test_change", "tests/generated/test_standing.py::test_standing")


@dataclass
class FakeBench:
    """Answer as a sandbox would, from a script."""

    profile: str = "S3"
    canaries: Mapping[str, Any] = field(default_factory=lambda: {"udp": "blocked"})
    strategy: type[Momentum] = Momentum
    fault: str = ""
    failing: Mapping[str, str] = field(default_factory=dict)
    uncovered: frozenset[int] = frozenset()
    lies: tuple[tuple[str, int], ...] = ()
    dead: tuple[int, int, int] = (9, 10, 12)
    crashing: bool = False
    new_kill: tuple[int, int] = (5, 6)
    new_crash: int = 0
    unsteady: bool = False
    seen: list[str] = field(default_factory=list)
    rested: bool = False

    def test(
        self,
        tree: Tree,
        *,
        only: Sequence[str] = (),
        shuffle: int | None = None,
        cover: bool = False,
        strict: bool = False,
        share: float = 1.0,
        hash_seed: int = 0,
    ) -> TestRun:
        self.seen.append("test")
        assert not any(path.startswith("baseline/") for path in tree)
        repaired = b"2.0 * first" in tree[SIGNAL]
        outcomes = dict.fromkeys(LOCKED, "passed")
        loss = tree.get("tests/generated/test_loss.py", b"").decode()
        asserted = set()
        for name in ("test_defect_of_the_loss", "test_plainly", "test_more"):
            if name in loss:
                key = f"tests/generated/test_loss.py::{name}"
                good = name == "test_more" or repaired
                outcomes[key] = "passed" if good and not (self.unsteady and shuffle is not None) else "failed"
                asserted |= set() if good or self.crashing else {key}
        outcomes |= {name: outcome for name, outcome in self.failing.items() if repaired}
        outcomes = {name: outcome for name, outcome in outcomes.items() if not only or name in only}
        lines = frozenset(range(1, 18))
        table = {SIGNAL: (lines, lines - self.uncovered)} if cover else {}
        return TestRun(outcomes, frozenset(asserted), self.fault if repaired else "", table)

    def unreached(self, tree: Tree, places: Sequence[Place], arms: Collection[Place] = ()) -> list[Place]:
        self.seen.append("probes")
        assert (SIGNAL, 8) in places and (SIGNAL, 8) in arms
        return list(self.lies)

    def mutants(
        self,
        tree: Tree,
        lines: Mapping[str, Collection[int]],
        *,
        seed: int,
        most: int,
        only: Sequence[str] = (),
        must: Mapping[str, Collection[tuple[int, ...]]] | None = None,
        others: Mapping[str, Instead] | None = None,
    ) -> Tried:
        self.seen.append("mutants")
        assert 8 in lines[SIGNAL]
        if only and b"2.0 * first" in tree[SIGNAL]:
            killed, reached = self.new_kill
            ends = ["killed"] * killed + ["survived"] * (reached - killed) + ["unreached"] * 3
            ends += ["crashed"] * self.new_crash
            return Tried(
                [(Mutant(SIGNAL, 8, "operator", "last - first", f"last * {at}"), end) for at, end in enumerate(ends)],
                only[:1],
            )
        killed, judged, made = self.dead
        ends = ["killed"] * killed + ["survived"] * (judged - killed) + ["crashed"] * (made - judged)
        return Tried(
            [(Mutant(SIGNAL, 8, "operator", "last - first", f"last + {at}"), end) for at, end in enumerate(ends)]
        )

    def rest(self) -> None:
        self.rested = True

    @contextmanager
    def worker(self, tree: Tree, params: Mapping[str, Any], *, share: float = 1.0) -> Iterator[Any]:
        self.seen.append("worker")
        yield Guarded(self.strategy({"window": 5, "min_price": 0.0, **params}))


class Guarded:
    """Fail as a worker does, whatever the strategy raises."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy

    def __getattr__(self, name: str) -> Any:
        def asked(*given: Any) -> Any:
            try:
                return getattr(self.strategy, name)(*given)
            except (ArithmeticError, LookupError, ValueError) as error:
                raise WorkerFault(str(error)) from error

        return asked


REPAIRED = small.SIGNAL.replace("last - first", "last - 2.0 * first")
CASE = {"function": "strategy.returns:total_return", "cases": [{"args": [3, 2], "expect": 0.5}]}
BASELINE = {
    "baseline/cases.json": json.dumps(CASE).encode(),
    f"baseline/references/good/plain/{SIGNAL}": REPAIRED.encode(),
    f"baseline/references/bad/flat/{SIGNAL}": small.SIGNAL.replace("last - first", "0.0").encode(),
}
POLICY = replace(small.policy(), acceptance=Acceptance("strategy:Strategy", sessions=60, symbols=6))


def judge(bench: FakeBench, patch: bytes = EDIT, phase: Any = "logic", **more: Any) -> Verdict:
    tree = small.tree().replace(dict(BASELINE))
    verdict = check(tree, patch, phase, POLICY, bench=bench, secret=b"s", **more)
    jsonschema.validate(verdict.to_json(), SCHEMA)
    return verdict


def codes(verdict: Verdict) -> set[str]:
    return {item.code for item in verdict.findings}


def statuses(verdict: Verdict) -> dict[str, str]:
    return {stage.name: stage.status for stage in verdict.stages}


def test_a_good_patch_passes_every_stage() -> None:
    verdict = judge(FakeBench())
    assert verdict.findings == () and verdict.allowed
    assert set(statuses(verdict).values()) == {"pass"}
    assert verdict.coverage["statements"] == 1.0 and verdict.mutation["killed"] == 9
    assert (verdict.mutation["made"], verdict.mutation["mutants"], verdict.mutation["crashed"]) == (12, 10, 2)
    assert verdict.sandbox == {"profile": "S3", "canaries": {"udp": "blocked"}}


@pytest.mark.parametrize(
    ("bench", "code", "stage"),
    [
        (FakeBench(profile="S0"), "GR500", "sandbox"),
        (FakeBench(fault="time-out"), "GR503", "tests"),
        (FakeBench(failing={LOCKED[0]: "failed"}), "GR501", "tests"),
        (FakeBench(failing={LOCKED[0]: "skipped"}), "GR501", "tests"),
        (FakeBench(failing={"tests/test_forged.py::test_x": "passed"}), "GR502", "tests"),
        (FakeBench(uncovered=frozenset({8})), "GR511", "coverage"),
        (FakeBench(uncovered=frozenset({1, 2, 3})), "GR510", "coverage"),
        (FakeBench(strategy=ByDate), "GR602", "hidden"),
        (FakeBench(lies=((SIGNAL, 8),)), "GR512", "probes"),
        (FakeBench(dead=(1, 10, 10)), "GR701", "mutants"),
        (FakeBench(dead=(0, 0, 8)), "GR701", "mutants"),
        (FakeBench(dead=(1, 1, 16)), "GR701", "mutants"),
    ],
)
def test_each_stage_refuses_and_the_rest_is_skipped(bench: FakeBench, code: str, stage: str) -> None:
    verdict = judge(bench)
    assert verdict.decision == "refuse" and code in codes(verdict)
    ran = statuses(verdict)
    after = list(ran)[list(ran).index(stage) + 1 :]
    assert ran[stage] == "refuse" and {ran[name] for name in after} <= {"skipped"}


def test_the_cheapest_stage_comes_first() -> None:
    bench = FakeBench()
    verdict = judge(bench, EDIT.replace(b"2.0 * first", b"open(first)"))
    assert codes(verdict) == {"GR202"} and bench.seen == []
    assert statuses(verdict)["tests"] == "skipped"


def test_nothing_is_skipped_where_all_findings_are_wanted() -> None:
    bench = FakeBench(dead=(0, 10, 10), lies=((SIGNAL, 8),))
    verdict = judge(bench, EDIT.replace(b"2.0 * first", b"2.0 * first  # noqa"), stop_at_first_refusal=False)
    assert codes(verdict) == {"GR230", "GR512", "GR701"} and "skipped" not in statuses(verdict).values()


def test_a_stage_that_crashes_is_an_error_and_never_a_pass() -> None:
    class Broken(FakeBench):
        def test(self, *args: Any, **more: Any) -> TestRun:
            raise OSError("no space")

    verdict = judge(Broken())
    assert verdict.decision == "error" and not verdict.allowed and codes(verdict) == {"GR901"}
    assert statuses(verdict)["tests"] == "error" and statuses(verdict)["mutants"] == "skipped"


def test_a_golden_answer_that_changed_is_refused_and_not_told() -> None:
    class Other(Momentum):
        def call(self, function: str, args: Any, kwargs: Any) -> Any:
            return 0.25

    verdict = judge(FakeBench(strategy=Other))
    view = json.dumps(verdict.proposer_view())
    assert codes(verdict) == {"GR601"} and verdict.proposer_view()["hidden_checks_failed"]
    assert "golden" not in view and "GR6" not in view and 'findings": []' in view


def test_hidden_layers_look_alike_to_the_proposer() -> None:
    views = [
        judge(FakeBench(strategy=ByDate)).proposer_view(),
        judge(FakeBench(lies=((SIGNAL, 8),))).proposer_view(),
    ]
    assert views[0] == views[1]


class OldAndNew(FakeBench):
    """Trade a tenth less after the patch."""

    @contextmanager
    def worker(self, tree: Tree, params: Mapping[str, Any], *, share: float = 1.0) -> Iterator[Any]:
        kind = TenthLess if b"2.0 * first" in tree[SIGNAL] else Ranked
        yield Guarded(kind({"window": 5, "min_price": 0.0, **params}))


@pytest.mark.parametrize(("waived", "found"), [({}, {"GR603"}), ({"alike": "people read them"}, set())])
def test_what_no_test_tells_trades_as_before_unless_a_person_waives_it(waived: dict[str, str], found: set[str]) -> None:
    tree = small.tree().replace({**BASELINE, "baseline/scenarios/rises.json": json.dumps(TREND).encode()})
    policy = replace(POLICY, acceptance=replace(POLICY.acceptance, waived={**waived, **dict.fromkeys(PROPERTIES, "")}))
    verdict = check(tree, EDIT, "logic", policy, bench=OldAndNew(), secret=b"s")
    assert codes(verdict) == found
    [stage] = [stage for stage in verdict.stages if stage.name == "acceptance"]
    assert stage.evidence["untold"] == ("nothing" if waived else "all")


def test_what_a_test_tells_may_trade_otherwise() -> None:
    tree = small.tree().replace({**BASELINE, "baseline/scenarios/rises.json": json.dumps(TREND).encode()})
    policy = replace(POLICY, acceptance=replace(POLICY.acceptance, waived=dict.fromkeys(PROPERTIES, "")))
    verdict = check(tree, EDIT, "logic", policy, after=TESTS, bench=OldAndNew(), secret=b"s")
    assert codes(verdict) == set()
    [stage] = [stage for stage in verdict.stages if stage.name == "acceptance"]
    assert stage.evidence["untold"] == "nothing"
    assert 0 < stage.evidence["changed"] <= stage.evidence["decisions"]


def test_how_many_decisions_are_other_ones_is_counted() -> None:
    tree = small.tree().replace({**BASELINE, "baseline/scenarios/rises.json": json.dumps(TREND).encode()})
    policy = replace(POLICY, acceptance=replace(POLICY.acceptance, waived=dict.fromkeys(PROPERTIES, "")))
    verdict = check(tree, EDIT, "logic", policy, bench=FakeBench(strategy=Ranked), secret=b"s")
    [stage] = [stage for stage in verdict.stages if stage.name == "acceptance"]
    assert stage.evidence["changed"] == 0 < stage.evidence["decisions"]


def test_a_patch_that_asks_for_more_changes_than_anyone_waits_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrails.stages.MOST_ASKED", 0)
    bench = FakeBench()
    verdict = judge(bench)
    assert codes(verdict) == {"GR102"} and "mutants" not in bench.seen


def test_the_proposer_is_told_that_a_test_has_to_demand_what_trades_otherwise() -> None:
    verdict = judge(FakeBench())
    stages = tuple(
        replace(item, status="refuse" if item.name == "acceptance" else item.status) for item in verdict.stages
    )
    for names, hidden in ((["GR603"], False), (["GR601", "GR603"], True), (["GR601"], True)):
        found = tuple(finding(name, "", 0, "0 of 1") for name in names)
        view = replace(verdict, decision="refuse", findings=found, stages=stages).proposer_view()
        assert [item["code"] for item in view["findings"]] == [name for name in names if name == "GR603"]
        assert view["hidden_checks_failed"] is hidden


def test_a_visible_rule_is_told_with_its_line() -> None:
    [item] = judge(FakeBench(), EDIT.replace(b"2.0 * first", b"open(first)")).proposer_view()["findings"]
    assert (item["code"], item["path"], item["line"]) == ("GR202", SIGNAL, 8)


def test_a_tests_patch_is_cross_validated() -> None:
    verdict = judge(FakeBench(), TESTS, "tests")
    assert verdict.findings == () and verdict.allowed
    assert judge(FakeBench(), SOUND, "tests").allowed
    assert codes(judge(FakeBench(), TESTS.replace(b"test_defect_of_the_loss", b"test_odd"), "tests")) == {"GR708"}
    assert codes(judge(FakeBench(unsteady=True), SOUND, "tests")) == {"GR706"}
    assert codes(judge(FakeBench(dead=(1, 10, 10)), SOUND, "tests")) == {"GR705"}
    assert codes(judge(FakeBench(dead=(0, 0, 8)), SOUND, "tests")) == {"GR705"}


def test_a_demand_that_no_curated_version_meets_is_named_to_the_reviewer_alone() -> None:
    for version, alone in ((REPAIRED, []), (small.SIGNAL, ["tests/generated/test_loss.py::test_defect_of_the_loss"])):
        tree = small.tree().replace({**BASELINE, f"baseline/references/good/plain/{SIGNAL}": version.encode()})
        verdict = check(tree, TESTS, "tests", POLICY, bench=FakeBench(), secret=b"s")
        [evidence] = [stage.evidence for stage in verdict.stages if stage.name == "references"]
        assert verdict.allowed and evidence["alone"] == alone
        assert "alone" not in json.dumps(verdict.proposer_view())


def test_survivors_are_named_to_the_reviewer_alone() -> None:
    verdict = judge(FakeBench(dead=(1, 4, 4)))
    [first, *_] = verdict.mutation["survivors"]
    assert first == {
        "path": SIGNAL,
        "line": 8,
        "kind": "operator",
        "before": "last - first",
        "after": "last + 1",
        "column": 0,
    }
    assert len(verdict.mutation["survivors"]) == 3
    assert codes(verdict) == {"GR701"} and "last +" not in json.dumps(verdict.proposer_view())


def test_where_there_are_no_mutants_the_verdict_says_why() -> None:
    verdict = judge(FakeBench(), TESTS, "tests")
    assert verdict.mutation["made"] == 0 and verdict.mutation["none"] == "every new test claims a defect"


def test_a_pair_is_judged_on_the_tree_after_its_tests() -> None:
    verdict = judge(FakeBench(), EDIT, after=TESTS)
    assert verdict.allowed and verdict.tests is not None and verdict.tests["decision"] == "pass"
    assert verdict.base_tree == verdict.tests["result_tree"]


def events(verdict: Verdict) -> list[str]:
    return [step["event"] for step in verdict.transitions]


def test_the_lock_walks_as_the_verdict_says() -> None:
    assert events(judge(FakeBench(), EDIT)) == ["locked", "logic genesis", "accepted"]
    assert events(judge(FakeBench(), TESTS, "tests")) == ["test genesis", "accepted", "locked"]
    pair = judge(FakeBench(), EDIT, after=TESTS, cycle="p1")
    assert events(pair) == ["test genesis", "accepted", "locked", "logic genesis", "accepted"]
    last = pair.transitions[-1]
    assert (last["cycle"], last["tree"], last["patch"]) == ("p1", pair.result_tree, pair.patch_digest)
    for refused in (
        judge(FakeBench(dead=(0, 5, 5))),
        judge(FakeBench(), b"rubbish"),
        judge(FakeBench(), layers=("patch", "lock")),
    ):
        assert events(refused)[-2:] == ["refused", "abandoned"]
        assert refused.transitions[-1]["tree"] == refused.base_tree
    cache: dict[str, Any] = {}
    named = [judge(FakeBench(), TESTS, "tests", then=EDIT, cache=cache, cycle=name) for name in ("p1", "p2")]
    assert [verdict.transitions[0]["cycle"] for verdict in named] == ["p1", "p2"]


def test_what_the_lock_forbids_is_no_pass_even_where_its_stage_saw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrails.stages.judge_lock", lambda changed, phase: [])
    monkeypatch.setattr("guardrails.ro_lock.WRITABLE", {State.LOGIC_GENESIS: "tests"})
    verdict = judge(FakeBench())
    assert verdict.decision == "error" and not verdict.allowed and verdict.transitions == ()


def test_a_pair_that_shows_no_defect_is_judged_as_two_patches() -> None:
    """What passes as a pair passes as tests alone and logic after them, and the other way round."""
    for dead in ((9, 10, 12), (0, 10, 12)):
        tests = judge(FakeBench(dead=dead), SOUND, "tests")
        pair = judge(FakeBench(dead=dead), EDIT, after=SOUND)
        assert pair.tests is not None and pair.tests["decision"] == tests.decision
        assert pair.tests["findings"] == tests.to_json()["findings"]
        assert (dead[0] > 0) is pair.allowed and "references" not in statuses(pair)


def test_a_pair_with_bad_tests_is_refused() -> None:
    vacuous = judge(FakeBench(), EDIT, after=TESTS.replace(b"assert change(1.0, 3.0) == 1.0", b"change(1.0, 3.0)"))
    assert vacuous.decision == "refuse" and vacuous.tests is not None
    assert statuses(vacuous)["patch"] == "skipped"


PLAIN = TESTS.replace(b"test_defect_of_the_loss", b"test_plainly")


def test_a_pairs_new_test_may_fail_before_whatever_its_name() -> None:
    verdict = judge(FakeBench(), EDIT, after=PLAIN)
    assert verdict.allowed and "references" not in statuses(verdict)
    assert codes(judge(FakeBench(), PLAIN, "tests")) == {"GR702"}
    assert judge(FakeBench(), PLAIN, "tests", then=EDIT).allowed


def test_a_pairs_test_that_crashes_before_must_kill_mutants_after() -> None:
    verdict = judge(FakeBench(crashing=True), EDIT, after=PLAIN)
    assert verdict.allowed and statuses(verdict)["references"] == "pass"
    assert judge(FakeBench(crashing=True, new_kill=(0, 2), new_crash=2), EDIT, after=PLAIN).allowed
    assert codes(judge(FakeBench(crashing=True, new_kill=(0, 3), new_crash=9), EDIT, after=PLAIN)) == {"GR705"}
    for kill in ((1, 6), (0, 0)):
        vacuous = judge(FakeBench(crashing=True, new_kill=kill), EDIT, after=PLAIN)
        assert codes(vacuous) == {"GR705"} and statuses(vacuous)["references"] == "refuse"
    assert codes(judge(FakeBench(crashing=True), TESTS, "tests")) == {"GR703"}


def test_a_pairs_test_may_name_what_the_logic_brings() -> None:
    named = PLAIN.replace(b"import change", b"import change, twice").replace(b"== 1.0", b"== twice(0.5)")
    brings = EDIT + b'@@ -17,2 +17,6 @@\n     """Return the gain."""\n     return total_return(price, 0.0, before)\n'
    brings += b"+\n+\n+def twice(x):\n+    return x + x\n"
    verdict = judge(FakeBench(), brings, after=named)
    assert verdict.allowed, verdict.findings
    alone = judge(FakeBench(), EDIT, after=named)
    assert alone.tests is not None and {item["code"] for item in alone.tests["findings"]} == {"GR203"}


def test_an_absent_name_is_a_function_that_raises() -> None:
    base = small.tree()
    after = base.replace(
        {SIGNAL: base[SIGNAL] + b"\n\nLIMIT = 1\n", "src/strategy/brake.py": b"def factor():\n    return 1\n"}
    )
    absent = absent_names(base, after, POLICY)
    assert absent == {SIGNAL: ["LIMIT"], "src/strategy/brake.py": ["factor"]}
    shown = with_absent(base, absent, POLICY)
    assert shown[SIGNAL].startswith(base[SIGNAL]) and b"def LIMIT(*args" in shown[SIGNAL]
    assert b"raise NotImplementedError" in shown["src/strategy/brake.py"]
    assert dict(with_absent(after, absent, POLICY)) == dict(after)


def test_a_layer_left_out_allows_nothing() -> None:
    for layer in LAYERS:
        verdict = judge(FakeBench(), layers=LAYERS - {layer})
        assert verdict.decision == "pass" and (verdict.allowed == (layer == "references"))
    locked = b"--- a/tests/test_signal.py\n+++ b/tests/test_signal.py\n@@ -5 +5 @@\n"
    locked += b"-    assert change(1.0, 3.0) == 2.0\n+    assert True\n"
    assert codes(judge(FakeBench(), locked)) == {"GR109"}
    assert codes(judge(FakeBench(), locked, layers=LAYERS - {"patch"})) >= {"GR801"}


def test_judges_from_outside_come_last() -> None:
    class Promotion:
        name = "promotion"
        reason = "not better"

        def __call__(self, base: Tree, result: Tree, phase: str) -> tuple[str, Mapping[str, Any]]:
            return self.reason, {"uplift": 0.0}

    verdict = judge(FakeBench(), extra_judges=[Promotion()])
    assert codes(verdict) == {"GR902"} and statuses(verdict)["mutants"] == "pass"


def test_a_verdict_is_canonical() -> None:
    first, second = judge(FakeBench()), judge(FakeBench())
    assert first.canonical_json() == second.canonical_json() and first.digest() == second.digest()
    assert b"seconds" not in first.canonical_json()
    assert judge(FakeBench(), attempt=1).digest() != first.digest()


def test_what_is_known_of_a_tree_is_found_out_once() -> None:
    cache: dict[str, Any] = {}
    bench = FakeBench()
    judge(bench, cache=cache)
    judge(bench, cache=cache)
    assert bench.seen.count("test") == 3  # the code before, the code after, and that without a warning


def test_a_verdict_on_the_same_question_costs_no_run() -> None:
    cache: dict[str, Any] = {}
    cold, bench = judge(FakeBench(), cache=cache), FakeBench()
    warm = judge(bench, cache=cache)
    assert warm.digest() == cold.digest() and warm.mutation == cold.mutation and warm.allowed
    assert bench.seen == []
    kept = {stage.name for stage in warm.stages if stage.evidence.get("cached")}
    assert kept == {"static", "protected", "acceptance", "hidden", "probes", "mutants"}


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"attempt": 1},
        {"secret": b"other"},
        {"policy": replace(POLICY, digest="other")},
        {"patch": EDIT.replace(b"2.0 *", b"2.0 * 1.0 *")},
        {"environment": GateEnvironment(Path("one"), Path("other"))},
        {"bench": FakeBench(profile="S2")},
    ],
    ids=lambda other: next(iter(other)),
)
def test_other_draws_code_rules_or_places_are_another_question(other: dict[str, Any]) -> None:
    tree, cache = small.tree().replace(dict(BASELINE)), dict[str, Any]()
    asked = {"patch": EDIT, "phase": "logic", "policy": POLICY, "secret": b"s", "cache": cache}
    assert check(tree, **asked, bench=FakeBench()).decision == "pass"
    asked |= {"bench": FakeBench()} | other
    check(tree, **asked)
    assert {"probes", "worker", "mutants"} <= {*asked["bench"].seen}


def test_a_refusal_is_found_out_anew() -> None:
    cache: dict[str, Any] = {}
    assert judge(FakeBench(dead=(0, 9, 9)), cache=cache).decision == "refuse"
    bench = FakeBench()
    assert judge(bench, cache=cache).allowed and "mutants" in bench.seen


def test_a_pair_remembers_its_tests_patch() -> None:
    cache: dict[str, Any] = {}
    first = judge(FakeBench(), EDIT, after=TESTS, cache=cache)
    bench = FakeBench()
    again = judge(bench, EDIT, after=TESTS, cache=cache)
    assert again.canonical_json() == first.canonical_json() and again.allowed
    assert bench.seen.count("test") == 0
    assert judge(FakeBench(dead=(0, 9, 9)), EDIT, after=SOUND, cache=cache).decision == "refuse"


REVERSED = b"""--- a/tests/generated/test_standing.py
+++ b/tests/generated/test_standing.py
@@ -4,2 +4,2 @@
 def test_standing():
-    assert change(2.0, 3.0) == 1.0
+    assert change(2.0, 3.0) == -1.0
"""


@dataclass
class Reversing(FakeBench):
    """Know the standing test that was turned round: it holds after the logic alone."""

    def test(self, tree: Tree, **asked: Any) -> TestRun:
        run = super().test(tree, **asked)
        holds = (b"== -1.0" in tree["tests/generated/test_standing.py"]) == (b"2.0 * first" in tree[SIGNAL])
        failing = set() if holds else {LOCKED[1]} & set(run.outcomes)
        return replace(
            run, outcomes={**run.outcomes, **dict.fromkeys(failing, "failed")}, asserted=run.asserted | failing
        )


def test_a_standing_test_changes_on_a_persons_word_alone_and_is_then_judged_as_new() -> None:
    def judged(patch: bytes, *words: str, phase: Any = "logic", **more: Any) -> Verdict:
        policy = replace(POLICY, tests=replace(POLICY.tests, may_change=words))
        return check(small.tree().replace(dict(BASELINE)), patch, phase, policy, bench=Reversing(), secret=b"s", **more)

    def told(verdict: Verdict) -> set[str]:
        assert verdict.tests is not None
        return {item["code"] for item in verdict.tests["findings"]}

    assert told(judged(EDIT, after=REVERSED)) == told(judged(EDIT, "tests/test_signal.py::test_change", after=REVERSED))
    assert told(judged(EDIT, after=REVERSED)) == {"GR411"}
    assert judged(EDIT, LOCKED[1], after=REVERSED).allowed
    # The word frees that test alone, from what it said before and from nothing else.
    assert codes(judged(REVERSED, LOCKED[1], phase="tests")) == {"GR702"}
    assert told(judged(EDIT, LOCKED[1], after=REVERSED.replace(b"== -1.0", b"is not None"))) >= {"GR403"}
    assert codes(judged(EDIT, LOCKED[1])) == {"GR501"}


def test_a_number_that_stood_there_in_the_same_words_is_not_new() -> None:
    def module(text: str) -> Module:
        found = parse_module("src/strategy/a.py", text.encode(), POLICY.limits)
        assert isinstance(found, Module)
        return found

    rest = "\n\n\ndef g(x):\n    return x > LIMIT\n"
    head = "LIMIT = 3\n\n\ndef f(x, n):\n"
    before = module(f"{head}    return x / max(n, 1){rest}")
    after = f"{head}    y = x * 7\n    return y / max(n, 1) if n > 9 else min(n, 1){rest}"

    def numbers(text: str, lines: set[int]) -> set[str]:
        read = module(text)
        at = {(node.lineno, node.col_offset): node for node in ast.walk(read.tree) if isinstance(node, ast.expr)}
        named = (ast.unparse(at[place]) for place in new_numbers(read, before, lines))
        return {text for text in named if text.isdigit() or text == "LIMIT"}

    assert numbers(after, {5, 6}) == {"7", "9", "1"}  # the last one within min
    assert numbers(after.replace(" if n > 9 else min(n, 1)", ""), {5, 6}) == {"7"}
    assert numbers(after.replace("LIMIT = 3", "LIMIT = 4"), {1}) == {"4", "LIMIT"}
    # Moved into a function of its own, and said once more.
    moved = f"{head}    return h(x, n)\n\n\ndef h(x, n):\n    return x / max(n, 1){rest}"
    assert numbers(moved, {5, 8, 9}) == set()
    assert numbers(moved.replace("return h(x, n)", "return h(x / max(n, 1), n)"), {9}) == {"1"}
    # What could be said without a number hides nothing: 0.0 or `not`, one over, len().
    idle = f"{head}    y = 1 / x if n > 0 and x.shape[0] != 0 else 0{rest}"
    assert numbers(idle, {5}) == {"0"}  # the last one, which is an answer
    spared = {(node.lineno, node.col_offset) for node in ast.walk(module(idle).tree) if isinstance(node, ast.Constant)}
    assert len(spared & new_numbers(module(idle), before, {5})) == 1
    for text in ("x[0]", "x.shape[1]", "x / 1", "n > 1", "n - 0", "2 / x", "x.shape[n - 0]"):
        assert numbers(f"{head}    y = {text}{rest}", {5})

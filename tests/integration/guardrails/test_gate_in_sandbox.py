"""The whole gate on a small repository, in a real sandbox: an honest patch passes, each kind of cheat does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from guardrails import sandboxed
from guardrails.bench import NoBench, open_bench
from guardrails.gate import LAYERS, check
from guardrails.policy import Policy
from guardrails.sandbox import Limits
from guardrails.sandboxed import SandboxBench, TestingError
from guardrails.tree import Tree
from guardrails.verdict import Verdict
from tests.integration.guardrails import whole_gate
from tests.integration.guardrails.whole_gate import HERE, PATCHES, edit, tree

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def policy() -> Policy:
    return whole_gate.policy()


@pytest.fixture(scope="module")
def cache(policy: Policy) -> dict[str, Any]:
    try:
        open_bench(HERE, policy)
    except NoBench as error:
        pytest.skip(f"SKIPPED LOUDLY: no sandbox on this machine: {error}")
    return {}


def judge(patch: bytes, policy: Policy, cache: dict[str, Any], **more: Any) -> Verdict:
    return check(tree(), patch, more.pop("phase", "logic"), policy, environment=HERE, cache=cache, **more)


def codes(verdict: Verdict) -> set[str]:
    return {item.code for item in verdict.findings}


def test_an_honest_repair_passes(policy: Policy, cache: dict[str, Any]) -> None:
    verdict = judge(edit(*PATCHES["honest"]), policy, cache)
    assert verdict.findings == () and verdict.allowed
    assert verdict.sandbox["profile"] in ("S2", "S3") and all(verdict.sandbox["canaries"].values())
    assert verdict.coverage["statements"] == 1.0 and verdict.mutation["mutants"] > 0


def test_mutants_wait_for_room_where_the_user_s_other_processes_leave_none(
    policy: Policy, cache: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crowded(bench: SandboxBench, processes: int = 1, wall: float | None = None, share: float = 1.0) -> Limits:
        return replace(roomy(bench, processes, wall, share), processes=min(processes, 2))

    roomy = SandboxBench._limits
    monkeypatch.setattr(SandboxBench, "_limits", crowded)
    monkeypatch.setattr(sandboxed, "PARALLEL", 4)
    verdict = judge(edit(*PATCHES["honest"]), policy, cache={})
    assert verdict.findings == () and verdict.mutation["mutants"] > 0


#: Tests of the same function, and what becomes of a mutant that each of them meets alone, `first / last` turned round.
ENDS = {
    "asserts": ("", "assert ratio(6.0, 3.0) == 2.0", "killed"),
    "raises": ("", "ratio(6.0, 3.0) == 2.0 or 1 / 0", "crashed"),
    "skips": ("", "ratio(6.0, 3.0) == 2.0 or pytest.skip()", "crashed"),
    "expects it": ("", "ratio(6.0, 3.0) == 2.0 or pytest.xfail()", "crashed"),
    "comes to expect it": (
        "request",
        "ratio(6.0, 3.0) == 2.0 or request.node.add_marker('xfail')\n    assert ratio(6.0, 3.0) == 2.0",
        "killed",
    ),
    "asserts as it is torn down": ("late", "pass", "crashed"),
    "looks away": ("", "ratio(6.0, 3.0)", "survived"),
}
LATE = "@pytest.fixture\ndef late():\n    yield\n    assert ratio(6.0, 3.0) == 2.0\n\n\n"


@pytest.mark.parametrize("name", ENDS)
def test_a_mutant_ends_as_the_test_that_meets_it_ends(name: str, policy: Policy, cache: dict[str, Any]) -> None:
    argument, body, end = ENDS[name]
    source = f"import pytest\n\nfrom strategy.signal import ratio\n\n\n{LATE}def test_ratio({argument}):\n    {body}\n"
    base = tree().replace({"tests/test_signal.py": source.encode()})
    bench = open_bench(HERE, policy)
    assert bench.test(base, cover=True).passed()
    line = base["src/strategy/signal.py"].decode().splitlines().index("    return first / last") + 1
    ends = {
        mutant.kind: how for mutant, how in bench.mutants(base, {"src/strategy/signal.py": {line}}, seed=0, most=9).ends
    }
    assert ends["swapped operands"] == end


#: Tests of one function, and whether one of them alone notices any of its mutants.
NOTICES = {
    "test_a_value": ("assert ratio(6.0, 3.0) == 2.0", True),
    "test_of_cases": ("assert ratio(6.0 * case, 3.0) == 2.0 * case", True),
    "test_dies_of_it": ("1 / (ratio(6.0, 3.0) == 2.0)", True),
    "test_nothing_of_it": ("assert [ratio(6.0, 3.0)] == [] or True", False),
    "test_something_else": ("assert 6.0 / 3.0 == 2.0", False),
}


def test_new_tests_that_notice_no_planted_change_are_named(policy: Policy, cache: dict[str, Any]) -> None:
    """One true test may carry others that prove nothing; whoever reviews is told which these are."""
    source = "import pytest\n\nfrom strategy.signal import ratio\n"
    for name, (body, _) in NOTICES.items():
        cases = "@pytest.mark.parametrize('case', [0.0, 1.0])\n" if "case" in body else ""
        source += f"\n\n{cases}def {name}({'case' if cases else ''}):\n    {body}\n"
    base = tree().replace({"tests/test_new.py": source.encode()})
    bench = open_bench(HERE, policy)
    new = [name for name in bench.test(base, cover=True).passed() if name.startswith("tests/test_new.py")]
    assert len(new) == len(NOTICES) + 1
    line = base["src/strategy/signal.py"].decode().splitlines().index("    return first / last") + 1
    tried = bench.mutants(base, {"src/strategy/signal.py": {line}}, seed=0, most=9, only=new)
    assert {name.rpartition("::")[2] for name in tried.idle} == {n for n, (_, does) in NOTICES.items() if not does}
    assert not bench.mutants(base, {"src/strategy/signal.py": {line}}, seed=0, most=9).idle


def test_workers_are_started_ahead_each_a_process_of_its_own(policy: Policy, cache: dict[str, Any]) -> None:
    """What is asked for twice is likely to be asked for again; what waits has loaded nothing, and is ended."""
    bench, pids = open_bench(HERE, policy), []
    assert isinstance(bench, SandboxBench)
    for _ in range(3):
        with bench.worker(tree(), {}) as worker:
            pids.append(worker._worker._process.pid)
            assert worker.call("strategy.signal:ratio", [6.0, 3.0], {}) == 2.0
    [(_, waiting)] = bench._ahead.values()
    assert len({*pids, waiting._process.pid}) == 4
    assert waiting._process.wait(0) is None
    bench.rest()
    assert waiting._process.wait(0) is not None and not bench._ahead
    with bench.worker(tree(), {}):
        assert not bench._ahead  # asked for once
    with bench.worker(tree(), {}):
        [(_, forgotten)] = bench._ahead.values()
    del bench
    assert forgotten._process.wait(0) is not None


DEEP = """import pytest

from strategy.signal import ratio


def deep(left):
    return 0 if left == 0 else 1 + deep(left - 1)


@pytest.fixture
def room():
    return {left}


def test_ratio(room):
    ratio(6.0, 3.0)
    with pytest.raises(RecursionError):
        deep(room)


def test_plainly():
    ratio(6.0, 3.0)
    with pytest.raises(RecursionError):
        deep({left})
"""


def test_a_test_that_fails_in_a_fork_where_nothing_is_changed_kills_nothing(
    policy: Policy, cache: dict[str, Any]
) -> None:
    """Forks call tests with less around them; a test that sees it would fail for every change, and prove nothing."""
    bench = open_bench(HERE, policy)
    for left in range(900, 1_000, 3):  # the least depth that is too deep for the first run
        base = tree().replace({"tests/test_signal.py": DEEP.replace("{left}", str(left)).encode()})
        if bench.test(base, cover=True).passed():
            break
    line = base["src/strategy/signal.py"].decode().splitlines().index("    return first / last") + 1
    with pytest.raises(TestingError, match="nothing is changed"):
        bench.mutants(base, {"src/strategy/signal.py": {line}}, seed=0, most=9)


def test_what_tests_load_as_they_run_is_loaded_once(policy: Policy, cache: dict[str, Any]) -> None:
    loads = (
        "def test_loads():\n    import colorsys\n\n    from strategy import signal\n    assert colorsys and signal\n"
    )
    base = tree().replace({"tests/test_loads.py": loads.encode()})
    bench = open_bench(HERE, policy)
    assert isinstance(bench, SandboxBench)
    assert not bench.test(base, cover=True).fault
    assert "colorsys" in bench._reach[base.digest()].modules
    lines = {"src/strategy/signal.py": range(1, 20)}
    assert {how for _, how in bench.mutants(base, lines, seed=0, most=9).ends} <= {"killed", "crashed", "survived"}


@pytest.mark.parametrize(
    ("name", "code"), [("wrong", "GR501"), ("untested", "GR511"), ("endless", "GR503"), ("greedy", "GR501")]
)
def test_wrong_untested_or_endless_code_is_refused(name: str, code: str, policy: Policy, cache: dict[str, Any]) -> None:
    short = replace(policy, sandbox=replace(policy.sandbox, cpu_seconds=4)) if code == "GR503" else policy
    assert code in codes(judge(edit(*PATCHES[name]), short, cache))


def test_a_raise_planted_where_tests_look_away_is_noticed(policy: Policy, cache: dict[str, Any]) -> None:
    """A line that runs but whose failure no test would see cannot hide behind coverage."""
    swallowed = "    try:\n        gap = last - first\n    except ArithmeticError:\n        gap = 0.0"
    assert codes(judge(edit("    gap = last - first", swallowed), policy, cache)) & {"GR511", "GR510"}


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ("    gap = (last - first) * (1.0 - 2.0 * int(first != first))", "GR780"),
        ("    gap = last - first\n    gap = {first: -gap}.get(last, gap)", "GR780"),
        ("    gap = last - first\n    gap *= (1.0, -1.0)[int(max(MOST) < first)]", "GR710"),
        ("    gap = last - first\n    gap *= first // (first + first * 0.5) + 1.0", "GR712"),
        ("    gap = last - first\n    gap = max(gap, first - last - first * first)", "GR712"),
        ("    gap = last - round(first)", "GR712"),
    ],
)
def test_a_turn_that_no_test_meets_is_refused(after: str, code: str, policy: Policy, cache: dict[str, Any]) -> None:
    """A choice without a branch, one by a table, and a bound that stands in a tuple of the module."""
    named = whole_gate.SIGNAL[: whole_gate.SIGNAL.index("    gap = ")]
    before = named.rpartition("\ndef ")[2] + "    gap = last - first"
    changed = before.replace("    gap = last - first", after)
    bound = "MOST = (1000000.0,)\n\n\n" if "MOST" in after else ""
    assert code in codes(judge(edit(f"def {before}", f"{bound}def {changed}"), policy, cache))


NEW = """--- /dev/null
+++ b/tests/generated/test_new.py
@@ -0,0 +1,9 @@
+from strategy.signal import change
+
+
+def test_{name}():
+    assert change(2.0, 3.0) == {value}
+    assert change(3.0, 2.0) == -1.0
+    assert change(0.0, 10.5) == 10.0
+    assert change(0.0, 9.5) == 9.5
+    assert change(0.0, 10.0) == 10.0
"""


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [("more", "1.0", ""), ("more", "5.0", "GR702"), ("defect_a", "1.0", "GR703"), ("defect_a", "5.0", "")],
)
def test_new_tests_are_cross_validated(name: str, value: str, code: str, policy: Policy, cache: dict[str, Any]) -> None:
    verdict = judge(NEW.format(name=name, value=value).encode(), policy, cache, phase="tests")
    assert codes(verdict) == ({code} if code else set())


LOOP = "    for at in range(1000000):\n+        last = change(at, at)\n+    assert change(2"
SLOW = NEW.replace("1,9", "1,11").replace("    assert change(2", LOOP)


def test_a_new_test_that_all_later_verdicts_would_wait_for_is_refused(
    policy: Policy, cache: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guardrails.cross_validation.MOST_SECONDS", 0.02)
    slow = SLOW.format(name="more", value="1.0").encode()
    assert "GR503" in codes(judge(slow, policy, cache, phase="tests"))


SHARED = """--- /dev/null
+++ b/tests/generated/test_new.py
@@ -0,0 +1,6 @@
+from samples import TABLE
+from strategy.table import less
+
+
+def test_more():
+    assert less({what}) == 2.0
"""
USED = b"from strategy.table import less\n\n\ndef test_less():\n    assert less({'a': 3.0}) == 2.0\n"
LESS = b"def less(table):\n    table['a'] = table['a'] - 1.0\n    return table['a']\n"


@pytest.mark.parametrize(("what", "failed"), [("{**TABLE}", False), ("TABLE", True)])
def test_a_test_that_changes_what_others_see_fails(what: str, failed: bool, policy: Policy) -> None:
    """Whoever does the writing: here a function of the package, into a table that it is handed."""
    files = {"src/strategy/table.py": LESS, "tests/samples.py": b"TABLE = {'a': 3.0}\n", "tests/test_table.py": USED}
    made = replace(policy, tests=replace(policy.tests, imports={"samples": ("TABLE",)}))
    patch = SHARED.replace("{what}", what).encode()
    verdict = check(tree().replace(files), patch, "tests", made, environment=HERE)
    assert codes(verdict) == ({"GR702"} if failed else set())


def test_a_pair_repairs_what_its_test_shows(policy: Policy, cache: dict[str, Any]) -> None:
    tests = NEW.format(name="defect_floor", value="1.0").replace("== -1.0", "== 0.0").encode()
    repair = edit("    return gap", "    return max(gap, 0.0)")
    assert judge(repair, policy, cache, after=tests).allowed
    useless = edit("    gap = last - first", "    gap = -(first - last)")
    assert "GR501" in codes(judge(useless, policy, cache, after=tests))


def test_what_warns_in_a_test_is_refused_by_a_run_by_which_nothing_else_is_judged(
    policy: Policy, cache: dict[str, Any]
) -> None:
    cautious = """    if gap > 10.0:
        import warnings

        warnings.warn("large", RuntimeWarning)
        return 10.0
    return gap"""
    plain = {path: text.replace(PATCHES["honest"][0], cautious) for path, text in whole_gate.FILES.items()}
    warned = Tree({path: text.encode() for path, text in plain.items()})
    bench = open_bench(HERE, policy)
    assert not bench.test(warned).fault and len(bench.test(warned).passed()) == 3
    assert bench.test(warned, strict=True).passed() == {name for name in bench.test(warned).outcomes if "ratio" in name}
    patch = edit(PATCHES["honest"][0], cautious)
    verdict = judge(patch, policy, cache, layers=LAYERS - {"static"})
    assert "GR501" in codes(verdict) and verdict.stages[5].evidence["passed"] == 3

"""Inside the sandbox: collect the tests once, run them, and run chosen ones again under planted changes.

Runs as a script in the gate's environment (the strategy's dependencies, pytest and coverage). Its report is untrusted:
the judge compares ids, plants tests that must fail, and probes what it claims to cover. A planted change lives in a
fork of its own, so that what it breaks is gone with it. Over 400 lines: a script, which imports nothing of ours inside.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pickle
import random
import select
import signal
import sys
import time
import types
from typing import Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

CHANNEL = 3


def _received() -> Any:
    """Read the job: its length as a little-endian u32, then JSON."""
    data, size = b"", 4
    while len(data) < size:
        data += os.read(CHANNEL, 1 << 20)
        size = 4 + int.from_bytes(data[:4], "little")
    return json.loads(data[4:])


JOB = _received()
TREE, SCRATCH = JOB["tree"], os.environ["TMPDIR"]
os.environ.update(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", HOME=SCRATCH, HYPOTHESIS_STORAGE_DIRECTORY=SCRATCH)
os.chdir(SCRATCH)
KILLED, CRASHED, SURVIVED = "killed", "crashed", "survived"
CONTROL = -1  # the change that changes nothing
MOST_ENDLESS = 12  # changes that the kernel has to end, at most: each takes the time of all tests and more
AFTER_CRASH = 10  # so many more tests may still show an assertion that fails
MOST_SHOWN = 8  # changes that a test is shown alone, at most, to find one that it notices


def moved(value: Any) -> Any:
    """Return a constant of the judged with each number in it another: half as much again, and one."""
    if type(value) in (int, float):
        return value + value // 2 + 1 if type(value) is int else value * 1.5 + 1
    if isinstance(value, dict):
        return {key: moved(part) for key, part in value.items()}
    if type(value) in (tuple, list, set, frozenset):
        return type(value)(map(moved, value))
    return value * 1.5 + 1 if type(value).__module__ == "numpy" else value


def like(part: Any, whole: Any, sort: str) -> Any:
    """Return a part in the shape and kind of the whole, where that is possible, so that it may stand in its place.

    0 and 1 stand for nothing and for one of it; of several in one `sort` asks for the `first` or `last`. ValueError
    where there is no such part, where the number that is made whole was whole (`whole`), and for a mask that is an
    `index`: which places it says is seen by what is chosen.
    """
    if sort in ("first", "last"):
        several = isinstance(part, list | tuple) or getattr(part, "ndim", 0) > getattr(whole, "ndim", 0)
        if not several or not len(part):
            raise ValueError("Expected several values, was one")
        part = part[0 if sort == "first" else -1]
    if sort == "index" and getattr(getattr(whole, "dtype", None), "kind", "") == "b":
        raise ValueError("Expected a place, was a mask")
    if sort == "whole" and (
        type(part) in (int, bool) or getattr(getattr(part, "dtype", None), "kind", "") in ("b", "i", "u")
    ):
        raise ValueError("Expected a number that is made whole, was a whole one")
    if type(whole) is tuple and type(part) is not tuple:  # as many, so that whoever takes them apart does not crash
        return tuple(like(part, each, "") for each in whole)
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    if array is not None and isinstance(whole, array):
        numpy: Any = sys.modules["numpy"]
        try:
            spread = numpy.broadcast_to(part, whole.shape)
        except (ValueError, TypeError):
            return part
        return spread.astype(whole.dtype) if numpy.can_cast(spread.dtype, whole.dtype, "same_kind") else spread.copy()
    plain = whole.item() if type(whole).__module__ == "numpy" else whole
    if type(part) is int and part in (0, 1) and type(plain) not in (int, float, bool):
        if part == 0 and type(plain) in (str, list, tuple, dict, set, frozenset):
            return type(plain)()
        raise ValueError(f"Expected a number, was a {type(whole).__name__}")
    return float(part) if type(plain) is float and type(part) in (int, bool) else part


class Switch:
    """What planted code asks: is change k on. Where nobody knows yet which tests reach a change, it takes notes."""

    def __init__(self, notes: bool) -> None:
        self.active: set[int] = set()
        self.reached: dict[int, set[str]] = {}
        self.test = ""
        module: Any = types.ModuleType("guardrails_switch")
        module.on = self.noted if notes else self.active.__contains__
        module.moved, module.like = moved, like
        sys.modules["guardrails_switch"] = module

    def noted(self, k: int) -> bool:
        """Note which test came by change k."""
        if not self.active:
            self.reached.setdefault(k, set()).add(self.test)
        return k in self.active


if JOB["cover"]:
    import coverage as _coverage

if JOB["hypothesis"]:
    import hypothesis

    # Failing examples are not made smaller: a mutant must die, its epitaph may be long.
    found = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "gate", phases=found, database=None, deadline=None, derandomize=True, report_multiple_bugs=False
    )
    hypothesis.settings.load_profile("gate")

# What judges is imported before what is judged can be found, and the standard library comes first for good. So is what
# tests load while they run, as they were seen to: else each fork would load it again.
for _name in JOB["modules"]:
    with contextlib.suppress(Exception):  # a name that the judged process gave; what is not there is not needed here
        importlib.import_module(_name)
_at = next((at for at, place in enumerate(sys.path) if place.endswith("-packages")), len(sys.path))
sys.path[_at:_at] = [f"{TREE}/{JOB['source']}", f"{TREE}/{JOB['tests']}"]
SWITCH = Switch(JOB["reach"] is None)
coverage: Any = None
if JOB["cover"]:
    coverage = _coverage.Coverage(
        branch=True, source=[f"{TREE}/{JOB['package']}"], data_file=None, config_file=False, messages=False
    )
    for option, value in (("report:exclude_lines", []), ("report:partial_branches", []), ("run:core", "ctrace")):
        coverage.set_option(option, value)
    coverage.start()


class Report:
    """A pytest plugin that runs the items itself and remembers what became of them."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.asserted: list[str] = []
        self.planted: dict[int, str] = {}
        self.control = SURVIVED
        self.idle: list[str] = []
        self.planting = (0.0, 0.0)  # what trying them took, without the start: seconds, processor seconds
        self.modules: list[str] = []
        self.fault = ""
        self.seconds: dict[str, float] = JOB["seconds"]

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_parametrize_id(self, config: Any, val: Any, argname: str) -> str:
        """Call cases by their place, and not by their values, which may come from the code under test."""
        return argname

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """Run all chosen items once, then the planted changes, each on the tests that reach it."""
        if session.testsfailed:
            self.fault = "the tests cannot be collected"
            return True
        items = {item.nodeid: item for item in session.items}
        chosen = [name for name in items if not JOB["only"] or name in JOB["only"]]
        if JOB["shuffle"] is not None:
            random.Random(JOB["shuffle"]).shuffle(chosen)
        known = set(sys.modules)
        for name in chosen if JOB["reach"] is None else ():
            SWITCH.test = name
            if coverage is not None:
                coverage.switch_context(name)
            begun, stood = time.process_time(), _shared()
            self.outcomes[name], asserted = _run(items[name])
            now = _shared()
            if any(now.get(place) != was for place, was in stood.items()):
                self.outcomes[name], asserted = "failed", False  # other tests would see another thing from now on
            self.seconds[name] = time.process_time() - begun
            if asserted:
                self.asserted.append(name)
        if coverage is not None:
            coverage.stop()
        self.modules = [name for name in list(sys.modules) if name not in known]
        if JOB["changes"]:
            reached = [SWITCH.reached.get(k, ()) for k in range(JOB["changes"])]
            before = os.times()
            # What does not pass as it stands tells nothing of a change.
            passed = {name for name in chosen if self.outcomes.get(name, "passed") == "passed"}
            self.plant(items, passed, reached if JOB["reach"] is None else JOB["reach"])
            after = os.times()
            self.planting = (after.elapsed - before.elapsed, sum(after[:4]) - sum(before[:4]))
        return True

    def plant(self, items: dict[str, Any], chosen: set[str], reached: list[Any]) -> None:
        """Try every change on the tests that reach it; then, with nothing changed, the tests that decided.

        Whatever else tells a fork from the first run would pass for a change that tests notice.
        """
        order = sorted(chosen, key=lambda name: (self.seconds.get(name, 0), name))
        trials = {name: Trial(items[name], self.seconds.get(name, 0)) for name in order}
        gc.collect()
        gc.freeze()
        names = {k: [name for name in order if name in tests] for k, tests in enumerate(map(set, reached))}
        told = self.fork([(k, [trials[name] for name in chain]) for k, chain in names.items()])
        self.planted = {k: "unreached" if end == "untried" else end for k, (end, _) in enumerate(told)}
        noticed = {k: names[k][:ran] for k, (end, ran) in enumerate(told) if end in (KILLED, CRASHED)}
        if JOB["only"]:
            last = {chain[-1] for k, chain in noticed.items() if self.planted[k] == KILLED}
            self.idle = self.unmoved(trials, names, {name.partition("[")[0] for name in last})
        decided = {name for chain in noticed.values() for name in chain}
        if decided:
            self.control = self.fork([(CONTROL, [trials[name] for name in order if name in decided])])[0][0]

    def unmoved(self, trials: dict[str, Trial], names: dict[int, list[str]], moved: set[str]) -> list[str]:
        """Return the tests, all cases of each as one, that notice none of the changes they come by, beside those that
        are known to notice one."""
        cases = dict[str, list[Trial]]()
        for name, trial in trials.items():
            cases.setdefault(name.partition("[")[0], []).append(trial)
        shown = dict[str, list[int]]()
        for test, every in cases.items():
            near = [k for k in names if any(name.partition("[")[0] == test for name in names[k])]
            near.sort(key=lambda k: self.planted[k] not in (KILLED, CRASHED))  # what others notice is no change in name
            shown[test] = near[: max(1, min(MOST_SHOWN, int(2 / max(sum(trial.seconds for trial in every), 0.001))))]
        for at in range(MOST_SHOWN):
            asked = [test for test in cases if test not in moved and at < len(shown[test])]
            ends = self.fork([(shown[test][at], cases[test]) for test in asked])
            moved = moved | {test for test, (end, _) in zip(asked, ends, strict=True) if end in (KILLED, CRASHED)}
        return sorted(set(cases) - moved)

    def fork(self, tries: list[tuple[int, list[Trial]]]) -> list[tuple[str, int]]:
        """Try changes in forks of their own, a few at a time; return how each ended and how many tests it came to."""
        left, running, endless = list(range(len(tries)))[::-1], dict[int, tuple[int, int]](), 0
        ends = [("untried", 0)] * len(tries)
        while left or running:
            if endless > MOST_ENDLESS:
                self.fault, left = f"more than {MOST_ENDLESS} planted changes under which the tests never end", []
            while left and len(running) < JOB["parallel"]:
                number = left.pop()
                change, chain = tries[number]
                if chain:
                    read, write = os.pipe()
                    try:
                        child = os.fork()
                    except BlockingIOError:
                        # Without a namespace the limit counts all of the user's processes, others' too: wait for room.
                        os.close(read)
                        os.close(write)
                        left.append(number)
                        time.sleep(0 if running else 0.05)
                        break
                    if child == 0:
                        try_change(change, chain, write)
                    os.close(write)
                    running[read] = (number, child)
            for read in select.select(list(running), [], [])[0] if running else ():
                number, child = running.pop(read)
                said, _, came = os.read(read, 32).decode().partition(" ")
                os.close(read)
                _, status = os.waitpid(child, 0)
                endless += os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)
                ran = int(came) if came else len(tries[number][1])
                ends[number] = (said if said in (KILLED, SURVIVED) else CRASHED, ran)
        return ends


class Trial:
    """One test as forks run it: no further than its first failure, and without pytest's reports.

    One that takes nothing but its case is called as it stands; others are set up by pytest's hooks. What keeps a test
    from passing, a skip too, is a failure. Tests of unittest need the reports.
    """

    def __init__(self, item: Any, seconds: float) -> None:
        self.item, self.seconds = item, seconds
        self.known = type(item) is pytest.Function
        self.case: dict[str, Any] = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        self.plain = (
            self.known
            and set(item.fixturenames) == set(self.case)
            and all(mark.name == "parametrize" and not mark.kwargs.get("indirect") for mark in item.iter_markers())
        )
        self.call = item.obj if self.plain else None

    def run(self) -> tuple[str, bool]:
        """Return the outcome, and whether the test failed by an assertion of its own."""
        if not self.known:
            return _run(self.item)
        item, outcome = self.item, "passed"
        if self.plain:
            steps: list[tuple[Any, dict[str, Any]]] = [(self.call, self.case)]
        else:
            if not item._request:
                item._initrequest()
            hooks = item.ihook
            steps = [
                (hooks.pytest_runtest_setup, {"item": item}),
                (hooks.pytest_runtest_call, {"item": item}),
                (hooks.pytest_runtest_teardown, {"item": item, "nextitem": None}),
            ]
        for number, (step, given) in enumerate(steps):
            if outcome != "passed" and number == 1:
                continue  # what was set up is torn down, whatever came between
            try:
                step(**given)
            except (pytest.exit.Exception, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001  whatever a test dies of
                outcome = "failed"
                if number == len(steps) // 2 and _asserts(error):
                    return outcome, True
        return outcome, False


def try_change(k: int, chain: list[Trial], answer: int) -> NoReturn:
    """Turn change k on and run the tests, the quickest first, until one fails by its assertion."""
    # Twice what the tests took before is theirs, so that the pace of the day decides nothing.
    slowest, allowed = max(t.seconds for t in chain), JOB["change_seconds"] + 2 * sum(t.seconds for t in chain)
    # A change may loop for ever: the kernel ends it, by processor time so that a busy machine changes nothing.
    signal.setitimer(signal.ITIMER_PROF, allowed + 10 * slowest)
    signal.setitimer(signal.ITIMER_REAL, 60 + 100 * slowest)  # one that only sleeps
    said, begun, ran = SURVIVED, time.process_time(), 0
    try:
        SWITCH.active.add(k)
        more = len(chain)
        for trial in chain:
            ran += 1
            outcome, asserted = trial.run()
            if asserted:
                said, more = KILLED, 0
            elif outcome != "passed" and said != CRASHED:
                said, more = CRASHED, 0 if JOB["any_failure"] else AFTER_CRASH
            more -= 1
            if more < 0 or time.process_time() - begun > allowed:
                break
    finally:
        os.write(answer, f"{said} {ran}".encode())
        os._exit(0)


def _shared() -> dict[tuple[str, str], bytes]:
    """Return what modules of the tests hold that can change, as it stands."""
    place, held = f"{TREE}/{JOB['tests']}/", dict[tuple[str, str], bytes]()
    for module in [m for m in list(sys.modules.values()) if (getattr(m, "__file__", "") or "").startswith(place)]:
        for name, value in vars(module).items():
            if type(value).__name__ in ("dict", "list", "set", "ndarray") and not name.startswith("__"):
                with contextlib.suppress(Exception):  # what cannot be written down is no table of constants
                    held[module.__name__, name] = pickle.dumps(value)
    return held


def _run(item: Any) -> tuple[str, bool]:
    """Run one test; return its outcome, and whether it failed by an assertion of its own."""
    outcome, raised = "passed", list[Any]()

    def brief(excinfo: Any) -> str:  # nobody reads the long form, which takes longer than most tests
        raised.append(excinfo.value)
        return str(excinfo.typename)

    item.repr_failure = brief
    for report in runtestprotocol(item, log=False, nextitem=None):
        if report.failed:
            outcome = "failed" if report.when == "call" else "error"
        elif report.skipped or hasattr(report, "wasxfail"):
            outcome = "skipped"
    return outcome, any(map(_asserts, raised))


def _asserts(error: BaseException) -> bool:
    """Say whether an assertion failed that stands in the tests: of this tree's frames the innermost is theirs."""
    if type(error) not in (AssertionError, pytest.fail.Exception):
        return False
    innermost, trace = "", error.__traceback__
    while trace is not None:
        place = trace.tb_frame.f_code.co_filename
        innermost = place if place.startswith(f"{TREE}/") else innermost
        trace = trace.tb_next
    return innermost.startswith(f"{TREE}/{JOB['tests']}/")


def _covered() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the lines and branches of each file, and which tests reached each line."""
    place = f"{SCRATCH}/coverage.json"
    coverage.json_report(outfile=place, ignore_errors=True)
    kinds = ("executed_lines", "missing_lines", "executed_branches", "missing_branches")
    with open(place) as file:  # noqa: PTH123 - inside, fewer imports
        found = json.load(file)["files"]
    data = coverage.get_data()
    files, reach = {}, {}
    for path, entry in found.items():
        name = os.path.relpath(path, TREE)
        files[name] = {kind: entry.get(kind, []) for kind in kinds}
        by_line = data.contexts_by_lineno(os.path.abspath(path))  # noqa: PTH100
        reach[name] = {line: sorted(filter(None, tests)) for line, tests in by_line.items() if line > 0}
    return files, reach


def main() -> None:
    """Run the job and send its report."""
    report = Report()
    arguments = ["-q", "-s", "--noconftest", "-c", JOB["ini"], f"--rootdir={TREE}", "--import-mode=importlib"]
    arguments += ["-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:doctest", "--no-header"]
    code = pytest.main([*arguments, f"{TREE}/{JOB['tests']}"], plugins=[report])
    files, reach = _covered() if coverage is not None and not report.fault else ({}, {})
    answer = {
        "nonce": JOB["nonce"],
        "code": int(code),
        "fault": report.fault,
        "outcomes": report.outcomes,
        "asserted": report.asserted,
        "planted": report.planted,
        "control": report.control,
        "idle": report.idle,
        "planting": report.planting,
        "modules": report.modules,
        "seconds": report.seconds,
        "files": files,
        "reach": reach,
    }
    data = json.dumps(answer).encode()
    data = len(data).to_bytes(4, "little") + data
    while data:
        data = data[os.write(CHANNEL, data) :]


main()

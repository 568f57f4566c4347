"""Inside the sandbox: collect the tests once, run them, and run chosen ones again under planted changes.

Runs as a script in the gate's environment (the strategy's dependencies, pytest and coverage). Its report is untrusted:
the judge compares ids, plants tests that must fail, and probes what it claims to cover.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import sys
import time
import types
from typing import Any

JOB = json.loads(sys.argv[1])
TREE, SCRATCH, CHANNEL = JOB["tree"], os.environ["TMPDIR"], 3
os.environ.update(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", HOME=SCRATCH, HYPOTHESIS_STORAGE_DIRECTORY=SCRATCH)
os.chdir(SCRATCH)
sys.path[:0] = [f"{TREE}/{JOB['source']}", f"{TREE}/{JOB['tests']}"]


class Switch:
    """What planted code asks: is change k on, and which test reached it."""

    def __init__(self) -> None:
        self.active = -1
        self.reached: dict[int, set[str]] = {}
        self.test = ""

    def on(self, k: int) -> bool:
        """Say whether change k is on; outside a change's own run, note who came by."""
        if self.active < 0:
            self.reached.setdefault(k, set()).add(self.test)
        return self.active == k


SWITCH = Switch()
_module = types.ModuleType("guardrails_switch")
_module.on = SWITCH.on  # type: ignore[attr-defined]
sys.modules["guardrails_switch"] = _module

coverage = None
if JOB["cover"]:
    import coverage as _coverage

    coverage = _coverage.Coverage(
        branch=True, source=[f"{TREE}/{JOB['package']}"], data_file=None, config_file=False, messages=False
    )
    for option in ("report:exclude_lines", "report:partial_branches"):
        coverage.set_option(option, [])
    coverage.start()

if importlib.util.find_spec("hypothesis") is not None:
    import hypothesis

    # Failing examples are not made smaller: a mutant must die, its epitaph may be long.
    found = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("gate", phases=found, database=None, deadline=None, derandomize=True)
    hypothesis.settings.load_profile("gate")

import pytest  # noqa: E402
from _pytest.runner import runtestprotocol  # noqa: E402


class Report:
    """A pytest plugin that runs the items itself and remembers what became of them."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.asserted: list[str] = []
        self.planted: dict[int, str] = {}
        self.fault = ""
        self.seconds: dict[str, float] = {}
        signal.signal(signal.SIGALRM, _too_long)

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
        for name in chosen:
            outcome, asserted = self._run(items[name])
            self.outcomes[name] = outcome
            if asserted:
                self.asserted.append(name)
        if coverage is not None:
            coverage.stop()
        for k in range(JOB["changes"]):
            SWITCH.active = k
            self.planted[k] = self._planted(k, items)
        SWITCH.active = -1
        return True

    def _run(self, item: Any) -> tuple[str, bool]:
        SWITCH.test = item.nodeid
        outcome, asserted = "passed", False
        # A planted change may loop for ever: a test under one gets ten times its own time, and a second.
        signal.setitimer(signal.ITIMER_REAL, 1 + 10 * self.seconds.get(item.nodeid, 0) if SWITCH.active >= 0 else 0)
        begun = time.perf_counter()
        reports = runtestprotocol(item, log=False, nextitem=None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if SWITCH.active < 0:
            self.seconds[item.nodeid] = time.perf_counter() - begun
        for report in reports:
            if report.failed:
                outcome = "failed" if report.when == "call" else "error"
                asserted |= report.when == "call" and _asserts(report)
            elif report.skipped or hasattr(report, "wasxfail"):
                outcome = "skipped"
        return outcome, asserted

    def _planted(self, k: int, items: dict[str, Any]) -> str:
        """Return how change k ended: killed by an assertion, crashed, survived, or never reached."""
        said, begun = "unreached", time.perf_counter()
        mine = [name for name in SWITCH.reached.get(k, ()) if name in items and name in self.outcomes]
        for name in sorted(mine, key=lambda name: (self.seconds[name], name)):
            if said != "unreached" and time.perf_counter() - begun > JOB["change_seconds"]:
                break
            outcome, asserted = self._run(items[name])
            if asserted:
                return "killed"
            if outcome != "passed":
                said = "crashed"
                if JOB["any_failure"]:
                    return said
            elif said == "unreached":
                said = "survived"
        return said


def _too_long(*_: Any) -> None:
    raise TimeoutError("a planted change made this test run on")


def _asserts(report: Any) -> bool:
    """Say whether a test failed by an assertion that stands in the test files themselves."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:
        return False
    place = os.path.relpath(str(crash.path), TREE)
    return place.startswith(JOB["tests"] + "/") and crash.message.startswith(("AssertionError", "assert", "Failed"))


def _covered() -> dict[str, Any]:
    assert coverage is not None
    place = f"{SCRATCH}/coverage.json"
    coverage.json_report(outfile=place, ignore_errors=True)
    with open(place) as file:  # noqa: PTH123 - inside, fewer imports
        return {
            os.path.relpath(path, TREE): {
                name: entry.get(name, [])
                for name in ("executed_lines", "missing_lines", "executed_branches", "missing_branches")
            }
            for path, entry in json.load(file)["files"].items()
        }


def main() -> None:
    """Run the job and send its report."""
    report = Report()
    arguments = ["-q", "-s", "--noconftest", "-c", JOB["ini"], f"--rootdir={TREE}", "--import-mode=importlib"]
    arguments += ["-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:doctest", "--no-header"]
    code = pytest.main([*arguments, f"{TREE}/{JOB['tests']}"], plugins=[report])
    answer = {
        "nonce": JOB["nonce"],
        "code": int(code),
        "fault": report.fault,
        "outcomes": report.outcomes,
        "asserted": report.asserted,
        "planted": report.planted,
        "files": _covered() if coverage is not None and not report.fault else {},
    }
    data = json.dumps(answer).encode()
    data = len(data).to_bytes(4, "little") + data
    while data:
        data = data[os.write(CHANNEL, data) :]


main()

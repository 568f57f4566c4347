"""Run judged code for the gate: its tests, planted changes, and the strategy itself, each in a fresh sandbox.

What comes back is checked for form here and for truth by the gate: ids against the base, planted tests that must
fail, probes against claimed coverage.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
import tomllib
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

from guardrails.acceptance import WorkerFault
from guardrails.bench import Tried
from guardrails.checks.instead import Instead
from guardrails.coverage import Reach, covered, missing_tests
from guardrails.environment import GateEnvironment
from guardrails.mutation import Place, inside_functions, mutants, with_probes
from guardrails.policy import Policy
from guardrails.runs import TestRun
from guardrails.sandbox import Limits, Sandbox
from guardrails.tree import Tree
from guardrails.worker.client import Worker, WorkerFailure
from guardrails.worker.frames import BARS

TESTING = Path(__file__).with_name("worker") / "testing.py"
#: A warning is no error here, as it is none in the worker, else code could tell where it runs; strict runs make it one,
#: and nothing else is judged by them.
INI = "[pytest]\naddopts =\npython_files = test_*.py\nxfail_strict = true\n"
STRICT = "filterwarnings = error\n"
MOST_REPORT = 64 << 20
#: Processor seconds that the tests of one planted change may take beyond twice what they took before.
CHANGE_SECONDS = 2.0
#: Planted changes that are tried beside one another: two a core, so that one runs while another ends.
PARALLEL = min(2 * len(os.sched_getaffinity(0)), 8)
#: Workers that have loaded nothing yet, and what ends each, by the digest of the source and their share of memory.
Ahead = dict[tuple[str, float], tuple[ExitStack, Worker]]


class TestingError(Exception):
    """Planted changes could not be tried: a refusal, whatever the reason."""

    __test__: ClassVar[bool] = False


class SandboxBench:
    """Implement `guardrails.gate.Bench`."""

    def __init__(self, sandbox: Sandbox, environment: GateEnvironment, policy: Policy) -> None:
        self.sandbox, self.environment, self.policy = sandbox, environment, policy
        self.profile = sandbox.profile
        self.canaries: Mapping[str, Any] = sandbox.canaries()
        self._reach: dict[str, Reach] = {}  # of the tree that was covered last
        self._asked: set[tuple[str, float]] = set()
        self._ahead: Ahead = {}
        weakref.finalize(self, _end, self._ahead)  # for whoever does not say `rest`

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
        """Run the tests of a tree, beside one planted test that must fail."""
        name = f"test_{secrets.token_hex(8)}"
        path = f"{self.policy.layout.tests}/{name}.py"
        planted = tree.replace({path: f"def {name}():\n    assert [] == [1]\n".encode()})
        canary = f"{path}::{name}"
        chosen = [*only, canary] if only else ()
        report = self._run(
            planted, only=chosen, shuffle=shuffle, cover=cover, strict=strict, share=share, hash_seed=hash_seed
        )
        if isinstance(report, str):
            return TestRun({}, fault=report)
        outcomes = dict(report["outcomes"])
        if outcomes.pop(canary, "") != "failed" or canary not in report["asserted"]:
            return TestRun({}, fault="a planted test that must fail did not fail")
        wrong = [] if only else missing_tests(tree, self.policy.layout.tests, outcomes)
        if wrong:
            return TestRun({}, fault="; ".join(wrong[:5]))
        asserted = frozenset(report["asserted"]) - {canary}
        lines, branches = covered(report["files"])
        if cover and not only:
            self._reach = {tree.digest(): Reach.read(report)}
        package = self.policy.package_folder + "/"
        missing = [p for p in tree if p.startswith(package) and p.endswith(".py") and p not in lines]
        for absent in missing if cover else ():
            lines[absent] = (frozenset({1}) if tree[absent].strip() else frozenset(), frozenset())
        return TestRun(outcomes, asserted, "", lines, branches, report["seconds"])

    def unreached(self, tree: Tree, places: Sequence[Place], arms: Collection[Place] = ()) -> list[Place]:
        """Plant a raise at each place inside a function; return those at which no test then fails.

        What runs at import alone is definitions and constants, by the static policy.
        """
        called = {path: inside_functions(tree, path) for path in {path for path, _ in places}}
        places = [(path, line) for path, line in places if abs(line) in called[path]]
        if not places:
            return []
        changed, planted = with_probes(tree, places, set(arms).intersection(places))
        ends, _ = self.plant(tree, changed, planted, any_failure=True)
        silent = [place for place, end in zip(planted, ends, strict=True) if end not in ("killed", "crashed")]
        return list(dict.fromkeys(silent))

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
        """Return the mutants of these lines and how each ended, and what `only` these tests did not notice."""
        chosen, planted = mutants(tree, lines, seed=seed, most=most, must=must, others=others)
        ends, idle = self.plant(tree, planted, [(mutant.path, mutant.line) for mutant in chosen], only=only)
        return Tried(list(zip(chosen, ends, strict=True)), idle)

    def plant(
        self,
        tree: Tree,
        planted: Tree,
        places: Sequence[tuple[str, int]],
        *,
        only: Sequence[str] = (),
        any_failure: bool = False,
    ) -> tuple[list[str], list[str]]:
        """Run the changes that stand in `planted` at these places of `tree`; return how each ended, and which of `only`
        some tests noticed nothing.

        killed (by an assertion of a test), crashed, survived or unreached. Only tests that reach a place run under its
        change; `any_failure` stops at the first failure, whatever it is.

        Raises:
            TestingError: the run broke, or a test that notices a change fails in a fork where nothing is changed;
                nothing is known of any change.
        """
        if not places:
            return [], []
        reach = self._reach.get(tree.digest())
        report = self._run(planted, only=only, places=places, reach=reach, any_failure=any_failure)
        if not isinstance(report, str) and report["control"] != "survived":
            report = "tests that fail where they run again and nothing is changed"
        if isinstance(report, str):
            raise TestingError(f"Expected planted changes to be tried, was {report}.")
        return [str(report["planted"][str(number)]) for number in range(len(places))], list(map(str, report["idle"]))

    @contextmanager
    def worker(self, tree: Tree, params: Mapping[str, Any], *, share: float = 1.0) -> Iterator[_GateWorker]:
        """Start the strategy of a tree: its source alone is in the sandbox's reach.

        Each has a process of its own. Whose strategy is asked for again is likely to be asked for once more: a process
        that has loaded nothing of it is then started ahead, beside what is under way.
        """
        source = f"{self.policy.layout.source}/"
        visible = Tree({path: data for path, data in tree.items() if path.startswith(source)})
        asked = visible.digest(), share
        started, worker = self._ahead.pop(asked) if asked in self._ahead else self._started(visible, share)
        with started:
            if asked in self._asked:
                self._ahead[asked] = self._started(visible, share)
            self._asked.add(asked)
            try:
                given = dict(params) or _parameters(tree, self.policy)
                worker.build(
                    given, seed=0, capital=self.policy.acceptance.capital, strategy=self.policy.acceptance.strategy
                )
            except WorkerFailure as failure:
                raise WorkerFault(str(failure)) from failure
            yield _GateWorker(worker)

    def rest(self) -> None:
        """End what was started ahead."""
        self._asked.clear()
        _end(self._ahead)

    # -- inside

    def _started(self, visible: Tree, share: float) -> tuple[ExitStack, Worker]:
        """Return a worker that has loaded nothing yet, and what ends it."""
        with ExitStack() as stack:
            place = stack.enter_context(_folder())
            visible.write(place)
            limits, rules = self._limits(share=share), self.policy.sandbox
            python, source = self.environment.worker_python, self.policy.layout.source
            worker = Worker.boot(self.sandbox, python, place, limits=limits, seconds=rules.seconds, source=source)
            stack.callback(worker.close)
            return stack.pop_all(), worker

    def _run(
        self,
        tree: Tree,
        *,
        only: Sequence[str] = (),
        shuffle: int | None = None,
        cover: bool = False,
        places: Sequence[tuple[str, int]] = (),
        reach: Reach | None = None,
        any_failure: bool = False,
        strict: bool = False,
        share: float = 1.0,
        hash_seed: int = 0,
    ) -> dict[str, Any] | str:
        """Run one job; return its report, or how it went wrong."""
        layout = self.policy.layout
        with _folder() as place:
            root, ini = place / "tree", place / "pytest.ini"
            tree.write(root)
            ini.write_text(INI + STRICT if strict else INI)
            nonce = secrets.token_hex(16)
            job = {
                "tree": str(root),
                "source": layout.source,
                "package": self.policy.package_folder,
                "tests": layout.tests,
                "ini": str(ini),
                "only": list(only),
                "shuffle": shuffle,
                "cover": cover,
                "changes": len(places),
                "reach": [reach.of(*place) for place in places] if reach else None,
                "seconds": dict(reach.seconds) if reach else {},
                "modules": reach.modules if reach else (),
                "parallel": PARALLEL,
                "hypothesis": any(b"hypothesis" in data for path, data in tree.items() if path.endswith(".py")),
                "any_failure": any_failure,
                "change_seconds": CHANGE_SECONDS,
                "nonce": nonce,
            }
            process = self.sandbox.start(
                self.environment.python,
                TESTING,
                readable=[place, TESTING],
                tmp_bytes=self.policy.sandbox.tmp_mb << 20,
                limits=self._limits(PARALLEL + 2 if places else 1, self.policy.sandbox.seconds, share),
                hash_seed=hash_seed,
            )
            try:
                process.channel.settimeout(self.policy.sandbox.seconds + 10)  # its supervisor ends it before
                data = json.dumps(job).encode()
                process.channel.sendall(len(data).to_bytes(4, "little") + data)
                report = _report(process.channel.recv, nonce, root, int(share * MOST_REPORT))
                if report["code"] not in (0, 1, 5):
                    raise ValueError(f"pytest ended with {report['code']}")
                return report
            except TimeoutError:
                return f"no report within {self.policy.sandbox.seconds:g} seconds"
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                process.kill()
                return f"{error or type(error).__name__}; it printed: {process.output()[-600:]!r}"
            finally:
                process.close()

    def _limits(self, processes: int = 1, wall: float | None = None, share: float = 1.0) -> Limits:
        rules = self.policy.sandbox
        return Limits(
            processes=processes,
            memory_bytes=int(share * (rules.memory_mb << 20)),
            cpu_seconds=max(1, int(share * rules.cpu_seconds)),
            wall_seconds=wall,
            file_bytes=rules.file_mb << 20,
            output_bytes=rules.output_bytes,
        )


def _end(ahead: Ahead) -> None:
    while ahead:
        ahead.popitem()[1][0].close()


class _GateWorker:
    """A worker as the gate's acceptance speaks to it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._symbols: dict[tuple[str, ...], tuple[str, ...]] = {}

    def session(self, day: date, symbols: Sequence[str], columns: Mapping[str, Sequence[float]]) -> None:
        from array import array

        names = self._symbols.setdefault(tuple(symbols), tuple(symbols))
        table = {name: array("d", columns[name]) for name in BARS}
        self._guarded(lambda: self._worker.show(day.isoformat(), names, table))

    def decide(self, portfolio: Mapping[str, Any]) -> dict[str, Any]:
        told = (str(portfolio["date"]), float(portfolio["equity"]), float(portfolio["cash"]), portfolio["shares"])
        answer: dict[str, Any] = self._guarded(lambda: self._worker.decide(*told))
        return answer

    def call(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return self._guarded(lambda: self._worker.call(function, args, kwargs))

    @staticmethod
    def _guarded(act: Callable[[], Any]) -> Any:
        try:
            return act()
        except WorkerFailure as failure:
            raise WorkerFault(str(failure)) from failure


@contextmanager
def _folder() -> Iterator[Path]:
    """Give a folder that a sandboxed process of another user may enter, and take it away again."""
    place = Path(tempfile.mkdtemp(prefix="guardrails-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _report(receive: Callable[[int], bytes], nonce: str, root: Path, most: int = MOST_REPORT) -> dict[str, Any]:
    """Read and check the one report of a run."""

    def read(size: int) -> bytes:
        parts = []
        while size:
            part = receive(min(size, 1 << 20))
            if not part:
                raise ValueError("the run ended before its report")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    size = int.from_bytes(read(4), "little")
    if size > most:
        raise ValueError(f"a report of {size} bytes")
    report: dict[str, Any] = json.loads(read(size))
    if not isinstance(report, dict) or report.get("nonce") != nonce:
        raise ValueError("a report without the nonce of this run")
    if report["fault"]:
        raise ValueError(str(report["fault"]))
    prefix = re.compile(r"^(\.\./)*" + re.escape(str(root).lstrip("/")) + "/")
    clean = {prefix.sub("", str(name)): str(outcome) for name, outcome in report["outcomes"].items()}
    report["outcomes"] = clean
    report["seconds"] = {prefix.sub("", str(name)): float(spent) for name, spent in report["seconds"].items()}
    report["asserted"] = [prefix.sub("", str(name)) for name in report["asserted"]]
    return report


def _parameters(tree: Tree, policy: Policy) -> dict[str, Any]:
    path = policy.layout.parameters
    found = tomllib.loads(tree[path].decode("utf-8")).get("parameters", {}) if path in tree else {}
    return dict(found)

"""Compare mutants of changed functions, a second, with mutmut 3 and cosmic-ray, on the same code and the same tests.

`python -m bench.mutation --peers DIR [--size RUNS] [--functions NAME ...] [--most N]`: DIR is an environment with
the peers of bench/requirements-peers.lock. Each tool makes its own mutants of the same functions of one module of the
shipped strategy and tries them on the strategy's own tests, with as many processes as there are cores: ours as the gate
does (schemata in one import, tests selected by coverage, in the sandbox), the others by their own commands. They take
turns, so that what else the machine does falls on all. Of cosmic-ray, which starts pytest for each mutant, all shared
mutants are tried and of its others so many, drawn by the seed, that there are N; its pace does not depend on how many.

Three ratios, of medians: of running mutants, without what it takes to start, by wall time and by processor time, and
of the whole. Mutants are the same where the functions that they leave have the same syntax tree; on those the tools
are held to the same killed set, where any failing exit kills, as it does for the peers. The gate itself counts only
kills by an assertion of a test; its pace is told beside.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.campaign import Campaign, arguments
from bench.market import shipped
from bench.peers.normal import normal_form
from guardrails.environment import GateEnvironment
from guardrails.mutation import SWITCH, mutants
from guardrails.policy import parse_policy
from guardrails.sandbox import Sandbox
from guardrails.sandboxed import PARALLEL, SandboxBench
from guardrails.tree import Tree
from oomrl.adapters import environments

HERE = Path(__file__).parent
MODULE = "src/strategy/sizing.py"
FUNCTIONS = ("capped", "fitted")
#: Ends that leave a mutant alive; whatever else befalls one kills it.
ALIVE = frozenset({"survived", "unreached", "no tests", "skipped", "not checked"})
#: What is compared, and with which times its pace is found.
PACES = {"running": "seconds", "processor": "processor_seconds", "whole": "whole_seconds"}


class TimedBench(SandboxBench):
    """The gate's bench, and what the trying of planted changes took, without the start."""

    planting: Sequence[float] = (0.0, 0.0)

    def _run(self, tree: Tree, **asked: Any) -> dict[str, Any] | str:
        report = super()._run(tree, **asked)
        if isinstance(report, dict):
            self.planting = report["planting"]
        return report


class _One(ast.NodeTransformer):
    """Leave of all planted mutants the one that is switched on, by its number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def _chosen(self, test: ast.expr) -> bool | None:
        """Say whether a switch is on: not for what is no switch."""
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == SWITCH:
            return bool(ast.literal_eval(test.args[0]) == self.number)
        return None

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        on = self._chosen(node.test)
        return self.generic_visit(node) if on is None else self.visit(node.body if on else node.orelse)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.AST]:
        off = self._chosen(node.test.operand) if isinstance(node.test, ast.UnaryOp) else None
        if off is None:
            return self.generic_visit(node)
        return ast.Pass() if off else [self.visit(part) for part in node.body]


def alone(planted: bytes, number: int) -> str:
    """Return the source in which one mutant of planted source stands and the others do not, imports aside."""
    return ast.unparse(ast.fix_missing_locations(_One(number).visit(ast.parse(planted))))


def lines_of(source: bytes, functions: Iterable[str]) -> dict[str, range]:
    """Return the lines of each function at the top of a module.

    Raises:
        LookupError: one of them does not stand there.
    """
    found = {
        node.name: range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name in set(functions)
    }
    if missing := set(functions) - set(found):
        raise LookupError(f"Expected functions of {MODULE}, was {', '.join(sorted(missing))}.")
    return found


def own(bench: TimedBench, base: Tree, functions: Sequence[str], *, any_failure: bool) -> dict[str, Any]:
    """Try our mutants of the functions as the gate does, after one covered run of the tests."""
    begun = time.perf_counter()
    bench.test(base, cover=True)
    lines = lines_of(base[MODULE], functions)
    made, planted = mutants(base, {MODULE: {row for rows in lines.values() for row in rows}}, seed=0, most=1_000)
    started = time.perf_counter()
    places = [(mutant.path, mutant.line) for mutant in made]
    ends, _ = bench.plant(base, planted, places, any_failure=any_failure)
    found = []
    for number, (mutant, end) in enumerate(zip(made, ends, strict=True)):
        name = next(name for name, rows in lines.items() if mutant.line in rows)
        form = normal_form(alone(planted[MODULE], number), name)
        found.append({"function": name, "form": form, "ended": end, "what": f"{mutant.before} -> {mutant.after}"})
    seconds, processor = bench.planting
    return {
        "seconds": seconds,
        "processor_seconds": processor,
        "started_seconds": time.perf_counter() - started,
        "whole_seconds": time.perf_counter() - begun,
        "mutants": found,
    }


@contextmanager
def _copy(base: Tree) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "strategy"
        base.write(folder)
        for path in (folder, *folder.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
        yield folder


def peer(python: Path, script: str, base: Tree, *asked: object, given: str = "") -> dict[str, Any] | None:
    """Let a peer try its mutants on a copy of the strategy; None where it does not install or fails."""
    with _copy(base) as folder:
        command = [str(python), str(HERE / "peers" / f"run_{script}.py"), str(folder), MODULE, *map(str, asked)]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=3_600)
    if done.returncode:
        print(f"{script}: left out, {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def difference(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compare how the mutants ended that both made; a form made more than once must end the same each time."""
    ends: dict[str, set[bool]] = {}
    names = {mutant["form"]: f"{mutant['function']}: {mutant['what']}" for mutant in ours}
    for mutant in (*ours, *theirs):
        ends.setdefault(mutant["form"], set()).add(mutant["ended"] in ALIVE)
    shared = sorted(names.keys() & {mutant["form"] for mutant in theirs})
    return {
        "shared": len(shared),
        "killed_by_both": sum(ends[form] == {False} for form in shared),
        "alive_in_both": sum(ends[form] == {True} for form in shared),
        "different": sorted(names[form] for form in shared if len(ends[form]) > 1),
    }


def compare(
    campaign: Campaign, python: Path, runs: int, functions: Sequence[str] = FUNCTIONS, most: int = 24
) -> dict[str, Any]:
    """Let the tools take turns; return the medians of each, the ratios of ours to theirs, and the killed sets."""
    base, found = Tree(shipped()), environments.find()
    policy = parse_policy(base["policy.toml"])
    bench = TimedBench(Sandbox.choose(), GateEnvironment(found.gate, found.worker), policy)
    told: dict[str, list[dict[str, Any]]] = {}
    same: dict[str, list[dict[str, Any]]] = {}
    for number in range(runs):
        ours = own(bench, base, functions, any_failure=True)
        forms = "\n".join(sorted({mutant["form"] for mutant in ours["mutants"]}))
        turn = {
            "own": ours,
            "gate": own(bench, base, functions, any_failure=False),
            "mutmut": peer(python, "mutmut", base, PARALLEL, *functions),
            "cosmic_ray": peer(python, "cosmic_ray", base, PARALLEL, most, campaign.seed, *functions, given=forms),
        }
        for name, one in turn.items():
            if one is None:
                continue
            told.setdefault(name, []).append(one)
            if name not in ("own", "gate"):
                same.setdefault(name, []).append(difference(ours["mutants"], one["mutants"]))
            tried = {"tried": len(one["mutants"]), "alive": sum(m["ended"] in ALIVE for m in one["mutants"])}
            spent = {key: round(value, 3) for key, value in one.items() if key.endswith("seconds")}
            campaign.add(f"mutants/{number}/{name}", campaign.seed, **spent, **tried, load=os.getloadavg()[0])
            print(f"mutants {name}: {tried['tried']} in {one['seconds']:.2f} s", file=sys.stderr)
    return _figures(told, same)


def _figures(told: Mapping[str, Sequence[Mapping[str, Any]]], same: Mapping[str, Any]) -> dict[str, Any]:
    pace = {
        name: {
            "tried": len(runs[0]["mutants"]),
            **{f"{how}_a_second": _pace(runs, seconds) for how, seconds in PACES.items()},
            **({"started_a_second": _pace(runs, "started_seconds")} if "started_seconds" in runs[0] else {}),
            "timeouts": max(sum(mutant["ended"] == "timeout" for mutant in run["mutants"]) for run in runs),
        }
        for name, runs in told.items()
    }
    ratio = {
        name: {how: round(pace["own"][f"{how}_a_second"] / pace[name][f"{how}_a_second"], 1) for how in PACES}
        for name in same
    }
    killed = {
        name: {**runs[0], "different": sorted({one for run in runs for one in run["different"]})}
        for name, runs in same.items()
    }
    return {"pace": pace, "ratio": ratio, "killed": killed}


def _pace(runs: Sequence[Mapping[str, Any]], seconds: str) -> float:
    """Return the median mutants a second."""
    return round(median(len(run["mutants"]) / max(run[seconds], 1e-3) for run in runs), 2)


def holds(figures: Mapping[str, Any]) -> bool:
    """Say whether ours is ten times as fast as both peers, mutants running, and kills the same."""
    ratio, killed = figures["ratio"], figures["killed"]
    return len(ratio) == 2 and all(
        ratio[name]["running"] >= 10 and killed[name]["shared"] and not killed[name]["different"] for name in ratio
    )


def show(figures: Mapping[str, Any]) -> None:
    """Print the figures as tables."""
    table = Table("", "tried", *(f"{how} a second" for how in PACES), *(f"ours, {how}" for how in PACES), "same killed")
    for name, one in figures["pace"].items():
        ratio, killed = figures["ratio"].get(name), figures["killed"].get(name)
        agreed = f"{killed['shared'] - len(killed['different'])} of {killed['shared']}" if killed else ""
        paces, ratios = [one[f"{how}_a_second"] for how in PACES], [f"{ratio[how]} x" if ratio else "" for how in PACES]
        table.add_row(name, str(one["tried"]), *map(str, paces), *ratios, agreed)
    Console(width=120).print(table)


def main(given: list[str] | None = None) -> int:
    """Run the comparison."""
    parser = arguments("mutation", 5, "runs of each, of which the median counts")
    parser.add_argument("--peers", type=Path, required=True, help="the virtual environment of the peers")
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS, help=f"functions of {MODULE}")
    parser.add_argument("--most", type=int, default=24, help="mutants of cosmic-ray, 0 for all of them")
    options = parser.parse_args(given)
    campaign = Campaign("mutation", options.size, options.seed, options.out)
    python = options.peers.absolute() / "bin" / "python"
    figures = compare(campaign, python, options.size, options.functions, options.most)
    show(figures)
    return campaign.finish(holds(figures), mutants=figures, functions=options.functions, load_average=os.getloadavg())


if __name__ == "__main__":
    sys.exit(main())

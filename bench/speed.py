"""Compare speed with what people use today, in one run on one machine, as ratios of medians.

`python -m bench.speed --peers DIR [--tape T] [--size RUNS] [--only PART ...]`: DIR is a virtual environment with the
peers of bench/requirements-peers.lock. Replays of equal weights and of the reference strategy over the whole tape,
weekly and daily, against the event-driven peers that install (slow ones run once, over their first sessions); the
gate's patch checks and one sandboxed, covered test run against a bare `pytest --cov`; the whole gate asked again
(bench.regate); mutants a second against mutmut and cosmic-ray (bench.mutation); and how our own cost grows
(bench.scaling). Peers keep no ledger and know no fees, dividends or splits; ours does.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bench import mutation, regate, scaling
from bench.campaign import Campaign, arguments
from bench.market import shipped, tape_of
from guardrails.bench import open_bench
from guardrails.environment import GateEnvironment
from guardrails.gate import check
from guardrails.policy import parse_policy
from guardrails.sandbox import Sandbox
from guardrails.tree import Tree
from oomrl.adapters import environments
from oomrl.adapters.counterfactual import started
from oomrl.adapters.gate import CHEAP
from oomrl.adapters.strategies import Workers
from oomrl.domain.account import Cadence
from oomrl.domain.performance import performance
from oomrl.domain.sizing import Limits
from oomrl.exchange.friction import Friction
from oomrl.exchange.quarantine import QuarantineRule
from oomrl.exchange.replay import Terms, replay
from oomrl.exchange.tape import Tape
from oomrl.testing.fakes import EqualWeightWorker

#: Peers, and how many sessions they replay (None: the whole tape). What is slow need not be waited for.
PEERS: dict[str, int | None] = {"bt": None, "backtrader": 300, "nautilus": 300, "zipline": 300}
#: Peers that run the reference strategy as well.
BOTH = ("bt", "backtrader", "zipline")
HERE = Path(__file__).parent
INVESTED = 0.98
TRIVIAL = b'''"""Equal weights."""


class Strategy:
    def __init__(self, params):
        self.names = []

    def on_session(self, bars):
        self.names = bars["symbols"]

    def decide(self, portfolio):
        share = 0.98 / len(self.names)
        return {"action": "target", "weights": dict.fromkeys(self.names, share)}
'''
MODULE = "src/strategy/sizing.py"


def tree_of(strategy: str) -> dict[str, bytes]:
    """Return the tree of a strategy by its name, equal or reference."""
    if strategy == "reference":
        return dict(shipped())
    return {"strategy.toml": shipped()["strategy.toml"], "src/strategy/__init__.py": TRIVIAL}


def own_replay(tape: str, cadence: str, strategy: str) -> dict[str, float]:
    """Replay a strategy with a full account and its figures, the strategy in its sandboxed worker."""
    market, workers = tape_of(tape), Workers(Sandbox.choose(), environments.find().worker, 1e6, 0)
    before = _children()
    with started(workers, tree_of(strategy)):
        start = -before
    start += _children()
    with started(workers, tree_of(strategy)) as worker:
        begun, processor = time.perf_counter(), time.process_time()
        result = replay(market.sessions(), worker, Terms(cadence=Cadence(cadence)))
        performance(result.returns, result.benchmark[1:], resamples=10)
        seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    worked = _children() - before - 2 * start  # without what it takes to start and to import
    if result.failure is not None:
        raise result.failure
    return {
        "seconds": seconds,
        "processor_seconds": processor + max(worked, 0.0),
        "strategy_seconds": bare_compute(tape, cadence, strategy),
        "sessions": len(result.days),
        "final_equity": float(result.equity[-1]),
    }


def _children() -> float:
    """Return the processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bare_compute(tape: str, cadence: str, strategy: str) -> float:
    """Return the seconds that a strategy itself takes on the tape, in an interpreter of its own, without any engine."""
    environment = {**os.environ, "PYTHONPATH": str(HERE / "peers")}
    command = [sys.executable, "-c", BARE, str(Path(tape).resolve()), cadence, strategy]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


BARE = """
import sys
from pathlib import Path
from data import load
from strategies import Timed
days, symbols, arrays = load(Path(sys.argv[1]))
timed, week = Timed(sys.argv[3], symbols, arrays), None
held = dict.fromkeys(symbols, 100.0)
for at, day in enumerate(days.tolist()):
    timed.show(at, day)
    before, week = week, day.isocalendar()[:2]
    if sys.argv[2] == "daily" or week != before:
        timed.weights(day, 1e6, 0.0, held)
print(timed.seconds)
"""


def peer_replay(python: Path, peer: str, tape: str, cadence: str, strategy: str) -> dict[str, Any] | None:
    """Run one peer in its own environment; None where it does not install or fails."""
    sessions = PEERS[peer]
    command = [python, HERE / "peers" / f"run_{peer}.py", Path(tape).resolve(), cadence, strategy]
    command += [str(sessions)] if sessions else []
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1_800)
    if done.returncode:
        print(f"{peer} {cadence}: left out, {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def replays(
    campaign: Campaign, python: Path, tape: str, runs: int, strategy: str, cadences: Sequence[str]
) -> dict[str, Any]:
    """Alternate ours and the peers; return by cadence the sessions a second of each, whole, of the engine alone and by
    processor seconds (ours: of both processes), and the ratios to the fastest peer."""
    found: dict[str, dict[str, list[tuple[float, ...]]]] = {}
    peers = [peer for peer in PEERS if strategy == "equal" or peer in BOTH]
    for cadence in cadences:
        speeds = found.setdefault(cadence, {})
        for number in range(runs):
            for name in ("own", *peers):
                if number and (name not in speeds or PEERS.get(name)):
                    continue
                told = (
                    own_replay(tape, cadence, strategy)
                    if name == "own"
                    else peer_replay(python, name, tape, cadence, strategy)
                )
                if told is not None:
                    whole, engine = told["seconds"], told["seconds"] - told["strategy_seconds"]
                    each = (whole, engine, told["processor_seconds"])
                    speeds.setdefault(name, []).append(tuple(told["sessions"] / took for took in each))
                    campaign.add(f"replay/{strategy}/{cadence}/{name}/{number}", campaign.seed, **told)
                    print(f"{strategy} {cadence} {name}: {speeds[name][-1][0]:,.0f} sessions/s", file=sys.stderr)
    shown: dict[str, Any] = {}
    for at, what in enumerate(("", "engine_", "processor_")):
        middle = {
            cadence: {name: round(median(pair[at] for pair in pairs), 1) for name, pairs in by.items()}
            for cadence, by in found.items()
        }
        shown[f"{what}sessions_a_second"] = middle
        shown[f"{what}ratio"] = {
            cadence: round(by["own"] / max(v for name, v in by.items() if name != "own"), 2)
            for cadence, by in middle.items()
            if len(by) > 1
        }
    return shown


def equal_results(campaign: Campaign, python: Path, tape: str) -> dict[str, float]:
    """Compare the final equity with backtrader's on raw prices, friction, dividends and splits off: the same orders at
    the same opens. Returns the difference in dollars, and the orders."""
    told = peer_replay(python, "backtrader", tape, "weekly", "equal")
    if told is None:
        return {}
    market = tape_of(tape)
    size = int(told["sessions"])
    columns = {name: values[:size] for name, values in market.columns.items()}
    zeros = np.zeros_like(columns["close"])
    columns |= {"dividend": zeros, "split": zeros + 1.0, "volume": zeros + 1e9}  # the peer trades without volume too
    calm = QuarantineRule(wild=1e9, jump=1e9, distribution=1e9)
    bare = Tape("raw", market.symbols, market.days[:size], columns, calm)
    limits = Limits(max_adv_share=1e9, min_order_value=0.0, cash_reserve_bps=0.0)
    terms = Terms(friction=Friction.none(), limits=limits, sales_fund_at_once=True)
    result = replay(bare.sessions(), EqualWeightWorker(INVESTED), terms)
    found = {
        "difference": round(float(result.equity[-1]) - told["final_equity"], 4),
        "orders": int(result.orders.sum()),
        "peer_orders": told["orders"],
        "final_equity": float(result.equity[-1]),
    }
    campaign.add("equal_results", campaign.seed, **found)
    return found


def gate(campaign: Campaign, python: Path, runs: int) -> float:
    """Return what the cheap checks and one sandboxed covered run take, over a bare `pytest --cov` of the same tests."""
    base, found = Tree(shipped()), environments.find()
    policy = parse_policy(base["policy.toml"])
    environment = GateEnvironment(found.gate, found.worker)
    bench = open_bench(environment, policy)
    patch = _patch(base)
    ours, bare = [], []
    with tempfile.TemporaryDirectory() as place:
        base.write(Path(place))
        for number in range(runs):
            begun = time.perf_counter()
            verdict = check(base, patch, "logic", policy, secret=b"bench", environment=environment, layers=CHEAP)
            run = bench.test(base, cover=True)
            ours.append(time.perf_counter() - begun)
            assert not run.fault and all(stage.status != "fail" for stage in verdict.stages)
            begun = time.perf_counter()
            command = [python, "-m", "pytest", "-q", "--cov=src/strategy", "--cov-branch", "tests"]
            subprocess.run(command, cwd=place, check=True, capture_output=True)
            bare.append(time.perf_counter() - begun)
            campaign.add(f"gate/{number}", campaign.seed, ours=ours[-1], bare=bare[-1])
    return round(median(ours) / median(bare), 3)


def _patch(base: Tree) -> bytes:
    """Return a small honest patch of the module: one comment more."""
    from difflib import unified_diff

    before = base[MODULE].decode().splitlines(keepends=True)
    after = [*before, "# A comment that a person might add.\n"]
    return "".join(unified_diff(before, after, f"a/{MODULE}", f"b/{MODULE}")).encode()


def show(trivial: Mapping[str, Any], reference: Mapping[str, Any], against_pytest: float | None) -> None:
    """Print the replays as a table, and the gate's cheap part."""
    whats = {"": "", "engine_": "engine alone, ", "processor_": "processor, "}
    columns = [f"{before}sessions/s" for before in whats.values()] + [f"{before}ours" for before in whats.values()]
    table = Table("strategy, cadence", "engine", *columns)
    for strategy, figures in (("equal", trivial), ("reference", reference)):
        for cadence, by in figures.get("sessions_a_second", {}).items():
            paces = [figures[f"{what}sessions_a_second"][cadence] for what in whats]
            for name in by:
                ratios = [f"{pace['own'] / pace[name]:.2f} x" if name != "own" else "" for pace in paces]
                table.add_row(f"{strategy}, {cadence}", name, *(f"{pace[name]:,.0f}" for pace in paces), *ratios)
    Console(width=140).print(table)
    if against_pytest is not None:
        print(f"patch, policy, lock and one covered run: {against_pytest} times a bare pytest --cov")


CADENCES = ("weekly", "daily")
PARTS = ("replay", "reference", "equal", "gate", "regate", "mutants", "scaling")


def main(given: list[str] | None = None) -> int:
    """Run the comparison."""
    parser = arguments("speed", 5, "runs of each, of which the median counts", tape=True)
    parser.add_argument("--peers", type=Path, required=True, help="the virtual environment of the peers")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="measure these parts alone")
    parser.add_argument("--cadence", nargs="+", choices=CADENCES, default=CADENCES, help="of the replays")
    options = parser.parse_args(given)
    if shutil.which("bwrap") is None:
        print("No bubblewrap here: the sandbox is the one without namespaces.", file=sys.stderr)
    campaign = Campaign("bench", options.size, options.seed, options.out)
    python, tape, runs, only = options.peers.absolute() / "bin" / "python", options.tape, options.size, options.only
    trivial = replays(campaign, python, tape, runs, "equal", options.cadence) if "replay" in only else {}
    reference = replays(campaign, python, tape, runs, "reference", options.cadence) if "reference" in only else {}
    same = equal_results(campaign, python, tape) if "equal" in only else {}
    against_pytest = gate(campaign, python, runs) if "gate" in only else None
    again = regate.measure(campaign, runs) if "regate" in only else {}
    planted = mutation.compare(campaign, python, runs) if "mutants" in only else {}
    growth = scaling.measure(campaign, tape, runs) if "scaling" in only else {}
    show(trivial, reference, against_pytest)
    if again:
        regate.show(again)
    if planted:
        mutation.show(planted)
    holds = (
        min(trivial.get("ratio", {}).values(), default=0) >= 10
        and min(reference.get("engine_ratio", {}).values(), default=0) >= 10
        and abs(same.get("difference", 1e9)) <= 0.01 * same.get("orders", 0)
        and (against_pytest or 9) <= 1.5
        and bool(again)
        and regate.holds(again)
        and bool(planted)
        and mutation.holds(planted)
        and bool(growth)
        and growth["holds"]
    )
    return campaign.finish(
        holds,
        replay_vs_fastest_peer=trivial.get("ratio"),
        sessions_a_second=trivial.get("sessions_a_second"),
        replay_vs_fastest_peer_by_processor=trivial.get("processor_ratio"),
        replay_engine_vs_peer_engine=reference.get("engine_ratio"),
        reference_vs_fastest_peer_by_processor=reference.get("processor_ratio"),
        engine_sessions_a_second=reference.get("engine_sessions_a_second"),
        reference_sessions_a_second=reference.get("sessions_a_second"),
        equal_results=same,
        gate_vs_pytest_cov=against_pytest,
        regate=again,
        mutants_vs_mutmut=planted.get("ratio", {}).get("mutmut", {}).get("running"),
        mutants=planted,
        scaling=growth,
        load_average=os.getloadavg(),
        peak_memory_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    )


if __name__ == "__main__":
    sys.exit(main())

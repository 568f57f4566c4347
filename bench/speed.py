"""Compare speed with what people use today, in one run on one machine, as ratios of medians.

`python -m bench.speed --peers DIR [--tape T] [--size RUNS]`: DIR is a virtual environment with the peers of
bench/requirements-peers.lock. Replays of equal weights over the whole tape, weekly and daily, against the event-driven
peers that install (slow ones run once, over their first sessions); the gate's patch checks and one sandboxed, covered
test run against a bare `pytest --cov`; mutants of one module a second against mutmut on two processes. Peers keep no
ledger and know no fees, dividends or splits; ours does.
"""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.campaign import Campaign, arguments
from bench.market import shipped, tape_of
from bench.promotion import TAPE
from guardrails.bench import open_bench
from guardrails.environment import GateEnvironment
from guardrails.gate import check
from guardrails.policy import parse_policy
from guardrails.tree import Tree
from oomrl.adapters import environments
from oomrl.adapters.counterfactual import started
from oomrl.adapters.gate import CHEAP
from oomrl.adapters.strategies import Workers
from oomrl.domain.account import Cadence
from oomrl.exchange.replay import Terms, replay

#: Peers, and how many sessions they replay (None: the whole tape). What is slow need not be waited for.
PEERS: dict[str, int | None] = {"bt": None, "backtrader": 300, "nautilus": 300}
HERE = Path(__file__).parent
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


def own_replay(tape: str, cadence: str) -> dict[str, float]:
    """Replay equal weights with a full account, the strategy in its sandboxed worker."""
    from guardrails.sandbox import Sandbox

    market, workers = tape_of(tape), Workers(Sandbox.choose(), environments.find().worker, 1e6, 0)
    tree = {"strategy.toml": shipped()["strategy.toml"], "src/strategy/__init__.py": TRIVIAL}
    with started(workers, tree) as worker:
        begun = time.perf_counter()
        result = replay(market.sessions(), worker, Terms(cadence=Cadence(cadence)))
        seconds = time.perf_counter() - begun
    return {"seconds": seconds, "sessions": len(result.days), "final_equity": float(result.equity[-1])}


def peer_replay(python: Path, peer: str, tape: str, cadence: str) -> dict[str, Any] | None:
    """Run one peer in its own environment; None where it does not install or fails."""
    sessions = PEERS[peer]
    command = [python, HERE / "peers" / f"run_{peer}.py", Path(tape).resolve(), cadence]
    command += [str(sessions)] if sessions else []
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1_800)
    if done.returncode:
        print(f"{peer} {cadence}: left out, {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def replays(campaign: Campaign, python: Path, tape: str, runs: int) -> dict[str, Any]:
    """Alternate ours and the peers; return sessions a second of each by cadence, and the ratio to the fastest peer."""
    found: dict[str, dict[str, list[float]]] = {}
    for cadence in ("weekly", "daily"):
        speeds = found.setdefault(cadence, {})
        for number in range(runs):
            for name in ("own", *PEERS):
                if number and (name not in speeds or PEERS.get(name)):
                    continue
                told = own_replay(tape, cadence) if name == "own" else peer_replay(python, name, tape, cadence)
                if told is not None:
                    speeds.setdefault(name, []).append(told["sessions"] / told["seconds"])
                    campaign.add(f"replay/{cadence}/{name}/{number}", campaign.seed, **told)
                    print(f"{cadence} {name}: {told['sessions'] / told['seconds']:,.0f} sessions/s", file=sys.stderr)
    middle = {cadence: {name: round(median(s), 1) for name, s in by.items()} for cadence, by in found.items()}
    ratios = {
        cadence: round(by["own"] / max(v for name, v in by.items() if name != "own"), 2)
        for cadence, by in middle.items()
        if len(by) > 1
    }
    return {"sessions_a_second": middle, "ratio": ratios}


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


def mutants(campaign: Campaign, python: Path, runs: int) -> dict[str, float]:
    """Return mutants a second of ours and of mutmut on one module, and their ratio."""
    base, found = Tree(shipped()), environments.find()
    policy = parse_policy(base["policy.toml"])
    bench = open_bench(GateEnvironment(found.gate, found.worker), policy)
    lines = {MODULE: range(1, len(base[MODULE].splitlines()) + 1)}
    ours, theirs = [], []
    for number in range(runs):
        bench.test(base, cover=True)
        begun = time.perf_counter()
        ended = bench.mutants(base, lines, seed=campaign.seed, most=400)
        ours.append(len(ended) / (time.perf_counter() - begun))
        with tempfile.TemporaryDirectory() as place:
            base.write(Path(place))
            settings = Path(place) / "pyproject.toml"
            settings.chmod(0o644)
            extra = (
                f'\n[tool.mutmut]\npaths_to_mutate = ["{MODULE}"]\nalso_copy = ["baseline", "strategy.toml", "src"]\n'
            )
            settings.write_text(settings.read_text("utf-8") + extra, "utf-8")
            done = subprocess.run(
                [python.parent / "mutmut", "run", "--max-children", "2"],
                cwd=place, capture_output=True, text=True, check=False, timeout=1_800,
            )  # fmt: skip
            told = re.findall(r"([\d.]+) mutations/second", done.stdout)
            if told:
                theirs.append(float(told[-1]))
        campaign.add(f"mutants/{number}", campaign.seed, ours=ours[-1], mutmut=theirs[-1] if theirs else None)
    if not theirs:
        return {"ours": round(median(ours), 1)}
    return {
        "ours": round(median(ours), 1),
        "mutmut": round(median(theirs), 1),
        "ratio": round(median(ours) / median(theirs), 2),
    }


def _patch(base: Tree) -> bytes:
    """Return a small honest patch of the module: one comment more."""
    from difflib import unified_diff

    before = base[MODULE].decode().splitlines(keepends=True)
    after = [*before, "# A comment that a person might add.\n"]
    return "".join(unified_diff(before, after, f"a/{MODULE}", f"b/{MODULE}")).encode()


def main(given: list[str] | None = None) -> int:
    """Run the comparison."""
    parser = arguments("speed", 5, "runs of each, of which the median counts")
    parser.add_argument("--tape", default=TAPE)
    parser.add_argument("--peers", type=Path, required=True, help="the virtual environment of the peers")
    options = parser.parse_args(given)
    if not Path(options.tape).exists():
        print(f"SKIPPED: no tape at {options.tape}; name one with --tape.", file=sys.stderr)
        return 2
    if shutil.which("bwrap") is None:
        print("No bubblewrap here: the sandbox is the one without namespaces.", file=sys.stderr)
    campaign = Campaign("bench", options.size, options.seed, options.out)
    python = options.peers.absolute() / "bin" / "python"
    replayed = replays(campaign, python, options.tape, options.size)
    against_pytest = gate(campaign, python, options.size)
    planted = mutants(campaign, python, options.size)
    ratios = replayed["ratio"].values()
    holds = bool(ratios) and min(ratios) >= 10 and against_pytest <= 1.5 and planted.get("ratio", 0) >= 10
    return campaign.finish(
        holds,
        replay_vs_fastest_peer=replayed["ratio"],
        sessions_a_second=replayed["sessions_a_second"],
        replay_engine_vs_peer_engine=None,
        gate_vs_pytest_cov=against_pytest,
        mutants_vs_mutmut=planted.get("ratio"),
        mutants_a_second=planted,
        peak_memory_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    )


if __name__ == "__main__":
    sys.exit(main())

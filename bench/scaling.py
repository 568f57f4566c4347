"""How the cost of a replay grows, what candidates of one pass cost, and what a worker costs: medians of several runs.

An exponent is the slope of a line through log cost over log size, by least squares: 1 is linear.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from bench.campaign import Campaign
from bench.market import shipped, tape_of
from guardrails.sandbox import Sandbox
from oomrl.adapters import environments
from oomrl.adapters.counterfactual import started
from oomrl.adapters.strategies import Workers
from oomrl.domain.market import Session
from oomrl.domain.trading import Portfolio
from oomrl.exchange.replay import Terms, replay, replay_together
from oomrl.exchange.tape import Tape
from oomrl.testing.fakes import EqualWeightWorker
from oomrl.testing.markets import made_up_tape

NAMES = (50, 100, 200, 400, 800)
SESSIONS = (250, 500, 1_000, 2_000)
CANDIDATES = (1, 2, 4, 8)
#: What a worker's strategy imports, bare.
BARE_START = "import json, random, traceback, numpy"
SILENT = b'''"""Hold."""


class Strategy:
    def __init__(self, params):
        pass

    def on_session(self, bars):
        pass

    def decide(self, portfolio):
        return {"action": "target", "weights": portfolio["shares"]}
'''


def measure(campaign: Campaign, tape: str, runs: int) -> dict[str, Any]:
    """Return exponents by names, sessions and candidates, what 8 candidates cost over one, and a worker's cost."""
    recorded = list(tape_of(tape).sessions())[:800]
    names = {size: list(made_up_tape(campaign.seed, sessions=300, names=size).sessions()) for size in NAMES}
    sessions = {size: list(made_up_tape(campaign.seed, sessions=size, names=100).sessions()) for size in SESSIONS}
    by = {
        "names": _medians(runs, NAMES, lambda size: _alone(names[size])),
        "sessions": _medians(runs, SESSIONS, lambda size: _alone(sessions[size])),
        "candidates": _medians(runs, CANDIDATES, lambda size: _together(recorded, size)),
    }
    exponents = {what: exponent(costs) for what, costs in by.items()}
    candidates = by["candidates"][8] / by["candidates"][1]
    start, trip = worker_start(runs), decide_round_trip()
    found = {
        "exponents": exponents,
        "seconds": {what: {str(size): round(cost, 4) for size, cost in costs.items()} for what, costs in by.items()},
        "eight_candidates_over_one": round(candidates, 2),
        "worker_start_over_bare_ms": start,
        "decide_round_trip_ms": trip,
        "holds": max(exponents.values()) <= 1.05 and candidates <= 4 and start <= 50 and trip <= 1,
    }
    campaign.add("scaling", campaign.seed, **found)
    return found


def exponent(costs: Mapping[int, float]) -> float:
    """Return the slope of log cost over log size."""
    return round(float(np.polyfit(np.log(list(costs)), np.log(list(costs.values())), 1)[0]), 3)


def _medians(runs: int, sizes: Sequence[int], timed: Callable[[int], float]) -> dict[int, float]:
    """Return the median cost of each size; sizes take turns, so that a machine that slows down slows all of them."""
    rounds = [[timed(size) for size in sizes] for _ in range(runs)]
    return {size: statistics.median(each) for size, each in zip(sizes, zip(*rounds, strict=True), strict=True)}


def _alone(market: list[Session]) -> float:
    """Return the processor seconds of a replay without a sandbox around the strategy: what the engine costs."""
    begun = time.process_time()
    replay(market, EqualWeightWorker(0.98), Terms())
    return time.process_time() - begun


def _together(market: list[Session], candidates: int) -> float:
    """Return the seconds of a replay of as many candidates, the reference strategy in a sandbox each."""
    workers = Workers(Sandbox.choose(), environments.find().worker, 1e6, 0)
    with ExitStack() as stack:
        runs = [(stack.enter_context(started(workers, shipped())), Terms()) for _ in range(candidates)]
        begun = time.perf_counter()
        replay_together(market, runs)
        return time.perf_counter() - begun


def worker_start(runs: int) -> float:
    """Return by how many milliseconds starting a worker exceeds a bare start of its interpreter with its imports."""
    environment = environments.find()
    workers = Workers(Sandbox.choose(), environment.worker, 1e6, 0)
    over = []
    for _ in range(2 * runs):
        begun = time.perf_counter()
        subprocess.run([environment.worker, "-s", "-P", "-B", "-c", BARE_START], check=True)
        bare = time.perf_counter() - begun
        begun = time.perf_counter()
        with started(workers, {"strategy.toml": shipped()["strategy.toml"], "src/strategy/__init__.py": SILENT}):
            over.append(time.perf_counter() - begun - bare)
    return round(statistics.median(over) * 1e3, 1)


def decide_round_trip(names: int = 100, trips: int = 500) -> float:
    """Return the median milliseconds of one session shown and one decision over `names` names; the strategy itself does
    nothing."""
    workers = Workers(Sandbox.choose(), environments.find().worker, 1e6, 0)
    market: Tape = made_up_tape(7, sessions=trips, names=names)
    times = []
    tree = {"strategy.toml": shipped()["strategy.toml"], "src/strategy/__init__.py": SILENT}
    with started(workers, tree) as worker:
        for session in market.sessions():
            shares = dict.fromkeys(session.symbols, 0.005)
            begun = time.perf_counter()
            worker.show(session)
            worker.decide(Portfolio(session.day, 1e6, 0.0, shares))
            times.append(time.perf_counter() - begun)
    return round(statistics.median(times) * 1e3, 3)


if __name__ == "__main__":
    print(worker_start(5), decide_round_trip(), file=sys.stderr)

"""What a verdict costs, by stages: on a new patch, on the same again, and where one part of the question differs.

`python -m bench.regate [--size RUNS]`. Each run begins with nothing known and asks the gate, as the service does with
one cache: a patch of one function of the shipped strategy (`cold`); the same again (`warm`); the same as the next
attempt, whose hidden seeds, probes and mutants are drawn anew (`attempt`); and another patch of the same code, so that
the tree is another while the code before is not (`patch`). Seconds are medians; processor seconds are the judge's and
its sandboxed runs'.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.campaign import Campaign, arguments
from bench.market import shipped
from guardrails.environment import GateEnvironment
from guardrails.gate import check
from guardrails.policy import parse_policy
from guardrails.tree import Tree
from oomrl.adapters import environments

MODULE = "src/strategy/sizing.py"
BEFORE = """    locked = scaled_down(locked, CEILING)
    return scaled_down(target, CEILING - locked.sum()) + locked
"""
#: Two ways of writing the end of a function that come to the same.
AFTER = (
    """    held = scaled_down(locked, CEILING)
    return scaled_down(target, CEILING - held.sum()) + held
""",
    """    held = scaled_down(locked, CEILING)
    room = CEILING - held.sum()
    return scaled_down(target, room) + held
""",
)
#: What is asked, one after the other with one cache: which patch, and which attempt.
CASES: Mapping[str, tuple[int, int]] = {"cold": (0, 0), "warm": (0, 0), "attempt": (0, 1), "patch": (1, 0)}


def patches(base: Tree) -> list[bytes]:
    """Return the two patches.

    Raises:
        ValueError: the function ends otherwise than these patches know it.
    """
    before = base[MODULE].decode()
    if before.count(BEFORE) != 1:
        raise ValueError(f"Expected {MODULE} to hold the lines to be changed once.")
    made = []
    for after in AFTER:
        lines = (text.splitlines(keepends=True) for text in (before, before.replace(BEFORE, after)))
        made.append("".join(unified_diff(*lines, f"a/{MODULE}", f"b/{MODULE}")).encode())
    return made


def measure(campaign: Campaign, runs: int) -> dict[str, Any]:
    """Return medians by case: seconds of each stage, of all, and processor seconds; and warm over cold."""
    base, found = Tree(shipped()), environments.find()
    policy, environment = parse_policy(base["policy.toml"]), GateEnvironment(found.gate, found.worker)
    both = patches(base)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in CASES}
    for number in range(runs):
        cache, digests = dict[str, Any](), dict[str, str]()
        for name, (which, attempt) in CASES.items():
            begun, before = time.perf_counter(), os.times()
            verdict = check(
                base,
                both[which],
                "logic",
                policy,
                secret=b"bench",
                attempt=attempt,
                environment=environment,
                cache=cache,
            )
            seconds, after = time.perf_counter() - begun, os.times()
            if not verdict.allowed:
                raise AssertionError(f"Expected {name} to pass, was {verdict.findings or verdict.stages}.")
            digests[name] = verdict.digest()
            stages = {stage.name: round(stage.seconds, 4) for stage in verdict.stages}
            kept = sorted(stage.name for stage in verdict.stages if stage.evidence.get("cached"))
            row = {"seconds": round(seconds, 3), "processor_seconds": round(sum(after[:4]) - sum(before[:4]), 3)}
            row |= {"stages": stages, "remembered": kept, "load": os.getloadavg()[0]}
            rows[name].append(row)
            campaign.add(f"regate/{number}/{name}", campaign.seed, **row)
            print(f"gate {name}: {seconds:.2f} s", file=sys.stderr)
        if digests["warm"] != digests["cold"]:
            raise AssertionError("Expected the same verdict on the same question.")
    shown = {name: _middle(taken) for name, taken in rows.items()}
    of = ("seconds", "processor_seconds")
    return {"cases": shown, "warm_over_cold": {key: round(shown["warm"][key] / shown["cold"][key], 3) for key in of}}


def _middle(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    stages = {name: round(median(row["stages"][name] for row in rows), 3) for name in rows[0]["stages"]}
    totals = {key: round(median(row[key] for row in rows), 3) for key in ("seconds", "processor_seconds")}
    return {**totals, "stages": stages, "remembered": rows[0]["remembered"]}


def holds(figures: Mapping[str, Any]) -> bool:
    """Say whether the same question again costs nothing that counts: a tenth of the first time at most."""
    return bool(figures["warm_over_cold"]["processor_seconds"] <= 0.1)


def show(figures: Mapping[str, Any]) -> None:
    """Print the stages of each case as a table; what was remembered in brackets."""
    cases = figures["cases"]
    table = Table("seconds", *cases)
    for stage in cases["cold"]["stages"]:
        cells = [(f"{case['stages'][stage]:.2f}", stage in case["remembered"]) for case in cases.values()]
        table.add_row(stage, *(f"({text})" if kept else text for text, kept in cells))
    for what in ("seconds", "processor_seconds"):
        table.add_row(f"all, {what.replace('_', ' ')}", *(f"{case[what]:.2f}" for case in cases.values()))
    Console(width=100).print(table)


def main(given: list[str] | None = None) -> int:
    """Measure."""
    options = arguments("regate", 5, "runs of each, of which the median counts").parse_args(given)
    campaign = Campaign("regate", options.size, options.seed, options.out)
    figures = measure(campaign, options.size)
    show(figures)
    return campaign.finish(holds(figures), regate=figures, load_average=os.getloadavg())


if __name__ == "__main__":
    sys.exit(main())

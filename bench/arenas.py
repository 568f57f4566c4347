"""Measure the arenas: published scores of the first committee, ordering, probes, value of information.

`python -m bench.arenas [--size SEEDS] [--seed S] [--arena NAME ...] [--out DIR]` prints tables and writes
build/campaigns/arenas.json. Exit code 0 when everything that must hold does, 1 when not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.registry import QUALIFYING, find
from oomrl.arenas.runner import Ordering, ordering, run
from oomrl.arenas.semantic import semantic_checks

PUBLISHED = {
    "always_cash": 0.2000,
    "query_spam": 0.2000,
    "concentrated_alpha": 0.3033,
    "heuristic": 0.4084,
    "random": 0.2325,
}
PUBLISHED_SEEDS = (7, 11, 13)


def published() -> dict[str, Any]:
    """Return the first committee's scores beside the published ones."""
    arena = find("committee_v1")
    answer = {}
    for name in PUBLISHED:
        result = run(arena, Scripted(name), PUBLISHED_SEEDS)
        by_task = result.to_json()["by_task"]
        answer[name] = {"score": fmean(by_task.values()), "by_task": by_task}
    return answer


def measure(arenas: list[str], size: int, first: int, executor: Executor) -> list[tuple[Ordering, list[Any]]]:
    """Return ordering and semantic checks of each arena, on training and on held-out seeds."""
    results = []
    for name in arenas:
        arena = find(name)
        for split in ("train", "held_out"):
            order = ordering(arena, split, size, first, executor)
            checks = semantic_checks(arena, measured=order) if split == "train" else []
            results.append((order, checks))
            _show(order, checks)
    return results


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="python -m bench.arenas", description=__doc__)
    parser.add_argument("--size", type=int, default=24, help="seeds for each arena and split")
    parser.add_argument("--seed", type=int, default=0, help="offset of the first seed in each split")
    parser.add_argument("--arena", action="append", choices=QUALIFYING, help="all by default")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--out", type=Path, default=Path("build/campaigns"))
    options = parser.parse_args(arguments)
    started = time.monotonic()
    scores = published()
    _say("First committee, mean over four tasks, seeds 7, 11, 13")
    for name, told in scores.items():
        _say(f"  {name:20s} {told['score']:.4f}   published {PUBLISHED[name]:.4f}")
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        results = measure(options.arena or list(QUALIFYING), options.size, options.seed, executor)
    exact = all(round(told["score"], 4) == PUBLISHED[name] for name, told in scores.items())
    passed = exact and all(order.holds and all(c.passed for c in checks) for order, checks in results)
    record = {
        "name": "arenas",
        "size": options.size,
        "seed": options.seed,
        "seconds": round(time.monotonic() - started, 1),
        "passed": passed,
        "committee_v1": {name: round(told["score"], 6) for name, told in scores.items()},
        "committee_v1_by_task": {name: told["by_task"] for name, told in scores.items()},
        "ordering": [order.to_json() for order, _ in results],
        "semantic": {order.arena: [c.to_json() for c in checks] for order, checks in results if checks},
        "cases": [row for order, _ in results for row in _rows(order)],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "arenas.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    _say(f"{'All holds' if passed else 'NOT everything holds'}; {record['seconds']} s; wrote {path}")
    return 0 if passed else 1


def _rows(order: Ordering) -> list[dict[str, Any]]:
    """Return one row a policy and seed, with a digest of its score, to run again alone."""
    rows = []
    for policy, scores in order.by_seed.items():
        for seed, score in zip(order.seeds, scores, strict=True):
            name = f"{order.arena}:{policy}:{seed}"
            digest = hashlib.sha256(f"{name}:{score!r}".encode()).hexdigest()
            rows.append({"id": name, "seed": seed, "score": score, "digest": digest})
    return rows


def _show(order: Ordering, checks: list[Any]) -> None:
    held = "holds" if order.holds else "DOES NOT HOLD"
    _say(f"\n{order.arena}, {order.split}, {len(order.seeds)} seeds: ordering {held}")
    for name, score in sorted(order.scores.items(), key=lambda item: -item[1].mean):
        gap = order.above_floor.get(name)
        beside = f"   heuristic is above by {gap.mean:.4f} ({gap.low:.4f}..{gap.high:.4f})" if gap else ""
        _say(f"  {name:20s} {score.mean:.4f} ({score.low:.4f}..{score.high:.4f}){beside}")
    gap = order.below_oracle
    _say(f"  oracle is above the heuristic by {gap.mean:.4f} ({gap.low:.4f}..{gap.high:.4f})")
    if order.information is not None:
        _say(f"  advice is worth something: p = {order.information:.5f}")
    for check in checks:
        _say(f"  {'pass' if check.passed else 'FAIL'} {check.name} {json.dumps(check.measured)[:150]}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

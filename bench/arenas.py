"""Measure the arenas: published scores, ordering with every probe, value of information, noise, speed.

`make arenas SEEDS=20 SEED=7`, or `python -m bench.arenas [--size SEEDS] [--seed S] [--arena NAME ...]`, prints tables
and writes build/campaigns/arenas.json. `--seed` is the offset of the first seed in each split. Exit code 0 when
everything that must hold does, 1 when not. A case is run again alone with
`oomrl arena run ARENA --agent POLICY --seeds SEED`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench.arena_table import page
from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.engine import Json
from oomrl.arenas.episode import replay
from oomrl.arenas.registry import QUALIFYING, find
from oomrl.arenas.runner import Ordering, ordering, run
from oomrl.arenas.semantic import Check, semantic_checks
from oomrl.arenas.statistics import paired

PUBLISHED = {
    "always_cash": 0.2000,
    "query_spam": 0.2000,
    "concentrated_alpha": 0.3033,
    "heuristic": 0.4084,
    "random": 0.2325,
}
PUBLISHED_SEEDS = (7, 11, 13)
FASTEST = {"committee": 5_000, "organization": 5_000}
"""Steps a second in process on one core that must be reached."""
NOISE_SEEDS = 400
COVERAGE = (0.92, 0.98)
LADDER = ("oracle", "simple", "noise")
"""The research players of a planted signal, a simple baseline and chance, best first."""


def published() -> Json:
    """Return the first committee's score of each policy over tasks, and by task."""
    answer: Json = {}
    for name in PUBLISHED:
        by_task = run(find("committee_v1"), Scripted(name), PUBLISHED_SEEDS).to_json()["by_task"]
        answer[name] = {"score": fmean(by_task.values()), "by_task": by_task}
    return answer


def speed(name: str, seconds: float = 1.0) -> float:
    """Return steps a second of processor time: a random agent's actions played again, best of three."""
    arena = find(name)
    task = list(arena.tasks)[-1]
    logs = [run(arena, Scripted("random"), [seed], [task]).episodes[0].log for seed in range(5)]
    plays = [[step["body"]["action"] for step in log.records() if step["kind"] == "step"] for log in logs]
    assert replay(arena, logs[0]).log.head == logs[0].head
    engine, best = arena.make(), 0.0
    for _ in range(3):
        steps, started = 0, time.process_time()
        while time.process_time() - started < seconds:
            for seed, actions in enumerate(plays):
                engine.reset(seed, task)
                for action in actions:
                    engine.step(action)
                steps += len(actions)
        best = max(best, steps / (time.process_time() - started))
    return best


def noise(first: int, executor: Executor) -> Json:
    """Return how often the interval of a worthless model's score covers minus what its trading costs."""
    width = NOISE_SEEDS // 8
    starts = range(first, first + NOISE_SEEDS, width)
    told = list(executor.map(_noise, ((start, start + width) for start in starts)))
    count = sum(one["seeds"] for one in told)

    def pooled(key: str) -> float:
        return sum(one[key] * one["seeds"] for one in told) / count

    return {
        "seeds": count,
        "coverage": pooled("coverage"),
        "mean_sharpe": pooled("mean_sharpe"),
        "mean_expected": pooled("mean_expected"),
    }


def _noise(bounds: tuple[int, int]) -> Json:
    from oomrl.arenas.research.campaign import noise_coverage

    return noise_coverage(range(*bounds))


def ladder(order: Ordering) -> Json:
    """Return the paired differences of research's rungs, a planted signal over a simple baseline over noise."""
    steps = zip(LADDER, LADDER[1:], strict=False)
    return {f"{a} - {b}": paired(order.by_seed[a], order.by_seed[b]).to_json() for a, b in steps}


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(prog="python -m bench.arenas", description=__doc__)
    parser.add_argument("--size", type=int, default=20, help="for each arena and split")
    parser.add_argument("--seed", type=int, default=0, help="offset of the first seed in each split")
    parser.add_argument("--arena", action="append", choices=QUALIFYING, help="all by default")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--out", type=Path, default=Path("build/campaigns"))
    parser.add_argument("--table", type=Path, help="also write the figures here as a page")
    options = parser.parse_args(arguments)
    names, started = options.arena or list(QUALIFYING), time.monotonic()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process a core is enough; more threads wait for each other
    scores = published()
    say("First committee, mean over four tasks, seeds 7, 11, 13")
    for name, told in scores.items():
        say(f"  {name:20s} {told['score']:.4f}   published {PUBLISHED[name]:.4f}")
    speeds = {name: speed(name) for name in names if name in FASTEST}
    for name, steps in speeds.items():
        say(f"{name}: {steps:,.0f} steps a second in process (at least {FASTEST[name]:,})")
    orders: list[Ordering] = []
    checks: dict[str, list[Check]] = {}
    nothing: Json | None = None
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for name in names:
            arena = find(name)
            for split in ("train", "held_out"):
                cases = options.size * len(arena.tasks) * (len(arena.policies) + len(arena.probes))
                with counting(cases) as on_score:
                    orders.append(ordering(arena, split, options.size, options.seed, executor, on_score))
                show(orders[-1])
            checks[name] = semantic_checks(arena, measured=orders[-2])
            for check in checks[name]:
                say(f"  {'pass' if check.passed else 'FAIL'} {check.name} {json.dumps(check.measured)[:150]}")
        if "research" in names:
            nothing = noise(options.seed, executor)
            say(f"On {nothing['seeds']} panels of pure noise the interval covers minus the cost in ", end="")
            say(f"{nothing['coverage']:.1%} ({COVERAGE[0]:.0%} to {COVERAGE[1]:.0%}); mean Sharpe ", end="")
            say(f"{nothing['mean_sharpe']:.3f}, minus the cost {nothing['mean_expected']:.3f}")
    rungs = {order.split: ladder(order) for order in orders if order.arena == "research"}
    for split, steps in rungs.items():
        for name, gap in steps.items():
            say(f"research {split}: {name} = {gap['mean']:.4f} ({gap['low']:.4f} to {gap['high']:.4f})")
    holds = {
        "published": all(round(told["score"], 4) == PUBLISHED[name] for name, told in scores.items()),
        "ordering": all(order.holds for order in orders),
        "semantic": all(check.passed for found in checks.values() for check in found),
        "speed": all(steps >= FASTEST[name] for name, steps in speeds.items()),
        "ladder": all(gap["low"] > 0 for steps in rungs.values() for gap in steps.values()),
        "noise": nothing is None or COVERAGE[0] <= nothing["coverage"] <= COVERAGE[1],
    }
    record = {
        "name": "arenas",
        "size": options.size,
        "seed": options.seed,
        "seconds": round(time.monotonic() - started, 1),
        "passed": all(holds.values()),
        "holds": holds,
        "committee_v1": {name: round(told["score"], 6) for name, told in scores.items()},
        "committee_v1_by_task": {name: told["by_task"] for name, told in scores.items()},
        "ordering": {name: {order.split: order.to_json() for order in orders if order.arena == name} for name in names},
        "semantic": {name: [check.to_json() for check in found] for name, found in checks.items()},
        "steps_per_second": {name: round(steps) for name, steps in speeds.items()},
        "ladder": rungs,
        "noise": nothing,
        "cases": [row for order in orders for row in rows(order)],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "arenas.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if options.table is not None:
        options.table.parent.mkdir(parents=True, exist_ok=True)
        options.table.write_text(page(record, PUBLISHED), encoding="utf-8")
    failed = [name for name, held in holds.items() if not held]
    say(f"{'All holds' if not failed else 'DOES NOT HOLD: ' + ', '.join(failed)}; {record['seconds']} s; wrote {path}")
    return 1 if failed else 0


def rows(order: Ordering) -> list[Json]:
    """Return one row a policy and seed, with a digest of its score, to run again alone."""
    found = []
    for policy, scores in order.by_seed.items():
        for seed, score in zip(order.seeds, scores, strict=True):
            name = f"{order.arena}:{policy}:{seed}"
            digest = hashlib.sha256(f"{name}:{score!r}".encode()).hexdigest()
            found.append({"id": name, "seed": seed, "score": score, "digest": digest})
    return found


def show(order: Ordering) -> None:
    """Print an ordering as a table, best first."""
    held = "holds" if order.holds else "DOES NOT HOLD"
    say(f"\n{order.arena}, {order.split}, {len(order.seeds)} seeds: ordering {held}")
    for name, score in sorted(order.scores.items(), key=lambda item: -item[1].mean):
        gap = order.above_floor.get(name)
        say(f"  {name:22s} {score}" + (f"   heuristic is above by {gap}" if gap else ""))
    say(f"  oracle is above the heuristic by {order.below_oracle}")
    if order.information is not None:
        say(f"  advice is worth something: p = {order.information:.5f}")


@contextmanager
def counting(total: int) -> Iterator[Callable[[str], None]]:
    """Show on standard error how far a long measurement is; where that is no terminal, a line every tenth."""
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    done = 0
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)

        def advance(case: str) -> None:
            nonlocal done
            done += 1
            bar.update(task, completed=done, description=case)
            if not console.is_terminal and done % max(1, total // 10) == 0:
                console.print(f"{done} of {total} episodes; {case}")

        yield advance


def say(text: Any, end: str = "\n") -> None:
    """Print at once, for whoever watches through a pipe."""
    sys.stdout.write(f"{text}{end}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

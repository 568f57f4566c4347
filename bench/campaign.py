"""What campaigns share: cases run beside one another with progress, a row a case, and build/campaigns/NAME.json."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from rich.progress import Progress

TAPE = "../shared/tapes/us-equities-dev.parquet"

Case = TypeVar("Case")
Found = TypeVar("Found")


def arguments(name: str, size: int, what: str, *, tape: bool = False, model: bool = False) -> argparse.ArgumentParser:
    """Return a parser with what every campaign takes: a size, a seed, processes and a folder for the result.

    With `tape` a tape that exists, with `model` who repairs and with which settings.
    """
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}")
    parser.add_argument("--size", type=int, default=size, help=what)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--out", type=Path, default=Path("build/campaigns"))
    if tape:
        parser.add_argument("--tape", type=_existing, default=TAPE)
    if model:
        parser.add_argument("--model", choices=["offline", "openai"], default="offline")
        parser.add_argument("--settings", help="a settings file: endpoint, prices")
    return parser


def _existing(tape: str) -> str:
    if not Path(tape).exists():
        raise argparse.ArgumentTypeError(f"SKIPPED: no tape at {tape}; name one with --tape.")
    return tape


def beside(
    function: Callable[[Case], Found], cases: Iterable[Case], label: str, workers: int | None
) -> Iterator[tuple[Case, Found]]:
    """Run a function over cases in processes of their own and yield each result in the order of the cases."""
    todo = list(cases)
    found: dict[int, Found] = {}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool, _progress() as bar:
        task = bar.add_task(label, total=len(todo))
        numbers = {pool.submit(function, case): number for number, case in enumerate(todo)}
        for future in as_completed(numbers):
            found[numbers[future]] = future.result()
            bar.advance(task)
            if not sys.stderr.isatty():
                print(f"{label}: {len(found)} of {len(todo)}", file=sys.stderr, flush=True)
    for number, case in enumerate(todo):
        yield case, found[number]


def _progress() -> Progress:
    from rich.console import Console

    return Progress(console=Console(stderr=True), disable=not sys.stderr.isatty())


@dataclass
class Campaign:
    """One run of a campaign: its name, size and seed, and a row for each case."""

    name: str
    size: int
    seed: int
    out: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add(self, id: str, seed: int, **facts: Any) -> None:
        """Add a case. Its digest covers all that was found, so that a second run can be compared with it."""
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:16]
        self.rows.append({"id": id, "seed": seed, "digest": digest, **facts})

    def finish(self, passed: bool, **keys: Any) -> int:
        """Print the figures, write the file, and return the exit code: 0 when what must hold does, else 1."""
        seconds = round(time.monotonic() - self.started, 1)
        head = {"name": self.name, "size": self.size, "seed": self.seed, "seconds": seconds, "passed": passed}
        self.out.mkdir(parents=True, exist_ok=True)
        place = self.out / f"{self.name}.json"
        place.write_text(json.dumps({**head, **keys, "rows": self.rows}, indent=1, default=str) + "\n", "utf-8")
        print(json.dumps({**head, **keys}, indent=1, default=str))
        print(f"{'Holds' if passed else 'Falls short'}. Each case: {place}")
        return 0 if passed else 1


def wilson(hits: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share (Wilson 1927); (0, 1) of nothing."""
    if not of:
        return 0.0, 1.0
    share = hits / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)

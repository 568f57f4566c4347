"""A made-up tape of many names and years, written piece by piece, and what memory a replay of it takes.

`python -m bench.long_tape [--names N] [--years Y]` replays the shipped strategy over two lengths of it by the command
line: memory must not grow with the length.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.campaign import Campaign, arguments

MOST_MB = 1_000
A_YEAR = 252
PIECE = 60  # sessions


def write(place: Path, names: int, sessions: int, seed: int) -> None:
    """Write random walks with splits and dividends, in order of date; a tenth of the names list in the first years."""
    chance = np.random.default_rng(seed)
    symbols = np.array([f"N{number:04d}" for number in range(names)])
    listed = np.where(chance.random(names) < 0.1, chance.integers(0, 3 * A_YEAR, names), 0)
    close, day, at = chance.uniform(10, 150, names), date(1990, 1, 1), 0
    writer: pq.ParquetWriter | None = None
    while at < sessions:
        parts: dict[str, list[Any]] = {}
        for _ in range(min(PIECE, sessions - at)):
            while day.weekday() > 4:
                day += timedelta(days=1)
            split = np.where(close > 300, 3.0, 1.0)
            before = close / split
            close = np.clip(np.round(before * np.exp(chance.normal(2e-4, 0.015, names)), 2), 1.0, 5e4)
            opened = np.clip(np.round(before * np.exp(chance.normal(0, 0.004, names)), 2), 1.0, 5e4)
            bars = {
                "open": opened,
                "high": np.round(np.maximum(opened, close) * 1.004, 2),
                "low": np.round(np.minimum(opened, close) * 0.996, 2),
                "close": close,
                "volume": np.floor(chance.uniform(2e5, 5e6, names)),
                "dividend": np.where(chance.random(names) < 0.008, 0.25, 0.0),
                "split": split,
            }
            here = listed <= at
            parts.setdefault("symbol", []).append(symbols[here])
            parts.setdefault("date", []).append(np.full(int(here.sum()), np.datetime64(day)))
            for column, values in bars.items():
                parts.setdefault(column, []).append(values[here])
            day, at = day + timedelta(days=1), at + 1
        table = pa.table({column: np.concatenate(values) for column, values in parts.items()})
        table = table.set_column(0, "symbol", table["symbol"].cast(pa.string()))
        writer = writer or pq.ParquetWriter(place, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def replayed(place: Path) -> dict[str, float]:
    """Replay the shipped strategy over a tape by the command line; return its peak memory and what it printed."""
    command = [sys.executable, "-m", "oomrl", "replay", "--tape", str(place), "--json"]
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.read())
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "peak_mb": round(used.ru_maxrss / 1024),  # the largest of its processes
        "seconds": round(time.perf_counter() - begun, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "sessions": told["sessions"],
        "orders": told["orders"],
        "final_equity": told["final_equity"],
    }


def measure(campaign: Campaign, names: int, years: int) -> dict[str, Any]:
    """Return the peak memory of replays over a third of the years and over all."""
    found: dict[str, Any] = {"names": names}
    with tempfile.TemporaryDirectory() as folder:
        for length in (max(2, years // 3), years):
            place = Path(folder) / f"{length}.parquet"
            write(place, names, length * A_YEAR, campaign.seed)
            found[f"{length}_years"] = {"file_mb": place.stat().st_size >> 20, **replayed(place)}
            place.unlink()
    campaign.add("long_tape", campaign.seed, **found)
    return found


def main(given: list[str] | None = None) -> int:
    """Measure and say whether all stays under 1 GB."""
    parser = arguments("long_tape", 25, "years of the tape")
    parser.add_argument("--names", type=int, default=3_000)
    options = parser.parse_args(given)
    campaign = Campaign("long_tape", options.size, options.seed, options.out)
    found = measure(campaign, options.names, options.size)
    peaks = [one["peak_mb"] for one in found.values() if isinstance(one, dict)]
    return campaign.finish(max(peaks) < MOST_MB, **found)


if __name__ == "__main__":
    sys.exit(main())

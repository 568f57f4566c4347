"""`make idle N=600`: the daemon at rest for N seconds: memory beside a bare process with the same imports, and CPU."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench.campaign import Campaign, arguments
from oomrl.calendar import Calendar
from oomrl.testing import calendar_tapes

MOST_TIMES_BARE = 1.25
MOST_CPU_PERCENT = 0.5
#: What a service loads before it serves; everything else comes with the jobs, in their own processes.
IMPORTS = "import oomrl.cli.run, oomrl.daemon.serve, oomrl.daemon.logs, exchange_calendars, alembic.command, sqlite3"
#: Heavy packages that a daemon at rest must not have loaded. (pandas and its pyarrow come with the calendar.)
LAZY = ("fastapi", "uvicorn", "alpaca", "openai", "matplotlib", "apprise", "mcp", "cryptography", "distributed")


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"Expected a process {pid} to be there, was none")


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, its children's not counted."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bare() -> tuple[float, list[str]]:
    """Return the memory of a process that only imports, and which of the lazy packages that loads."""
    code = (
        f"{IMPORTS}\nimport json, sys\nprint(json.dumps([n for n in {LAZY!r} if n in sys.modules]), flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        loaded = json.loads(process.stdout.readline())
        found = rss_mb(process.pid)
        process.stdin.close()
    return found, loaded


def measure(seconds: int, seed: int, out: Path) -> int:
    """Serve an account with nothing due, and watch the process."""
    campaign = Campaign("idle", seconds, seed, out)
    bare_mb, loaded = bare()
    with tempfile.TemporaryDirectory(prefix="oomrl-idle-") as temporary, socket.socket() as probe:
        folder = Path(temporary)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        days = [hours.day for hours in Calendar().hours[-900:-500]]
        calendar_tapes.write(calendar_tapes.market(days), folder / "market.parquet", days[-1])
        (folder / "oomrl.toml").write_text(
            f'[service]\nlisten = "127.0.0.1:{port}"\n[accounts.main]\ntape = "{folder}/market.parquet"\n', "utf-8"
        )
        command = [sys.executable, "-m", "oomrl", "run", "--state", str(folder)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            while json.loads(process.stderr.readline())["event"] != "serving":
                continue
            time.sleep(min(20, seconds / 10))
            start, begun = cpu_seconds(process.pid), time.monotonic()
            steps = max(seconds // 60, 1)
            for step in range(steps):
                time.sleep(seconds / steps)
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
                    ready: Any = json.load(answer)["ready"]
                campaign.add(str(step), seed, rss_mb=round(rss_mb(process.pid), 1), ready=ready)
            percent = 100 * (cpu_seconds(process.pid) - start) / (time.monotonic() - begun)
            memory = rss_mb(process.pid)
            process.terminate()
            process.stderr.read()
    times = memory / bare_mb
    passed = times <= MOST_TIMES_BARE and percent <= MOST_CPU_PERCENT and all(row["ready"] for row in campaign.rows)
    return campaign.finish(
        passed=passed and not loaded,
        rss_mb=round(memory, 1),
        rss_bare_mb=round(bare_mb, 1),
        rss_vs_bare_imports=round(times, 3),
        cpu_percent=round(percent, 3),
        not_lazy=loaded,
    )


if __name__ == "__main__":
    asked = arguments("idle", 600, "seconds at rest").parse_args()
    sys.exit(measure(asked.size, asked.seed, asked.out))

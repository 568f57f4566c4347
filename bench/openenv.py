"""Check the arenas as OpenEnv environments: the official validator on files and on running servers, and our checks.

`make openenv-check [SEEDS=N]`, or in its environment `python -m bench.openenv [--size SEEDS] [--seed S]`. The semantic
checks are those that an openenv.yaml promises and the validator does not run. Writes build/campaigns/openenv.json;
exit code 0 when all hold, 1 when not.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx

from bench.arenas import counting, say
from oomrl.arenas.registry import QUALIFYING, find
from oomrl.arenas.runner import ordering
from oomrl.arenas.semantic import semantic_checks

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 180.0


def main(arguments: list[str] | None = None) -> int:
    """Run every check of every arena."""
    parser = argparse.ArgumentParser(prog="python -m bench.openenv", description=__doc__)
    parser.add_argument("--size", type=int, default=10, help="seeds of the ordering behind the semantic checks")
    parser.add_argument("--seed", type=int, default=0, help="offset of the first seed")
    parser.add_argument("--arena", action="append", choices=QUALIFYING, help="all by default")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--out", type=Path, default=Path("build/campaigns"))
    options = parser.parse_args(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process a core is enough; more threads wait for each other
    started, checks = time.monotonic(), {}
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as executor:
        for name in options.arena or QUALIFYING:
            arena = find(name)
            checks[name] = official(name)
            cases = options.size * len(arena.tasks) * (len(arena.policies) + len(arena.probes))
            with counting(cases) as on_score:
                order = ordering(arena, "train", options.size, options.seed, executor, on_score)
            checks[name] |= {check.name: check.to_json() for check in semantic_checks(arena, measured=order)}
            for check, told in checks[name].items():
                say(f"{name:14} {'pass' if told['passed'] else 'FAIL'} {check} {json.dumps(told['measured'])[:160]}")
    record = {
        "name": "openenv",
        "size": options.size,
        "seed": options.seed,
        "seconds": round(time.monotonic() - started, 1),
        "passed": all(told["passed"] for found in checks.values() for told in found.values()),
        "checks": checks,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "openenv.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    say(f"{'All pass' if record['passed'] else 'NOT all pass'}; {record['seconds']} s")
    return 0 if record["passed"] else 1


def official(name: str) -> dict[str, Any]:
    """Return what the official validator says of the files, and of a server in a process of its own."""
    static = validate(str(ROOT / "oomrl" / "arenas" / name), "--level", "static", "--skip-build")
    with served(name) as url:
        running = validate("--url", url)
    return {"validate_static": static, "validate_url": running}


def validate(*arguments: str) -> dict[str, Any]:
    """Run `openenv validate`."""
    command = [sys.executable, "-m", "openenv.cli", "validate", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    return {"passed": done.returncode == 0, "measured": {"exit": done.returncode, "said": last[0] if last else ""}}


@contextmanager
def served(name: str) -> Iterator[str]:
    """Serve an arena by its command on a free port while the block lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "oomrl", "arena", "serve", name, "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_SECONDS
        while not answers(url):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"Expected {' '.join(command[1:])} to serve within {START_SECONDS:.0f} s, did not")
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=1.0).status_code == 200
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    sys.exit(main())

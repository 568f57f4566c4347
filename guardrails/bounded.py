"""Read judged source in a process of its own: it can be written so that reading it never ends, or fills the memory."""

from __future__ import annotations

import json
import pickle
import resource
import signal
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path
from typing import Any

from guardrails.checks.codes import finding
from guardrails.checks.static import judge_static
from guardrails.verdict import Finding

#: Processor seconds and bytes that the static checks of one patch may take; an honest one takes a tenth of a second.
SECONDS, MEMORY = 60, 2 << 30
CODE = "import sys; sys.path.insert(0, sys.argv[1]); from guardrails.bounded import main; main()"


def judge_bounded(*asked: Any, seconds: int = SECONDS, memory: int = MEMORY) -> list[Finding]:
    """Return what `judge_static` finds of the same arguments, or that it came to no end; raise what it raised."""
    command = [sys.executable, "-I", "-c", CODE, str(Path(__file__).parents[1]), str(seconds), str(memory)]
    try:
        done = subprocess.run(command, input=pickle.dumps(asked), capture_output=True, timeout=20 * seconds)
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(command, -signal.SIGXCPU)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL, -signal.SIGSEGV):
        return [finding("GR102", "", 0, "more", f"at most {seconds} s and {memory >> 20} MB to read it")]
    if done.returncode:
        raise RuntimeError(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2])
    return [Finding(*item) for item in json.loads(done.stdout)]


def main() -> None:
    """Judge what standard input asks, within the limits given, and write the findings."""
    seconds, memory = (int(text) for text in sys.argv[2:])
    asked = pickle.load(sys.stdin.buffer)  # noqa: S301  from the judge itself
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        found = judge_static(*asked)
    except MemoryError:
        signal.raise_signal(signal.SIGKILL)
    json.dump([astuple(item) for item in found], sys.stdout)

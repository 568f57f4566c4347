"""The way from the laboratory into the sandbox: one fresh runner a job, killed with all it started at its end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from guardrails.sandbox import Limits, Sandbox, SandboxError
from oomrl.arenas.research.channel import PipeChannel
from oomrl.arenas.research.laboratory import Channel, ChannelFailure, SandboxLaboratory

RUNNER = Path(__file__).with_name("runner.py")
JOB_SECONDS = 1_800.0
LIMITS = Limits(memory_bytes=3 << 30, cpu_seconds=1_800, processes=16, file_bytes=1 << 20)


@cache
def _sandbox(minimum: str) -> Sandbox:
    """Choose the profile and let the known attacks try it, once a process."""
    sandbox = Sandbox.choose(minimum)
    sandbox.canaries()
    return sandbox


@contextmanager
def channel(minimum: str = "S2", seconds: float = JOB_SECONDS, limits: Limits = LIMITS) -> Iterator[Channel]:
    """Start a runner and speak with it; `ChannelFailure` where no sandbox of that strength can be had."""
    missing = [name for name in ("sklearn", "pandas") if find_spec(name) is None]
    if missing:
        raise ChannelFailure(
            "sandbox",
            f"Expected {' and '.join(missing)} beside this interpreter, were none: install the extra `arenas`",
        )
    try:
        process = _sandbox(minimum).start(Path(sys.executable), RUNNER, limits=limits)
    except SandboxError as error:
        raise ChannelFailure("sandbox", str(error)) from error
    try:
        number = process.channel.fileno()
        yield PipeChannel(number, number, seconds)
    finally:
        process.close()


def sandbox_laboratory(minimum: str = "S2", seconds: float = JOB_SECONDS) -> SandboxLaboratory:
    """Return a laboratory whose every job runs in a sandbox of its own; `seconds` bounds one job."""
    return SandboxLaboratory(lambda: channel(minimum, seconds))

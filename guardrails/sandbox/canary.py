"""Try the canary attacks in a sandbox, from the judge's side."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from guardrails.sandbox.launch import ENVIRONMENT, Limits, Sandbox

CANARIES = Path(__file__).with_name("canaries.py")
FORKS = 8
SECONDS = 30.0


def try_attacks(sandbox: Sandbox) -> tuple[dict[str, bool], str]:
    """Return which attacks were held (none: they could not be tried), and what the attackers printed.

    One process may not fork at all; beside it another may have a few processes and tries to have more. A descriptor
    that is open and inheritable, as a careless library leaves it, must not be seen inside.
    """
    found: dict[str, bool] = {}
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="guardrails-")))
        place.chmod(0o777)
        hidden = place / "hidden"
        hidden.write_text("answers")
        hidden.chmod(0o666)
        leaked = stack.enter_context(hidden.open())
        os.set_inheritable(leaked.fileno(), True)
        setup = {"parent": os.getpid(), "outside": str(place / "outside"), "hidden": str(hidden)}
        running = []
        for forks in (1, FORKS):
            argument = json.dumps({**setup, "environment": ENVIRONMENT, "forks": forks})
            limits = Limits(memory_bytes=512 << 20, cpu_seconds=20, processes=forks, wall_seconds=SECONDS)
            process = sandbox.start(Path(sys.executable), CANARIES, [argument], limits=limits)
            running.append(stack.enter_context(process))
        for process in running:
            process.channel.settimeout(SECONDS)
            try:
                found.update(json.loads(process.channel.recv(1 << 16)))
            except (OSError, ValueError):
                process.kill()
                return {}, process.output()
        if (place / "outside").exists() or hidden.read_text() != "answers":
            found["outside write"] = False
    return found, ""

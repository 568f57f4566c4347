"""Run each job in a process of its own: what hangs, leaks, floods or dies there harms neither the others nor us."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import IO, Protocol

from oomrl.adapters.lead import Lead
from oomrl.daemon.schedule import TASKS
from oomrl.daemon.service import Outcome

#: Of what a job prints, this much of the end is kept.
TAIL = 65_536
#: The variable that names the daemon's process to its jobs.
PARENT = "OOMRL_DAEMON_PID"
LIMITS = {task.name: task.limit.total_seconds() for task in TASKS}


class Started(Protocol):
    """A process that was started, in what is needed of `subprocess.Popen`. It leads a session of its own."""

    @property
    def pid(self) -> int: ...

    @property
    def stdout(self) -> IO[bytes] | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...


def started(command: Sequence[str], environment: Mapping[str, str]) -> Started:
    """Start a command whose prints, errors too, are read from its `stdout`."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )


class Children:
    """Implement `oomrl.daemon.service.Worker` with `oomrl once`. `command` is put before its arguments;
    `start` starts it.

    `said` hears, for an account, the lines that a job printed before its outcome; `handed_on` gives each job variables
    of its own.
    """

    def __init__(
        self,
        state: Path,
        lead: Lead | None = None,
        environment: Mapping[str, str] | None = None,
        command: tuple[str, ...] = (sys.executable, "-m", "oomrl", "once"),
        said: Callable[[str, str], None] = lambda account, line: None,
        settings: Path | None = None,
        handed_on: Callable[[str, str, date], Mapping[str, str]] = lambda account, job, session: {},
        start: Callable[[Sequence[str], Mapping[str, str]], Started] = started,
    ) -> None:
        self.handed_on, self.start = handed_on, start
        self.state, self.lead, self.command, self.said = state, lead, command, said
        self.environment = dict(environment or {})
        self._settings = [] if settings is None else ["--settings", str(settings)]
        self._running: dict[int, Started] = {}
        self._lock = threading.Lock()

    def __call__(self, account: str, job: str, session: date) -> Outcome:
        """Run a job to its end or its limit. The last line that it prints is its outcome."""
        arguments = [job, "--state", str(self.state), "--account", account, "--session", session.isoformat()]
        arguments += self._settings
        lease = None if self.lead is None else self.lead.lease
        if lease is not None:
            arguments += ["--lease", f"{lease.term}/{lease.holder}"]
        environment = {**os.environ, **self.environment, **self.handed_on(account, job, session)}
        process = self.start([*self.command, *arguments], {**environment, PARENT: str(os.getpid())})
        with self._lock:
            self._running[process.pid] = process
        timer = threading.Timer(LIMITS[job], self._end, [process])
        timer.daemon = True
        timer.start()
        try:
            lines = self._listen(process, account)
            code = process.wait()
        finally:
            timer.cancel()
            with self._lock:
                del self._running[process.pid]
        return _outcome(code, lines)

    def _listen(self, process: Started, account: str) -> list[str]:
        assert process.stdout is not None
        tail = b""
        with process.stdout as stream:
            while chunk := stream.read1(TAIL):  # type: ignore[attr-defined]
                tail = (tail + chunk)[-TAIL:]
        lines = tail.decode("utf-8", "replace").splitlines()
        for line in lines[:-1][-100:]:
            self.said(account, line)
        return lines

    def running(self) -> int:
        """Return how many jobs are under way."""
        with self._lock:
            return len(self._running)

    def end_all(self) -> None:
        """End every job that is under way: at first with a chance to finish its step, then at once."""
        with self._lock:
            running = list(self._running.values())
        for process in running:
            self._end(process)

    def _end(self, process: Started) -> None:
        _signal(process, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)


def _signal(process: Started, number: int) -> None:
    if process.poll() is None:
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return


def _outcome(code: int, lines: list[str]) -> Outcome:
    last = lines[-1] if lines else ""
    if code == 0:
        try:
            told = json.loads(last)
            return Outcome(bool(told["done"]), str(told["note"]))
        except (ValueError, KeyError, TypeError):
            return Outcome(False, f"Expected an outcome as the last line, was {last[:200]!r}")
    if code < 0:
        return Outcome(False, f"ended by {signal.Signals(-code).name}; {last[:300]}".rstrip("; "))
    return Outcome(False, last[:500] or f"exit code {code}")

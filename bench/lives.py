"""The daemon at the emulator, in a process that may be ended at any boundary it or its jobs cross.

It is the daemon of `oomrl run` (`oomrl.daemon.serve.Daemon`: lock, table of jobs, policies for what is late, threads,
children) and each of its jobs is `oomrl once` in a process of its own, with the store, the order path, alpaca-py and
the sandboxed strategy in it. Two things differ from a service that a person runs. Time is the exchange's virtual clock:
instead of sleeping until a trigger the life moves that clock to the next instant at which something comes due, and by a
minute, as the daemon's own look at its table does, while something waits to be tried again. And processes are forked
from one that has everything imported, since a start of a Python process costs a hundred times what a fork does; what a
fork inherits beyond that (descriptors) is closed, as `subprocess` does.
"""

from __future__ import annotations

import ctypes
import importlib
import io
import json
import os
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

import requests

from bench import restless
from bench.boundaries import Boundaries, Kill
from guardrails.sandbox import Sandbox
from oomrl.adapters.database.schema import newest
from oomrl.adapters.environments import shipped
from oomrl.adapters.timers import ExchangeTimer
from oomrl.calendar import Calendar
from oomrl.cli.main import main
from oomrl.cli.once import PR_SET_PDEATHSIG
from oomrl.cli.options import SETTINGS_FILE, state_settings
from oomrl.daemon import logs
from oomrl.daemon.schedule import TASKS, next_due
from oomrl.daemon.serve import LOOK, STANDBY_BEAT, Daemon
from oomrl.daemon.service import run_of
from oomrl.domain.records import JobState
from oomrl.exchange.tape import Tape
from oomrl.testing import calendar_tapes
from oomrl.testing.markets import Weather, made_up_tape

ACCOUNT = "main"
CASH = Decimal(200_000)
#: Names of the market, sessions of a case, sessions of history before it.
NAMES, SESSIONS, WARM = 8, 3, 3
#: Sessions from one case to the next: a daemon that was away may come back in the one between.
STRIDE = SESSIONS + 1
#: Looks at the table of jobs in one life, after which it counts as stuck.
LOOKS = 200
#: The kernel's call that makes a process, and its flag for a sibling instead of a child.
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE_PARENT = 0x8000
#: From the first session of the calendar on.
BEGIN = date(2001, 1, 2)

SETTINGS = """
[broker]
base_url = "{url}"
data_url = "{url}"
# Quotes of the emulator change at the four points of its path alone.
stale_seconds = 28_800
straggler_seconds = {straggler}
cycle_seconds = 3_600
collar_bps = {collar}
[accounts.main]
tape = "{tape}"
start = "{start}"
broker = "alpaca"
[account]
endowment = {cash}
[model]
provider = "manual"
[thresholds]
principal_watch = 0.5
principal_diagnose = 0.6
principal_halt = 0.7
principal_out_of_money = 0.8
drawdown_watch = 0.5
drawdown_diagnose = 0.6
[service]
listen = ""
http_timeout = 20
lease_seconds = 25
"""


@dataclass(frozen=True)
class Case:
    """One account: which three sessions it trades, and where its lives end."""

    number: int
    seed: int
    kills: tuple[Kill, ...]
    aim: str = ""

    @property
    def id(self) -> str:
        return f"{self.number}" + (f"@{self.aim}" if self.aim else "")


def preload() -> None:
    """Do what any process of the service does at its start, once for all that are forked from here: imports, the
    exchange's calendar, which migrations there are, which sandbox this machine has."""
    for name in ("oomrl.adapters.own_account", "oomrl.adapters.alpaca.stream", "oomrl.daemon.jobs", "pyarrow.dataset"):
        importlib.import_module(name)
    Calendar()
    newest()
    Sandbox.choose()


def market(seed: int, cases: int) -> Tape:
    """Return the tape that all cases trade on, three sessions each, on the days of the New York exchange."""
    days = [hours.day for hours in Calendar().hours if hours.day >= BEGIN][: cases * STRIDE + WARM + 2]
    weather = Weather(splits=0.0, dividends=0.03, absences=0.0, halts=0.01, jumps=0.0, late=0.0, delisted=0.0)
    made = made_up_tape(seed, sessions=len(days), names=NAMES, weather=weather)
    return Tape(made.name, made.symbols, tuple(days), made.columns)


def days_of(case: Case, tape: Tape) -> Sequence[date]:
    """Return a case's sessions. The first is judged alone: an account begins with what is known after it."""
    at = WARM + case.number * STRIDE
    return tape.days[at : at + SESSIONS]


def evening(calendar: Calendar, day: date) -> datetime:
    """Return when the last job of a session has come due."""
    hours = calendar.session(day)
    assert hours is not None
    return max(task.due(hours) for task in TASKS)


def closing(calendar: Calendar, last: date, now: datetime) -> datetime:
    """Return the evening of a session, or of a later one that has begun by now: its orders are booked at its close."""
    coming = calendar.after(last)
    if now < min(task.due(coming) for task in TASKS):
        return evening(calendar, last)
    return closing(calendar, coming.day, now)


def prepare(case: Case, tape: Tape, url: str, state: Path) -> None:
    """Write what a person has before the first `oomrl run`: settings, a strategy, the history of the market."""
    strategy = state.parent / "strategy"
    (strategy / "src" / "strategy").mkdir(parents=True)
    for name in ("policy.toml", "requirements.lock", "requirements-test.lock"):
        (strategy / name).write_bytes((shipped("strategy_repo") / name).read_bytes())
    (strategy / "strategy.toml").write_text(restless.CONFIGURATION.format(seed=case.seed), "utf-8")
    (strategy / "src" / "strategy" / "__init__.py").write_bytes(Path(restless.__file__).read_bytes())
    at = WARM + case.number * STRIDE
    history = Tape(
        tape.name,
        tape.symbols,
        tape.days[at - WARM : at],
        {name: values[at - WARM : at] for name, values in tape.columns.items()},
    )
    calendar_tapes.write(history, state / "tape.parquet", history.days[-1])
    text = SETTINGS.format(
        url=url,
        tape=state / "tape.parquet",
        start=strategy,
        cash=CASH,
        collar=case.seed % 60,
        straggler=(1_800, 3_600, 7_200)[case.seed % 3],
    )
    (state / SETTINGS_FILE).write_text(text, "utf-8")


def live(case: Case, last: date, url: str, folder: Path) -> int:
    """Be the daemon for one life; return its exit code: 0 everything done, 3 stuck. Runs in a process of its own."""
    state = folder / "state"
    Boundaries(folder, case.kills).watch()
    clock, forkery = Clock(url), Forkery(url)
    with (folder / "log").open("a") as log:
        logs.configure(log)
        daemon = Daemon(state, partial(state_settings, state), now=clock.now, start=forkery.start)
        return serve(daemon, clock, last, folder)


def serve(daemon: Daemon, clock: Clock, last: date, folder: Path) -> int:
    """Let a daemon do all that comes due until the evening of a session."""
    daemon.beat()
    while not daemon.leads:  # a job of the life before may hold the lock for as long as the kernel takes to end it
        time.sleep(STANDBY_BEAT)
        daemon.beat()
    calendar = daemon.service.calendar
    for _ in range(LOOKS):
        wait(daemon.due())
        with daemon.store.read() as view:
            unfinished = view.jobs.unfinished(run_of(ACCOUNT))
        now, failed = clock.now(), any(job.state is not JobState.DUE for job in unfinished)
        if now >= closing(calendar, last, now) and not failed:
            break
        dues = [due for task in TASKS if (due := next_due(task, calendar, now)) is not None]
        clock.wait(min(*dues, now + timedelta(seconds=LOOK)) if failed else min(dues))
    if not unfinished:
        return 0
    told = "; ".join(f"{job.job} of {job.session} {job.state.value}: {job.note}" for job in unfinished)
    (folder / "stuck").write_text(told, "utf-8")
    return 3


class Clock:
    """The exchange's virtual clock, asked each time: a daemon's jobs move it too."""

    def __init__(self, url: str) -> None:
        self._place = f"{url}/admin/clock"
        self._session = requests.Session()
        self._session.trust_env = False

    def now(self) -> datetime:
        """Return the exchange's instant, aware UTC."""
        return self._told(self._session.get(self._place, timeout=60))

    def wait(self, until: datetime) -> None:
        """Move the clock, unless it is there already."""
        if until > self.now():
            self._told(self._session.post(self._place, json={"to": until.isoformat()}, timeout=60))

    def _told(self, answer: requests.Response) -> datetime:
        answer.raise_for_status()
        return datetime.fromisoformat(answer.json()["now"])


class Forkery:
    """A process beside the daemon, with everything imported and nothing open, that the daemon's jobs are forked from.

    The daemon itself will not do: no process may go on with its parent's SQLite. A job is the daemon's own child all
    the same (CLONE_PARENT): the daemon waits for it, and the kernel tells it of the daemon's end.
    """

    def __init__(self, url: str) -> None:
        self._channel, theirs = socket.socketpair()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._python = ctypes.pythonapi
        if not os.fork():
            self._channel.close()
            in_child(partial(self._serve, url, theirs))
        theirs.close()

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> Forked:
        """Start `python -m oomrl ...` as a child of the daemon."""
        reading, writing = os.pipe()
        asked = json.dumps([list(command), dict(environment)]).encode()
        socket.send_fds(self._channel, [struct.pack("I", len(asked)) + asked], [writing])
        os.close(writing)
        return Forked(struct.unpack("I", self._channel.recv(4))[0], reading)

    def _serve(self, url: str, channel: socket.socket) -> None:
        self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        while True:
            head, descriptors, _, _ = socket.recv_fds(channel, 4, 1)
            if not head:
                return  # the daemon is gone
            (writing,), left = descriptors, struct.unpack("I", head)[0]
            asked = b""
            while len(asked) < left:
                asked += channel.recv(left - len(asked))
            self._python.PyOS_BeforeFork()
            child = self._libc.syscall(CLONE[os.uname().machine], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
            if not child:
                self._python.PyOS_AfterFork_Child()
                in_child(partial(_job, url, *json.loads(asked), writing))
            self._python.PyOS_AfterFork_Parent()
            os.close(writing)
            channel.send(struct.pack("I", child))


def _job(url: str, command: Sequence[str], environment: Mapping[str, str], writing: int) -> NoReturn:
    """Be `oomrl once` on the exchange's clock, with what `subprocess` would give it."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (writing, 1), (writing, 2)):
        os.dup2(descriptor, place)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(environment)
    main(command[command.index("oomrl") + 1 :], ExchangeTimer(url))


class Forked:
    """A job's process. Implements `oomrl.daemon.children.Started`."""

    def __init__(self, pid: int, reading: int) -> None:
        self.pid = pid
        self.stdout: IO[bytes] | None = io.BufferedReader(io.FileIO(reading))
        self._code: int | None = None

    def poll(self) -> int | None:
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, however long it takes."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code


def in_child(run: Callable[[], Any]) -> NoReturn:
    """Run in a process that was just forked, and end it: it must never return into its parent's code."""
    code = 70
    try:
        code = run() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 70
    except BaseException:  # noqa: BLE001 - whatever it was, this process ends here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def lived(run: Callable[[], int]) -> int:
    """Run one life in a forked process and return its exit code, negative for the signal that ended it."""
    child = os.fork()
    if not child:
        in_child(run)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

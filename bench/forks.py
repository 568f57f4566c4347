"""A process that has loaded everything a job needs, and forks once for each: what `oomrl once` does, without its start.

Some forks are killed in the middle, by seeded chance. A fork ends with whoever asked for it.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import socket
import sys
import threading
from pathlib import Path

from oomrl.adapters.timers import ExchangeTimer
from oomrl.calendar import Calendar
from oomrl.cli.main import main
from oomrl.cli.options import state_settings

#: What jobs load when they need it, loaded once for all of them.
WARM = (
    *("oomrl.cli.once", "oomrl.adapters.own_account", "oomrl.adapters.alpaca.stream", "alpaca.trading.client"),
    *("exchange_calendars", "pandas", "pyarrow.dataset", "psycopg", "alembic.command"),
    "cryptography.hazmat.primitives.asymmetric.ed25519",
)
#: A job that is killed is killed after at most so many seconds.
LATEST_KILL = 1.0


def serve(place: Path, seed: int, killing: float) -> None:
    """Take jobs from the socket at `place`, until killed."""
    for name in WARM:
        __import__(name)
    Calendar()  # the calendars are remembered by the package
    gc.freeze()  # what a fork's collector touches would have to be copied
    chance = random.Random(seed)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(64)
        print("serving", flush=True)
        while True:
            line, _ = listener.accept()
            after = chance.uniform(0.01, LATEST_KILL) if chance.random() < killing else None
            if os.fork() == 0:
                listener.close()
                work(line, after)
            line.close()


def work(line: socket.socket, killed_after: float | None) -> None:
    """Do the job that is asked for on a line, and end this fork with its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, files, _, _ = socket.recv_fds(line, 65_536, 1)
    for number in (1, 2):
        os.dup2(files[0], number)
    os.close(files[0])
    threading.Thread(target=_end_with, args=[line], daemon=True).start()
    if killed_after is not None:
        killer = threading.Timer(killed_after, os.kill, [os.getpid(), signal.SIGKILL])
        killer.daemon = True
        killer.start()
    code = 1
    try:
        code = once(message.decode().split("\0"))
    except Exception as error:  # noqa: BLE001 - as the interpreter would: the last line says what it was
        print(f"{type(error).__name__}: {error}")
    finally:
        sys.stdout.flush()
        line.send(bytes([code]))
        os._exit(code)


def _end_with(line: socket.socket) -> None:
    line.recv(1)
    os._exit(143)


def once(arguments: list[str]) -> int:
    """Do a job as `oomrl once` does; an account at the emulator is worked by the emulator's clock."""
    told = dict(zip(arguments[2::2], arguments[3::2], strict=True))
    settings = state_settings(Path(told["--state"]))
    at_broker = settings.accounts[told["--account"]].broker == "alpaca"
    try:
        main(arguments, ExchangeTimer(settings.broker.base_url) if at_broker else None)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))

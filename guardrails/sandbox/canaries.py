"""Attacks that a sandbox must hold, tried from inside it before use. Reports one bit for each."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from collections.abc import Callable

PARENT, OUTSIDE, HIDDEN = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def held(attack: Callable[[], object]) -> bool:
    """Say whether an attack failed with an operating-system error."""
    try:
        attack()
    except OSError:
        return True
    return False


def fork() -> None:
    """Make a process."""
    child = os.fork()
    if child == 0:
        os._exit(0)


def raw_clone() -> None:
    """Make a process without the C library's help."""
    number = 220 if os.uname().machine == "aarch64" else 56
    done = ctypes.CDLL(None, use_errno=True).syscall(number, 17, 0, 0, 0, 0)
    if done == 0:
        os._exit(0)
    if done < 0:
        raise OSError(ctypes.get_errno(), "clone")


def write(path: str) -> None:
    """Open a file for writing."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def descriptors() -> None:
    """Find a descriptor that nobody gave us: anything beyond 0 to 3 that is open."""
    for number in range(4, 64):
        try:
            os.fstat(number)
        except OSError:
            continue
        return
    raise OSError("none")


def environment() -> None:
    """Find a variable that the judge did not set."""
    known = {"PYTHONHASHSEED", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    known |= {"TZ", "LC_ALL", "LC_CTYPE", "PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_"}
    if set(os.environ) <= known:
        raise OSError("none")


ATTACKS = {
    "outside write": lambda: write(OUTSIDE),
    "tcp": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "abstract socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
    "signal to the parent": lambda: os.kill(PARENT, 0),
    "signal to a group": lambda: os.killpg(0, 0),
    "fork": fork,
    "clone": raw_clone,
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "device write": lambda: write("/dev/shm/canary"),
    "device write beside": lambda: write("/dev/canary"),
    "hidden file": lambda: os.close(os.open(HIDDEN, os.O_RDONLY)),
    "inherited descriptor": descriptors,
    "environment": environment,
    "parent's memory": lambda: os.close(os.open(f"/proc/{PARENT}/mem", os.O_RDONLY)),
}

if __name__ == "__main__":
    os.write(3, json.dumps({name: held(attack) for name, attack in ATTACKS.items()}).encode())

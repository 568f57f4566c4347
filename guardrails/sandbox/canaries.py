"""Attacks that a sandbox must hold, tried from inside it before use. Reports one bit for each: was it held.

Started with a JSON object: `parent` (the judge's process id), `outside` (a path to create), `hidden` (a file that
anyone may read and write by its mode), `environment` (what was set), `forks` (how many processes may live).
"""

from __future__ import annotations

import _thread
import ctypes
import fcntl
import json
import os
import resource
import socket
import sys
from collections.abc import Callable

SETUP = json.loads(sys.argv[1])
PARENT, HIDDEN = SETUP["parent"], SETUP["hidden"]
ARM = os.uname().machine == "aarch64"
_libc = ctypes.CDLL(None, use_errno=True)


def call(number: tuple[int, int], *values: int | bytes) -> None:
    """Make a system call without the C library's help."""
    arguments = [ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_long(value) for value in values]
    if _libc.syscall(ctypes.c_long(number[ARM]), *arguments) < 0:
        raise OSError(ctypes.get_errno(), "call")


def fork(flags: int = 17) -> None:
    """Make a process; with flags, by the kernel's own call."""
    child = os.fork() if flags == 17 else _libc.syscall(220 if ARM else 56, ctypes.c_long(flags), 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    if child < 0:
        raise OSError(ctypes.get_errno(), "clone")


def thread() -> None:
    """Make a thread."""
    try:
        _thread.start_new_thread(print, ())
    except RuntimeError:
        raise OSError("none") from None


def bomb() -> None:
    """Make processes that stay; held when no more than the limit live."""
    for _ in range(SETUP["forks"] + 8):
        if os.fork() == 0:
            _libc.usleep(500_000)
            os._exit(0)


def write(path: str, flags: int = os.O_CREAT) -> None:
    """Open a file for writing."""
    os.close(os.open(path, os.O_WRONLY | flags, 0o600))


def read(path: str) -> None:
    """Open a file or list a folder."""
    os.close(os.open(path, os.O_RDONLY))


def descriptors() -> None:
    """Find a descriptor that nobody gave us: anything beyond 0 to 3 that is open."""
    for number in range(4, 1024):
        try:
            os.fstat(number)
        except OSError:
            continue
        return
    raise OSError("none")


def environment() -> None:
    """Find a variable that the judge did not set."""
    if {name: value for name, value in os.environ.items() if name != "PWD"} == SETUP["environment"]:
        raise OSError("none")


def superuser() -> None:
    """Be root, or become root."""
    if 0 not in (os.getuid(), os.geteuid(), os.getgid(), os.getegid()):
        os.setuid(0)


def memory() -> None:
    """Take more memory than the limit."""
    try:
        bytearray(resource.getrlimit(resource.RLIMIT_AS)[0])
    except MemoryError:
        raise OSError("none") from None


def limit() -> None:
    """Raise a limit."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError:
        raise OSError("none") from None


FILES: dict[str, Callable[[], object]] = {
    "outside write": lambda: write(SETUP["outside"]),
    "hidden file read": lambda: read(HIDDEN),
    "hidden folder listed": lambda: read(os.path.dirname(HIDDEN)),  # noqa: PTH120 - few imports inside
    "hidden file written": lambda: write(HIDDEN, 0),
    "hidden file truncated": lambda: os.truncate(HIDDEN, 0),
    "hidden file removed": lambda: os.unlink(HIDDEN),  # noqa: PTH108
    "hidden file renamed": lambda: os.rename(HIDDEN, HIDDEN + "2"),  # noqa: PTH104
    "mode changed": lambda: call((268, 53), -100, HIDDEN.encode(), 0o777),
    "mode changed by the new call": lambda: call((452, 452), -100, HIDDEN.encode(), 0o777, 0),
    "times changed": lambda: os.utime(HIDDEN),
    "attribute set": lambda: os.setxattr(HIDDEN, "user.canary", b"1"),
    "interpreter written": lambda: write(sys.executable, 0),
    "interpreter mode changed": lambda: os.chmod(sys.executable, 0o755),  # noqa: PTH101
    "device made in memory": lambda: write("/dev/shm/canary"),
    "device made": lambda: write("/dev/canary"),
    "node made": lambda: os.mknod(SETUP["outside"], 0o600 | 0o020000, os.makedev(1, 1)),
    "parent's memory file": lambda: read(f"/proc/{PARENT}/mem"),
    "parent's environment": lambda: read(f"/proc/{PARENT}/environ"),
    "processes listed": lambda: read("/proc"),
}
REACH: dict[str, Callable[[], object]] = {
    "tcp": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "tcp 6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_STREAM),
    "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "abstract socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "signal to the parent": lambda: os.kill(PARENT, 0),
    "signal to everybody": lambda: os.kill(-1, 0),
    "signal to the group": lambda: os.killpg(0, 0),
    "signal by the parent's descriptor": lambda: os.pidfd_open(PARENT),
    "signal by a descriptor's owner": lambda: fcntl.fcntl(3, fcntl.F_SETOWN, PARENT),
    "group left": lambda: os.setsid(),
    "parent traced": lambda: call((101, 117), 0x4206, PARENT, 0, 0),
    "parent's memory": lambda: call((310, 270), PARENT, 0, 0, 0, 0, 0),
    "parent's limits": lambda: resource.prlimit(PARENT, resource.RLIMIT_NOFILE),
    "program": lambda: os.execv("/bin/true", ["true"]),
    "namespace": lambda: call((272, 97), 0x10000000),
    "mount": lambda: call((165, 40), b"none", b"/tmp", b"tmpfs", 0, 0),
    "io_uring": lambda: call((425, 425), 1, bytes(120)),
    "memory file": lambda: os.memfd_create("canary"),
    "bpf": lambda: call((321, 280), 0, bytes(128), 128),
    "keys": lambda: call((250, 219), 0, -3, 0, 0, 0),
    "page faults": lambda: call((323, 282), 1),
    "performance counters": lambda: call((298, 241), bytes(128), 0, -1, -1, 0),
    "handle": lambda: call((304, 265), -100, bytes(64), 0),
    "inherited descriptor": descriptors,
    "environment": environment,
    "superuser": superuser,
    "memory": memory,
    "limit raised": limit,
}
ALONE: dict[str, Callable[[], object]] = {
    "fork": fork,
    "raw clone": lambda: fork(0x01000000 | 17),
    "thread": thread,
    "namespaced clone": lambda: fork(0x10000000 | 17),
}
TOGETHER: dict[str, Callable[[], object]] = {
    "fork bomb": bomb,
    "thread where forks are allowed": thread,
    "namespaced clone where forks are allowed": lambda: fork(0x10000000 | 17),
}


def held(attack: Callable[[], object]) -> bool:
    """Say whether an attack failed with an operating-system error."""
    try:
        attack()
    except OSError:
        return True
    return False


attacks = {**FILES, **REACH, **ALONE} if SETUP["forks"] == 1 else TOGETHER
os.write(3, json.dumps({name: held(attack) for name, attack in attacks.items()}).encode())

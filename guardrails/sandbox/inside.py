"""The first code in a sandboxed interpreter: it splits into a supervisor and a worker without rights.

Started as `python -s -P -B inside.py CONFIGURATION`. The supervisor never loads judged code; it ends the whole process
tree when the judge lets go of its lifeline, dies (in whatever way), or the time is up. The worker gives every right
away, which nothing takes back, and then becomes one script. Only the standard library, and nothing of guardrails, is
imported here: less to start, less to trust.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS = 1, 4, 8
PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 36, 38, 2
CAP_DAC_READ_SEARCH = 2
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
# Landlock's rights over files, by the ABI that first knew them (kernel documentation, landlock.rst).
WRITE_FILE, READ_FILE, READ_DIR = 2, 4, 8
ABI_1, REFER, TRUNCATE, IOCTL = (1 << 13) - 1, 1 << 13, 1 << 14, 1 << 15
EXECUTE, SPECIAL_FILES = 1, 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11  # character, socket, pipe and block devices
CLOSE_RANGE, CHANNEL = 436, 3
TOO_MUCH_WRITTEN, TOO_MUCH_PRINTED, TIME_IS_UP = 122, 123, 124  # exit codes of the supervisor

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(done: int, what: str) -> int:
    if done < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return done


def _prctl(option: int, *values: int) -> None:
    rest = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)][:4]
    _checked(_libc.prctl(option, *rest), f"prctl {option}")


def _supervise(worker: int, prints: int, configuration: dict[str, Any]) -> int:
    """Wait for the worker, the judge or the clock, then end whatever is left; return the exit code."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, configuration["channel"])  # so that the worker alone holds the channel
    lifeline, judge, ended = configuration["lifeline"], configuration["judge"], os.pidfd_open(worker)
    poll = select.poll()
    for descriptor in (lifeline, judge, ended, prints):
        poll.register(descriptor, select.POLLIN)
    end = time.monotonic() + (configuration["wall_seconds"] or 1e9)
    scratch, watched = configuration["scratch"], configuration["watched_bytes"]
    room = configuration["limits"]["output_bytes"]
    code = None
    while code is None:
        left = end - time.monotonic()
        seen = {number for number, _ in poll.poll(1000 * min(max(left, 0), 0.1 if watched else 3_600))}
        if prints in seen:
            data = os.read(prints, 1 << 16)
            room -= os.write(1, data[:room]) if data else 0
            if not data:
                poll.unregister(prints)
        elif ended in seen:
            status = os.waitpid(worker, 0)[1]
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        if {lifeline, judge} & seen:
            code = 128 + signal.SIGKILL
        elif room <= 0:
            code = TOO_MUCH_PRINTED
        elif left <= 0:
            code = TIME_IS_UP
        elif watched and _size(scratch) > watched:
            code = TOO_MUCH_WRITTEN
    # Nobody leaves the group, seccomp sees to that; orphans come to this process, their subreaper.
    try:
        os.killpg(worker, signal.SIGKILL)
        while True:
            os.waitpid(-1, 0)
    except (ChildProcessError, ProcessLookupError):
        return code


def _size(folder: str) -> int:
    """Return the bytes on disk below a folder of which the worker may take files away meanwhile."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += 512 * os.lstat(f"{place}/{name}").st_blocks
            except OSError:
                continue
    return total


def _become(user: int) -> None:
    """Give up root for a user of its own (limits on processes bind no root), keeping at most the right to read.

    The right to read past file modes serves trees and interpreters in folders of root; Landlock is what bounds
    reading, here as for everybody.
    """
    capabilities = 0
    if os.geteuid() == 0:
        _prctl(PR_SET_KEEPCAPS, 1)
        os.setgroups([])
        try:
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        except OSError:  # a namespace that maps few users
            user = 65_534
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        capabilities = 1 << CAP_DAC_READ_SEARCH
    header = struct.pack("=Ii", 0x20080522, 0)
    for kept in (capabilities, 0):
        if _libc.capset(header, struct.pack("=6I", kept, kept, 0, 0, 0, 0)) == 0:
            return
    _checked(-1, "capset")


def _limit(limits: dict[str, int]) -> None:
    names = {
        "memory_bytes": resource.RLIMIT_AS,
        "cpu_seconds": resource.RLIMIT_CPU,
        "processes": resource.RLIMIT_NPROC,
        "file_bytes": resource.RLIMIT_FSIZE,
        "open_files": resource.RLIMIT_NOFILE,
    }
    for name, kind in names.items():
        most = resource.getrlimit(kind)[1]
        value = limits[name] if most == resource.RLIM_INFINITY else min(limits[name], most)
        resource.setrlimit(kind, (value, value))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _landlock(readable: list[str], writable: list[str], least: int) -> None:
    abi = _checked(_libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, 1), "landlock")
    if abi < least:
        raise OSError(f"Expected Landlock of ABI {least} or later, was {abi}.")
    handled = ABI_1 | (REFER if abi >= 2 else 0) | (TRUNCATE if abi >= 3 else 0) | (IOCTL if abi >= 5 else 0)
    # Files, then TCP (from ABI 4), then abstract sockets and signals beyond this domain (from ABI 6).
    attributes = struct.pack("=QQQ", handled, 3, 3)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    rules = _checked(_libc.syscall(LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0), "landlock ruleset")
    change = handled & ~(EXECUTE | SPECIAL_FILES | IOCTL)
    for rights, paths in ((READ_FILE | READ_DIR, readable), (change, writable)):
        for path in paths:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # /lib64 and the like exist on some machines only
            of_files = READ_FILE | WRITE_FILE | TRUNCATE
            allowed = rights if os.path.isdir(path) else rights & of_files  # noqa: PTH112 - less to import inside
            rule = struct.pack("=Qi", allowed & handled, place)
            _checked(_libc.syscall(LANDLOCK_ADD_RULE, rules, 1, rule, 0), f"landlock rule for {path}")
            os.close(place)
    _checked(_libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0), "landlock restrict")
    os.close(rules)


def _seccomp(program: bytes) -> None:
    buffer = ctypes.create_string_buffer(program, len(program))
    holder = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer)))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(holder))


def _confine(configuration: dict[str, Any], supervisor: int, prints: int) -> None:
    """Take every right from this process. Whatever fails here ends it before judged code is read."""
    os.setpgid(0, 0)
    os.dup2(prints, 1)
    os.dup2(prints, 2)
    os.dup2(configuration["channel"], CHANNEL)
    _checked(_libc.syscall(CLOSE_RANGE, CHANNEL + 1, 0xFFFFFFFF, 0), "close_range")
    _become(configuration["user"])
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(70)
    _limit(configuration["limits"])
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _landlock(configuration["readable"], configuration["writable"], configuration["landlock"])
    _prctl(PR_SET_DUMPABLE, 0)
    _seccomp(bytes.fromhex(configuration["seccomp"]))


def main() -> None:
    """Split, and become the script."""
    configuration = json.loads(sys.argv[1])
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    supervisor = os.getpid()
    read, write = os.pipe()
    worker = os.fork()
    if worker:
        code = 70
        try:
            os.close(write)
            code = _supervise(worker, read, configuration)
        finally:
            os._exit(code)
    _confine(configuration, supervisor, write)
    if configuration["scratch"]:
        os.environ["TMPDIR"] = configuration["scratch"]
    script = configuration["script"]
    sys.argv[:] = [script, *configuration["arguments"]]
    sys.orig_argv[:] = [sys.executable, *sys.argv]
    with open(script, "rb") as file:  # noqa: PTH123 - less to import inside
        code_object = compile(file.read(), script, "exec", dont_inherit=True)
    names = sys.modules["__main__"].__dict__
    for name in [name for name in names if not name.startswith("__")]:
        del names[name]
    names.update(__file__=script, __doc__=None, __annotations__={})
    exec(code_object, names)  # noqa: S102 - this is what the sandbox is for


if __name__ == "__main__":
    main()

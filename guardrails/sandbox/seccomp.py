"""What a sandboxed process may ask of the kernel: an allow-list, as a classic BPF program.

The judge assembles the program and hands it in. What is not listed answers EPERM: sockets, signals, tracing, other
processes, namespaces, io_uring, memfd, bpf, keys, userfaultfd, exec, changes of mode, owner, time or attributes (which
Landlock does not govern), and whatever a later kernel adds.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

# System call numbers, x86_64 and aarch64 (linux/arch/x86/entry/syscalls/syscall_64.tbl, asm-generic/unistd.h).
# None: the architecture has no such call.
Numbers = tuple[int | None, int | None]
Step = tuple[int, int, int, int]
ALLOWED: Mapping[str, Numbers] = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "lseek": (8, 62), "close": (3, 57), "close_range": (436, 436), "sendfile": (40, 71),
    "copy_file_range": (326, 285), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None),
    "pipe2": (293, 59), "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "open": (2, None), "openat": (257, 56), "creat": (85, None), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78), "getdents64": (217, 61),
    "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "umask": (95, 166), "statfs": (137, 43),
    "fstatfs": (138, 44), "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None),
    "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "ftruncate": (77, 46), "fsync": (74, 82), "fdatasync": (75, 83), "fadvise64": (221, 223), "flock": (73, 32),
    "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233),
    "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132), "getitimer": (36, 102), "setitimer": (38, 103), "restart_syscall": (219, 128),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153), "getrusage": (98, 165),
    "getrlimit": (97, 163), "sysinfo": (99, 179), "uname": (63, 160), "getrandom": (318, 278), "getpid": (39, 172),
    "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177), "getgroups": (115, 158), "getresuid": (118, 148), "getresgid": (120, 150),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "getcpu": (309, 168), "futex": (202, 98),
    "set_robust_list": (273, 99), "get_robust_list": (274, 100), "rseq": (334, 293), "set_tid_address": (218, 96),
    "membarrier": (324, 283), "wait4": (61, 260), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip

#: Calls that depend on one argument: (index of the argument, values that are allowed).
CHOSEN: Mapping[str, tuple[Numbers, int, tuple[int, ...]]] = {
    # TCGETS, TIOCGWINSZ, FIONREAD, FIONCLEX, FIOCLEX: what opening a file asks. FIOSETOWN would send signals.
    "ioctl": ((16, 29), 1, (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)),
    # Duplicates, flags and locks; F_SETOWN, F_SETSIG and leases would send signals.
    "fcntl": ((72, 25), 1, (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)),
    "prlimit64": ((302, 261), 0, (0,)),  # only its own, which it can lower alone
}
CLONE: Numbers = (56, 220)
FORK: Numbers = (57, None)
CLONE3: Numbers = (435, 435)
#: What fork() of the C library asks: PARENT_SETTID, CHILD_SETTID, CHILD_CLEARTID, and the signal at its end.
FORK_FLAGS = 0x00100000 | 0x01000000 | 0x00200000 | 0xFF

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS = 1, 38
CALL, MACHINE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data


def program(machine: str, forks: bool) -> bytes:
    """Return the filter for a machine ("x86_64" or "aarch64"); `forks` allows plain fork(), never threads.

    Raises:
        ValueError: no filter is known for this machine.
    """
    if machine not in MACHINES:
        raise ValueError(f"Expected a machine of {sorted(MACHINES)}, was {machine!r}, which has no table here.")
    column, audit = MACHINES[machine]
    code = [(LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL), (LOAD, 0, 0, CALL)]
    plain = [pair[column] for pair in ALLOWED.values()] + ([FORK[column]] if forks else [])
    for number in sorted({number for number in plain if number is not None}):
        code += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    for numbers, argument, values in CHOSEN.values():
        tests = [step for value in values for step in ((EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW))]
        code += _when(numbers[column], argument, [*tests, (RETURN, 0, 0, ERRNO | EPERM)])
    if forks:
        foreign = 0xFFFFFFFF & ~FORK_FLAGS
        fork = [(ANY_BIT, 0, 1, foreign), (RETURN, 0, 0, ERRNO | EPERM), (RETURN, 0, 0, ALLOW)]
        code += _when(CLONE[column], 0, fork)
    # The C library asks clone3 first and falls back only on "no such call"; its flags no filter can see.
    code += _when(CLONE3[column], None, [(RETURN, 0, 0, ERRNO | ENOSYS)])
    code.append((RETURN, 0, 0, ERRNO | EPERM))
    return b"".join(struct.pack("=HBBI", *step) for step in code)


def _when(number: int | None, argument: int | None, then: list[Step]) -> list[Step]:
    """Run `then`, which always returns, for one call, with the low half of an argument loaded."""
    load = [] if argument is None else [(LOAD, 0, 0, FIRST_ARGUMENT + 8 * argument)]
    if number is None:
        return []
    return [(EQUAL, 0, len(load) + len(then), number), *load, *then]

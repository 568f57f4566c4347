"""The first code that runs in a sandboxed interpreter: it gives its rights away, then runs one script.

Started as `python -s -P -B inside.py CONFIGURATION`. Only the standard library, and nothing of guardrails, is
imported here; when the script begins, nothing can be taken back.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import runpy
import struct
import sys

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
SIGKILL = 9
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
# Landlock's rights over files, by the ABI that first knew them (kernel documentation, landlock.rst).
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ABI_1, REFER, TRUNCATE, IOCTL = (1 << 13) - 1, 1 << 13, 1 << 14, 1 << 15
DENIED = {
    # name: (x86_64, aarch64); None where the architecture has no such call.
    "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "sendto": (44, 206), "recvfrom": (45, 207),
    "sendmsg": (46, 211), "recvmsg": (47, 212), "bind": (49, 200), "listen": (50, 201), "socketpair": (53, 199),
    "accept4": (288, 242), "recvmmsg": (299, 243), "sendmmsg": (307, 269),
    "clone": (56, 220), "fork": (57, None), "vfork": (58, None), "clone3": (435, 435),
    "execve": (59, 221), "execveat": (322, 281), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "process_madvise": (440, 440), "kcmp": (312, 272),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430),
    "fsmount": (432, 432), "mount_setattr": (442, 442), "bpf": (321, 280), "perf_event_open": (298, 241),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "personality": (135, 92), "setuid": (105, 146),
    "setgid": (106, 144), "setresuid": (117, 147), "setresgid": (119, 149), "setreuid": (113, 145),
    "setregid": (114, 143), "setgroups": (116, 159), "capset": (126, 91), "prctl": (157, 167),
    "seccomp": (317, 277), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "quotactl": (179, 60), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "inotify_add_watch": (254, 27), "mknod": (133, None), "mknodat": (259, 33),
    "setpriority": (141, 140), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "shmget": (29, 194), "shmat": (30, 196), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "setrlimit": (160, 164), "prlimit64": (302, 261), "ioperm": (173, None), "iopl": (172, None),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "syslog": (103, 116),
    "chmod": (90, None), "fchmodat": (268, 53), "setsid": (112, 157), "setpgid": (109, 154),
}  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, *values: int) -> None:
    if _libc.prctl(option, *(list(map(ctypes.c_ulong, values)) + [ctypes.c_ulong(0)] * (4 - len(values)))):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _limit(limits: dict[str, int]) -> None:
    names = {
        "memory_bytes": resource.RLIMIT_AS,
        "cpu_seconds": resource.RLIMIT_CPU,
        "processes": resource.RLIMIT_NPROC,
        "file_bytes": resource.RLIMIT_FSIZE,
        "open_files": resource.RLIMIT_NOFILE,
    }
    for name, kind in names.items():
        resource.setrlimit(kind, (limits[name], limits[name]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _drop_capabilities() -> None:
    """Give up every capability, also those that root holds by being root."""
    for number in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0):
            break
    header = struct.pack("=Ii", 0x20080522, 0)
    if _libc.capset(header, b"\0" * 24):
        raise OSError(ctypes.get_errno(), "capset")


def _landlock(readable: list[str], writable: list[str]) -> None:
    abi = _libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)
    if abi < 1:
        raise OSError(ctypes.get_errno(), "landlock")
    handled = ABI_1 | (REFER if abi >= 2 else 0) | (TRUNCATE if abi >= 3 else 0) | (IOCTL if abi >= 5 else 0)
    rules = _libc.syscall(LANDLOCK_CREATE_RULESET, struct.pack("=Q", handled), 8, 0)
    if rules < 0:
        raise OSError(ctypes.get_errno(), "landlock ruleset")
    for rights, paths in ((EXECUTE | READ_FILE | READ_DIR, readable), (handled & ~REFER & ~EXECUTE, writable)):
        for path in paths:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            folder = os.path.isdir(path)  # noqa: PTH112 - pathlib would be one more import inside
            allowed = rights if folder else rights & (EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE)
            if _libc.syscall(LANDLOCK_ADD_RULE, rules, 1, struct.pack("=Qi", allowed & handled, place), 0):
                raise OSError(ctypes.get_errno(), f"landlock rule for {path}")
            os.close(place)
    if _libc.syscall(LANDLOCK_RESTRICT_SELF, rules, 0):
        raise OSError(ctypes.get_errno(), "landlock restrict")
    os.close(rules)


def _seccomp() -> None:
    """Refuse (EPERM) what no strategy needs: network, processes, signals, namespaces, and the kernel's odd corners."""
    machine = platform.machine()
    column, audit = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}[machine]
    numbers = sorted({number for pair in DENIED.values() if (number := pair[column]) is not None})
    load, jump_equal, jump_least, answer = 0x20, 0x15, 0x35, 0x06
    refuse, kill, allow = 0x00050000 | 1, 0x80000000, 0x7FFF0000
    code = [(load, 0, 0, 4), (jump_equal, 1, 0, audit), (answer, 0, 0, kill), (load, 0, 0, 0)]
    if column == 0:  # the x32 calls, which carry this bit, would pass by their other numbers
        code += [(jump_least, 0, 1, 0x40000000), (answer, 0, 0, kill)]
    for number in numbers:
        code += [(jump_equal, 0, 1, number), (answer, 0, 0, refuse)]
    code.append((answer, 0, 0, allow))
    program = b"".join(struct.pack("=HBBI", *step) for step in code)
    buffer = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("@HP", len(code), ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(filter_, len(filter_))
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(holder))


def main() -> None:
    """Read the configuration from argv, restrict this process, and become the script."""
    configuration = json.loads(sys.argv[1])
    _prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != configuration["parent"] and configuration["parent"]:
        os._exit(70)
    # Here and not by a shell: dash knows no descriptor above 9, and a busy service has many.
    if configuration["channel"] != 3:
        os.dup2(configuration["channel"], 3)
        os.close(configuration["channel"])
    if os.geteuid() == 0:
        _drop_capabilities()
    _limit(configuration["limits"])
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _landlock(configuration["readable"], configuration["writable"])
    _prctl(PR_SET_DUMPABLE, 0)
    _seccomp()
    sys.argv = [configuration["script"], *configuration["arguments"]]
    runpy.run_path(configuration["script"], run_name="__main__")


if __name__ == "__main__":
    main()

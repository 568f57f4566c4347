"""The filter says what its table says: checked by an interpreter of classic BPF written from the kernel's manual."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrails.sandbox import seccomp

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
COLUMN = {"x86_64": 0, "aarch64": 1}


def ask(program: bytes, machine: str, number: int, *arguments: int) -> int:
    """Run a filter over one system call, as the kernel does, and return its answer."""
    data = struct.pack("<IIQ6Q", number, AUDIT[machine], 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("=HBBI", program))
    accumulator, at = 0, 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        if code == 0x20:  # LD W ABS
            (accumulator,) = struct.unpack_from("<I", data, k)
        elif code == 0x15:  # JMP JEQ K
            at += yes if accumulator == k else no
        elif code == 0x45:  # JMP JSET K
            at += yes if accumulator & k else no
        elif code == 0x06:  # RET K
            return k
        else:
            raise AssertionError(f"an instruction of no use here: {code:#x}")


both = pytest.mark.parametrize("machine", sorted(AUDIT))


@both
@pytest.mark.parametrize("forks", [False, True])
def test_what_is_listed_passes_and_nothing_else(machine, forks):
    program = seccomp.program(machine, forks)
    listed = {pair[COLUMN[machine]] for pair in seccomp.ALLOWED.values()}
    decided = {row[0][COLUMN[machine]] for row in seccomp.CHOSEN.values()}
    decided |= {seccomp.CLONE[COLUMN[machine]], seccomp.FORK[COLUMN[machine]], seccomp.CLONE3[COLUMN[machine]]}
    for number in range(480):
        if number not in decided:
            assert ask(program, machine, number) == (ALLOW if number in listed else EPERM), number


@pytest.mark.parametrize(
    ("name", "x86", "arm"),
    [
        ("socket", 41, 198), ("connect", 42, 203), ("sendmsg", 46, 211), ("recvmsg", 47, 212), ("kill", 62, 129),
        ("tgkill", 234, 131), ("pidfd_open", 434, 434), ("pidfd_send_signal", 424, 424), ("ptrace", 101, 117),
        ("process_vm_readv", 310, 270), ("execve", 59, 221), ("unshare", 272, 97), ("setns", 308, 268),
        ("mount", 165, 40), ("io_uring_setup", 425, 425), ("memfd_create", 319, 279), ("bpf", 321, 280),
        ("keyctl", 250, 219), ("userfaultfd", 323, 282), ("perf_event_open", 298, 241), ("setsid", 112, 157),
        ("setpgid", 109, 154), ("fchmod", 91, 52), ("fchmodat", 268, 53), ("fchmodat2", 452, 452),
        ("fchownat", 260, 54), ("utimensat", 280, 88), ("setxattr", 188, 5), ("setuid", 105, 146),
        ("prctl", 157, 167), ("seccomp", 317, 277), ("open_by_handle_at", 304, 265), ("shmget", 29, 194),
    ],
)  # fmt: skip
def test_the_dangerous_calls_are_refused(name, x86, arm):
    for forks in (False, True):
        assert ask(seccomp.program("x86_64", forks), "x86_64", x86) == EPERM
        assert ask(seccomp.program("aarch64", forks), "aarch64", arm) == EPERM


@both
def test_a_call_of_another_machine_ends_the_process(machine):
    other = next(name for name in AUDIT if name != machine)
    assert ask(seccomp.program(machine, True), other, 0) == KILL


@given(st.integers(0, 0x3FFFFFFF))
def test_the_second_table_of_x86_is_closed(number):
    assert ask(seccomp.program("x86_64", True), "x86_64", 0x40000000 | number) == EPERM


@both
def test_plain_forks_pass_where_allowed_and_threads_and_namespaces_never(machine):
    clone = seccomp.CLONE[COLUMN[machine]]
    without, with_forks = seccomp.program(machine, False), seccomp.program(machine, True)
    fork = 0x01200011  # what glibc's fork() asks
    assert ask(without, machine, clone, fork) == EPERM
    assert ask(with_forks, machine, clone, fork) == ALLOW
    for flag in (0x100, 0x4000, 0x8000, 0x10000, 0x10000000, 0x20000000, 0x40000000, 0x02000000, 0x04000000, 0x80):
        expected = ALLOW if flag < 0x100 else EPERM  # the lowest byte is the signal at the end
        assert ask(with_forks, machine, clone, fork | flag) == expected, hex(flag)
    assert ask(with_forks, machine, seccomp.CLONE3[0]) == ENOSYS


@both
@given(st.integers(0, 2**64 - 1))
def test_descriptors_cannot_be_made_to_send_signals(machine, value):
    program = seccomp.program(machine, False)
    for name in ("fcntl", "ioctl"):
        numbers, argument, values = seccomp.CHOSEN[name]
        answer = ask(program, machine, numbers[COLUMN[machine]], 3, value)
        assert (answer == ALLOW) == (value & 0xFFFFFFFF in values)
        assert argument == 1
    for own in (8, 10, 15, 1024):  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE
        assert ask(program, machine, seccomp.CHOSEN["fcntl"][0][COLUMN[machine]], 3, own) == EPERM
    for own in (0x8901, 0x8902, 0x5412):  # FIOSETOWN, SIOCSPGRP, TIOCSTI
        assert ask(program, machine, seccomp.CHOSEN["ioctl"][0][COLUMN[machine]], 3, own) == EPERM


def test_an_unknown_machine_has_no_filter():
    with pytest.raises(ValueError, match="was 'riscv64'"):
        seccomp.program("riscv64", False)

"""Start sandboxed interpreters: the profile, the fixed environment, the private channel, and the end of it all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from guardrails.sandbox import seccomp

INSIDE = Path(__file__).with_name("inside.py")
ORDER = ("S0", "S2", "S3")
#: The oldest Landlock that holds alone (ABI 3 knows truncation), and behind read-only mounts.
LANDLOCK = {"S2": 3, "S3": 1}

#: Nothing of the caller's environment crosses; these make runs repeat.
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
}

#: What an interpreter needs of the system, to be read and never written: libraries, no programs, no configuration.
SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/lib", "/lib64", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
#: Where S3 mounts its bounded scratch space; S2 has a folder of the judge's instead.
SCRATCH = "/scratch"
#: Root hands each sandbox a user id of its own out of this range, far beyond those of accounts and containers.
USERS = (2_000_000_000, 100_000_000)
GRACE_SECONDS = 5.0


class SandboxError(Exception):
    """No sandbox of the demanded strength can be had here; nothing was run."""


@dataclass(frozen=True)
class Limits:
    """What one sandboxed process may use.

    `processes` counts all that live at once (1: it cannot fork; threads never start), `memory_bytes` and
    `cpu_seconds` bind each of them, `wall_seconds` the whole (None: as long as the judge likes), `file_bytes` each
    file it writes, `output_bytes` what it prints. All beyond is an error inside, never a longer run.
    """

    memory_bytes: int = 2 << 30
    cpu_seconds: int = 3_600
    wall_seconds: float | None = None
    processes: int = 1
    file_bytes: int = 16 << 20
    open_files: int = 64
    output_bytes: int = 4 << 20


class Process:
    """A sandboxed process tree and the judge's end of its private channel."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        channel: socket.socket,
        lifeline: IO[bytes],
        output: IO[bytes],
        scratch: Path | None,
    ) -> None:
        self.process, self.channel = process, channel
        self._lifeline, self._output, self._scratch = lifeline, output, scratch

    @property
    def pid(self) -> int:
        """Return the id of the outermost process, for a message or a test; to end the tree use `kill`."""
        return self.process.pid

    def output(self) -> str:
        """Return what it printed, up to the cap; all of it once it has ended."""
        number = self._output.fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode("utf-8", "replace")

    def wait(self, seconds: float) -> int | None:
        """Return its exit code, or None if it still runs.

        128 + n after signal n; 122, 123 and 124 after too many bytes in scratch, too much printed, too long a time.
        """
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the process and everything it started, and give its descriptors back."""
        self._lifeline.close()
        self.channel.close()
        if self.wait(GRACE_SECONDS) is None:
            self.process.kill()
            self.process.wait()
        if self._scratch is not None:
            _remove(self._scratch)
            self._scratch = None

    def close(self) -> None:
        """Kill it, and forget what it printed."""
        self.kill()
        self._output.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Sandbox:
    """One profile, chosen once. S3: namespaces, Landlock, seccomp, limits; S2: the same without namespaces."""

    def __init__(self, profile: str) -> None:
        self.profile = profile

    @classmethod
    def choose(cls, minimum: str = "S2") -> Sandbox:
        """Take the strongest profile of this machine.

        Raises:
            SandboxError: the machine offers less than the minimum.
        """
        found, reasons = strongest()
        if ORDER.index(found) < ORDER.index(minimum) or found == "S0":
            raise SandboxError(
                f"Expected a sandbox of profile {minimum} or better, was {found}. S3 needs bubblewrap, S2 Linux 6.2 "
                f"with Landlock and seccomp. {reasons} Nothing was run."
            )
        return cls(found)

    def canaries(self) -> dict[str, bool]:
        """Try known attacks from inside and return which were held.

        Raises:
            SandboxError: one got through, or the attacks could not be tried; nothing may be run.
        """
        from guardrails.sandbox.canary import try_attacks

        found, said = try_attacks(self)
        escaped = sorted(name for name, held in found.items() if not held)
        if escaped or not found:
            what = f"was through: {', '.join(escaped)}" if found else f"could not be tried: {said[-600:]}"
            raise SandboxError(f"Expected every canary attack to be held in {self.profile}, {what}.")
        return found

    def start(
        self,
        python: Path,
        script: Path,
        arguments: Sequence[str] = (),
        *,
        readable: Sequence[Path] = (),
        tmp_bytes: int = 0,
        limits: Limits | None = None,
        hash_seed: int = 0,
    ) -> Process:
        """Start `script` in an interpreter; its end of the channel is descriptor 3, its prints are collected.

        It sees that interpreter's environment, the system's libraries and `readable`, nothing else, and may write
        `tmp_bytes` in the folder that TMPDIR names (0: nowhere). Texts are hashed by `hash_seed`, which decides the
        order of sets.
        """
        limits = limits or Limits()
        python = Path.cwd() / python  # not resolved: a venv's python is known by its place
        namespaces, root = self.profile == "S3", os.geteuid() == 0
        user = USERS[0] + secrets.randbelow(USERS[1]) if root else os.geteuid()
        folders = [*_of_interpreter(python), *map(str, readable), str(script), str(INSIDE)]
        configuration: dict[str, Any] = {
            "user": user,
            "limits": {**asdict(limits), "processes": _processes(limits.processes, namespaces, root)},
            "wall_seconds": limits.wall_seconds,
            "landlock": LANDLOCK[self.profile],
            "seccomp": seccomp.program(os.uname().machine, limits.processes > 1).hex(),
            "readable": [*SYSTEM, *DEVICES, *folders],
            "writable": ["/dev/null"],
            "scratch": "",
            "watched_bytes": 0,
            "script": str(script),
            "arguments": list(arguments),
        }
        with ExitStack() as ours, ExitStack() as passed:
            channel, other = socket.socketpair()
            ours.enter_context(channel)
            passed.enter_context(other)
            read, write = os.pipe()
            lifeline = ours.enter_context(os.fdopen(write, "wb", 0))
            passed.callback(os.close, read)
            judge = os.pidfd_open(os.getpid())
            passed.callback(os.close, judge)
            output = ours.enter_context(os.fdopen(os.memfd_create("output"), "w+b", 0))
            scratch = _scratch(user) if tmp_bytes and not namespaces else None
            if scratch is not None:
                ours.callback(_remove, scratch)
                configuration["watched_bytes"] = tmp_bytes
            if tmp_bytes:
                configuration["scratch"] = str(scratch or SCRATCH)
                configuration["writable"].append(configuration["scratch"])
            configuration |= {"channel": other.fileno(), "lifeline": read, "judge": judge}
            command = [str(python), "-s", "-P", "-B", str(INSIDE), json.dumps(configuration)]
            process = subprocess.Popen(
                [*_bubblewrap(folders, tmp_bytes, root), *command] if namespaces else command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=ENVIRONMENT | {"PYTHONHASHSEED": str(hash_seed)},
                pass_fds=(other.fileno(), read, judge),
                cwd="/",
                start_new_session=True,
            )
            ours.pop_all()
        return Process(process, channel, lifeline, output, scratch)


def _processes(wanted: int, namespaces: bool, root: bool) -> int:
    """Return the limit that lets `wanted` processes live: it counts all of a user, or of a user in a namespace."""
    if root:
        return wanted
    if namespaces:
        return wanted + 2  # bubblewrap and the supervisor
    mine = os.geteuid()
    others = 0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            others += len(list((place / "task").iterdir())) if place.stat().st_uid == mine else 0
        except OSError:
            continue
    return others + wanted + 2  # those of the user now, which may grow and shrink meanwhile, and the supervisor


def _scratch(user: int) -> Path:
    place = Path(tempfile.mkdtemp(prefix="guardrails-scratch-"))
    if os.geteuid() == 0:
        try:
            os.chown(place, user, user)
        except OSError:
            os.chown(place, 65_534, 65_534)
    return place


def _remove(folder: Path) -> None:
    """Delete what a worker wrote, also folders it made without a right to look into them."""
    for place, _, _ in os.walk(folder):
        for child in os.scandir(place):
            if child.is_dir(follow_symlinks=False):
                Path(child.path).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def strongest() -> tuple[str, str]:
    """Find out by trying which profile works here: S3, S2 or S0, and why none better."""
    if not sys.platform.startswith("linux"):
        return "S0", f"This is {sys.platform}, not Linux."
    reasons = []
    for profile in ("S3", "S2"):
        if profile == "S3" and shutil.which("bwrap") is None:
            reasons.append("S3: bubblewrap is not installed.")
            continue
        try:
            with Sandbox(profile).start(Path(sys.executable), INSIDE.with_name("hello.py")) as process:
                process.channel.settimeout(20)
                if process.channel.recv(16) == b"sandboxed":
                    return profile, " ".join(reasons)
                process.kill()
                reasons.append(f"{profile}: {process.output().strip()[-300:]}")
        except (OSError, ValueError) as error:
            reasons.append(f"{profile}: {error}")
    return "S0", " ".join(reasons)


@lru_cache(maxsize=32)
def _of_interpreter(python: Path) -> tuple[str, ...]:
    """Return what an interpreter consists of: its environment's, and the installation's that this is made from."""
    places = [python]
    while places[-1].is_symlink():  # each hop of bin/python -> python3 -> /usr/local/bin/python3
        places.append(places[-1].parent / places[-1].readlink())
    found: dict[str, None] = {}
    for place in [*places, python.resolve()]:
        prefix = place.parent.parent
        parts = (place, prefix / "pyvenv.cfg", prefix / "lib", prefix / "lib64")
        found.update({str(part): None for part in parts if part.exists()})
    return tuple(found)


def _bubblewrap(folders: Sequence[str], tmp_bytes: int, root: bool) -> list[str]:
    command = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    command += ["--as-pid-1", "--cap-drop", "ALL"]
    if root:  # to become a user of its own, for which a user namespace would have no number
        for capability in ("SETUID", "SETGID", "KILL", "DAC_READ_SEARCH"):
            command += ["--cap-add", f"CAP_{capability}"]
    else:
        command.append("--unshare-user")
    for place in SYSTEM:
        command += ["--ro-bind-try", place, place]
    for device in DEVICES:  # no /dev of its own: that would be a file system without a limit
        command += ["--dev-bind", device, device]
    for folder in folders:
        command += ["--ro-bind", folder, folder]
    if tmp_bytes:
        command += ["--perms", "1777", "--size", str(tmp_bytes), "--tmpfs", SCRATCH]
    return [*command, "--remount-ro", "/", "--chdir", "/", "--"]

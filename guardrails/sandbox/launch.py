"""Start sandboxed interpreters: the profile, the fixed environment, the private channel, and the end of it all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

INSIDE = Path(__file__).with_name("inside.py")
ORDER = ("S0", "S2", "S3")

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

#: What an interpreter needs of the system, to be read and never written.
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/dev/urandom", "/dev/zero", "/dev/null")


class SandboxError(Exception):
    """No sandbox of the demanded strength can be had here; nothing was run."""


@dataclass(frozen=True)
class Limits:
    """What one sandboxed process may use. `output_bytes` caps what it prints, `file_bytes` each file it writes."""

    memory_bytes: int = 2 << 30
    cpu_seconds: int = 3_600
    processes: int = 32
    file_bytes: int = 16 << 20
    open_files: int = 64
    output_bytes: int = 4 << 20


class Process:
    """A sandboxed process and the judge's end of its private channel."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket, output: IO[bytes], most: int) -> None:
        self.process, self.channel = process, channel
        self._output, self._most = output, most

    def output(self) -> str:
        """Return what it printed so far, up to the cap."""
        self._output.seek(0)
        return self._output.read(self._most).decode("utf-8", "replace")

    def kill(self) -> None:
        """End the process and everything it started, and give its descriptors back."""
        if self.process.returncode is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                self.process.kill()
            self.process.wait()
        self.channel.close()

    def close(self) -> None:
        """Kill it, and forget what it printed."""
        self.kill()
        self._output.close()


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
        found = strongest()
        if ORDER.index(found) < ORDER.index(minimum) or found == "S0":
            raise SandboxError(
                f"Expected a sandbox of profile {minimum} or better, was {found}: this needs Linux with Landlock "
                "(5.13) and seccomp, and for S3 bubblewrap. Nothing was run."
            )
        return cls(found)

    def canaries(self) -> dict[str, bool]:
        """Try known attacks from inside and return which were held.

        Raises:
            SandboxError: one got through; nothing may be run.
        """
        found = _canaries(self.profile)
        escaped = sorted(name for name, held in found.items() if not held)
        if escaped or not found:
            raise SandboxError(f"Expected every canary attack to be held, was through: {', '.join(escaped) or 'all'}.")
        return dict(found)

    def start(
        self,
        python: Path,
        script: Path,
        arguments: Sequence[str] = (),
        *,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        limits: Limits | None = None,
    ) -> Process:
        """Start `script` in an interpreter; its end of the channel is descriptor 3, its prints are collected."""
        limits = limits or Limits()
        python = Path.cwd() / python  # not resolved: a venv's python is known by its place
        folders = [*_of_interpreter(python), *map(str, readable), str(script), str(INSIDE)]
        ours, theirs = socket.socketpair()
        output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        namespaces = self.profile == "S3"
        configuration = {
            "parent": 0 if namespaces else os.getpid(),
            "channel": theirs.fileno(),
            "limits": asdict(limits),
            "readable": [*SYSTEM, *folders],
            "writable": ["/dev/null", *map(str, writable)],
            "script": str(script),
            "arguments": list(arguments),
        }
        inner = [str(python), "-s", "-P", "-B", str(INSIDE), json.dumps(configuration)]
        command = [*_bubblewrap(folders, list(map(str, writable))), *inner] if namespaces else inner
        with theirs:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=ENVIRONMENT,
                pass_fds=(theirs.fileno(),),
                cwd="/",
                start_new_session=True,
            )
        return Process(process, ours, output, limits.output_bytes)


@lru_cache(maxsize=1)
def strongest() -> str:
    """Find out by trying which profile works here: S3, S2 or S0."""
    if not sys.platform.startswith("linux"):
        return "S0"
    for profile in ("S3", "S2"):
        if profile == "S3" and shutil.which("bwrap") is None:
            continue
        process = Sandbox(profile).start(Path(sys.executable), INSIDE.with_name("hello.py"))
        process.channel.settimeout(20)
        try:
            if process.channel.recv(16) == b"sandboxed":
                return profile
        except OSError:
            continue
        finally:
            process.close()
    return "S0"


@lru_cache(maxsize=4)
def _canaries(profile: str) -> dict[str, bool]:
    with tempfile.TemporaryDirectory(prefix="guardrails-") as place:
        Path(place).chmod(0o755)
        hidden = Path(place, "hidden")
        hidden.write_text("answers")
        arguments = [str(os.getpid()), str(Path(place, "outside")), str(hidden)]
        process = Sandbox(profile).start(Path(sys.executable), INSIDE.with_name("canaries.py"), arguments)
        process.channel.settimeout(30)
        try:
            found: dict[str, bool] = json.loads(process.channel.recv(1 << 16))
        except (OSError, ValueError):
            return {}
        finally:
            process.close()
        return found


@lru_cache(maxsize=32)
def _of_interpreter(python: Path) -> tuple[str, ...]:
    """Return the folders of an interpreter: its environment, and the installation that this one is made from."""
    folders = {str(python.parent.parent)}
    resolved = python.resolve()
    folders.add(str(resolved.parent.parent))
    link = python
    while link.is_symlink():  # each hop of bin/python -> python3 -> /usr/local/bin/python3
        link = link.parent / link.readlink()
        folders.add(str(link.parent.parent))
    if Path(sys.executable).resolve() == resolved:
        folders.add(sysconfig.get_path("stdlib"))
    return tuple(sorted(folder for folder in folders if folder != "/"))


def _bubblewrap(folders: Sequence[str], writable: Sequence[str]) -> list[str]:
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    for place in ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"):
        command += ["--ro-bind-try", place, place]
    command += ["--proc", "/proc", "--tmpfs", "/dev"]
    for device in ("null", "zero", "urandom"):
        command += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    command += ["--remount-ro", "/dev", "--size", str(64 << 20), "--tmpfs", "/tmp"]
    for folder in folders:
        command += ["--ro-bind", folder, folder]
    for folder in writable:
        command += ["--bind", folder, folder]
    return [*command, "--remount-ro", "/", "--chdir", "/", "--"]

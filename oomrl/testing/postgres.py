"""Start a PostgreSQL of one's own, in a folder of its own, reached by a socket alone: for tests and campaigns."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

USER = "oomrl"


def program(name: str) -> str | None:
    """Return the path of one of PostgreSQL's programs; Debian keeps them outside the search path."""
    packaged = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(packaged[-1]) if packaged else None)


def missing() -> str:
    """Return what is lacking for a PostgreSQL, empty where nothing is."""
    for name in ("initdb", "pg_ctl", "postgres"):
        if program(name) is None:
            return f"the program {name}"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "the package psycopg"
    return ""


@dataclass(frozen=True)
class Server:
    """A server that can be stopped and started again with its data."""

    folder: Path
    user: dict[str, object] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{USER}@/postgres?host={self.folder}"

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off -c max_connections=40"
        self._run("pg_ctl", "-D", self._data, "-l", str(self.folder / "log"), "-o", options, "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: "immediate" as a crash would, "fast" in order."""
        self._run("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    def make(self) -> None:
        self._run("initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _run(self, name: str, *arguments: str) -> None:
        command = [program(name), *arguments]
        subprocess.run(  # type: ignore[call-overload]
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder, **self.user
        )


@contextmanager
def server() -> Iterator[Server]:
    """Run a server while the block lasts."""
    # A short path: a socket's name may have 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    user: dict[str, object] = {}
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        import pwd

        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    made = Server(folder, user)
    try:
        made.make()
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)

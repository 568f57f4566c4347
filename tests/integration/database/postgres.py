"""Start a PostgreSQL of the tests' own, in a folder of its own, reached by a socket alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER = "oomrl"


def missing() -> str:
    """Return what the tests lack for a PostgreSQL, empty where nothing is missing."""
    for program in ("initdb", "pg_ctl", "postgres"):
        if shutil.which(program) is None:
            return f"the program {program}"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "the package psycopg"
    return ""


@contextmanager
def server() -> Iterator[str]:
    """Run a server while the block lasts and give the URL of its database."""
    # A short path: a socket's name may have 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    as_user: dict[str, object] = {}
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        import pwd

        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        as_user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **as_user)  # type: ignore[call-overload]

    data = folder / "data"
    try:
        run("initdb", "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=20"
        run("pg_ctl", "-D", str(data), "-l", str(folder / "log"), "-o", options, "-w", "start")
        try:
            yield f"postgresql+psycopg://{USER}@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)

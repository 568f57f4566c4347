"""A full disk, a locked database, a read-only file system: a halt that says what to do, and no committed fill lost.

The file systems are real: small ones mounted in a namespace of the test's own.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from oomrl.adapters.database import Store, engine
from oomrl.errors import Halt
from tests.integration.database import builders as build
from tests.integration.database.builders import RUN
from tests.integration.database.test_killed_writers import check_whole

#: What is about a database in a file.
of_a_file = pytest.mark.sqlite("a server has its disk elsewhere")

WRITE_UNTIL_HALTED = """
import sys
from pathlib import Path
from oomrl.adapters.database import Store
from oomrl.errors import Halt
from tests.integration.database import builders as build
from tests.integration.database.test_killed_writers import check_whole
place = Path(sys.argv[1])
committed = 0
with Store.open(place) as store:
    try:
        with store.begin() as work:
            work.runs.start(build.run())
        for number in range(10_000):
            with store.begin() as work:
                work.sessions.save(build.RUN, build.record(number))
            committed += 1
    except Halt as halt:
        print(halt)
assert committed > 3, committed
place.with_name("ballast").unlink()
with Store.open(place) as store:
    store.check()
    assert check_whole(store) == committed
    with store.begin() as work:
        work.sessions.save(build.RUN, build.record(committed))
    assert check_whole(store) == committed + 1
"""
READ_ONLY = """
import sys
from pathlib import Path
from oomrl.adapters.database import Store
from oomrl.errors import Halt
from tests.integration.database import builders as build
place = Path(sys.argv[1])
try:
    with Store.open(place) as store, store.begin() as work:
        work.sessions.save(build.RUN, build.record(1))
except Halt as halt:
    print(halt)
"""


def in_namespace(script: str, tmp_path: Path, mount: str, *arguments: object) -> str:
    """Run Python with a file system of its own mounted on a folder; return what it prints."""
    unshare = shutil.which("unshare")
    probe = [unshare or "unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"]
    if unshare is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here: user namespaces are missing")
    code = f'{mount} && exec "$0" -c \'{script}\' "$@"'
    done = subprocess.run(
        [unshare, "-rm", "sh", "-c", code, sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PLACE": str(tmp_path)},
        cwd=Path.cwd(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@of_a_file
def test_a_full_disk_halts_and_keeps_every_fill(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o size=3m none "$PLACE" && head -c 1000000 /dev/zero >"$PLACE/ballast"'
    said = in_namespace(WRITE_UNTIL_HALTED, tmp_path, mount, tmp_path / "a.db")
    assert "the disk is full: make room" in said


@of_a_file
def test_a_read_only_file_system_halts(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store, store.begin() as work:
        work.runs.start(build.run())
        work.sessions.save(RUN, build.record(0))
    mount = 'mount --bind "$PLACE" "$PLACE" && mount -o remount,bind,ro "$PLACE"'
    said = in_namespace(READ_ONLY, tmp_path, mount, tmp_path / "a.db")
    assert "may be written" in said
    with Store.open(tmp_path / "a.db") as store:
        assert check_whole(store) == 1


@of_a_file
def test_a_database_that_stays_locked_halts_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_MS", 50)
    place = tmp_path / "a.db"
    with Store.open(place) as store:
        with store.begin() as work:
            work.runs.start(build.run())
            work.sessions.save(RUN, build.record(0))
        holder = sqlite3.connect(place, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(Halt, match="another process is writing"), store.begin() as work:
            work.sessions.save(RUN, build.record(1))
        # Readers are not kept waiting by a writer.
        assert check_whole(store) == 1
        holder.execute("ROLLBACK")
        holder.close()
        with store.begin() as work:
            work.sessions.save(RUN, build.record(1))
        assert check_whole(store) == 2


@of_a_file
def test_commands_say_in_a_line_that_a_disk_cannot_be_written(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with Store.open(state / "oomrl.db") as store, store.begin() as work:
        work.runs.start(build.run())
    (state / "oomrl.toml").write_text('[accounts.main]\ntape = "builtin"\n', "utf-8")
    script = """
import subprocess, sys
for asked in (["backup"], ["halt", "--as", "olga", "--reason", "odd fills"]):
    command = [sys.executable, "-m", "oomrl", *asked, "--state", sys.argv[1]]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    print(ran.returncode, ran.stdout, ran.stderr)
"""
    mount = 'mount --bind "$PLACE" "$PLACE" && mount -o remount,bind,ro "$PLACE"'
    said = in_namespace(script, tmp_path, mount, state)
    assert "the program itself" not in said and "Halted: no further" not in said
    backup, halt = said.split("\n2 ")
    assert backup.startswith("2 ") and "Read-only file system. Give this user the right to it" in backup
    assert "Not halted: not everything could be done. the switch: Expected to write" in halt and "the record: " in halt


def test_a_daemon_is_not_ready_on_a_disk_without_room(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from oomrl.daemon.serve import Daemon
from oomrl.settings import load
state = Path(sys.argv[1])
daemon = Daemon(state, lambda: load(None, {"accounts": {"main": {"tape": "none"}}}))
daemon.leads = True
for _ in range(2):
    code, told = daemon.ready()
    print(code, told["ready"], told["bytes_free"] < told["bytes_needed"], daemon.health()[0])
    (state / "ballast").write_bytes(bytes(300_000_000))
"""
    mount = 'mount -t tmpfs -o size=400m none "$PLACE"'
    told = in_namespace(script, tmp_path, mount, tmp_path).splitlines()
    assert told == ["200 True False 200", "503 False True 200"]


def test_a_halt_on_a_full_disk_stops_orders_without_a_reason(tmp_path: Path) -> None:
    script = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from oomrl.adapters.kill_switch import KillSwitch, demand
from oomrl.errors import Halt
state = Path(sys.argv[1])
KillSwitch(state).engage("olga", "odd fills", datetime.now(UTC))
try:
    demand(state)
except Halt as halt:
    print(halt)
"""
    mount = 'mount -t tmpfs -o size=64k none "$PLACE" && (head -c 100000 /dev/zero >"$PLACE/ballast" || true)'
    assert "cannot be read: nothing is sent" in in_namespace(script.replace("'", '"'), tmp_path, mount, tmp_path)

"""Backups: one file an account, taken while the service runs, and restored once to see that it can be.

The order of copying matters: first the audit chain, then the store, then the deployment repository, because each is
written after the next in that list; a chain that is behind its store catches up at the next start. The settings, which
hold no secret, go with them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from oomrl.adapters.audit import Audit
from oomrl.adapters.database import Store
from oomrl.adapters.database.place import FILE, MAIN, place
from oomrl.adapters.database.place import folder as account_folder
from oomrl.adapters.database.transfer import load_copy, save_copy
from oomrl.adapters.folders import made_or_gone
from oomrl.adapters.repository import git_here
from oomrl.errors import Halt, Mistake, Refused
from oomrl.settings import Settings

SUFFIX = ".oomrl-backup.tar.gz"
MANIFEST = "manifest.json"
#: What is copied beside the store, where it is there: the chain and its keys before it, the repository after it.
BEFORE, AFTER = ("audit.jsonl", "keys"), ("strategy.git", "traffic")
#: What a person may have put back already, and is left alone where it is there.
BESIDE = ("oomrl.toml", "certificates")


def folder(account: Path) -> Path:
    """Return where an account's own backups are kept. Copy them to another machine."""
    return account / "backups"


def take(state: Path, settings: Settings, account: str, target: Path, label: str) -> Path:
    """Write a backup of one account and return its file, readable by its owner alone: it holds the audit key.

    It is unpacked, restored and compared before it appears under its name.
    """
    own = account_folder(state, account)
    target.mkdir(parents=True, exist_ok=True)
    made = target / f"{account}-{label}{SUFFIX}"
    with tempfile.TemporaryDirectory(prefix=".half-", dir=target) as temporary:
        work = Path(temporary)
        inside = work / "backup"
        inside.mkdir()
        for name in BEFORE:
            _copy(own / name, inside / name)
        with Store.open(place(state, settings, account)) as store:
            tables = save_copy(store, inside / FILE)
        for name in (*AFTER, *BESIDE):
            _copy(own / name, inside / name)
        files = {path.relative_to(inside).as_posix(): _digest(path) for path in _files(inside)}
        manifest = {"account": account, "label": label, "tables": tables, "files": files}
        (inside / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), "utf-8")
        packed = work / made.name
        with tarfile.open(packed, "w:gz", compresslevel=3) as archive:
            for path in [inside / MANIFEST, *_files(inside)]:
                archive.add(path, path.relative_to(inside).as_posix(), recursive=False)
        packed.chmod(0o600)
        verify(packed)
        with packed.open("rb") as file:
            os.fsync(file.fileno())
        packed.replace(made)
    return made


def verify(backup: Path) -> dict[str, object]:
    """Unpack a backup elsewhere and check its files, rows, chain and repository; return its manifest."""
    with tempfile.TemporaryDirectory(prefix="oomrl-verify-") as temporary:
        return _unpack(backup, Path(temporary))


def restore(backup: Path, state: Path, settings: Settings, account: str = MAIN) -> dict[str, object]:
    """Restore a backup into an account that has nothing yet. Raises `Refused` where it has."""
    own = account_folder(state, account)
    taken = [name for name in (*BEFORE, *AFTER) if (own / name).exists()]
    if settings.database.url is None and (own / FILE).exists():
        taken.append(FILE)
    if taken:
        raise Refused(
            f"Expected nothing of a run in {own} to restore over, found {', '.join(taken)}. "
            "Move that folder away first; nothing was changed."
        )
    with made_or_gone(own), tempfile.TemporaryDirectory(prefix=".restore-", dir=own) as temporary:
        inside = Path(temporary)
        manifest = _unpack(backup, inside)
        if settings.database.url is None:
            (inside / FILE).replace(own / FILE)
        else:
            with Store.open(place(state, settings, account)) as store:
                load_copy(inside / FILE, store)
        for name in (*BEFORE, *AFTER, *(name for name in BESIDE if not (own / name).exists())):
            if (inside / name).exists():
                (inside / name).replace(own / name)
    return manifest


def prune(target: Path, keep: int) -> None:
    """Remove all but the newest backups."""
    for old in sorted(target.glob(f"*{SUFFIX}"))[:-keep]:
        old.unlink()


def _extract(archive: tarfile.TarFile, inside: Path) -> None:
    """Write the plain files of an archive below a folder, and refuse anything else in it.

    By hand, because Python before 3.11.4 (Debian 12 has 3.11.2) has no filter of its own.
    """
    for member in archive:
        place = (inside / member.name).resolve()
        content = archive.extractfile(member) if member.isfile() else None
        if content is None or not place.is_relative_to(inside.resolve()):
            raise tarfile.TarError(f"{member.name!r} is no plain file inside it")
        place.parent.mkdir(parents=True, exist_ok=True)
        with content, place.open("wb") as file:
            shutil.copyfileobj(content, file)
        place.chmod(member.mode & 0o755 | 0o600)


def _unpack(backup: Path, inside: Path) -> dict[str, object]:
    try:
        with tarfile.open(backup) as archive:
            _extract(archive, inside)
        manifest: dict[str, object] = json.loads((inside / MANIFEST).read_text("utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise Mistake(f"Expected a backup at {backup}, found none or one without {MANIFEST}.") from error
    except (OSError, EOFError, tarfile.TarError, ValueError) as error:
        why = str(error).partition("\n")[0].rstrip(":")  # of a file that is no archive it lists every way to open one
        raise Halt(f"Expected a whole backup in {backup}, was damaged: {why}. Use an older one") from error
    (inside / MANIFEST).unlink()
    found = {path.relative_to(inside).as_posix(): _digest(path) for path in _files(inside)}
    if found != manifest["files"]:
        raise Halt(f"Expected the files of {backup} as its manifest says, were others. Use an older one")
    tables = {name: list(rows) for name, rows in _tables(inside / FILE).items()}
    if tables != manifest["tables"]:
        raise Halt(f"Expected the rows of {backup} as its manifest says, were others. Use an older one")
    for leftover in inside.glob(f"{FILE}-*"):
        leftover.unlink()
    if (inside / "audit.jsonl").exists():
        Audit(inside).log.verify()
    if (inside / "strategy.git").exists():
        _git_check(inside / "strategy.git")
    return manifest


def _tables(path: Path) -> dict[str, tuple[int, str]]:
    from oomrl.adapters.database.transfer import contents

    with Store.open(path) as store:
        store.check()
        with store.read() as view:
            return contents(view.connection)


def _git_check(repository: Path) -> None:
    done = subprocess.run(
        [git_here(), "--git-dir", str(repository), "fsck", "--full", "--no-progress"],
        capture_output=True,
        text=True,
        env={"PATH": os.environ.get("PATH", os.defpath), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
        check=False,
    )
    if done.returncode:
        raise Halt(f"Expected a sound deployment repository in the backup, was damaged: {done.stderr.strip()[:300]}")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        # What is checked out of the repository for workers is made again from it.
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("checkouts"))
    elif source.exists():
        shutil.copy2(source, target)


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and path.name != MANIFEST)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

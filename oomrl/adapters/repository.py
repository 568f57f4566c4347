"""The deployment repository: every revision of the strategy that was ever allowed near the capital.

A bare git repository of its own in the state directory, written with git's plumbing alone: no work tree, no hooks,
no filters, no configuration but the one given here, so that nothing of the strategy's tree is ever run or obeyed.
Identity and dates are given, so the same history has the same ids. Objects are named by SHA-256, because reviews
and attestations bind a tree by its id.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from guardrails import tree as judged
from oomrl.errors import Halt, Mistake, Refused

BRANCH = "refs/heads/deployed"
IDENTITY = ("oomrl", "oomrl@localhost")
#: What builds and tests leave behind; never part of a strategy.
LITTER = frozenset({".git", "__pycache__", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".venv"})
_HEX = re.compile(r"[0-9a-f]{64}\Z")

Tree = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit: its id, its tree's id, the one before it (empty for the first), when and why."""

    id: str
    tree: str
    parent: str
    at: datetime
    message: str


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return a folder's files by their path, without what builds leave behind; refuse links and special files."""
    if not folder.is_dir():
        raise Mistake(f"Expected a folder with a strategy, was {folder}, which is none")
    tree: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if LITTER.intersection(relative.parts) or path.suffix == ".pyc" or relative.parts[0].endswith(".egg-info"):
            continue
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise Mistake(f"Expected plain files and folders in a strategy, was {path}")
        if path.is_file():
            tree[_checked(relative.as_posix())] = path.read_bytes()
    return tree


class Repository:
    """The deployment repository in `folder`; checkouts for workers stand beside its objects."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._trees: dict[str, dict[str, bytes]] = {}
        self._tree_ids: dict[str, str] = {}  # of commits, which never change
        if not (folder / "HEAD").is_file():
            raise Mistake(f"Expected the deployment repository in {folder}, was none: start with `oomrl init`")

    @classmethod
    def create(cls, folder: Path, tree: Tree, message: str, at: datetime) -> Repository:
        """Create the repository with `tree` as its first revision, or open it where that very one stands already."""
        if not (folder / "HEAD").is_file():
            folder.parent.mkdir(parents=True, exist_ok=True)
            half = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".creating-"))
            _git(half, "init", "--quiet", "--bare", "--object-format=sha256", "--template=", ".")
            _git(half, "symbolic-ref", "HEAD", BRANCH)
            first = cls(half)
            _git(half, "update-ref", BRANCH, first._commit_tree(first._write_tree(None, tree), None, message, at))
            # One file instead of one for each of the tree's: backups and their checks go through all of them.
            _git(half, "repack", "-a", "-d", "-q", "--no-write-bitmap-index")
            half.rename(folder)
        repository = cls(folder)
        if repository.tree(repository.log()[-1].id) != dict(tree):
            raise Mistake(
                f"Expected {folder} to begin with the strategy that was given, was another one: "
                "use another state directory, or start it without a strategy"
            )
        return repository

    def head(self) -> str:
        """Return the id of the revision that is deployed.

        Every page asks: it is read from the file that git replaces at once; where git keeps it elsewhere, git says it.
        """
        with contextlib.suppress(OSError):
            told = (self.folder / BRANCH).read_text("ascii", "replace").strip()
            if _HEX.fullmatch(told):
                return told
        return _git(self.folder, "rev-parse", "--verify", BRANCH).decode().strip()

    def resolve(self, revision: str) -> str:
        """Return the full id of a revision named by its id or at least 7 of its first digits."""
        if not re.fullmatch(r"[0-9a-f]{7,64}", revision):
            raise Mistake(f"Expected the id of a revision (7 to 64 hexadecimal digits), was {revision!r}")
        found = [entry.id for entry in self.log() if entry.id.startswith(revision)]
        if len(found) != 1:
            raise Mistake(f"Expected a revision in {self.folder}, was {revision!r}, which names {len(found)} of them")
        return found[0]

    def tree_id(self, revision: str) -> str:
        """Return the id of a revision's tree."""
        if revision not in self._tree_ids:
            found = _git(self.folder, "rev-parse", "--verify", f"{_full(revision)}^{{tree}}")
            self._tree_ids[revision] = found.decode().strip()
        return self._tree_ids[revision]

    def tree(self, revision: str) -> dict[str, bytes]:
        """Return a revision's files by their path."""
        tree = self.tree_id(revision)
        if tree not in self._trees:
            self._trees[tree] = self._read_tree(tree)
        return dict(self._trees[tree])

    def checkout(self, revision: str, only: Iterable[str] = ()) -> Path:
        """Return a folder with a revision's files, read-only, the same folder for the same content.

        `only` keeps the paths that equal, or lie under, one of the given ones (a worker needs src and
        strategy.toml, never the tests). What stands there is compared before it is handed out.
        """
        wanted = tuple(sorted(only))
        tree = {
            path: data
            for path, data in self.tree(revision).items()
            if not wanted or any(path == name or path.startswith(f"{name}/") for name in wanted)
        }
        place = self._checkouts / judged.Tree(tree).digest()
        if place.is_dir() and read_folder(place) == tree:
            return place
        _remove(place)
        self._checkouts.mkdir(exist_ok=True)
        half = Path(tempfile.mkdtemp(dir=self._checkouts, prefix=".half-"))
        for path, data in tree.items():
            target = half / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o444)
        for parent, _, _ in os.walk(half, topdown=False):
            Path(parent).chmod(0o555)
        half.rename(place)
        return place

    def tidy(self, before: date) -> int:
        """Remove what was checked out before a day, halves of killed checkouts too; return how many folders.

        What is still wanted is made again. Nothing of the strategy may run meanwhile.
        """
        old = [
            place
            for place in self._checkouts.glob("*")
            if datetime.fromtimestamp(place.stat().st_mtime, UTC).date() < before
        ]
        for place in old:
            _remove(place)
        return len(old)

    def preview(self, base: str, changes: Mapping[str, bytes | None]) -> str:
        """Return the id of the tree that `changes` make of `base`, without committing anything."""
        return self._write_tree(_full(base), changes)

    def commit(self, base: str, changes: Mapping[str, bytes | None], message: str, at: datetime) -> str:
        """Put `changes` (path to bytes, None deletes) on top of `base`, which must be deployed; return the new id.

        Doing the same again returns the same id. Raise `Refused` where another revision is deployed by now.
        """
        return self._advance(self._write_tree(_full(base), changes), base, message, at)

    def rollback(self, revision: str, base: str, message: str, at: datetime) -> str:
        """Deploy the tree of an earlier revision again, as a new commit on top of `base`; return the new id."""
        return self._advance(self.tree_id(self.resolve(revision)), base, message, at)

    def log(self) -> list[Revision]:
        """Return all revisions, the deployed one first."""
        text = _git(self.folder, "log", "--format=%H%x00%T%x00%P%x00%ct%x00%B%x01", BRANCH).decode()
        revisions = []
        for entry in text.split("\x01"):
            if entry.strip():
                commit, tree, parent, seconds, message = entry.strip("\n").split("\x00", 4)
                revisions.append(
                    Revision(commit, tree, parent, datetime.fromtimestamp(int(seconds), UTC), message.strip())
                )
        return revisions

    def diff(self, old: str, new: str) -> str:
        """Return the unified diff between two revisions."""
        arguments = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", _full(old), _full(new))
        return _git(self.folder, *arguments).decode("utf-8", "replace")

    @property
    def _checkouts(self) -> Path:
        return self.folder / "checkouts"

    def _advance(self, tree: str, base: str, message: str, at: datetime) -> str:
        new = self._commit_tree(tree, _full(base), message, at)
        head = self.head()
        if head == new:
            return new
        if head != base:
            raise Refused(f"Expected {base[:12]} to be deployed, was {head[:12]}: review the proposal against that one")
        if self.tree_id(base) == tree:
            raise Refused(f"Expected a change of {base[:12]}, was none")
        _git(self.folder, "update-ref", BRANCH, new, base)
        return new

    def _commit_tree(self, tree: str, parent: str | None, message: str, at: datetime) -> str:
        if at.tzinfo is None:
            raise ValueError(f"Expected an aware instant, was {at!r} without a time zone")
        date = f"{int(at.timestamp())} +0000"
        parents = () if parent is None else ("-p", parent)
        env = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        for who in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{who}_NAME": IDENTITY[0], f"GIT_{who}_EMAIL": IDENTITY[1]}
        return (
            _git(self.folder, "commit-tree", tree, *parents, "-F", "-", stdin=message.encode(), env=env)
            .decode()
            .strip()
        )

    def _write_tree(self, base: str | None, changes: Mapping[str, bytes | None]) -> str:
        with tempfile.TemporaryDirectory() as scratch:
            env = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
            if base is not None:
                _git(self.folder, "read-tree", base, env=env)
            lines = [f"0 {'0' * 64}\t{_checked(path)}\0" for path, data in changes.items() if data is None]
            written = sorted(path for path, data in changes.items() if data is not None)
            for number, path in enumerate(written):
                (Path(scratch) / str(number)).write_bytes(changes[path] or b"")
            asked = "".join(f"{scratch}/{number}\n" for number in range(len(written))).encode()
            blobs = _git(self.folder, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=asked).decode()
            for path, blob in zip(written, blobs.splitlines(), strict=True):
                lines.append(f"100644 {blob}\t{_checked(path)}\0")
            _git(self.folder, "update-index", "-z", "--index-info", stdin="".join(lines).encode(), env=env)
            return _git(self.folder, "write-tree", env=env).decode().strip()

    def _read_tree(self, tree: str) -> dict[str, bytes]:
        blobs: dict[str, str] = {}
        for entry in _git(self.folder, "ls-tree", "-r", "-z", "--full-tree", tree).decode().split("\0")[:-1]:
            mode, kind, rest = entry.split(" ", 2)
            blob, path = rest.split("\t", 1)
            if kind != "blob" or mode != "100644":
                raise Halt(f"Expected plain files in the deployment repository, was {path} with mode {mode}")
            blobs[path] = blob
        wanted = "".join(f"{blob}\n" for blob in blobs.values()).encode()
        out = _git(self.folder, "cat-file", "--batch", stdin=wanted)
        files, at = {}, 0
        for path, blob in blobs.items():
            end = out.index(b"\n", at)
            header = out[at:end].decode().split(" ")
            size = int(header[2]) if header[:2] == [blob, "blob"] else 0
            data = out[end + 1 : end + 1 + size]
            # git does not compare an object with its name each time it reads one.
            if hashlib.sha256(f"blob {size}\0".encode() + data).hexdigest() != blob:
                raise Halt(
                    f"Expected the content of {path} to have the id {blob[:12]}, was damaged. Run `oomrl doctor`"
                )
            files[path] = data
            at = end + size + 2
        return files


def _checked(path: str) -> str:
    parts = path.split("/")
    bad = any(
        part in ("", ".", "..") or part.lower().startswith(".git") and part.lower() != ".gitignore" for part in parts
    )
    if bad or "\\" in path or not path.isprintable() or len(path) > 200:
        raise Refused(f"Expected a plain relative path, was {path!r}")
    return path


def _full(revision: str) -> str:
    if not _HEX.fullmatch(revision):
        raise ValueError(f"Expected a full revision id (64 hexadecimal digits), was {revision!r}")
    return revision


def _remove(folder: Path) -> None:
    if folder.is_dir():
        for parent, _, _ in os.walk(folder):
            Path(parent).chmod(0o755)
        shutil.rmtree(folder)


def git_here() -> str:
    """Return where git is. Raises `Mistake` where it is not installed."""
    binary = shutil.which("git")
    if binary is None:
        raise Mistake("Expected git on this machine, was not found: install it (version 2.29 or later)")
    return binary


def _git(folder: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
    settings = ("core.hooksPath=/dev/null", "core.fsync=committed,reference", "core.autocrlf=false", "gc.auto=0")
    command = [git_here(), *(part for setting in settings for part in ("-c", setting)), *arguments]
    clean = {
        "PATH": os.defpath,
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_DIR": ".",
        "GIT_ATTR_NOSYSTEM": "1",
    }
    done = subprocess.run(
        command, cwd=folder, input=stdin, env=clean | dict(env or {}), capture_output=True, check=False
    )
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise Halt(f"git {arguments[0]} failed in {folder}: {said}. Run `oomrl doctor`")
    return done.stdout

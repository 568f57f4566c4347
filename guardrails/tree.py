"""A tree of files as plain bytes: read once, then judged and digested from memory."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

UNREAD = frozenset({".git", "__pycache__", ".venv", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
MODE = "100644"


class TreeError(Exception):
    """The folder cannot be read as a tree of plain files; nothing was judged."""


class Tree(Mapping[str, bytes]):
    """Map each POSIX path to its bytes. Immutable; a change is a new tree."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = dict(sorted(files.items()))

    def __getitem__(self, path: str) -> bytes:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def digest(self) -> str:
        """Return the sha256 over each path, mode and content, in path order and length-prefixed."""
        total = hashlib.sha256(b"guardrails-tree-1\n")
        for path, data in self._files.items():
            name = path.encode("utf-8", "surrogateescape")
            total.update(b"%d:%s %s %d:" % (len(name), name, MODE.encode(), len(data)))
            total.update(data)
        return total.hexdigest()

    def replace(self, changes: Mapping[str, bytes | None]) -> Tree:
        """Return a new tree with these files set, or removed where the value is None."""
        files = {**self._files, **{path: data for path, data in changes.items() if data is not None}}
        return Tree({path: data for path, data in files.items() if changes.get(path, b"") is not None})

    def under(self, folder: str) -> Tree:
        """Return the files below a folder, their paths kept."""
        return Tree({path: data for path, data in self._files.items() if path.startswith(folder.rstrip("/") + "/")})

    def write(self, folder: Path) -> None:
        """Write every file below a folder, which must be empty or absent."""
        for path, data in self._files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)

    @classmethod
    def read(cls, folder: Path) -> Tree:
        """Read a folder. Caches and version control are left out.

        Raises:
            TreeError: no folder, or a symbolic link, device or other special file is among the files.
        """
        if not folder.is_dir():
            raise TreeError(f"Expected a folder, was {str(folder)!r}.")
        return cls(dict(_walk(folder, "")))


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir()):
        if entry.name in UNREAD or entry.name.endswith(".egg-info"):
            continue
        mode = entry.lstat().st_mode
        if stat.S_ISDIR(mode):
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif stat.S_ISREG(mode):
            yield f"{prefix}{entry.name}", entry.read_bytes()
        else:
            raise TreeError(f"Expected plain files and folders, was a special file or link: {prefix}{entry.name!r}.")

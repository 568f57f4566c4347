"""Folders and files at places that a person named: one that cannot be there is a mistake of theirs, told in a line."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from oomrl.errors import Mistake

#: What is wrong with a place itself. A full disk or a missing right is told where every command's errors are.
NO_PLACE = frozenset(
    {errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}
)


@contextmanager
def named(place: Path, what: str) -> Iterator[None]:
    """Raise `Mistake` where the block cannot write `what` (for example "a folder") at a place."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_PLACE:
            raise
        raise Mistake(f"Expected {what} that can be written at {place}: {error.strerror}.") from error


def made(folder: Path, mode: int = 0o777) -> Path:
    """Make a folder, with those above it, where it is not there yet; return it. Raises `Mistake`."""
    with named(folder, "a folder"):
        folder.mkdir(parents=True, exist_ok=True, mode=mode)
    return folder


def put(file: Path, text: str) -> None:
    """Write a text file at a place that a person named. Raises `Mistake`."""
    with named(file, "a file"):
        file.write_text(text, encoding="utf-8")


@contextmanager
def made_or_gone(folder: Path, mode: int = 0o777) -> Iterator[None]:
    """Make a folder for the block; where that raises, an empty folder that was not there before is removed again."""
    was_there = folder.exists()
    made(folder, mode)
    try:
        yield
    except BaseException:
        if not was_there and not any(folder.iterdir()):
            folder.rmdir()
        raise

"""Frames on the private channel: u32 length of a JSON header, the header, then raw float64 columns that it names.

Both sides import this module, inside and outside the sandbox; it needs the standard library alone. The schema of
every header is schemas/worker_frames.schema.json.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from typing import Any

VERSION = 1
MOST_HEADER = 4 << 20
MOST_ROWS = 100_000
MOST_COLUMNS = 64

Read = Callable[[int], bytes]


class FrameError(Exception):
    """The bytes are no frame."""


def encode(header: dict[str, Any], columns: Iterable[bytes | memoryview] = ()) -> bytes:
    """Return a frame. `columns` are the bytes of the float64 columns that the header names, in its order."""
    data = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    return b"".join((struct.pack("<I", len(data)), data, *columns))


def decode(read: Read) -> tuple[dict[str, Any], bytes]:
    """Read one frame by `read(n)`, which returns exactly n bytes; return its header and its columns' bytes.

    Raises:
        FrameError: the header is too long, no JSON object, or names columns that no frame may have.
    """
    (size,) = struct.unpack("<I", read(4))
    if size > MOST_HEADER:
        raise FrameError(f"Expected a header of at most {MOST_HEADER} bytes, was {size}.")
    try:
        header = json.loads(read(size))
    except (ValueError, RecursionError):
        raise FrameError("Expected a JSON header, was something else.") from None
    if not isinstance(header, dict) or not isinstance(header.get("type"), str):
        raise FrameError("Expected a header with a type, was none.")
    rows, names = header.get("rows", 0), header.get("columns", [])
    if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
        raise FrameError(f"Expected rows from 0 to {MOST_ROWS}, was {rows!r}.")
    if not isinstance(names, list) or len(names) > MOST_COLUMNS:
        raise FrameError(f"Expected at most {MOST_COLUMNS} columns, was {names!r:.80}.")
    return header, read(8 * rows * len(names)) if rows and names else b""

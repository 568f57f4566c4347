"""Frames on the private channel: u32 length of a JSON header, the header, then raw float64 columns that it names.

All numbers are little-endian. Both sides use this module, inside and outside the sandbox; it needs the standard
library alone. The schema of every header is schemas/worker_frames.schema.json.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

VERSION = 2
MOST_HEADER = 4 << 20
MOST_ROWS = 100_000
MOST_COLUMNS = 16
BARS = ("open", "high", "low", "close", "volume", "dividend", "split", "tradable")
PLAN = ("max_participation", "sessions", "limit_bps")

Read = Callable[[int], bytes]


class FrameError(Exception):
    """The bytes are no frame."""


class FrameTooLong(FrameError):
    """The frame is longer than any may be."""


def encode(header: dict[str, Any], columns: Iterable[Any] = ()) -> bytes:
    """Return a frame. `columns` are the float64 columns that the header names, in its order, as bytes or buffers.

    Raises:
        ValueError: the header holds NaN, an infinity or what is no JSON.
    """
    data = _written(header).encode()
    return b"".join((struct.pack("<I", len(data)), data, *columns))


def decode(read: Read) -> tuple[dict[str, Any], bytes]:
    """Read one frame by `read(n)`, which returns exactly n bytes; return its header and its columns' bytes.

    Raises:
        FrameTooLong: the header, the rows or the columns are more than any frame has; nothing more was read.
        FrameError: the header is no JSON object with a type.
    """
    (size,) = struct.unpack("<I", read(4))
    if size > MOST_HEADER:
        raise FrameTooLong(f"Expected a header of at most {MOST_HEADER} bytes, was {size}.")
    try:
        header = _parsed(read(size).decode())
    except (ValueError, RecursionError):
        raise FrameError("Expected a JSON header, was something else.") from None
    if type(header) is not dict or type(header.get("type")) is not str:
        raise FrameError("Expected a header with a type, was none.")
    rows, names = header.get("rows", 0), header.get("columns", ())
    if type(rows) is not int or type(names) not in (list, tuple):
        raise FrameError(f"Expected a number of rows and a list of columns, was {rows!r:.80} and {names!r:.80}.")
    if not 0 <= rows <= MOST_ROWS or len(names) > MOST_COLUMNS:
        most = f"at most {MOST_ROWS} rows and {MOST_COLUMNS} columns"
        raise FrameTooLong(f"Expected {most}, was {rows} and {len(names)}.")
    return header, read(8 * rows * len(names)) if rows and names else b""


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


# Made once: `json.dumps` and `json.loads` with options make them anew for every frame.
_written = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_parsed = json.JSONDecoder(parse_constant=_no_number).decode

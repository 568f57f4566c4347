"""Frames survive the way there and back, and no bytes do more than be refused."""

import io
import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrails.worker import frames
from guardrails.worker.frames import FrameError, FrameTooLong, decode, encode

names = st.lists(st.text(max_size=8), max_size=frames.MOST_COLUMNS, unique=True)


def exactly(data: bytes):
    stream = io.BytesIO(data)

    def read(size: int) -> bytes:
        found = stream.read(size)
        if len(found) != size:
            raise EOFError
        return found

    return read, stream


def frame(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<I", len(header)) + header + data


@given(columns=names, rows=st.integers(0, 20), note=st.text(max_size=30), value=st.floats(width=64))
def test_a_frame_comes_back_as_it_went(columns, rows, note, value):
    rows = rows if columns else 0
    header = {"type": "x", "rows": rows, "columns": columns, "note": note}
    table = [struct.pack(f"<{rows}d", *[value] * rows) for _ in columns]
    read, rest = exactly(encode(header, table) + b"next")
    found, data = decode(read)
    assert (found, data) == (header, b"".join(table))
    assert rest.read() == b"next"


@given(st.binary(max_size=300))
def test_any_bytes_are_a_frame_or_refused(data):
    read, _ = exactly(frame(data))
    try:
        header, _ = decode(read)
    except (FrameError, EOFError):
        return
    assert isinstance(header["type"], str)


@pytest.mark.parametrize(
    "header",
    [
     b"[]", b"1", b"{}", b'{"type":1}', b'{"type":"a","rows":-1}', b'{"type":"a","rows":true}',
     b'{"type":"a","rows":1.0}',
     b'{"type":"a","columns":{}}', b'{"type":"a","x":NaN}', b'{"type":"a","x":-Infinity}', b"\xff", b"",
     b"[" * 100_000, b'{"type":"a","rows":100001}'],
)  # fmt: skip
def test_what_is_no_header_is_refused(header):
    with pytest.raises(FrameError):
        decode(exactly(frame(header))[0])


def test_lengths_are_refused_before_anything_is_read():
    read, stream = exactly(struct.pack("<I", frames.MOST_HEADER + 1) + b"x" * 10)
    with pytest.raises(FrameTooLong, match="at most"):
        decode(read)
    assert stream.tell() == 4
    wide = json.dumps({"type": "a", "rows": 1, "columns": ["c"] * 17}).encode()
    with pytest.raises(FrameTooLong, match="was 1 and 17"):
        decode(exactly(frame(wide))[0])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_json_cannot_hold_is_not_sent(value):
    with pytest.raises(ValueError, match="JSON"):
        encode({"type": "a", "value": value})

"""Frames to and from a runner, with a deadline on each answer and a bound on its size."""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from oomrl.arenas.research.laboratory import ChannelFailure
from oomrl.domain.market import Floats

MAX_HEADER = 1 << 20
MAX_ARRAY = 1 << 26


class PipeChannel:
    """Speak with a runner over two descriptors that this object does not own.

    `deadline` is in seconds of the monotonic clock and bounds the whole job. What comes back is untrusted: its
    sizes are bounded before they are read and every array must be one that the header names.
    """

    def __init__(self, read_from: int, write_to: int, seconds: float) -> None:
        self._read, self._write = read_from, write_to
        self._deadline = time.monotonic() + seconds
        os.set_blocking(read_from, False)
        os.set_blocking(write_to, False)

    def ask(
        self, header: Mapping[str, Any], arrays: Mapping[str, Floats]
    ) -> tuple[Mapping[str, Any], Mapping[str, Floats]]:
        self._send(header, arrays)
        size = struct.unpack("<I", self._receive(4))[0]
        if size > MAX_HEADER:
            raise ChannelFailure("sandbox", f"Expected a header of at most {MAX_HEADER} bytes, was {size}")
        try:
            reply = json.loads(self._receive(size))
            shapes = [(str(name), tuple(int(part) for part in shape)) for name, shape in reply["arrays"]]
        except (ValueError, KeyError, TypeError):
            raise ChannelFailure("sandbox", "Expected a header with arrays, was none") from None
        blocks = {}
        for name, shape in shapes:
            count = int(np.prod(shape, dtype=np.int64)) if all(0 <= part < MAX_ARRAY for part in shape) else -1
            if not 0 <= count * 8 <= MAX_ARRAY:
                raise ChannelFailure("sandbox", f"Expected an array of at most {MAX_ARRAY} bytes")
            blocks[name] = np.frombuffer(self._receive(count * 8), dtype="<f8").reshape(shape).astype(float)
        return reply, blocks

    def _send(self, header: Mapping[str, Any], arrays: Mapping[str, Floats]) -> None:
        named = {**header, "arrays": [[name, list(values.shape)] for name, values in arrays.items()]}
        text = json.dumps(named).encode()
        data = b"".join(
            (
                struct.pack("<I", len(text)),
                text,
                *(np.ascontiguousarray(values, dtype="<f8").tobytes() for values in arrays.values()),
            )
        )
        view = memoryview(data)
        while view:
            self._wait(self._write, write=True)
            try:
                view = view[os.write(self._write, view) :]
            except BlockingIOError:
                continue
            except OSError:
                raise ChannelFailure("sandbox", "Expected the runner to listen, it has ended") from None

    def _receive(self, count: int) -> bytes:
        parts, missing = [], count
        while missing:
            self._wait(self._read, write=False)
            try:
                part = os.read(self._read, min(missing, 1 << 20))
            except BlockingIOError:
                continue
            if not part:
                raise ChannelFailure("sandbox", "Expected an answer of the runner, it has ended (out of memory?)")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _wait(self, descriptor: int, write: bool) -> None:
        left = self._deadline - time.monotonic()
        ready = select.select([] if write else [descriptor], [descriptor] if write else [], [], max(left, 0.0))
        if left <= 0.0 or not (ready[0] or ready[1]):
            raise ChannelFailure("timeout", "Expected an answer in time, was none: make the features cheaper")

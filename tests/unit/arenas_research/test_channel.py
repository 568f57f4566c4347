"""Frames from an untrusted runner: bounded, checked, and late ones refused."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from oomrl.arenas.research import runner
from oomrl.arenas.research.channel import PipeChannel
from oomrl.arenas.research.laboratory import ChannelFailure, Failure, SandboxLaboratory
from oomrl.arenas.research.references import simple_model
from oomrl.arenas.research.synthetic import make_panel


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def frame(header: object, body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + body


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "has ended"),
        (b"\x01\x02", "has ended"),
        (struct.pack("<I", 1 << 31), "header of at most"),
        (struct.pack("<I", 4) + b"nope", "was none"),
        (frame([1]), "was none"),
        (frame({"ok": True}), "was none"),
        (frame({"ok": True, "arrays": [["forecast", ["x"]]]}), "was none"),
        (frame({"ok": True, "arrays": [["forecast", [-1]]]}), "array of at most"),
        (frame({"ok": True, "arrays": [["forecast", [1 << 20, 1 << 20]]]}), "array of at most"),
        (frame({"ok": True, "arrays": [["forecast", [3]]]}, b"12345678"), "has ended"),
    ],
)
def test_nonsense_is_a_failure(pair: tuple[socket.socket, socket.socket], answer: bytes, message: str) -> None:
    ours, theirs = pair
    theirs.sendall(answer)
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(ChannelFailure, match=message) as caught:
        PipeChannel(ours.fileno(), ours.fileno(), 5.0).ask({"op": "predict"}, {})
    assert caught.value.kind == "sandbox"


def test_silence_is_a_timeout(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, _ = pair
    with pytest.raises(ChannelFailure) as caught:
        PipeChannel(ours.fileno(), ours.fileno(), 0.05).ask({"op": "predict"}, {})
    assert caught.value.kind == "timeout"


class Answers:
    """A channel whose runner answers as told."""

    def __init__(self, header: dict, blocks: dict) -> None:
        self.header, self.blocks = header, blocks

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def ask(self, header: dict, arrays: dict) -> tuple[dict, dict]:
        return self.header, self.blocks


@pytest.mark.parametrize(
    "blocks",
    [{}, {"forecast": np.zeros(3)}, {"forecast": np.full((280, 16), np.inf)}],
)
def test_forecasts_of_another_shape_or_infinite_are_refused(blocks: dict, small) -> None:
    panel = make_panel(1, small).public()
    laboratory = SandboxLaboratory(lambda: Answers({"ok": True}, blocks))
    outcome = laboratory.train(simple_model(panel.fields).code, panel, (0, 280), 1)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "sandbox"


def test_a_runner_speaks_the_channels_frames(pair: tuple[socket.socket, socket.socket]) -> None:
    """What the channel sends the runner reads, and the other way round, before any sandbox is involved."""
    pytest.importorskip("sklearn", reason="scikit-learn is a development extra")
    ours, theirs = pair

    def serve() -> None:
        with theirs.makefile("rb") as source, theirs.makefile("wb") as sink:
            runner.serve(source, sink)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    channel = PipeChannel(ours.fileno(), ours.fileno(), 20.0)
    reply, blocks = channel.ask({"op": "unknown"}, {"a": np.eye(3)})
    assert reply["ok"] is False
    assert "known request" in reply["message"]
    assert blocks == {}
    ours.shutdown(socket.SHUT_WR)
    thread.join(5)
    assert not thread.is_alive()

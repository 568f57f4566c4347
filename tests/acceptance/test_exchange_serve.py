"""`oomrl exchange serve` as a person starts it: a process of its own, its clock, its end, and mistakes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests.acceptance.conftest import ROOT, Ran, write_tape

KEYS = {"APCA-API-KEY-ID": "key", "APCA-API-SECRET-KEY": "secret"}
ORDER = {"symbol": "NAME1", "side": "buy", "type": "market", "time_in_force": "day", "qty": "10"}


@contextmanager
def served(tape: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Start the command; yield the process and where it listens."""
    command = [
        sys.executable,
        "-m",
        "oomrl",
        "exchange",
        "serve",
        "--tape",
        str(tape),
        "--port",
        "0",
        "--json",
        *options,
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def test_it_serves_until_it_is_interrupted_whatever_its_clients_do(small_tape: Path) -> None:
    with served(small_tape, "--from", "2010-02-01", "--cash", "5000") as (process, where):
        with httpx.Client(base_url=where["url"], headers=KEYS) as client:
            assert client.post("/v2/orders", json=ORDER).json()["status"] == "accepted"
        with httpx.Client(base_url=where["url"], headers=KEYS) as client:
            client.post("/admin/clock", json={"until": "close"}).raise_for_status()
            assert client.get("/v2/account").json()["status"] == "ACTIVE"
            books = client.get("/admin/books").json()
            assert [fill["qty"] for fill in books["fills"]] == ["10"] and books["opening_cash"] == "5000"
            strange = httpx.get(f"{where['url']}/admin/books", headers={"Host": "example.com"})
            assert strange.status_code == 400
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0


def test_a_clock_that_runs_opens_the_market_by_itself(small_tape: Path) -> None:
    with (
        served(small_tape, "--from", "2010-02-01", "--speed", "100000") as (_, where),
        connect(where["stream_url"]) as stream,
        httpx.Client(base_url=where["url"], headers=KEYS) as client,
    ):
        stream.send(json.dumps({"action": "authenticate", "data": {"key_id": "key", "secret_key": "secret"}}))
        stream.send(json.dumps({"action": "listen", "data": {"streams": ["trade_updates"]}}))
        for _ in range(2):
            stream.recv(timeout=60)
        client.post("/v2/orders", json=ORDER).raise_for_status()
        events = []
        while "fill" not in events:
            message = stream.recv(timeout=60)
            assert isinstance(message, bytes)
            events.append(json.loads(message)["data"]["event"])
        assert events[-1] == "fill" and events[0] in ("accepted", "new")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--speed", "warp"), "Expected a speed of step, fast, real"),
        (("--from", "2031-01-01"), "has no session from 2031-01-01"),
        (("--cash", "12.345"), "dollars and cents"),
        (("--faults", "missing.toml"), "Expected a fault file at missing.toml"),
        (("--port", "{taken}"), "to be free"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    tmp_path: Path, command: Callable[..., Ran], options: tuple[str, ...], message: str
) -> None:
    tape = write_tape(tmp_path / "tape", sessions=5, names=1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        filled = [option.format(taken=taken.getsockname()[1]) for option in options]
        ran = command("exchange", "serve", "--tape", tape, *filled)
    assert ran.code == 2
    assert message in ran.err and ran.err.strip().count("\n") == 0

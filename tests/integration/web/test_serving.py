"""The server itself, over real sockets: who is slow or many keeps nobody out."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from oomrl.web import events, protocol
from oomrl.web.serving import serving
from tests import databases
from tests.integration.web.conftest import Page
from tests.states import RUN, made_up


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(protocol, "PATIENCE", 0.5)
    monkeypatch.setattr(protocol, "MOST", 3)
    made = made_up(tmp_path / "state")
    made.store.close()
    with serving(made.state, databases.settings(made.state, {"web": {"port": 0}}), RUN, say=lambda _: None) as url:
        yield url


def half(url: str, sent: bytes) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), timeout=30)
    made.sendall(sent)
    return made


def is_ended(connection: socket.socket) -> bool:
    try:
        while connection.recv(4096):
            pass
    except ConnectionResetError:
        return True
    return True


@pytest.mark.parametrize("sent", [b"", b"GET /log", b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab"])
def test_a_request_that_does_not_arrive_ends_its_connection(url: str, sent: bytes) -> None:
    with half(url, sent) as slow:
        assert is_ended(slow)


def test_half_a_second_request_ends_the_connection_too(url: str) -> None:
    with half(url, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as slow:
        assert slow.recv(4096).startswith(b"HTTP/1.1")
        slow.sendall(b"GET /log")
        assert is_ended(slow)


def test_the_most_connections_at_once(url: str) -> None:
    with contextlib.ExitStack() as held:
        waiting = [held.enter_context(half(url, b"GET")) for _ in range(3)]
        assert is_ended(held.enter_context(half(url, b"GET")))
        assert all(is_ended(slow) for slow in waiting)
    assert httpx.get(f"{url}/login").status_code == 200


def test_the_most_live_pages_of_one_person(page: Page) -> None:
    browser = page.as_("ann")
    pulse = events.Pulse(page.site)
    pulse.listeners["ann"] = events.MOST_STREAMS
    page.app.state.pulse = pulse
    assert browser.get("/events").status_code == 429

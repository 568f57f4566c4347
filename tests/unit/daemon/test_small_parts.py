"""Clocks, logs, systemd's datagrams, live trading: the daemon's small parts, each against what it must say."""

from __future__ import annotations

import io
import json
import logging
import socket
import time
from pathlib import Path

import pytest
import structlog
from pydantic import SecretStr
from sqlalchemy import make_url

from oomrl.daemon import systemd
from oomrl.daemon.clocks import Change, ClockWatch, Reading
from oomrl.daemon.logs import HIDDEN, configure, scrub, secrets_of
from oomrl.daemon.systemd import Notifier
from oomrl.errors import Refused
from oomrl.live import SENTENCE, is_paper, require_paper_or_consent
from oomrl.settings import load

LIVE = "https://api.alpaca.markets"
PAPER = "https://paper-api.alpaca.markets"


@pytest.mark.parametrize(
    ("second", "change"),
    [
        (Reading(1_010.0, 510.0, 510.0), None),
        (Reading(1_010.9, 510.0, 510.0), None),
        (Reading(4_610.0, 4_110.0, 510.0), Change(slept=3_600.0, jumped=0.0)),
        (Reading(4_610.0, 510.0, 510.0), Change(slept=0.0, jumped=3_600.0)),
        (Reading(-2_590.0, 510.0, 510.0), Change(slept=0.0, jumped=-3_600.0)),
        (Reading(4_700.0, 1_110.0, 510.0), Change(slept=600.0, jumped=3_090.0)),
    ],
)
def test_sleep_and_jumps_are_told_apart(second: Reading, change: Change | None) -> None:
    readings = iter([Reading(1_000.0, 500.0, 500.0), second])
    assert ClockWatch(lambda: next(readings)).check() == change


def test_systemd_is_told_by_one_datagram(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(5)
        Notifier(str(tmp_path / "notify"), "30000000").tell("READY=1", "STATUS=leads")
        assert systemd.recv(100) == b"READY=1\nSTATUS=leads"
    assert Notifier("", "30000000").watchdog == 30.0
    assert Notifier("", "").watchdog is None
    Notifier("", "").tell("READY=1")
    Notifier(str(tmp_path / "nobody"), "").tell("READY=1")


def test_a_systemd_that_reads_nothing_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "PATIENCE", 0.05)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full:
        full.bind(str(tmp_path / "notify"))
        full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
        for _ in range(1_000):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as filling:
                try:
                    filling.sendto(b"x" * 1_000, str(tmp_path / "notify"))
                except BlockingIOError:
                    break
        begun = time.monotonic()
        Notifier(str(tmp_path / "notify"), "").tell("WATCHDOG=1")
        assert time.monotonic() - begun < 5


def test_secrets_are_hidden_by_type_name_form_and_value() -> None:
    known = secrets_of({"APCA_API_SECRET_KEY": "0123456789abcdef", "HOME": "/home/somebody", "SHORT_TOKEN": "abc"})
    assert known == ("0123456789abcdef",)
    event = {
        "url": make_url("postgresql://oomrl:hunter22@host/db"),
        "text": "postgresql://oomrl:hunter22@host/db and Bearer abcdefgh12345678 and 0123456789abcdef",
        "typed": SecretStr("hunter22"),
        "nested": [{"api_key": "hunter22", "Authorization": "hunter22"}],
        "error": ValueError("0123456789abcdef was refused"),
        "blob": b"hunter22",
        "count": 3,
    }
    told = json.dumps(scrub(event, known))
    for secret in ("hunter22", "0123456789abcdef", "abcdefgh12345678"):
        assert secret not in told
    assert "host/db" in told and HIDDEN in told and '"count": 3' in told


def test_logs_are_one_object_a_line_with_bound_ids_and_no_secret() -> None:
    stream = io.StringIO()
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        configure(stream, {"BROKER_PASSWORD": "correct horse"})
        with structlog.contextvars.bound_contextvars(run="daemon/main", session="2024-07-02"):
            structlog.get_logger("oomrl").warning("job failed", note="password correct horse refused")
        logging.getLogger("library").error("said %s", "correct horse")
        try:
            raise RuntimeError("correct horse")
        except RuntimeError:
            structlog.get_logger("oomrl").error("crashed", exc_info=True)
    finally:
        structlog.reset_defaults()
        logging.getLogger().handlers[:] = handlers
        logging.getLogger().setLevel(level)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["level"] for line in lines] == ["warning", "error", "error"]
    assert (lines[0]["run"], lines[0]["session"]) == ("daemon/main", "2024-07-02")
    assert "correct horse" not in stream.getvalue()
    assert "RuntimeError" in lines[2]["exception"]


@pytest.mark.parametrize("url", [PAPER, "http://127.0.0.1:8000", "http://localhost", "http://[::1]:9"])
def test_paper_accounts_and_this_machine_need_no_consent(url: str) -> None:
    assert is_paper(url)
    require_paper_or_consent(load(None), url)


@pytest.mark.parametrize(
    "url", [LIVE, "https://paper-api.alpaca.markets.evil.example", "https://evil.example/paper-api.alpaca.markets", ""]
)
def test_any_other_address_is_live_and_refused_by_default(url: str) -> None:
    assert not is_paper(url)
    with pytest.raises(Refused, match="live.trading"):
        require_paper_or_consent(load(None), url)


@pytest.mark.parametrize("left_out", ["trading", "account", "acknowledgement", "reviewer", None])
def test_live_trading_needs_every_one_of_its_settings(left_out: str | None) -> None:
    live = {"trading": True, "account": "A123", "acknowledgement": SENTENCE}
    loop = {"reviewer": "auto" if left_out == "reviewer" else "person"}
    settings = load(None, {"live": {k: v for k, v in live.items() if k != left_out}, "loop": loop})
    if left_out is None:
        require_paper_or_consent(settings, LIVE, "A123")
        with pytest.raises(Refused, match="number"):
            require_paper_or_consent(settings, LIVE, "A124")
    else:
        with pytest.raises(Refused, match=left_out):
            require_paper_or_consent(settings, LIVE, "A123")

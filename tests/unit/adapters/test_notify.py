from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from oomrl.adapters.notify import Notifier
from oomrl.domain.people import Person, Right
from oomrl.domain.records import CapitalKind
from oomrl.errors import Mistake
from oomrl.settings import NotifySettings, Settings, WebSettings
from tests.states import RUN, MadeUp, made_up


@pytest.fixture
def made(tmp_path: Path) -> Iterator[MadeUp]:
    found = made_up(tmp_path / "state")
    found.loss()
    yield found
    found.store.close()


def notifier(made: MadeUp, sent: list[tuple[str, str]], hour: int = 12, works: bool = True, **more: object) -> Notifier:
    settings = Settings(
        notify=NotifySettings(**more),  # type: ignore[arg-type]
        web=WebSettings(public_url="https://review.example"),
    )
    at = datetime(2026, 1, 5, hour, 0, tzinfo=UTC)

    def send(title: str, body: str) -> bool:
        sent.append((title, body))
        return works

    return Notifier(made.state, made.store, RUN, settings, lambda: at, send)


def test_each_event_is_told_once_with_a_link_and_the_audit_head(made: MadeUp) -> None:
    proposal, sent = made.proposal(), []  # type: ignore[var-annotated]
    assert notifier(made, sent).tell() == 2
    assert notifier(made, sent).tell() == 0
    assert [title for title, _ in sent] == ["oomrl: loss", "oomrl: proposal waiting"]
    assert f"https://review.example/proposals/{proposal.id}" in sent[1][1] and "Audit head: " in sent[1][1]


def test_what_could_not_be_sent_stays_due(made: MadeUp) -> None:
    sent: list[tuple[str, str]] = []
    assert notifier(made, sent, works=False).tell() == 0
    assert notifier(made, sent).tell() == 1


def test_quiet_hours_hold_back_all_but_what_is_urgent(made: MadeUp) -> None:
    from oomrl.adapters.desk import Desk
    from oomrl.settings import ReviewSettings

    sent: list[tuple[str, str]] = []
    desk = Desk(made.state, made.store, RUN, ReviewSettings(), lambda: datetime(2026, 1, 5, tzinfo=UTC))
    desk.capital(Person("olga", frozenset(Right)), CapitalKind.HALT, "a\u202edrill")
    quiet = {"quiet": "22:00-07:00", "zone": "UTC"}
    assert notifier(made, sent, hour=23, **quiet).tell() == 1
    assert sent[0][0] == "oomrl: halted" and "\u202e" not in sent[0][1]
    assert notifier(made, sent, hour=6, **quiet).tell() == 0
    assert notifier(made, sent, hour=7, **quiet).tell() == 1 and sent[1][0] == "oomrl: loss"


def test_many_events_become_one_message_and_kinds_may_be_left_out(made: MadeUp) -> None:
    for number in range(2, 9):
        made.loss(number)
    sent: list[tuple[str, str]] = []
    assert notifier(made, sent, kinds=("loss",)).tell() == 1
    assert sent[0][0] == "oomrl: 8 events"


def test_apprise_delivers_to_a_real_address(made: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[dict[str, str]] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Listener)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("OOMRL_NOTIFY_URLS", f"json://127.0.0.1:{server.server_address[1]}/")
    try:
        told = Notifier(made.state, made.store, RUN, Settings(), lambda: datetime(2026, 1, 5, tzinfo=UTC))
        assert told.test() == 1 and told.tell() == 1
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [message["title"] for message in heard] == ["oomrl: a test", "oomrl: loss"]


def test_without_an_address_nobody_is_told_and_the_test_says_so(made: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OOMRL_NOTIFY_URLS", raising=False)
    quiet = Notifier(made.state, made.store, RUN, Settings(), lambda: datetime(2026, 1, 5, tzinfo=UTC))
    assert quiet.tell() == 0
    with pytest.raises(Mistake, match="OOMRL_NOTIFY_URLS"):
        quiet.test()

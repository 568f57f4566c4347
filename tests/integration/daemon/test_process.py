"""The daemon as a process: signals, systemd, endpoints, standing by."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from oomrl.adapters.database import Store
from oomrl.adapters.kill_switch import KillSwitch
from oomrl.calendar import Calendar
from oomrl.daemon.service import run_of
from oomrl.domain.records import Job, JobState, Run
from oomrl.testing import calendar_tapes
from tests import databases

ROOT = Path(__file__).resolve().parents[3]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Serving:
    """An `oomrl run` with its log, and the datagrams that systemd would get."""

    def __init__(self, state: Path, port: int, sockets: Path) -> None:
        self.port = port
        self.systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        address = sockets / f"s{port}"
        self.systemd.bind(str(address))
        self.systemd.settimeout(60)
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "NOTIFY_SOCKET": str(address),
            "WATCHDOG_USEC": "20000000",
            "OOMRL_SERVICE__LISTEN": f"127.0.0.1:{port}",
            "BROKER_API_KEY": "a-secret-of-the-test",
            **databases.environment(state),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "oomrl", "run", "--state", str(state)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, object]] = []

    def wait_for(self, event: str) -> dict[str, object]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(json.loads(line))
            if self.lines[-1]["event"] == event:
                return self.lines[-1]
        raise AssertionError(f"Expected the event {event!r}, was: {self.lines}")

    def told(self, state: str) -> str:
        while True:
            message = self.systemd.recv(4096).decode()
            if state in message:
                return message

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        assert self.process.stderr is not None
        self.lines += [json.loads(line) for line in self.process.stderr]
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()
        self.systemd.close()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    days = [hours.day for hours in Calendar("XNYS", date(2023, 1, 1), date(2024, 3, 1)).hours]
    calendar_tapes.write(calendar_tapes.market(days), tmp_path / "market.parquet", days[-1])
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "oomrl.toml").write_text(f'[accounts.main]\ntape = "{tmp_path}/market.parquet"\n')
    return folder


@pytest.fixture
def serve(state: Path, tmp_path: Path) -> Iterator[object]:
    started: list[Serving] = []

    def start() -> Serving:
        started.append(Serving(state, free_port(), tmp_path))
        return started[-1]

    yield start
    for one in started:
        one.close()


def plan(state: Path, job: str, session: date) -> None:
    """Make a job due, as a session that passed would."""
    with Store.open(databases.place(state)) as store, store.begin() as work:
        run = run_of("main")
        work.runs.start(Run(run, "daemon", {}, 0, "", datetime.now(UTC)))
        work.jobs.plan(Job(run, job, session, datetime(2024, 3, 1, 22, tzinfo=UTC)))


def test_a_daemon_does_what_is_due_says_how_it_is_and_ends_a_job_under_way(state: Path, serve) -> None:  # type: ignore[no-untyped-def]
    plan(state, "judge", date(2024, 3, 1))
    daemon = serve()
    assert "leads" in daemon.told("READY=1")
    began = daemon.wait_for("job began")
    assert (began["job"], began["session"]) == ("judge", "2024-03-01")
    code, body = daemon.get("/readyz")
    assert (code, json.loads(body)["leads"], json.loads(body)["busy"]) == (200, True, ["main"])
    assert daemon.get("/healthz")[0] == 200
    assert daemon.get("/elsewhere")[0] == 404
    # The job is under way: it may end first.
    assert daemon.end() == 0
    assert daemon.told("STOPPING=1")
    events = [line["event"] for line in daemon.lines]
    assert events[-3:] == ["stopping", "job done", "stopped"]
    with Store.open(databases.place(state)) as store, store.read() as view:
        (job,) = view.jobs.all(run_of("main"))
        assert job.state is JobState.DONE and "equity" in job.note
    again = serve()
    again.told("WATCHDOG=1")
    code, text = again.get("/metrics")
    assert code == 200
    for line in (
        "oomrl_leads 1.0",
        'oomrl_equity_dollars{account="main"} 1e+06',
        'oomrl_store_up{account="main"} 1.0',
        'oomrl_queue_age_seconds{account="main"} 0.0',
    ):
        assert line in text, text
    assert 'oomrl_job_last_success_timestamp_seconds{account="main",task="judge"}' in text
    assert 'oomrl_may_trade{account="main"} 1.0' in text
    KillSwitch(state).engage("olga", "the database is locked", datetime.now(UTC))
    assert 'oomrl_may_trade{account="main"} 0.0' in again.get("/metrics")[1]
    assert again.end() == 0
    assert "a-secret-of-the-test" not in json.dumps(daemon.lines + again.lines)


def test_wrong_settings_are_refused_and_right_ones_taken_over_without_a_restart(state: Path, serve) -> None:  # type: ignore[no-untyped-def]
    daemon = serve()
    daemon.wait_for("serving")
    good = (state / "oomrl.toml").read_text()
    (state / "oomrl.toml").write_text(good + "[service]\nclosures = 'tomorrow'\n")
    daemon.process.send_signal(signal.SIGHUP)
    assert "closures" in daemon.wait_for("the settings stay as they were")["reason"]
    for wrong in (b'[service]\ncalendar = "NOPE"\n', b"\xff", b"[accounts.Main]\ntape = 'x'\n", None):
        (state / "oomrl.toml").unlink()
        if wrong is not None:
            (state / "oomrl.toml").write_bytes(good.encode() * (b"service" in wrong) + wrong)
        daemon.process.send_signal(signal.SIGHUP)
        assert daemon.told("RELOADING=1")
        assert "xpected" in str(daemon.wait_for("the settings stay as they were")["reason"])
    more = good + good.replace("accounts.main", "accounts.second") + '[service]\nclosures = ["2026-12-02"]\n'
    (state / "oomrl.toml").write_text(more)
    daemon.process.send_signal(signal.SIGHUP)
    assert daemon.wait_for("settings read again")["accounts"] == ["main", "second"]
    assert daemon.told("RELOADING=1")
    assert 'oomrl_store_up{account="second"} 1.0' in daemon.get("/metrics")[1]
    assert daemon.end() == 0


def test_settings_that_an_account_did_not_begin_with_stay_as_they_were_and_are_named(state: Path, serve) -> None:  # type: ignore[no-untyped-def]
    command = [sys.executable, "-m", "oomrl", "once", "judge", "--session", "2024-03-01", "--state", str(state)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **databases.environment(state)}
    assert subprocess.run(command, env=env, capture_output=True, check=False).returncode == 0
    daemon = serve()
    daemon.wait_for("serving")
    good = (state / "oomrl.toml").read_text()
    (state / "oomrl.toml").write_text(good + "[account]\nendowment = 500000\n")
    daemon.process.send_signal(signal.SIGHUP)
    reason = str(daemon.wait_for("the settings stay as they were")["reason"])
    assert "Account main: account.endowment was '1000000', is '500000'" in reason and "oomrl endow" in reason
    (state / "oomrl.toml").write_text(good + "[service]\nkeep_days = 40\n")
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for("settings read again")
    assert daemon.end() == 0
    (state / "oomrl.toml").write_text(good + "[account]\nendowment = 500000\n")
    again = serve()
    told = again.wait_for("the settings of an account changed")
    assert told["account"] == "main" and "account.endowment" in str(told["reason"])
    assert again.end() == 0
    refused = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "account.endowment" in refused.stderr and "--fresh" not in refused.stderr


@pytest.mark.parametrize("listen", ["127.0.0.1:99999", "nowhere", "127.0.0.1:{taken}"])
def test_a_port_that_cannot_be_had_is_said_in_a_line(state: Path, listen: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        asked = listen.format(taken=taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "oomrl", "run", "--state", str(state)],
            env={**os.environ, **databases.environment(state), "PYTHONPATH": str(ROOT), "OOMRL_SERVICE__LISTEN": asked},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2 and "service.listen" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_second_daemon_stands_by_and_takes_over_when_the_first_is_killed(state: Path, serve) -> None:  # type: ignore[no-untyped-def]
    first = serve()
    first.told("READY=1")
    second = serve()
    assert "stands by" in second.told("READY=1")
    assert second.get("/readyz")[0] == 503
    assert second.get("/healthz")[0] == 200
    begun = time.monotonic()
    first.process.kill()
    second.wait_for("leads")
    assert time.monotonic() - begun < 10
    assert second.get("/readyz")[0] == 200
    assert second.end() == 0

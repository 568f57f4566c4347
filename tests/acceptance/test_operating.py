"""Setting a service up, examining it, backing it up: by command, as a person does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest

from oomrl.adapters.database import Store
from oomrl.adapters.kill_switch import demand
from oomrl.calendar import Calendar
from oomrl.errors import Halt
from oomrl.settings import load
from oomrl.testing import calendar_tapes
from tests import databases

from .conftest import ROOT, Ran

Command = Callable[..., Ran]
DAY = "2024-03-04"


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    days = [hours.day for hours in Calendar("XNYS", date(2023, 1, 1), date(2024, 3, 4)).hours]
    calendar_tapes.write(calendar_tapes.market(days), tmp_path / "market.parquet", days[-1])
    return tmp_path / "market.parquet"


def test_from_init_to_a_restored_backup(command: Command, tape: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    asked = ["--tape", tape, "--endowment", "250000", "--model", "offline", "--state", state]
    assert command("init", *asked).code == 0
    assert command("init", *asked).code == 1
    assert state.stat().st_mode & 0o077 == 0
    examined = command("doctor", "--state", state, "--json")
    found = {finding["check"]: finding for finding in json.loads(examined.out)}
    assert examined.code == 0, examined.out
    assert found["live trading"]["state"] == "ok" and found["account main: tape"]["state"] == "warn"
    assert all(finding["mend"] for finding in found.values() if finding["state"] != "ok")
    done = command("once", "judge", "--session", DAY, "--state", state)
    assert json.loads(done.out.splitlines()[-1])["done"], done.err
    kept = command("backup", "--state", state)
    assert kept.code == 0, kept.err
    (file,) = (state / "backups").iterdir()
    assert command("restore", file, "--check").code == 0
    refused = command("restore", file, "--state", state)
    assert refused.code == 1 and "nothing was changed" in refused.err
    other = tmp_path / "other"
    assert command("restore", file, "--state", other).code == 0
    assert command("status", "--json", "--state", other).out == command("status", "--json", "--state", state).out
    assert command("audit", "verify", "--state", other).code == 0
    written = command("export", "--to", tmp_path / "out", "--state", state, "--json")
    assert json.loads(written.out)["marks"] == 1
    marks = pq.read_table(tmp_path / "out" / "marks.parquet").to_pylist()
    assert marks[0]["equity"] == Decimal("250000.00") and str(marks[0]["day"]) == DAY
    assert not (tmp_path / "out" / "users.parquet").exists()


@pytest.mark.sqlite("it moves between both kinds in every other run")
def test_a_backup_moves_an_account_to_another_kind_of_database(
    command: Command,
    tape: Path,
    tmp_path: Path,
    postgres_database: Callable[[str], str],
) -> None:
    from oomrl.adapters.database.transfer import contents

    state, other, back = tmp_path / "state", tmp_path / "other", tmp_path / "back"
    command("init", "--tape", tape, "--endowment", "250000", "--model", "offline", "--state", state)
    assert command("once", "judge", "--session", DAY, "--state", state).code == 0
    command("backup", "--state", state)
    (file,) = (state / "backups").iterdir()
    server = {"OOMRL_DATABASE__URL": postgres_database("template0")}
    moved = command("restore", file, "--state", other, env=server)
    assert moved.code == 0, moved.err
    again = command("backup", "--state", other, "--to", tmp_path, env=server)
    assert again.code == 0, again.err
    (second,) = tmp_path.glob("main-*.tar.gz")
    assert command("restore", second, "--state", back).code == 0
    with Store.open(state / "oomrl.db") as one, Store.open(back / "oomrl.db") as two, one.read() as a, two.read() as b:
        assert contents(a.connection) == contents(b.connection)
        assert contents(a.connection)["marks"][0] == 1


@pytest.mark.parametrize(
    ("change", "check", "mend"),
    [
        ('tape = "nowhere.parquet"', "account main: tape", "doctor"),
        ('start = "shipped"\n[service]\nlease_seconds = 3', "lease", "lease_seconds"),
        ('start = "shipped"\n[executor]\nkind = "dask"\nscheduler = "tcp://127.0.0.1:1"', "executor", ""),
    ],
)
def test_doctor_names_each_fault_and_how_to_mend_it(
    command: Command, tape: Path, tmp_path: Path, change: str, check: str, mend: str
) -> None:
    text = change if change.startswith("tape") else f'tape = "{tape}"\n{change}'
    (tmp_path / "oomrl.toml").write_text(f"[accounts.main]\n{text}\n")
    examined = command("doctor", "--state", tmp_path, "--json")
    faults = {f["check"]: f for f in json.loads(examined.out) if f["state"] == "fault"}
    assert examined.code == 1
    assert check in faults and mend in faults[check]["mend"] and faults[check]["mend"]


def test_the_documented_example_is_valid() -> None:
    settings = load(ROOT / "docs" / "examples" / "service.toml")
    assert set(settings.accounts) == {"main", "second"}
    assert settings.service == load(None).service


def test_the_service_serves_the_review_page_beside_it_and_ends_with_it(
    command: Command, tape: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    asked = ["--tape", tape, "--endowment", "250000", "--model", "offline", "--state", state]
    assert command("init", *asked).code == 0
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OOMRL_WEB__PORT": "0", "OOMRL_SERVICE__LISTEN": ""}
    environment |= databases.environment(state)
    service = [sys.executable, "-m", "oomrl", "run", "--serve", "--state", str(state)]
    with subprocess.Popen(
        service, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as daemon:
        try:
            assert daemon.stdout is not None and daemon.stderr is not None
            while json.loads(daemon.stderr.readline())["event"] != "serving":
                pass
            early = re.search(r"http://\S+", daemon.stdout.readline())
            assert early is not None
            told = httpx.get(early[0] + "login", timeout=60)
            assert told.status_code == 503 and "Nothing to show yet" in told.text
            assert command("once", "judge", "--session", DAY, "--state", state).code == 0
            page, link = (daemon.stdout.readline().split(": ")[1].strip() for _ in range(2))
            with httpx.Client(base_url=page, follow_redirects=True, timeout=60) as browser:
                assert "Log in" in browser.get("/").text
                assert browser.get(link).status_code == 200
            daemon.send_signal(signal.SIGTERM)
            assert [json.loads(line) for line in daemon.stderr][-1]["event"] == "stopped"
            assert daemon.wait(60) == 0
        finally:
            daemon.kill()
    with pytest.raises(httpx.ConnectError):
        httpx.get(page)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--endowment", "1e50"), "Expected an amount in dollars and cents, such as 250000 or 1234.56, was '1e50'."),
        (("--endowment", "a lot"), "was 'a lot'"),
        (("--endowment", "nan"), "was 'nan'"),
        (("--endowment", "0.001"), "was '0.001'"),
        (("--endowment", "1e13"), "account.endowment"),
        (("--endowment", "-5"), "account.endowment"),
    ],
)
def test_init_says_in_a_line_what_no_endowment_is(
    command: Command, tmp_path: Path, given: tuple[str, str], told: str
) -> None:
    ran = command("init", "--tape", "builtin", "--model", "offline", *given, "--state", tmp_path / "state")
    assert ran.code == 2 and told in ran.err and ran.err.count("\n") == 1 and "TOML" not in ran.err
    assert not (tmp_path / "state" / "oomrl.toml").exists()


def test_init_says_of_a_tape_that_has_ended_that_the_service_will_wait(command: Command, tmp_path: Path) -> None:
    asked = ("--tape", "builtin", "--model", "offline", "--endowment", "1234.50", "--state", tmp_path / "state")
    ran = command("init", *asked)
    assert ran.code == 0 and "Its tape ended on 20" in ran.out and "oomrl simulate" in ran.out
    assert load(tmp_path / "state" / "oomrl.toml").account.endowment == Decimal("1234.5")


def test_what_is_interrupted_at_a_question_says_nothing_of_what_was_committed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "oomrl", "init", "--tape", "builtin", "--state", str(tmp_path / "state")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 2 and done.stderr.strip().splitlines()[-1] == "Interrupted."
    assert "committed" not in done.stderr


def test_a_halt_of_one_account_is_written_where_its_trading_looks(command: Command, tape: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert command("init", "--tape", tape, "--endowment", "250000", "--model", "offline", "--state", state).code == 0
    with (state / "oomrl.toml").open("a") as settings:
        settings.write(f'\n[accounts.second]\ntape = "{tape}"\n')
    why = ("--reason", "odd fills", "--state")
    second = state / "accounts" / "second"
    assert command("halt", *why, second).code == 0, "also before it has traded"
    assert demand_words(second) and not demand_words(state)
    assert command("halt", "--reason", "again", "--state", ".", cwd=second).code == 0
    for wrong, told in (("main", f"--state {state}"), ("third", "Expected one of the accounts main, second")):
        ran = command("halt", *why, state / "accounts" / wrong)
        assert ran.code == 2 and told in ran.err and ran.err.count("\n") == 1
        assert not (state / "accounts" / wrong).exists()


def demand_words(state: Path) -> str:
    """Return what the service's trading finds where it looks for the switch."""
    try:
        demand(state)
    except Halt as halt:
        return str(halt)
    return ""


def test_resume_says_only_what_it_did(command: Command, tape: Path, tmp_path: Path) -> None:
    """A mistyped state is refused; before the first session a halt is lifted, and nothing is said to be recorded."""
    assert command("resume", "--reason", "x", "--state", tmp_path / "mistyped").code == 2
    state = tmp_path / "state"
    assert command("init", "--tape", tape, "--endowment", "250000", "--model", "offline", "--state", state).code == 0
    assert command("resume", "--reason", "x", "--state", state).code == 2, "nothing was halted"
    assert command("halt", "--reason", "look", "--state", state).code == 0
    lifted = command("resume", "--reason", "looked", "--state", state)
    assert lifted.code == 0 and "no record" in lifted.out and "Recorded" not in lifted.out
    assert not (state / "HALT").exists()

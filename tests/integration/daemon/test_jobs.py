"""The jobs of an account, on a market that grows by a session a day: each does its part once, whenever it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from oomrl import bootstrap
from oomrl.adapters.database import Store
from oomrl.adapters.database.place import named_by_us
from oomrl.adapters.kill_switch import KillSwitch
from oomrl.adapters.repository import Repository
from oomrl.calendar import Calendar
from oomrl.cli.main import oomrl
from oomrl.daemon import backup, jobs
from oomrl.daemon.service import run_of
from oomrl.domain.records import Job, JobState, Lease, Run
from oomrl.errors import Halt, Mistake, Refused, Unavailable
from oomrl.exchange.tape import Tape
from oomrl.settings import Settings
from oomrl.testing import calendar_tapes
from tests import databases

#: A Friday, after which the first session of a week is a Monday, and the one after it the day to trade.
FIRST = date(2024, 3, 1)


@dataclass
class Office:
    """A state directory with one account, and the file that its market's sessions are added to."""

    desk: jobs.Desk
    tape: Tape
    file: Path
    days: list[date]

    def at(self, state: Path) -> Office:
        """Return the same account of another state directory, on a database of its own."""
        settings = databases.settings(state, {"accounts": {"main": {"tape": str(self.file)}}})
        return replace(self, desk=replace(self.desk, state=state, settings=settings))

    def close(self, day: date) -> None:
        """Add a session to the tape and judge it."""
        calendar_tapes.write(self.tape, self.file, day)
        assert jobs.perform(self.desk, "judge", day).done

    def read(self, what: str) -> object:
        with self.desk.open() as store, store.read() as view:
            if what == "orders":
                return view.orders.counts(bootstrap.RUN)
            if what == "decisions":
                return {d.day: (d.revision, d.decision) for d in view.sessions.decisions(bootstrap.RUN)}
            return [mark.day for mark in view.sessions.marks(bootstrap.RUN)]


@pytest.fixture(scope="module")
def calendar() -> Calendar:
    return Calendar("XNYS", date(2022, 12, 1), date(2024, 6, 28))


@pytest.fixture
def office(tmp_path: Path, calendar: Calendar) -> Iterator[Office]:
    days = [hours.day for hours in calendar.between(date(2023, 1, 1), date(2024, 3, 29))]
    file = tmp_path / "market.parquet"
    settings = databases.settings(tmp_path / "state", {"accounts": {"main": {"tape": str(file)}}})
    desk = jobs.Desk(tmp_path / "state", settings)
    yield Office(desk, calendar_tapes.market(days), file, [day for day in days if day >= FIRST])


def test_a_week_of_jobs_trades_once_and_each_job_done_again_does_nothing(office: Office) -> None:
    friday, monday, tuesday, wednesday = office.days[:4]
    office.close(friday)
    assert "no orders" in jobs.perform(office.desk, "rebalance", monday).note
    office.close(monday)
    assert jobs.perform(office.desk, "deployment", tuesday).done
    done = jobs.perform(office.desk, "rebalance", tuesday)
    assert done.note.endswith("orders") and done.note != "0 orders"
    orders = office.read("orders")
    assert jobs.perform(office.desk, "rebalance", tuesday) == done
    assert office.read("orders") == orders
    office.close(tuesday)
    count, fills = office.read("orders")  # type: ignore[misc]
    assert fills >= count > 0
    office.close(tuesday)
    assert office.read("orders") == (count, fills)
    for chore in ("propose", "gate", "reconcile"):
        assert jobs.perform(office.desk, chore, tuesday).done
    assert "agrees" in jobs.perform(office.desk, "reconcile", tuesday).note
    text = jobs.perform(office.desk, "digest", tuesday)
    assert f"main, {tuesday}: equity" in text.note
    digest = (office.desk.folder / "digests" / f"{tuesday}.txt").read_text("utf-8")
    assert "Audit head" in digest and "Next: " in digest
    secret = office.desk.folder / "keys" / "judge.key"
    assert len(secret.read_bytes()) == 32 and secret.stat().st_mode & 0o077 == 0
    assert not list(secret.parent.glob(".judge*"))
    with pytest.raises(Unavailable, match="Expected the session"):
        jobs.perform(office.desk, "judge", wednesday)


def test_an_account_begins_with_the_first_session_that_is_owed_a_judgement(office: Office) -> None:
    friday, monday, tuesday = office.days[:3]
    calendar_tapes.write(office.tape, office.file, monday)
    office.desk.folder.mkdir(parents=True)
    due = datetime(2024, 3, 1, 21, 20, tzinfo=UTC)
    with office.desk.open() as store, store.begin() as work:
        work.runs.start(Run(run_of("main"), "daemon", {}, 0, "", due))
        for day in (friday, monday):
            work.jobs.plan(Job(run_of("main"), "judge", day, due))
        work.jobs.end(Job(run_of("main"), "judge", friday, due), JobState.FAILED, due, "ended by SIGKILL")
    assert jobs.perform(office.desk, "judge", monday).done  # while Friday's waits for its next attempt
    assert office.read("marks") == [friday, monday]
    assert jobs.perform(office.desk, "judge", friday).done
    office.close(tuesday)
    assert office.read("marks") == [friday, monday, tuesday]


def test_a_halt_that_stands_in_its_file_alone_stops_a_simulated_account_too(office: Office) -> None:
    friday, monday, tuesday, wednesday = office.days[:4]
    office.close(friday)
    office.close(monday)
    at = datetime(2024, 3, 5, 14, tzinfo=UTC)
    KillSwitch(office.desk.state).engage("olga", "the database is locked", at)
    with pytest.raises(Halt, match="olga: the database is locked"):
        jobs.perform(office.desk, "rebalance", tuesday)
    asked, env = ["status", "--state", f"{office.desk.state}"], databases.environment(office.desk.state)
    assert "stopped          by olga" in CliRunner(env=env).invoke(oomrl, asked, catch_exceptions=False).output
    assert office.read("orders") == (0, 0) and monday not in office.read("decisions")  # type: ignore[operator]
    KillSwitch(office.desk.state).release()
    other = replace(office.desk, account="second", settings=_with(office.desk.settings, "second"))
    office.desk = other
    office.close(monday)
    KillSwitch(other.state).engage("olga", "everything", at)
    KillSwitch(other.folder).engage("ben", "this one", at)
    with pytest.raises(Halt, match="olga: everything"):
        jobs.perform(other, "rebalance", tuesday)
    KillSwitch(other.state).release()
    with pytest.raises(Halt, match="ben: this one"):
        jobs.perform(other, "rebalance", tuesday)
    KillSwitch(other.folder).release()
    assert jobs.perform(other, "rebalance", tuesday).done


def _with(settings: Settings, account: str) -> Settings:
    return settings.model_copy(update={"accounts": {**settings.accounts, account: settings.accounts["main"]}})


def test_each_name_in_a_state_directory_is_known_as_ours(office: Office) -> None:
    friday, monday = office.days[:2]
    office.close(friday)
    for job in ("deployment", "pre_open_check", "rebalance", "propose", "gate", "reconcile", "digest", "backup"):
        assert jobs.perform(office.desk, job, friday if job not in jobs.BEFORE_CLOSE else monday).done
    KillSwitch(office.desk.state).engage("olga", "why", datetime(2024, 3, 5, 14, tzinfo=UTC))
    (office.desk.state / "daemon.lock").touch()
    names = {path.name for path in office.desk.folder.iterdir()}
    assert {"HALT", "backups", "digests", "daemon.lock", "keys"} <= names
    assert [name for name in names if not named_by_us(name)] == []
    assert not named_by_us("thesis.txt") and not named_by_us("my-accounts")


def test_a_dry_trade_shows_each_order_with_its_reason_and_sends_and_writes_nothing(office: Office) -> None:
    friday, monday, tuesday = office.days[:3]
    office.close(friday)
    office.close(monday)
    (office.desk.state / "oomrl.toml").write_text(f'[accounts.main]\ntape = "{office.file}"\n', "utf-8")
    asked = ["once", "trade", "--dry-run", "--session", f"{tuesday}", "--state", f"{office.desk.state}"]
    person = CliRunner(env=databases.environment(office.desk.state))
    shown = person.invoke(oomrl, asked, catch_exceptions=False).output.splitlines()
    assert office.read("orders") == (0, 0) and monday not in office.read("decisions")  # type: ignore[operator]
    assert person.invoke(oomrl, asked).output.splitlines() == shown
    assert jobs.perform(office.desk, "rebalance", tuesday).note == f"{len(shown)} orders"
    with office.desk.open() as store, store.read() as view:
        sent = view.orders.decided_on(bootstrap.RUN, monday)
        reasons = view.sessions.decisions(bootstrap.RUN)[-1].decision.reasons  # type: ignore[union-attr]
    told = dict(line.split(": ", 1) for line in shown)
    assert {name.split()[2]: why for name, why in told.items()} == {o.symbol: reasons[o.symbol] for o in sent}
    signed = {name.split()[2]: int(name.split()[1]) * (1 if name.startswith("buy ") else -1) for name in told}
    assert signed == {order.symbol: order.shares for order in sent}


def test_nothing_is_decided_with_less_history_than_the_strategy_needs(office: Office, tmp_path: Path) -> None:
    few = [day for day in office.tape.days if day <= FIRST][-100:]
    short = replace(office.at(tmp_path / "short"), tape=calendar_tapes.market(few))
    with pytest.raises(Mistake, match="has 99 sessions before 2024-03-01, but the strategy needs 2.. to warm up"):
        short.close(FIRST)
    assert not short.desk.folder.joinpath("strategy.git").exists()


def test_an_upgrade_that_ships_another_strategy_leaves_an_account_with_what_it_began_with(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    friday, monday = office.days[:2]
    office.close(friday)
    began = bootstrap.start_tree("shipped")[0]
    newer = {**began, "strategy.toml": began["strategy.toml"] + b"\n# newer\n"}
    monkeypatch.setattr(bootstrap, "start_tree", lambda start: (newer, None))
    office.close(monday)
    repository = Repository(office.desk.folder / "strategy.git")
    assert repository.tree(repository.head()) == began
    assert office.read("marks") == [friday, monday]


def test_orders_whose_time_passed_are_never_sent(office: Office) -> None:
    friday, monday, tuesday, wednesday = office.days[:4]
    office.close(friday)
    office.close(monday)
    # Nobody traded on Tuesday: Monday's decision was due and is gone once Tuesday has closed.
    office.close(tuesday)
    assert jobs.perform(office.desk, "rebalance", wednesday).note.startswith("no orders")
    office.close(wednesday)
    assert office.read("orders") == (0, 0)
    decisions = office.read("decisions")
    assert decisions[monday][0] == "service"  # type: ignore[index]
    assert "had passed" in decisions[monday][1].reason  # type: ignore[index]


def test_a_lead_that_was_lost_sends_no_order(office: Office) -> None:
    friday, monday, tuesday = office.days[:3]
    office.close(friday)
    office.close(monday)
    led = replace(office.desk, lease=Lease("lead", "somebody else", 7, jobs.bootstrap.VirtualClock(monday).now()))
    with pytest.raises(Halt, match="took over"):
        jobs.perform(led, "rebalance", tuesday)
    # The intent is durable, so whoever leads now sends the same orders, under the same ids.
    count, fills = office.read("orders")  # type: ignore[misc]
    assert jobs.perform(office.desk, "rebalance", tuesday).note == f"{count} orders"
    office.close(tuesday)
    assert office.read("orders")[0] == count and office.read("orders")[1] >= count  # type: ignore[index]


def test_the_check_before_the_open_stops_at_a_calendar_that_the_market_contradicts(
    office: Office, calendar: Calendar
) -> None:
    office.close(office.days[0])
    assert jobs.perform(office.desk, "pre_open_check", office.days[1]).note == "sound"
    shut = databases.settings(
        office.desk.state, {**_accounts(office), "service": {"closures": [office.days[0].isoformat()]}}
    )
    with pytest.raises(Halt, match="closures"):
        jobs.perform(replace(office.desk, settings=shut), "pre_open_check", office.days[1])


def test_a_backup_restores_the_account_elsewhere_and_the_next_session_goes_on(office: Office, tmp_path: Path) -> None:
    friday, monday, tuesday = office.days[:3]
    office.close(friday)
    (office.desk.state / "oomrl.toml").write_text("# a person's\n", "utf-8")
    note = jobs.perform(office.desk, "backup", friday).note
    assert "verified" in note
    (made,) = backup.folder(office.desk.folder).iterdir()
    assert made.stat().st_mode & 0o077 == 0
    with pytest.raises(Refused, match="Expected nothing"):
        backup.restore(made, office.desk.state, office.desk.settings)
    other = office.at(tmp_path / "other")
    backup.restore(made, other.desk.state, other.desk.settings)
    assert (tmp_path / "other" / "oomrl.toml").read_text("utf-8") == "# a person's\n"
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "oomrl.toml").write_text("# newer\n", "utf-8")
    backup.restore(made, tmp_path / "third", office.at(tmp_path / "third").desk.settings)
    assert (tmp_path / "third" / "oomrl.toml").read_text("utf-8") == "# newer\n"
    for place in (office, other):
        place.close(monday)
        assert jobs.perform(place.desk, "rebalance", tuesday).note.endswith("orders")
    assert other.read("orders") == office.read("orders")
    with other.desk.open() as one, office.desk.open() as two, one.read() as left, two.read() as right:
        assert left.sessions.digest(bootstrap.RUN) == right.sessions.digest(bootstrap.RUN)


def test_a_damaged_backup_restores_nothing(office: Office, tmp_path: Path) -> None:
    office.close(office.days[0])
    jobs.perform(office.desk, "backup", office.days[0])
    (made,) = backup.folder(office.desk.folder).iterdir()
    data = bytearray(made.read_bytes())
    data[len(data) // 2] ^= 0xFF
    made.write_bytes(bytes(data))
    with pytest.raises(Halt, match="older one"):
        backup.restore(made, tmp_path / "other", office.at(tmp_path / "other").desk.settings)
    assert not (tmp_path / "other" / "oomrl.db").exists()


def test_only_the_newest_backups_stay(office: Office) -> None:
    office.close(office.days[0])
    few = databases.settings(office.desk.state, {**_accounts(office), "service": {"backups": 2}})
    for day in office.days[:4]:
        jobs.perform(replace(office.desk, settings=few), "backup", day)
    names = sorted(path.name for path in backup.folder(office.desk.folder).iterdir())
    assert [str(day) in name for day, name in zip(office.days[2:4], names, strict=True)] == [True, True]


def test_housekeeping_archives_old_jobs_and_drops_what_can_be_made_again(office: Office) -> None:
    friday, monday, tuesday = office.days[:3]
    office.close(friday)
    office.close(monday)
    jobs.perform(office.desk, "rebalance", tuesday)
    jobs.perform(office.desk, "digest", monday)
    run, at = run_of("main"), datetime(2024, 3, 1, 22, tzinfo=UTC)
    with Store.open(databases.place(office.desk.state)) as store:
        with store.begin() as work:
            work.runs.start(Run(run, "daemon", {}, 0, "", at))
            for name, session in (("judge", friday), ("gate", friday), ("judge", tuesday)):
                work.jobs.plan(Job(run, name, session, at))
            work.jobs.end(Job(run, "judge", friday, at), JobState.DONE, at, "of old")
            work.jobs.end(Job(run, "judge", tuesday, at), JobState.DONE, at, "")
        later = monday + timedelta(days=office.desk.settings.service.keep_days)
        checkouts = office.desk.folder / "strategy.git" / "checkouts"
        for place in checkouts.iterdir():
            os.utime(place, (at.timestamp(), at.timestamp()))
        note = jobs.perform(office.desk, "housekeeping", later).note
        assert note == "1 finished jobs archived, 0 digests and 1 checkouts dropped"
        with store.read() as view:
            left = {(job.job, job.session) for job in view.jobs.all(run)}
        assert left == {("gate", friday), ("judge", tuesday)}
    kept = pq.read_table(office.desk.folder / "archive" / f"until-{monday}" / "jobs.parquet").to_pylist()
    assert [(row["job"], row["session"], row["note"]) for row in kept] == [("judge", friday, "of old")]
    assert list(checkouts.iterdir()) == []
    office.close(tuesday)
    assert jobs.perform(office.desk, "rebalance", office.days[3]).done
    again = jobs.perform(office.desk, "housekeeping", later + timedelta(days=7)).note
    assert again.startswith("1 finished jobs archived, 1 digests")


def _accounts(office: Office) -> dict[str, object]:
    return {"accounts": {"main": {"tape": str(office.file)}}}


def test_accounts_have_stores_of_their_own_on_one_server(postgres_database: object, tmp_path: Path) -> None:
    from oomrl.adapters.database.place import place

    url = postgres_database("template0")  # type: ignore[operator]
    settings = Settings(database={"url": url})  # type: ignore[arg-type]
    from tests.integration.database import builders as build

    for account in ("main", "second"):
        with Store.open(place(tmp_path, settings, account)) as store, store.begin() as work:
            assert work.runs.all() == []
            work.runs.start(build.run())

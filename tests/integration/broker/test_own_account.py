"""A person's own paper account, played by the emulator: taking stock, downloading history, halting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import requests
from click.testing import CliRunner

from oomrl.adapters.alpaca.brokerage import AlpacaBrokerage
from oomrl.adapters.alpaca.data import download
from oomrl.adapters.journal import MemoryJournal
from oomrl.adapters.kill_switch import KillSwitch, demand, ours
from oomrl.adapters.own_account import Adopting, begun, reached, stopped, worth
from oomrl.adapters.timers import ExchangeTimer
from oomrl.cli.main import oomrl
from oomrl.domain.account import Account
from oomrl.domain.brokerage import Ticket
from oomrl.domain.ledger import Entry
from oomrl.domain.trading import ALPACA_PAPER, Side
from oomrl.errors import Halt, Mistake, Refused
from oomrl.exchange.emulator.server import Settings, running
from oomrl.exchange.emulator.venue import Terms
from oomrl.exchange.tape import RECORDED, Tape
from oomrl.exchange.tape_files import load_tape
from oomrl.settings import AccountOf, BrokerSettings
from oomrl.testing.clocks import SteppedTimer
from oomrl.testing.markets import Weather, made_up_tape
from tests import databases

TAPE = made_up_tape(
    8, sessions=30, names=4, weather=Weather(splits=0.02, dividends=0.1, halts=0, jumps=0, late=0, delisted=0)
)
BEGIN = TAPE.days[25]
KEYS = {"APCA_API_KEY_ID": "key", "APCA_API_SECRET_KEY": "secret"}


class Person:
    """A person at the emulator, in an open session, holding 7 shares of the first name."""

    def __init__(self, url: str, timer: ExchangeTimer, broker: AlpacaBrokerage) -> None:
        self.url, self.timer, self.broker = url, timer, broker

    @property
    def settings(self) -> BrokerSettings:
        return BrokerSettings(base_url=self.url, data_url=self.url)


@pytest.fixture
def person() -> Iterator[Person]:
    terms = Terms(cash=Decimal(100_000), rules=ALPACA_PAPER)
    with running(TAPE, Settings(start=BEGIN, rate_limit=0, terms=terms)) as exchange:
        timer = ExchangeTimer(exchange.url)
        chosen = BrokerSettings(base_url=exchange.url, data_url=exchange.url)
        broker = reached(chosen, timer, KEYS, 5)
        hours = exchange.exchange.venue.hours.session(BEGIN)
        assert hours is not None
        timer.wait(hours.opens + timedelta(minutes=1))
        broker.place(Ticket("by-hand", TAPE.symbols[0], Side.BUY, Decimal(7)))
        yield Person(exchange.url, timer, broker)
        broker.close()
        timer.close()


def test_shares_that_nobody_spoke_of_are_refused(person: Person) -> None:
    journal = MemoryJournal()
    with pytest.raises(Refused, match=f"holds 7 {TAPE.symbols[0]}.*--adopt"):
        begun(journal, person.broker, AccountOf(tape="t"), BEGIN)
    assert not journal.lines


def test_init_asks_what_becomes_of_shares(person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**KEYS, "OOMRL_BROKER__BASE_URL": person.url, "OOMRL_BROKER__DATA_URL": person.url}.items():
        monkeypatch.setenv(name, value)
    asked = ["init", "--tape", "builtin", "--model", "manual", "--broker", "alpaca"]
    refused = CliRunner().invoke(oomrl, [*asked, "--state", str(tmp_path / "a")])
    assert isinstance(refused.exception, Refused) and not (tmp_path / "a" / "oomrl.toml").exists()
    adopted = CliRunner().invoke(oomrl, [*asked, "--adopt", "--state", str(tmp_path / "b")])
    assert f"7 {TAPE.symbols[0]} within the fence" in adopted.output
    assert 'existing = "adopt"' in (tmp_path / "b" / "oomrl.toml").read_text("utf-8")
    fenced = CliRunner().invoke(oomrl, [*asked, "--symbols", "AAPL,msft", "--state", str(tmp_path / "c")])
    assert "no shares within the fence" in fenced.output


def test_adopted_shares_begin_the_books_and_stay_what_they_were(person: Person) -> None:
    journal, terms = MemoryJournal(), AccountOf(tape="t", existing="adopt")
    opening = begun(journal, person.broker, terms, BEGIN)
    assert opening.positions == {TAPE.symbols[0]: 7}
    assert opening.cash == person.broker.account().cash and not opening.shared
    person.broker.place(Ticket("more", TAPE.symbols[0], Side.BUY, Decimal(2)))
    assert begun(journal, person.broker, terms, BEGIN) == opening


def test_a_fence_leaves_other_names_and_the_cash_alone(person: Person) -> None:
    opening = begun(MemoryJournal(), person.broker, AccountOf(tape="t", symbols=TAPE.symbols[1:]), BEGIN)
    assert opening.positions == {} and opening.shared
    assert opening.symbols == frozenset(TAPE.symbols[1:])


def test_the_account_takes_adopted_shares_over_before_its_first_session() -> None:
    positions, posted = {TAPE.symbols[0]: Decimal(7)}, []
    account = Account()
    market = Adopting(TAPE, account, positions, BEGIN, posted.extend)
    for session in market.sessions(until=BEGIN):
        if session.day < BEGIN:
            account.observe(session)
    before = TAPE.days[24]
    close = Decimal(repr(round(float(TAPE.columns["close"][24, 0]), 4)))
    assert account.books.positions == positions
    assert (
        account.books.endowments
        == worth(TAPE, positions, before)
        == (close * 7).quantize(Decimal("0.01"), "ROUND_DOWN")
    )
    assert all(isinstance(entry, Entry) for entry in posted) and len(posted) == 2
    with pytest.raises(Mistake, match="oomrl data download"):
        worth(TAPE, {"ELSEWHERE": Decimal(1)}, before)


def test_history_is_downloaded_as_the_tape_was_and_only_ever_added_to(person: Person, tmp_path: Path) -> None:
    place = tmp_path / "history.parquet"
    first = download(person.broker, place, TAPE.symbols, TAPE.days[0], TAPE.days[11])
    assert (first.first, first.last, first.missing) == (TAPE.days[0], TAPE.days[11], ())
    before = load_tape(place)
    second = download(person.broker, place, TAPE.symbols, TAPE.days[0], TAPE.days[20])
    assert second.first == TAPE.days[12]
    found, expected = load_tape(place), TAPE.until(TAPE.days[20])
    same(found, expected)
    same(found.until(TAPE.days[11]), before)
    assert download(person.broker, place, TAPE.symbols, TAPE.days[0], TAPE.days[20]).rows == 0


def same(found: Tape, expected: Tape) -> None:
    assert found.days == expected.days and found.symbols == expected.symbols
    for column in RECORDED:
        np.testing.assert_allclose(found.columns[column], expected.columns[column], rtol=1e-6, err_msg=column)


def test_a_partial_feed_is_refused(person: Person, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="consolidated feed"):
        download(person.broker, tmp_path / "x.parquet", TAPE.symbols, TAPE.days[0], BEGIN, feed="iex")


def test_a_live_account_s_address_is_refused() -> None:
    with pytest.raises(Refused, match="trades no money"):
        reached(BrokerSettings(base_url="https://api.alpaca.markets"), SteppedTimer(), KEYS, 5)


def test_stopping_cancels_the_service_s_orders_and_no_others(person: Person) -> None:
    far = Decimal("0.50")
    mine = Ticket(f"abcdef123456-20100104-{TAPE.symbols[1]}-b-0", TAPE.symbols[1], Side.BUY, Decimal(1), far)
    person.broker.place(mine)
    person.broker.place(Ticket("by-hand-2", TAPE.symbols[2], Side.BUY, Decimal(1), far))
    assert len(ours(person.broker.open_orders())) == 1
    assert stopped(person.broker, AccountOf(tape="t"), False, person.timer.now()) == (1, 0)
    assert [order.client_order_id for order in person.broker.open_orders()] == ["by-hand-2"]
    assert stopped(person.broker, AccountOf(tape="t"), True, person.timer.now()) == (0, 1)
    assert not person.broker.holdings()


def state_of(folder: Path, url: str) -> Path:
    folder.mkdir()
    (folder / "oomrl.toml").write_text(
        f'[broker]\nbase_url = "{url}"\ndata_url = "{url}"\n[accounts.main]\ntape = "builtin"\nbroker = "alpaca"\n',
        "utf-8",
    )
    return folder


def no_database(state: Path) -> dict[str, str]:
    """Damage the store of a state directory, or return the variables that name a server that is away."""
    if databases.chosen.kind == "postgresql":
        return {"OOMRL_DATABASE__URL": "postgresql://127.0.0.1:9/none"}
    (state / "oomrl.db").write_bytes(b"no database" * 1000)
    return {}


def test_an_account_at_a_broker_deploys_nothing_without_a_person(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    state = state_of(tmp_path / "state", person.url)
    with (state / "oomrl.toml").open("a") as settings:
        settings.write('[loop]\nreviewer = "auto"\n')
    asking = CliRunner(env=databases.environment(state))
    result = asking.invoke(oomrl, ["once", "judge", "--session", "2010-03-01", "--state", str(state)])
    assert isinstance(result.exception, Refused) and "without a person" in str(result.exception)


def test_halt_works_without_a_database(person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    mine = f"abcdef123456-20100104-{TAPE.symbols[1]}-b-0"
    person.broker.place(Ticket(mine, TAPE.symbols[1], Side.BUY, Decimal(1), Decimal("0.50")))
    state = state_of(tmp_path / "state", person.url)
    asked = ["halt", "--state", str(state), "--as", "ann", "--reason", "odd fills"]
    result = CliRunner(env=no_database(state)).invoke(oomrl, asked)
    assert "1 orders cancelled" in result.output and "no further order goes out" in result.output
    assert "the record" in str(result.exception) and "the broker" not in str(result.exception)
    assert not person.broker.open_orders()
    with pytest.raises(Halt, match="by ann: odd fills"):
        demand(state)


def test_halt_flattens_without_a_database_and_through_an_outage_of_the_broker(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    person.broker.place(Ticket("more", TAPE.symbols[1], Side.BUY, Decimal(3)))
    state = state_of(tmp_path / "state", person.url)
    outage = '[[fault]]\nkind = "html_502"\nendpoint = "GET /v2/orders"\ntimes = 2\n'
    doubt = '[[fault]]\nkind = "html_502"\nendpoint = "POST /v2/orders"\napplied = true\nnth = [1]\n'
    requests.post(f"{person.url}/admin/faults", json={"toml": outage + doubt}, timeout=10).raise_for_status()
    asked = ["halt", "--flatten", "--state", str(state), "--as", "ann", "--reason", "out"]
    result = CliRunner(env=no_database(state)).invoke(oomrl, asked)
    assert result.output.count("Nothing is sold yet") == 2, result.output
    assert "1 positions sold" in result.output and "the broker" not in str(result.exception)
    assert "the record" in str(result.exception)
    assert not person.broker.holdings()
    sales = [order for order in person.broker.orders(person.timer.now() - timedelta(days=1)) if order.side is Side.SELL]
    assert sorted(order.symbol for order in sales) == sorted(TAPE.symbols[:2])


def test_flattening_again_sells_nothing_twice_and_one_refusal_keeps_no_other_name(person: Person) -> None:
    person.broker.place(Ticket("more", TAPE.symbols[1], Side.BUY, Decimal(3)))
    ban = f'[[fault]]\nkind = "untradable"\nsymbol = "{TAPE.symbols[0]}"\nat = 2010-01-01T00:00:00Z\n'
    requests.post(f"{person.url}/admin/faults", json={"toml": ban}, timeout=10).raise_for_status()
    person.timer.wait(person.timer.now() + timedelta(hours=8))
    terms = AccountOf(tape="t")
    for sold in (1, 0):
        with pytest.raises(Refused, match=f"7 {TAPE.symbols[0]} .*; {sold} were sold"):
            stopped(person.broker, terms, True, person.timer.now())
    assert [order.symbol for order in person.broker.open_orders()] == [TAPE.symbols[1]]


def test_halt_works_without_a_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    state = state_of(tmp_path / "state", "http://127.0.0.1:9")
    asked = ["halt", "--state", str(state), "--as", "ann", "--reason", "odd fills"]
    result = CliRunner(env=databases.environment(state)).invoke(oomrl, asked)
    assert "the broker: " in str(result.exception)
    assert json.loads((state / "HALT").read_text("utf-8"))["by"] == "ann"
    KillSwitch(state).engage("ben", "again", person_now())
    with pytest.raises(Halt, match="by ann"):
        demand(state)
    KillSwitch(state).release()
    demand(state)


def person_now():  # type: ignore[no-untyped-def]
    return SteppedTimer().now()


def test_an_unreadable_switch_stops_as_well(tmp_path: Path) -> None:
    (tmp_path / "HALT").write_bytes(b"\xff\xfe{")
    with pytest.raises(Halt, match="nothing is sent"):
        demand(tmp_path)

"""The emulator and the in-process exchange fill the same orders the same, to the cent."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from alpaca.trading.client import TradingClient

from oomrl.domain.account import Account
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.observed import Observed
from oomrl.domain.trading import ALPACA_PAPER, AccountRules, Fill, Order
from oomrl.exchange.emulator.server import Settings, running
from oomrl.exchange.emulator.terms import Terms
from oomrl.exchange.emulator.tickets import ticket_of
from oomrl.exchange.emulator.venue import Venue
from oomrl.exchange.exchange import PaperExchange
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape import Tape
from oomrl.exchange.tape_files import load_tape
from oomrl.testing.fakes import RandomWorker
from oomrl.testing.markets import Weather, made_up_tape

ROOT = Path(__file__).resolve().parents[3]
REAL = Path(os.environ.get("OOMRL_TAPES", ROOT.parent / "shared" / "tapes")) / "us-equities-dev.parquet"

Sent = Callable[[dict[str, object]], object]


def request_of(order: Order, participation: float) -> dict[str, object]:
    """Return the order as it goes over the wire."""
    body: dict[str, object] = {
        "symbol": order.symbol,
        "side": order.side.value,
        "qty": str(order.qty),
        "type": "market" if order.limit_price is None else "limit",
        "time_in_force": "day",
        "client_order_id": order.client_order_id,
        "advanced_instructions": {"max_percentage": f"{participation:.9f}"},
    }
    if order.limit_price is not None:
        body["limit_price"] = str(order.limit_price)
    return body


def trade_both(
    tape: Tape, start: date, end: date, seed: int, terms: Terms, send: Sent, close: Callable[[], object], venue: Venue
) -> int:
    """Let a random strategy trade on both exchanges, compare after each session, and return how many fills agreed."""
    inside = PaperExchange(terms.cash, terms.friction, terms.rules)
    account, worker = Account(Observed(), rules=terms.rules, cadence="daily"), RandomWorker(seed)
    account.endow([Entry("endowment", date.min, Kind.ENDOWMENT, Book.BOTH, terms.cash)])
    seen = 0
    for session in tape.sessions(until=end):
        trading = session.day >= start
        execution = inside.collect(session)
        if trading:
            close()
            wanted = [execution.fills.record(row, execution.orders, session.day) for row in range(len(execution.fills))]
            found = venue.account.fills[seen:]
            assert sorted(map(told, wanted)) == sorted(map(told_there, found))
            fees = int(execution.commission.sum() + execution.regulatory.sum())
            assert sum((fill.commission + fill.regulatory for fill in found), Decimal(0)) * 100 == fees
            seen += len(found)
            assert venue.account.cash == inside.cash(), session.day
            assert venue.account.positions() == inside.positions(), session.day
            record = account.settle(session, execution)
        else:
            account.observe(session)
        worker.show(session)
        if trading and account.due():
            record = account.plan(record, worker.decide(account.portfolio()))
            if record.sized is not None:
                orders = record.sized.orders
                inside.submit(orders)
                for row in range(len(orders)):
                    send(request_of(orders.record(row), float(orders.participation[row])))
    return seen


def told(fill: Fill) -> tuple[object, ...]:
    return fill.client_order_id, fill.symbol, fill.side.value, fill.qty, fill.price, fill.amount


def told_there(fill: object) -> tuple[object, ...]:
    order = fill.order
    return order.client_order_id, order.symbol, order.side.value, fill.qty, fill.price, fill.amount


def in_process(tape: Tape, start: date, end: date, seed: int, terms: Terms) -> int:
    venue = Venue(tape, terms, start)

    def send(body: dict[str, object]) -> None:
        venue.submit(ticket_of(body))

    def close() -> None:
        event = venue.next_event
        assert event is not None
        hours = venue.hours.session(event.day)
        assert hours is not None
        venue.advance(hours.closes)

    return trade_both(tape, start, end, seed, terms, send, close, venue)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rules", [AccountRules(), ALPACA_PAPER])
def test_on_made_up_tapes_with_everything_that_happens_to_accounts(seed: int, rules: AccountRules) -> None:
    weather = Weather(splits=0.02, dividends=0.04, halts=0.03, absences=0.04, delisted=0.4, volume=20_000.0)
    tape = made_up_tape(seed, sessions=70, names=8, weather=weather)
    terms = Terms(cash=Decimal(400_000), rules=rules, cash_rule="wait")
    assert in_process(tape, tape.days[8], tape.days[-1], seed, terms) > 100


def test_over_the_wire() -> None:
    tape = made_up_tape(11, sessions=40, names=6, weather=Weather(volume=30_000.0))
    terms = Terms(cash=Decimal(300_000), cash_rule="wait")
    settings = Settings(start=tape.days[6], rate_limit=0, terms=terms)
    with running(tape, settings) as exchange, httpx.Client(base_url=exchange.url) as admin:
        client = TradingClient("key", "secret", url_override=exchange.url)

        def send(body: dict[str, object]) -> None:
            client.post("/orders", body)

        def close() -> None:
            admin.post("/admin/clock", json={"until": "close"}).raise_for_status()

        fills = trade_both(tape, tape.days[6], tape.days[-1], 3, terms, send, close, exchange.exchange.venue)
        assert fills > 50
        client._session.close()


@pytest.mark.tape
def test_on_a_real_tape() -> None:
    if not REAL.exists():
        pytest.skip(f"NO TAPE at {REAL}: set OOMRL_TAPES to its folder; equal fills are unchecked on it")
    tape = load_tape(REAL)
    terms = Terms(cash=Decimal(20_000_000), friction=Friction(), cash_rule="wait")
    assert in_process(tape, date(2002, 6, 3), date(2003, 6, 2), 5, terms) > 1_000

"""An account that trades through alpaca-py and the emulator ends as one on the in-process exchange, to the cent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from oomrl.adapters.http_exchange import simulated
from oomrl.domain.account import Account, SessionRecord
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.trading import ALPACA_PAPER, AccountRules
from oomrl.exchange.exchange import PaperExchange
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape import Tape
from oomrl.ports import Broker
from oomrl.testing.fakes import RandomWorker
from oomrl.testing.markets import Weather, made_up_tape

CASH = Decimal(400_000)


@contextmanager
def in_process(tape: Tape, begin: date, rules: AccountRules) -> Iterator[Broker]:
    yield PaperExchange(CASH, Friction(), rules)


@contextmanager
def over_http(tape: Tape, begin: date, rules: AccountRules) -> Iterator[Broker]:
    with simulated(tape, begin, CASH, Friction(), rules) as path:
        yield path


def traded(tape: Tape, begin: date, rules: AccountRules, broker: Broker) -> list[SessionRecord]:
    """Let a random strategy trade daily and return every session's record."""
    account, worker, records = Account(rules=rules, cadence="daily"), RandomWorker(5), []
    account.endow([Entry("endowment", date.min, Kind.ENDOWMENT, Book.BOTH, CASH)])
    for session in tape.sessions():
        execution = broker.collect(session)
        worker.show(session)
        if session.day < begin:
            account.observe(session)
            continue
        record = account.plan(account.settle(session, execution), worker.decide(account.portfolio()))
        records.append(record)
        if record.sized is not None:
            broker.submit(record.sized.orders)
    assert broker.cash() == account.books.broker_cash
    assert dict(broker.positions()) == dict(account.books.broker_positions)
    return records


@pytest.mark.parametrize("rules", [AccountRules(), ALPACA_PAPER], ids=["funded", "paper"])
def test_each_session_is_the_same_to_the_cent_and_explained_the_same(rules: AccountRules) -> None:
    weather = Weather(splits=0.02, dividends=0.04, halts=0.03, absences=0.04, delisted=0.4, volume=20_000.0)
    tape = made_up_tape(2, sessions=45, names=8, weather=weather)
    begin = tape.days[8]
    with in_process(tape, begin, rules) as broker:
        expected = traded(tape, begin, rules, broker)
    with over_http(tape, begin, rules) as broker:
        found = traded(tape, begin, rules, broker)
    assert sum(len(record.execution.fills) for record in expected) > 60
    for ours, theirs in zip(expected, found, strict=True):
        assert theirs.equity == ours.equity, ours.day
        assert theirs.broker_cash == ours.broker_cash, ours.day
        assert theirs.entries == ours.entries or sorted(e.key for e in theirs.entries) == sorted(
            e.key for e in ours.entries
        )
        assert theirs.decomposition.pnl == ours.decomposition.pnl
        np.testing.assert_allclose(theirs.decomposition.exact, ours.decomposition.exact, atol=1e-6)
        assert theirs.execution.unfilled.tolist() == ours.execution.unfilled.tolist()

"""On made-up markets with everything in them, every account balances to the cent at every close."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.domain.account import Account, Cadence, SessionRecord
from oomrl.domain.attribution import PARTS
from oomrl.domain.books import Books
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.sizing import Limits
from oomrl.domain.trading import ALPACA_PAPER, AccountRules, Side
from oomrl.exchange.exchange import PaperExchange
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape import Tape
from oomrl.testing.fakes import RandomWorker
from oomrl.testing.markets import Weather, made_up_tape

SEEDS = st.integers(0, 2**32 - 1)
RULES = st.sampled_from(
    [AccountRules(), ALPACA_PAPER, AccountRules(pays_dividends=False), AccountRules(applies_splits=False)]
)
LIMITS = st.sampled_from(
    [
        Limits(),
        Limits(max_adv_share=0.01, min_order_value=0.0),
        Limits(per_name=0.3, gross=0.8, collar_bps=50.0, max_orders=3),
        Limits(cash_reserve_bps=0.0, min_order_value=0.0, max_adv_share=1.0),
        Limits(capital=40_000.0),
    ]
)
FRICTION = st.sampled_from([Friction(), Friction.none(), Friction(30.0, 0.01, 2.0, 0.02, 5.0, 0.001, 0.01, 0.05)])


def flows_of(seed: int, day: date, position: int) -> list[Entry]:
    """Endow now and then, and bill a model."""
    chance = np.random.default_rng([seed, position])
    flows = []
    if chance.random() < 0.05:
        amount = Decimal(int(chance.integers(1, 10**6))).scaleb(-2)
        flows.append(Entry(f"endow/{day}", day, Kind.ENDOWMENT, Book.BOTH, amount))
    if chance.random() < 0.1:
        bill = -Decimal(int(chance.integers(1, 500))).scaleb(-2)
        flows.append(Entry(f"bill/{day}", day, Kind.MODEL_BILL, Book.ECONOMIC, bill))
    return flows


class Rig:
    """An account, its exchange and its worker, stepped as the loop steps them."""

    def __init__(
        self,
        seed: int,
        rules: AccountRules,
        limits: Limits,
        friction: Friction,
        capital: Decimal = Decimal(100_000),
        delisting_recovery: float = 1.0,
    ) -> None:
        self.seed, self.make = seed, (rules, limits, friction, capital, delisting_recovery)
        self.worker = RandomWorker(seed)
        self.exchange = PaperExchange(capital, friction, rules, delisting_recovery=delisting_recovery)
        self.account = Account(limits=limits, rules=rules, cadence=Cadence.DAILY)
        self.account.endow([Entry("start", date.min, Kind.ENDOWMENT, Book.BOTH, capital)])
        self.position = 0

    def step(self, session) -> SessionRecord:  # type: ignore[no-untyped-def]
        flows = flows_of(self.seed, session.day, self.position)
        self.position += 1
        execution = self.exchange.collect(session)
        for flow in flows:
            if flow.kind is Kind.ENDOWMENT:
                self.exchange.deposit(flow.amount)
        record = self.account.settle(session, execution, flows)
        self.worker.show(session)
        record = self.account.plan(record, self.worker.decide(self.account.portfolio()))
        if record.sized is not None:
            self.exchange.submit(record.sized.orders)
        return record


@settings(max_examples=40, deadline=None)
@given(SEEDS, RULES, LIMITS, FRICTION, st.sampled_from([0.0, 1.0]))
def test_the_books_balance_at_every_close(
    seed: int, rules: AccountRules, limits: Limits, friction: Friction, recovery: float
) -> None:
    tape = made_up_tape(seed, sessions=50, names=6)
    rig = Rig(seed, rules, limits, friction, delisting_recovery=recovery)
    ledger, before, exact = Books(), 10_000_000, 0
    ledger.post([Entry("start", date.min, Kind.ENDOWMENT, Book.BOTH, Decimal(100_000))])
    for session in tape.sessions():
        record = rig.step(session)
        account, parts = rig.account, record.decomposition
        exact += sum(int(cents) for cents in parts.cents)
        # Equity is the endowments plus the whole decomposition, at each close.
        assert record.equity_cents == record.endowed_cents + exact
        assert list(parts.parts) == list(PARTS)
        np.testing.assert_allclose(parts.exact, parts.cents / 100, atol=0.0101)
        np.testing.assert_allclose(parts.by_name.sum(axis=1)[:10], parts.exact[:10], atol=1e-6)
        assert abs(parts.exact[PARTS.index("rounding")]) <= 0.01 * len(record.execution.orders) + 1e-9
        # The broker's book is the broker's account.
        assert record.broker_cash == rig.exchange.cash() >= 0
        assert account.books.broker_positions == dict(rig.exchange.positions())
        assert all(shares >= 0 for shares in account.books.positions.values())
        # The ledger's lines say the same as the columns.
        ledger.post(record.entries)
        ledger.post(record.entries)
        assert (ledger.broker_cash, ledger.economic_cash) == (account.books.broker_cash, account.books.economic_cash)
        assert ledger.positions == account.books.positions
        assert ledger.broker_positions == account.books.broker_positions
        assert ledger.endowments == account.books.endowments
        # A valuation that shares no code with the books: Decimal shares times the last close seen.
        worth = sum(
            (shares * Decimal(repr(rig.worker.known[symbol])) for symbol, shares in account.books.positions.items()),
            account.books.economic_cash,
        )
        assert abs(worth - record.equity) <= Decimal("0.005")
        before = record.equity_cents
    assert before > 0


@settings(max_examples=25, deadline=None)
@given(SEEDS, RULES, LIMITS)
def test_fills_respect_the_bar_the_limit_and_the_volume(seed: int, rules: AccountRules, limits: Limits) -> None:
    friction = Friction(max_participation=0.1)
    rig = Rig(seed, rules, limits, friction)
    for session in made_up_tape(seed, sessions=40, names=6).sessions():
        record = rig.step(session)
        execution = record.execution
        fills, orders = execution.fills, execution.orders
        for n in range(len(fills)):
            row = int(fills.order[n])
            order = orders.record(row)
            at = session.symbols.index(order.symbol)
            assert session["tradable"][at] == 1.0
            assert session["low"][at] - 1e-9 <= fills.reference[n] <= session["high"][at] + 1e-9
            if order.limit_price is not None:
                better = 1 if order.side is Side.BUY else -1
                assert better * fills.price[n] <= better * float(order.limit_price) + 1e-9
            assert fills.spread[n] * fills.shares[n] >= 0 <= fills.impact[n] * fills.shares[n]
            assert round(fills.price[n] * 10_000, 6) == round(fills.price[n] * 10_000)
        for row in range(len(orders)):
            mine = fills.shares[fills.order == row].sum()
            assert mine + execution.unfilled[row] == orders.shares[row]
            if mine:
                at = session.symbols.index(orders.symbols[row])
                assert abs(mine) <= 0.1 * session["volume"][at]


@settings(max_examples=15, deadline=None)
@given(SEEDS, RULES, LIMITS, st.integers(5, 45))
def test_an_account_restored_in_the_middle_goes_on_as_if_nothing_had_happened(
    seed: int, rules: AccountRules, limits: Limits, stop: int
) -> None:
    sessions = list(made_up_tape(seed, sessions=50, names=5).sessions())
    straight = Rig(seed, rules, limits, Friction())
    first = Rig(seed, rules, limits, Friction())
    wanted = [straight.step(session) for session in sessions]
    for session in sessions[:stop]:
        first.step(session)
    state = json.loads(json.dumps([first.account.snapshot(), first.exchange.snapshot()]))
    second = Rig(seed, rules, limits, Friction())
    for session in sessions[:stop]:
        second.account.observe(session)
        second.worker.show(session)
    second.position = stop
    second.account.restore(state[0])
    second.exchange.restore(state[1])
    assert json.loads(json.dumps([second.account.snapshot(), second.exchange.snapshot()])) == state
    for session, record in zip(sessions[stop:], wanted[stop:], strict=True):
        again = second.step(session)
        assert again.equity_cents == record.equity_cents
        assert again.entries == record.entries
        assert again.decomposition.parts == record.decomposition.parts
        assert (again.sized is None) == (record.sized is None)
        if again.sized is not None and record.sized is not None:
            assert again.sized.orders.ids == record.sized.orders.ids
            assert (again.sized.orders.shares == record.sized.orders.shares).all()


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(3, 38))
def test_the_future_changes_nothing_before_it(seed: int, at: int) -> None:
    tape = made_up_tape(seed, sessions=40, names=6, weather=Weather(jumps=0.01))
    day = tape.days[at]
    variants: list[Tape] = [tape, tape.scrambled_after(day, seed + 1), tape.until(day)]
    runs = []
    for variant in variants:
        rig = Rig(seed, AccountRules(), Limits(), Friction())
        records = [rig.step(session) for session in variant.sessions(until=day)]
        runs.append(records)
    for other in runs[1:]:
        for record, same in zip(runs[0], other, strict=True):
            assert (record.day, record.equity_cents, record.quarantined) == (
                same.day,
                same.equity_cents,
                same.quarantined,
            )
            assert record.decomposition.parts == same.decomposition.parts
            assert record.entries == same.entries
            if record.sized is not None and same.sized is not None:
                assert record.sized.orders.ids == same.sized.orders.ids


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_names_carry_no_meaning(seed: int) -> None:
    tape = made_up_tape(seed, sessions=40, names=6)
    other = replace(tape, symbols=tuple("ZZ" + symbol for symbol in tape.symbols))
    one, two = (Rig(seed, AccountRules(), Limits(), Friction()) for _ in range(2))
    for session, same in zip(tape.sessions(), other.sessions(), strict=True):
        record, again = one.step(session), two.step(same)
        assert record.equity_cents == again.equity_cents
        assert record.decomposition.parts == again.decomposition.parts


def test_an_exchange_works_each_session_once() -> None:
    session, *_ = made_up_tape(1).sessions()
    exchange = PaperExchange(Decimal(1000))
    exchange.collect(session)
    with pytest.raises(ValueError, match="Expected a session after"):
        exchange.collect(session)

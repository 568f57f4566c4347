"""Whatever is ordered, replaced and cancelled at the emulated exchange, its books add up and its rules hold."""

from __future__ import annotations

import random
from collections import defaultdict
from decimal import Decimal

import pytest

from oomrl.domain.trading import AccountRules
from oomrl.exchange.emulator.faults import faults_of
from oomrl.exchange.emulator.orders import TERMINAL, Force, Kind, Status
from oomrl.exchange.emulator.refusals import Refusal
from oomrl.exchange.emulator.terms import Terms
from oomrl.exchange.emulator.tickets import PRICES, ticket_of
from oomrl.exchange.emulator.venue import Venue
from oomrl.exchange.friction import Friction
from oomrl.exchange.tape import Tape
from oomrl.testing.markets import Weather, made_up_tape
from tests.unit.exchange.venues import Desk

CASH = Decimal(50_000)

#: Which events may follow which in the life of an order.
FOLLOWS = {
    None: {"accepted", "new", "suspended"},
    "accepted": {"new", "suspended", "accepted_for_bidding", "canceled", "replaced", "expired"},
    "suspended": {"new", "expired", "canceled", "replaced", "accepted_for_bidding"},
    "accepted_for_bidding": {"fill", "partial_fill", "expired", "canceled", "replaced", "suspended"},
    "new": {
        "accepted_for_bidding",
        "fill",
        "partial_fill",
        "done_for_day",
        "expired",
        "canceled",
        "replaced",
        "suspended",
    },
    "partial_fill": {"fill", "partial_fill", "canceled", "replaced", "expired"},
    "done_for_day": {"new", "suspended", "canceled", "replaced"},
}


def trade_at_random(tape: Tape, seed: int, terms: Terms) -> Desk:
    """Send, replace and cancel orders of all kinds, between all points of some sessions."""
    chance = random.Random(seed)
    made = Desk(Venue(tape, terms, tape.days[5]))
    venue = made.venue
    faults = faults_of(f'seed = {seed}\n[[fault]]\nkind = "partial_fill"\nprobability = 0.1', "f")
    venue.matcher.partly = lambda order: 0.4 if faults.at("fill", venue.now, symbol=order.symbol) else None
    while (event := venue.next_event) is not None:
        for _ in range(chance.choice([0, 0, 1, 3])):
            try:
                act(made, chance)
            except Refusal:
                continue
        venue.advance(event.at)
        assert venue.account.cash >= 0
        assert all(shares > 0 for shares in venue.account.positions().values())
        assert all(order.open for order in venue.account.working.values())
    return made


def act(made: Desk, chance: random.Random) -> None:
    venue = made.venue
    opened = list(venue.account.working.values())
    turn = chance.random()
    if opened and turn < 0.15:
        venue.cancel(chance.choice(opened))
        return
    symbol = chance.choice(venue.tape.symbols)
    price = float(venue.board.price(symbol) or 10)

    def near() -> str:
        value = price * chance.uniform(0.95, 1.05)
        return f"{value:.2f}" if value >= 1 else f"{value:.4f}"

    if opened and turn < 0.3:
        order = chance.choice(opened)
        changes: dict[str, Decimal] = {"qty": Decimal(chance.randint(1, 300))}
        if order.limit is not None:
            changes["limit"] = Decimal(near())
        venue.replace(order, changes)
        return
    kind = chance.choice(list(Kind))
    body: dict[str, str] = {"symbol": symbol, "side": chance.choice(["buy", "buy", "sell"]), "type": kind.value}
    body["time_in_force"] = chance.choice(list(Force)).value
    for name in PRICES[kind]:
        body[name] = near()
    if kind is Kind.TRAILING_STOP:
        del body["trail_price"]
        body["trail_percent"] = f"{chance.uniform(0.5, 5):.2f}"
    if kind is Kind.MARKET and chance.random() < 0.3:
        size = chance.choice(
            [{"notional": f"{chance.uniform(1, 5000):.2f}"}, {"qty": f"{chance.uniform(0.1, 20):.6f}"}]
        )
        body |= {"time_in_force": "day", **size}
    else:
        body["qty"] = str(chance.randint(1, 200))
    venue.submit(ticket_of(body))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cash_rule", ["refuse", "wait"])
def test_the_books_add_up(seed: int, cash_rule: str) -> None:
    weather = Weather(splits=0.03, dividends=0.05, halts=0.03, absences=0.03, delisted=0.3, volume=2_000.0)
    tape = made_up_tape(seed, sessions=40, names=3, weather=weather)
    made = trade_at_random(tape, seed, Terms(cash=CASH, cash_rule=cash_rule))
    account = made.venue.account
    assert len(account.fills) > 10

    cash, shares = CASH, defaultdict(Decimal)
    filled: dict[str, Decimal] = defaultdict(Decimal)
    for fill in account.fills:
        sign = 1 if fill.order.buying else -1
        cash -= sign * fill.amount + fill.commission + fill.regulatory
        shares[fill.order.symbol] += sign * fill.qty
        filled[fill.order.id] += fill.qty
        assert fill.qty > 0
    for action in account.actions:
        cash += action.what.amount
        shares[action.what.symbol] += action.what.shares
    assert account.cash == cash
    assert account.positions() == {symbol: held for symbol, held in shares.items() if held}
    for order in account.orders.values():
        assert order.filled_qty == filled[order.id]
        assert order.remaining >= 0
        assert (order.status is Status.FILLED) == (order.qty is not None and order.remaining == 0 < order.filled_qty)
        assert order.open == (order.status not in TERMINAL) == (order.id in account.working)


@pytest.mark.parametrize("seed", range(6))
def test_states_follow_each_other_as_documented(seed: int) -> None:
    tape = made_up_tape(seed, sessions=40, names=3, weather=Weather(volume=2_000.0))
    made = trade_at_random(tape, seed, Terms(cash=CASH))
    seen = set()
    for order in made.venue.account.orders.values():
        last: str | None = None
        for event in made.events(order):
            assert event in FOLLOWS.get(last, set()), (made.events(order), order.ticket)
            last = event
            seen.add(event)
        assert order.open or last in {"fill", "canceled", "expired", "replaced"}
    assert {"accepted", "new", "fill", "partial_fill", "canceled", "expired", "replaced", "done_for_day"} <= seen


@pytest.mark.parametrize("seed", range(6))
def test_without_friction_fills_stand_within_the_bar_and_on_the_right_side_of_their_limits(seed: int) -> None:
    weather = Weather(splits=0.0, volume=2_000.0, jumps=0.0)
    tape = made_up_tape(seed, sessions=40, names=3, weather=weather)
    made = trade_at_random(tape, seed, Terms(cash=CASH, friction=Friction.none(), rules=AccountRules()))
    assert made.venue.account.fills
    for fill in made.venue.account.fills:
        day, name = tape.days.index(fill.day), tape.symbols.index(fill.order.symbol)
        low, high = (tape.columns[column][day, name] for column in ("low", "high"))
        assert low - 1e-9 <= float(fill.price) <= high + 1e-9
        if fill.order.limit is not None:
            assert fill.price <= fill.order.limit if fill.order.buying else fill.price >= fill.order.limit

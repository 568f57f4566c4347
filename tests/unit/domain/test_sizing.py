"""From weights to orders: what limits do, and what no strategy may answer."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.domain.account import Account, SessionRecord
from oomrl.domain.ledger import Book, Entry, Kind
from oomrl.domain.market import Session
from oomrl.domain.sizing import Limits, Sized
from oomrl.domain.trading import LiquidityPlan, TargetPortfolio
from oomrl.errors import StrategyFailure
from oomrl.exchange.exchange import PaperExchange
from oomrl.exchange.friction import Friction
from oomrl.testing.markets import CALM, made_up_tape

DAY = date(2020, 1, 6)
PRICES = (10.0, 20.0, 40.0)


def shown(
    limits: Limits | None = None,
    capital: int = 10_000,
    prices: tuple[float, ...] = PRICES,
    volume: float = 1e6,
    halted: int | None = None,
) -> tuple[Account, SessionRecord]:
    """Return an account in cash after one session of names AA, BB, CC."""
    size = len(prices)
    columns = {column: np.array(prices) for column in ("open", "high", "low", "close")}
    tradable = np.ones(size)
    if halted is not None:
        tradable[halted] = 0.0
    columns |= {"volume": np.full(size, volume), "dividend": np.zeros(size), "split": np.ones(size)}
    session = Session(DAY, ("AA", "BB", "CC")[:size], columns | {"tradable": tradable})
    exchange = PaperExchange(Decimal(capital))
    account = Account(limits=limits, cadence="daily", revision="abc123")
    account.endow([Entry("e", DAY, Kind.ENDOWMENT, Book.BOTH, Decimal(capital))])
    return account, account.settle(session, exchange.collect(session))


def sized(target: TargetPortfolio, limits: Limits | None = None, **market: object) -> Sized:
    account, record = shown(limits or Limits(cash_reserve_bps=0.0), **market)  # type: ignore[arg-type]
    answer = account.plan(record, target).sized
    assert answer is not None
    return answer


def test_weights_become_whole_shares_rounded_down_largest_orders_first() -> None:
    answer = sized(TargetPortfolio({"AA": 0.2, "BB": 0.4999, "CC": 0.3}, reasons={"BB": "cheap"}))
    assert answer.goals is not None
    np.testing.assert_allclose(answer.goals.target, [200, 249.95, 75])
    assert answer.goals.limited.tolist() == [200, 249, 75]
    orders = answer.orders
    assert orders.symbols == ("BB", "CC", "AA")
    assert orders.shares.tolist() == [249, 75, 200]
    assert orders.ids == ("abc123-20200106-BB-b-0", "abc123-20200106-CC-b-0", "abc123-20200106-AA-b-0")
    assert orders.reasons == ("cheap", "", "")
    assert np.isnan(orders.limit).all()
    assert orders.decided_on == DAY


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"AA": -0.1}, "Expected weights >= 0, was -0.1 for AA"),
        ({"AA": float("nan")}, "was nan for AA"),
        ({"AA": float("inf")}, "was inf for AA"),
        ({"AA": 1.5, "BB": 1.5}, "Expected weights that sum to at most 1, was 3"),
        ({"AA": 1.0, "BB": 1e-8}, "Expected weights that sum to at most 1"),
        ({"ZZ": 0.1}, "Expected weights of names that were shown, was 'ZZ'"),
    ],
)
def test_weights_that_are_no_long_only_portfolio_are_a_failure(weights: dict[str, float], message: str) -> None:
    account, record = shown()
    before = account.snapshot()
    with pytest.raises(StrategyFailure) as caught:
        account.plan(record, TargetPortfolio(weights))
    assert message in str(caught.value)
    assert account.snapshot() == before


@pytest.mark.parametrize(
    "plan",
    [
        LiquidityPlan(0.0),
        LiquidityPlan(1.1),
        LiquidityPlan(sessions=0),
        LiquidityPlan(sessions=10**290),
        LiquidityPlan(limit_bps=-1.0),
        LiquidityPlan(limit_bps=float("inf")),
        LiquidityPlan(float("nan")),
    ],
)
def test_plans_that_make_no_sense_are_a_failure(plan: LiquidityPlan) -> None:
    account, record = shown()
    with pytest.raises(StrategyFailure, match="plan"):
        account.plan(record, TargetPortfolio({"AA": 0.1}, {"AA": plan}))


def test_weights_that_sum_to_one_within_rounding_are_fine() -> None:
    sized(TargetPortfolio({"AA": 0.1 + 1e-10, "BB": 0.2, "CC": 0.7}))


@pytest.mark.parametrize(
    ("limits", "market", "shares", "hit"),
    [
        (Limits(per_name=0.25), {}, {"AA": 250, "BB": 125}, "per_name"),
        (Limits(gross=0.5, per_name=1.0), {}, {"AA": 250, "BB": 125}, "gross"),
        (Limits(max_adv_share=0.1), {"volume": 1000.0}, {"AA": 100, "BB": 100}, "max_adv_share"),
        (Limits(max_orders=1), {}, {"AA": 500}, "max_orders"),
        (Limits(symbols=frozenset({"BB"})), {}, {"BB": 250}, "not_tradable"),
        (Limits(capital=4_000.0), {}, {"AA": 200, "BB": 100}, None),
        (Limits(), {"halted": 0}, {"BB": 250}, "not_tradable"),
        (Limits(min_order_value=6_000.0), {}, {}, None),
        (Limits(cash_reserve_bps=100.0), {}, {"AA": 496, "BB": 247}, "cash"),
    ],
)
def test_each_limit_of_the_service_bites_and_says_so(
    limits: Limits, market: dict[str, object], shares: dict[str, float], hit: str | None
) -> None:
    if limits.cash_reserve_bps != 100.0:
        limits = Limits(
            **{name: getattr(limits, name) for name in Limits.__slots__ if name != "cash_reserve_bps"},
            cash_reserve_bps=0.0,
        )
    answer = sized(TargetPortfolio({"AA": 0.5, "BB": 0.5}), limits, **market)
    assert dict(zip(answer.orders.symbols, answer.orders.shares.tolist(), strict=True)) == shares
    assert {entry.limit for entry in answer.hits} == ({hit} if hit else set())


def test_collars_and_plans_set_limit_prices_in_whole_cents_the_tighter_winning() -> None:
    target = TargetPortfolio(
        {"AA": 0.3, "BB": 0.3}, {"AA": LiquidityPlan(0.05, 1, 33.0), "BB": LiquidityPlan(limit_bps=900.0)}
    )
    answer = sized(target, Limits(collar_bps=200.0, cash_reserve_bps=0.0))
    row = {symbol: n for n, symbol in enumerate(answer.orders.symbols)}
    assert answer.orders.limit[row["AA"]] == 10.03
    assert answer.orders.limit[row["BB"]] == 20.4
    assert answer.orders.participation[row["AA"]] == 0.05


def test_a_limit_as_far_away_as_the_price_is_none_but_for_the_services_own() -> None:
    """The shipped strategy asks for it where a name moves by a third a day."""
    target = TargetPortfolio({"BB": 0.3}, {"BB": LiquidityPlan(limit_bps=33_000.0)})
    assert np.isnan(sized(target).orders.limit).tolist() == [True]
    assert sized(target, Limits(collar_bps=200.0, cash_reserve_bps=0.0)).orders.limit.tolist() == [20.4]


def test_an_order_works_for_as_many_sessions_as_its_plan_says() -> None:
    tape = made_up_tape(3, sessions=8, names=1, weather=CALM)
    tape.columns["volume"][:] = 1000.0
    exchange = PaperExchange(Decimal(10_000_000), Friction.none())
    account = Account(limits=Limits(max_adv_share=1.0, per_name=1.0), cadence="daily", revision="r")
    account.endow([Entry("e", DAY, Kind.ENDOWMENT, Book.BOTH, Decimal(10_000_000))])
    ids, held = [], []
    for n, session in enumerate(tape.sessions()):
        record = account.settle(session, exchange.collect(session))
        target = TargetPortfolio({"N000": 1.0}, {"N000": LiquidityPlan(0.1, 3)}) if n == 0 else None
        answer = account.plan(record, target).sized
        held.append(float(account.books.shares[0]))
        if answer is not None and len(answer.orders):
            ids.append(answer.orders.ids[0])
            exchange.submit(answer.orders)
    assert held == [0, 100, 200, 300, 300, 300, 300, 300]
    assert ids == [f"r-20100104-N000-b-{attempt}" for attempt in range(3)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.5, 900.0), min_size=1, max_size=3),
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
    st.floats(0, 50),
)
def test_orders_never_exceed_the_cash_at_the_close(prices: list[float], raw: list[float], reserve: float) -> None:
    prices = [round(price, 2) for price in prices]
    total = max(sum(raw[: len(prices)]), 1.0)
    weights = dict(zip(("AA", "BB", "CC")[: len(prices)], [value / total for value in raw], strict=False))
    limits = Limits(cash_reserve_bps=reserve, min_order_value=0.0, max_adv_share=1.0)
    answer = sized(TargetPortfolio(weights), limits, prices=tuple(prices))
    cost = sum(
        shares * dict(zip(("AA", "BB", "CC"), prices, strict=False))[symbol]
        for symbol, shares in zip(answer.orders.symbols, answer.orders.shares.tolist(), strict=True)
    )
    assert cost * (1 + reserve / 1e4) <= 10_000 + 1e-6
    assert answer.goals is not None
    assert (answer.goals.limited <= answer.goals.target + 1e-9).all()

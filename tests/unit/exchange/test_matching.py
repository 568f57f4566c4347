"""Orders against one session: the path, the cash, the volume and the limit, against a slow second implementation."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.domain.market import Session
from oomrl.domain.trading import Orders, UnfilledCause
from oomrl.exchange.friction import Friction
from oomrl.exchange.matching import Matched, match

DAY = date(2020, 1, 3)


def session_of(*bars: tuple[float, float, float, float, float], tradable: float = 1.0) -> Session:
    columns = dict(zip(("open", "high", "low", "close", "volume"), np.array(bars, dtype=float).T, strict=True))
    count = len(bars)
    columns |= {"dividend": np.zeros(count), "split": np.ones(count), "tradable": np.full(count, tradable)}
    return Session(DAY, tuple(f"S{n}" for n in range(count)), columns)


def orders_of(*rows: tuple[int, float, float | None, float]) -> tuple[Orders, np.ndarray]:
    """Build orders from (session row, signed shares, limit, participation)."""
    at, shares, limit, participation = zip(*rows, strict=True)
    orders = Orders(
        DAY,
        tuple(f"o{n}" for n in range(len(rows))),
        tuple(f"S{n}" for n in at),
        np.array(shares, dtype=float),
        np.array([np.nan if price is None else price for price in limit], dtype=float),
        np.array(participation, dtype=float),
        ("",) * len(rows),
    )
    return orders, np.array(at, dtype=np.int64)


def run(
    session: Session,
    *rows: tuple[int, float, float | None, float],
    cash: float = 1e9,
    friction: Friction | None = None,
    **more: bool,
) -> Matched:
    orders, at = orders_of(*rows)
    return match(
        orders, at, session, round(cash * 100), friction or Friction.none(), np.full(len(orders), 0.02), **more
    )


UP_FIRST = (100.0, 102.0, 95.0, 99.0, 1e6)
DOWN_FIRST = (100.0, 105.0, 98.0, 99.0, 1e6)


@pytest.mark.parametrize(
    ("shares", "limit", "price"),
    [
        (10, None, 100.0),
        (-10, None, 100.0),
        (10, 100.0, 100.0),
        (10, 101.0, 100.0),
        (10, 96.0, 96.0),
        (10, 95.0, 95.0),
        (-10, 101.5, 101.5),
        (-10, 99.0, 100.0),
        (10, 94.99, None),
        (-10, 102.01, None),
    ],
)
def test_an_order_fills_where_the_path_meets_it(shares: float, limit: float | None, price: float | None) -> None:
    matched = run(session_of(UP_FIRST), (0, shares, limit, 1.0))
    assert matched.fills.price.tolist() == ([] if price is None else [price])
    assert matched.causes == (UnfilledCause.LIMIT_PRICE if price is None else UnfilledCause.NONE,)


@pytest.mark.parametrize(("bar", "price"), [(UP_FIRST, 102.0), (DOWN_FIRST, 98.0)])
def test_a_buy_that_waits_for_a_sale_fills_at_the_next_point_of_the_path(
    bar: tuple[float, float, float, float, float], price: float
) -> None:
    matched = run(session_of(UP_FIRST, bar), (0, -10, None, 1.0), (1, 9, None, 1.0), cash=0)
    assert matched.fills.price.tolist() == [100.0, price]
    assert matched.cash == 100_000 - round(900 * price)
    assert matched.causes == (UnfilledCause.NONE,) * 2


def test_sales_may_pay_for_buys_at_the_open_where_so_set() -> None:
    matched = run(
        session_of(UP_FIRST, UP_FIRST), (0, -10, None, 1.0), (1, 10, None, 1.0), cash=0, sales_fund_at_once=True
    )
    assert matched.fills.price.tolist() == [100.0, 100.0]
    assert matched.cash == 0


def test_a_buy_waits_for_a_limit_sale_until_the_path_has_reached_it() -> None:
    # The sale crosses 104 on the second leg (98 -> 105): the buy fills at that leg's end, in its own name.
    matched = run(
        session_of(DOWN_FIRST, (50.0, 51.0, 48.0, 49.0, 1e6)), (0, -10, 104.0, 1.0), (1, 20, None, 1.0), cash=0
    )
    assert matched.fills.price.tolist() == [104.0, 48.0]


def test_a_sale_at_the_very_extreme_frees_its_cash_one_point_later() -> None:
    matched = run(
        session_of(DOWN_FIRST, (50.0, 51.0, 48.0, 49.0, 1e6)), (0, -10, 105.0, 1.0), (1, 20, None, 1.0), cash=0
    )
    assert matched.fills.price.tolist() == [105.0, 49.0]


def test_cash_is_spent_in_row_order_and_the_last_buy_fills_in_part() -> None:
    bars = session_of(UP_FIRST, UP_FIRST, UP_FIRST)
    matched = run(bars, (0, 10, None, 1.0), (1, 10, None, 1.0), (2, 1, None, 1.0), cash=1550)
    assert matched.fills.shares.tolist() == [10.0, 5.0]
    assert matched.unfilled.tolist() == [0.0, 5.0, 1.0]
    assert matched.causes == (UnfilledCause.NONE, UnfilledCause.CASH, UnfilledCause.CASH)
    assert matched.cash == 5_000


def test_an_order_takes_its_share_of_the_volume_and_no_more() -> None:
    bars = session_of((10.0, 10.0, 10.0, 10.0, 1_000))
    matched = run(bars, (0, 500, None, 0.1), friction=Friction(max_participation=0.25))
    assert matched.fills.shares.tolist() == [100.0]
    assert matched.causes == (UnfilledCause.PARTICIPATION,)
    matched = run(bars, (0, -500, None, 1.0), friction=Friction(max_participation=0.25))
    assert matched.fills.shares.tolist() == [-250.0]
    assert matched.unfilled.tolist() == [-250.0]


@pytest.mark.parametrize("volume_and_tradable", [(0.0, 1.0), (1e6, 0.0)])
def test_nothing_trades_in_a_name_that_does_not(volume_and_tradable: tuple[float, float]) -> None:
    volume, tradable = volume_and_tradable
    matched = run(
        session_of((10.0, 10.0, 10.0, 10.0, volume), tradable=tradable), (0, 5, None, 1.0), (0, -5, None, 1.0)
    )
    assert len(matched.fills) == 0
    assert matched.causes == (UnfilledCause.NOT_TRADED,) * 2


def test_a_name_without_a_bar_does_not_trade() -> None:
    orders, _ = orders_of((0, 5, None, 1.0))
    empty = Session(DAY, (), {column: np.empty(0) for column in session_of(UP_FIRST).columns})
    matched = match(orders, np.array([-1]), empty, 100, Friction(), np.array([0.02]))
    assert matched.causes == (UnfilledCause.NOT_TRADED,)


def test_impact_grows_with_the_three_halves_power_however_many_fills_an_order_takes() -> None:
    friction = Friction(0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0)
    flat = (100.0, 100.0, 100.0, 100.0, 1e6)
    whole = run(session_of(flat), (0, 40_000, None, 1.0), friction=friction)
    assert whole.fills.impact[0] == pytest.approx(100 * 0.5 * 0.02 * (40_000 / 1e6) ** 0.5, abs=1e-4)
    parts = run(
        session_of(flat, flat), (1, -30_000, None, 1.0), (0, 40_000, None, 1.0), friction=friction, cash=1_100_000
    )
    mine = parts.fills.order == 1
    assert mine.sum() == 2
    cost = float((parts.fills.impact * parts.fills.shares)[mine].sum())
    assert cost == pytest.approx(float(whole.fills.impact[0]) * 40_000, rel=1e-3)


def test_concessions_never_violate_a_limit() -> None:
    friction = Friction(half_spread_bps=50.0)
    matched = run(session_of(UP_FIRST), (0, 1000, 100.2, 1.0), (0, -1000, 99.9, 1.0), friction=friction)
    assert matched.fills.price.tolist() == [99.9, 100.2]
    assert matched.fills.spread.tolist() == [-0.1, 0.2]


def test_a_half_spread_on_half_a_tick_rounds_as_decimals_do() -> None:
    # 3 basis points of $2.50 are 7.5 ticks; a product in the wrong order would make 7.499... of it.
    friction = Friction(3.0, 0, 0, 0, 0, 0, 0, 1.0)
    matched = run(session_of((2.5, 2.5, 1.5, 2.5, 1e6)), (0, -10, None, 1.0), friction=friction)
    assert matched.fills.spread.tolist() == [-0.0008]


def test_fees_are_whole_cents_and_never_eat_more_than_a_sale_brings() -> None:
    friction = Friction(0.0, 0.0, 0.0, 0.0035, 0.0, 0.0000278, 0.000166, 1.0)
    matched = run(session_of(UP_FIRST, (0.0002, 0.0002, 0.0002, 0.0002, 1e9)), (0, -1000, None, 1.0), friction=friction)
    assert (matched.commission.tolist(), matched.regulatory.tolist()) == ([350], [278 + 17])
    matched = run(session_of((0.0002, 0.0002, 0.0002, 0.0002, 1e9)), (0, -1000, None, 1.0), friction=friction, cash=0)
    assert matched.cash == 0


def slow_match(
    bars: Session, rows: list[tuple[int, float, float | None, float]], cash: int, friction: Friction
) -> tuple[dict[int, list[tuple[Decimal, Decimal]]], int]:
    """Match one order at a time in Decimal, written from the rules alone. Returns fills by order, and the cash."""

    def number(column: str, row: int) -> Decimal:
        return Decimal(repr(float(bars[column][row])))

    def path(row: int) -> list[Decimal]:
        first, high, low, last = (number(column, row) for column in ("open", "high", "low", "close"))
        return [first, high, low, last] if high - first <= first - low else [first, low, high, last]

    half = Decimal(repr(friction.half_spread_bps)) / 10_000
    left = {}
    for n, (row, shares, _, participation) in enumerate(rows):
        most = int(min(participation, friction.max_participation) * float(bars["volume"][row]) + 1e-9)
        left[n] = min(int(abs(shares)), most)
    fills: dict[int, list[tuple[Decimal, Decimal]]] = {n: [] for n in left}

    def price_of(n: int, reference: Decimal) -> Decimal:
        step = (reference * half).quantize(Decimal("0.0001"), "ROUND_HALF_EVEN")
        limit = rows[n][2]
        if rows[n][1] > 0:
            return reference + step if limit is None else min(reference + step, Decimal(repr(limit)))
        return reference - step if limit is None else max(reference - step, Decimal(repr(limit)))

    def amount(shares: int, price: Decimal) -> int:
        return int((shares * price * 100).quantize(Decimal(1), ROUND_HALF_UP))

    freed = [0] * 5
    for n, (row, shares, limit, _) in enumerate(rows):
        if shares >= 0 or not left[n]:
            continue
        points = path(row)
        bound = None if limit is None else Decimal(repr(limit))
        for leg in range(4):
            if bound is None or points[leg] >= bound:
                reference = points[0] if leg == 0 else bound
                assert reference is not None
                price = price_of(n, reference)
                fills[n].append((Decimal(-left[n]), price))
                at_the_point = leg == 0 or points[leg] == bound
                freed[leg + 1 if at_the_point else leg] += amount(left[n], price)
                left[n] = 0
                break

    def spend(n: int, reference: Decimal) -> bool:
        """Fill what the cash pays; return whether it paid all."""
        nonlocal cash
        price = price_of(n, reference)
        shares = left[n]
        if amount(shares, price) > cash:
            shares = int(cash // (price * 100)) + 1
            while amount(shares, price) > cash:
                shares -= 1
        if shares:
            fills[n].append((Decimal(shares), price))
            cash -= amount(shares, price)
            left[n] -= shares
        return not left[n]

    buys = [n for n, order in enumerate(rows) if order[1] > 0]
    for leg in range(4):
        crossing, waiting = [], []
        for n in buys:
            points, limit = path(rows[n][0]), rows[n][2]
            bound = None if limit is None else Decimal(repr(limit))
            if not left[n] or (bound is not None and points[leg] > bound):
                continue
            if leg and bound is not None and points[leg - 1] > bound:
                crossing.append((n, bound))
            waiting.append((n, points[leg]))
        for n, reference in crossing:
            if not spend(n, reference):
                break
        cash += freed[leg]
        if leg == 0 or freed[leg]:
            for n, reference in waiting:
                if left[n] and not spend(n, reference):
                    break
    return fills, cash + freed[4]


@st.composite
def batches(draw: st.DrawFn) -> tuple[Session, list[tuple[int, float, float | None, float]], int, Friction]:
    count = draw(st.integers(1, 5))
    bars, rows = [], []
    for n in range(count):
        low = draw(st.integers(100, 9_000))
        high = low + draw(st.integers(0, 900))
        opened, close = draw(st.integers(low, high)), draw(st.integers(low, high))
        bars.append((opened / 100, high / 100, low / 100, close / 100, float(draw(st.integers(1, 3_000)))))
        shares = draw(st.integers(1, 400)) * draw(st.sampled_from([-1, 1]))
        limit = draw(st.none() | st.integers(low - 50, high + 50).map(lambda cents: cents / 100))
        rows.append((n, float(shares), limit, draw(st.sampled_from([0.1, 0.5, 1.0]))))
    rows.sort(key=lambda row: row[1] > 0)
    cash = draw(st.integers(0, 3_000_000))
    friction = Friction(draw(st.sampled_from([0.0, 3.0, 40.0])), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    return session_of(*bars), rows, cash, friction


@settings(max_examples=300, deadline=None)
@given(batches())
def test_the_columns_say_what_a_slow_matching_in_decimal_says(
    batch: tuple[Session, list[tuple[int, float, float | None, float]], int, Friction],
) -> None:
    bars, rows, cash, friction = batch
    wanted, left = slow_match(bars, rows, cash, friction)
    matched = run(bars, *rows, cash=cash / 100, friction=friction)
    found: dict[int, list[tuple[Decimal, Decimal]]] = {n: [] for n in range(len(rows))}
    for n in range(len(matched.fills)):
        shares, price = matched.fills.shares[n], round(float(matched.fills.price[n]), 4)
        found[int(matched.fills.order[n])].append((Decimal(int(shares)), Decimal(repr(price))))
    assert found == wanted
    assert matched.cash == left >= 0

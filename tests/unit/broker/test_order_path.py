"""The order path over a brokerage in memory: what goes out, in which order, and what is booked of it.

Long by nature: one test a way in which a broker can answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from oomrl.domain.brokerage import FLATTEN, BrokerFill, BrokerOrder, Holding, Ticket
from oomrl.domain.reconciliation import MismatchKind, Policies, Policy
from oomrl.domain.records import OrderState
from oomrl.domain.trading import ActionKind, Side, UnfilledCause
from oomrl.domain.working import Tactics
from oomrl.errors import BrokerRefusal, Halt, InDoubt, Unavailable
from oomrl.order_path import Opening
from tests.unit.broker.stage import MONDAY, PRICES, TUESDAY, bars, desk, orders


def test_sales_go_out_first_and_buys_once_the_cash_is_there() -> None:
    at = desk(held={"BB": 1800})
    at.broker.money = Decimal(500)
    at.path = replace_opening(at, Opening(MONDAY, Decimal(500), {"BB": Decimal(1800)}))
    at.path.submit(orders({"BB": -1800, "AA": 5000, "CC": 400}))
    execution = at.path.collect(bars())
    assert [order.symbol for order in at.broker.book.values()] == ["BB", "AA", "CC"]
    assert dict(zip(execution.orders.symbols, execution.unfilled.tolist(), strict=True)) == dict.fromkeys(PRICES, 0.0)
    assert at.path.cash() == at.broker.money and at.path.positions() == {"AA": 5000, "CC": 400}


def test_nothing_goes_out_before_the_open_unless_so_set() -> None:
    at = desk()
    at.path.submit(orders({"AA": 10}))
    assert not at.broker.book
    early = desk(Tactics(at_open=True))
    early.path.submit(orders({"AA": 10}))
    assert [order.limit_price for order in early.broker.book.values()] == [None]


def test_an_order_of_much_volume_goes_out_in_slices() -> None:
    at = desk(Tactics(slice_share=Decimal("0.001"), max_slices=5))
    at.path.closed = MONDAY
    at.path.collect(bars(MONDAY, volume=1_000_000.0))
    at.path.submit(orders({"AA": 4000}))
    execution = at.path.collect(bars())
    assert [order.qty for order in at.broker.book.values()] == [1000] * 4
    gaps = [order.submitted_at for order in at.broker.book.values()]
    assert min(b - a for a, b in zip(gaps, gaps[1:], strict=False)) > timedelta(hours=1)
    assert execution.fills.shares.sum() == 4000


def test_a_limit_never_goes_beyond_the_order_s_own() -> None:
    at = desk()
    at.path.submit(orders({"AA": 100, "BB": 100}, {"AA": 10.01, "BB": 80.0}))
    execution = at.path.collect(bars())
    sent = {order.symbol: order.limit_price for order in at.broker.book.values()}
    assert sent == {"AA": Decimal("10.01"), "BB": Decimal("55.47")}
    assert execution.fills.shares.tolist() == [100.0]
    assert execution.causes[execution.orders.symbols.index("AA")] is not UnfilledCause.NONE


def test_a_straggler_is_cancelled_and_replaced_at_the_new_quote() -> None:
    at = desk(Tactics(collar_bps=Decimal(0)))
    asks = iter([Decimal("10.02"), Decimal("10.30"), Decimal("10.30")])
    original = at.broker.quotes

    def moving(symbols):  # type: ignore[no-untyped-def]
        found = original(symbols)
        ask = next(asks, Decimal("10.30"))
        at.broker.prices["AA"] = (Decimal("10.00"), Decimal("10.30"))
        return {symbol: replace(quote, ask=ask) for symbol, quote in found.items()}

    at.broker.quotes = moving  # type: ignore[method-assign]
    at.path.submit(orders({"AA": 100}))
    execution = at.path.collect(bars())
    first, second = at.broker.book.values()
    assert (first.state, second.state) == (OrderState.CANCELLED, OrderState.FILLED)
    assert (first.limit_price, second.limit_price) == (Decimal("10.02"), Decimal("10.30"))
    assert second.client_order_id == first.client_order_id + ".1"
    assert second.submitted_at - first.submitted_at >= Tactics().straggler_after
    assert execution.fills.shares.tolist() == [100.0]


def test_no_order_goes_out_on_a_stale_quote() -> None:
    at = desk()
    original = at.broker.quotes
    at.broker.quotes = lambda symbols: {  # type: ignore[method-assign]
        symbol: replace(quote, at=quote.at - timedelta(minutes=5)) for symbol, quote in original(symbols).items()
    }
    at.path.submit(orders({"AA": 100}))
    assert not len(at.path.collect(bars()).fills)
    assert not at.broker.book


def test_what_is_open_before_the_close_is_swept() -> None:
    at = desk()
    at.broker.depth = Decimal(0)
    at.path.submit(orders({"AA": 100}, {"AA": 9.0}))
    execution = at.path.collect(bars())
    assert {order.state for order in at.broker.book.values()} == {OrderState.CANCELLED}
    assert execution.unfilled.tolist() == [100.0] and not at.broker.open_orders()


def test_submitting_again_sends_nothing_again() -> None:
    at = desk(Tactics(at_open=True))
    at.path.submit(orders({"AA": 10}))
    at.path.submit(orders({"AA": 10}))
    again = desk(Tactics(at_open=True), broker=at.broker, journal=at.journal, opening=at.path.opening)
    again.path.submit(orders({"AA": 10}))
    assert len(at.broker.book) == 1
    assert len(again.path.collect(bars()).fills) == 1


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("error", [InDoubt("no answer"), Unavailable("no connection")])
def test_an_order_without_an_answer_is_adopted_or_sent_again_under_the_same_id(arrived: bool, error: Exception) -> None:
    at = desk(Tactics(at_open=True))
    original, calls = at.broker.place, []

    def losing(ticket: Ticket) -> BrokerOrder:
        calls.append(ticket.client_order_id)
        if len(calls) == 1:
            if arrived:
                original(ticket)
            raise error
        return original(ticket)

    at.broker.place = losing  # type: ignore[method-assign]
    at.path.submit(orders({"AA": 10}))
    at.path.cycle()
    assert len(at.broker.book) == 1 and len(set(calls)) == 1
    assert len(calls) == (1 if arrived else 2)
    assert at.path.collect(bars()).fills.shares.tolist() == [10.0]


def test_a_late_copy_is_refused_as_a_duplicate_and_adopted() -> None:
    """The listing lags: the order is there, but neither listing nor look-up shows it yet."""
    at = desk(Tactics(at_open=True))
    original, hidden = at.broker.place, [True]

    def losing(ticket: Ticket) -> BrokerOrder:
        told = original(ticket)
        if len(at.broker.book) == 1 and hidden[0]:
            raise InDoubt("no answer")
        return told

    find, listing = at.broker.find, at.broker.orders
    at.broker.place = losing  # type: ignore[method-assign]
    at.broker.find = lambda name: None if hidden[0] else find(name)  # type: ignore[method-assign]
    at.broker.orders = lambda since, symbols=(): [] if hidden[0] else listing(since, symbols)  # type: ignore[method-assign]
    at.path.submit(orders({"AA": 10}))
    at.path.cycle()
    assert len(at.broker.book) == 1
    hidden[0] = False
    assert at.path.collect(bars()).fills.shares.tolist() == [10.0]


def test_fills_that_are_told_late_or_twice_are_booked_once() -> None:
    at = desk(Tactics(at_open=True))
    original, turn = at.broker.fills, [0]

    def late(since: datetime) -> list[BrokerFill]:
        turn[0] += 1
        return [] if turn[0] < 3 else [*original(since), *original(since)]

    at.broker.fills = late  # type: ignore[method-assign]
    at.path.submit(orders({"AA": 10, "BB": 5}))
    execution = at.path.collect(bars())
    assert sorted(execution.fills.shares.tolist()) == [5.0, 10.0]
    assert at.path.cash() == at.broker.money


def test_a_fill_that_is_never_told_halts() -> None:
    at = desk(Tactics(at_open=True))
    at.broker.fills = lambda since: []  # type: ignore[method-assign]
    at.path.submit(orders({"AA": 10}))
    with pytest.raises(Halt, match="with its fills told"):
        at.path.collect(bars())


def test_the_kill_switch_stops_before_the_next_order() -> None:
    at = desk(Tactics(at_open=True))
    at.path.guard = failing(after=2)
    with pytest.raises(Halt, match="halted"):
        at.path.submit(orders({"AA": 1, "BB": 1, "CC": 1}))
    assert len(at.broker.book) == 1


def test_a_plain_no_ends_an_order_and_a_no_for_now_is_tried_again() -> None:
    at = desk()
    original, said = at.broker.place, []

    def refusing(ticket: Ticket) -> BrokerOrder:
        said.append(ticket.symbol)
        if ticket.symbol == "AA":
            raise BrokerRefusal("asset AA is not tradable", "42210000")
        if said.count("BB") == 1:
            raise BrokerRefusal("potential wash trade detected", "40310000", later=True)
        return original(ticket)

    at.broker.place = refusing  # type: ignore[method-assign]
    at.path.submit(orders({"AA": 10, "BB": 10}))
    execution = at.path.collect(bars())
    assert (said.count("AA"), said.count("BB")) == (1, 2)
    assert execution.unfilled.tolist() == [10.0, 0.0]


def test_reconciliation_halts_on_an_unknown_position_before_any_order() -> None:
    at = desk(Tactics(at_open=True))
    at.broker.shares["CC"] = Decimal(7)
    with pytest.raises(Halt, match="unknown_position CC: expected 0 shares, was 7"):
        at.path.submit(orders({"AA": 10}))
    assert not at.broker.book
    assert [m.kind for m in at.journal.mismatches] == [MismatchKind.UNKNOWN_POSITION]


def test_each_cycle_compares_books_and_broker_and_halts_before_its_orders() -> None:
    at = desk(Tactics(slice_share=Decimal("0.001"), max_slices=5))
    at.path.closed = MONDAY
    at.path.collect(bars(MONDAY, volume=1_000_000.0))
    at.path.submit(orders({"AA": 4000}))
    follow = at.timer.moved

    def somebody_buys(now: datetime) -> None:
        follow(now)
        if now.hour >= 17:
            at.broker.shares["CC"] = Decimal(7)

    at.timer.moved = somebody_buys
    with pytest.raises(Halt, match="unknown_position CC: expected 0 shares, was 7"):
        at.path.collect(bars())
    assert [order.submitted_at.hour < 17 for order in at.broker.book.values()] == [True] * len(at.broker.book) != []
    assert len(at.broker.book) < 4


def test_a_listing_that_lags_is_no_mismatch_and_an_alert_is_told_once() -> None:
    at = desk()
    original, late = at.broker.holdings, [3]

    def lagging() -> list[Holding]:
        late[0] -= bool(at.broker.shares)
        return [] if late[0] > 0 else list(original())

    at.broker.holdings = lagging  # type: ignore[method-assign]
    at.broker.place(Ticket("somebody-s", "CC", Side.BUY, Decimal(1), Decimal(50)))
    at.path.submit(orders({"AA": 10}))
    at.path.collect(bars())
    assert [(m.kind, m.policy) for m in at.journal.mismatches] == [(MismatchKind.FOREIGN_ORDER, Policy.ALERT)]
    assert len(at.alerts) == 1 and at.path.positions() == {"AA": 10}


def test_what_is_outside_the_fence_is_nobody_s_business() -> None:
    at = desk(Tactics(at_open=True))
    at.broker.shares["CC"] = Decimal(7)
    at.broker.place(Ticket("somebody-s", "CC", Side.BUY, Decimal(1), Decimal(50)))
    at.path = replace_opening(at, Opening(MONDAY, at.broker.money, {}, shared=True, symbols=frozenset({"AA"})))
    at.path.submit(orders({"AA": 10}))
    assert not at.alerts and len(at.broker.book) == 2


def test_a_foreign_order_inside_the_fence_is_told_and_left_alone() -> None:
    at = desk(Tactics(at_open=True))
    at.broker.place(Ticket("somebody-s", "CC", Side.BUY, Decimal(1), Decimal(50)))
    at.path.submit(orders({"AA": 10}))
    assert [(m.kind, m.subject, m.policy) for m in at.alerts] == [
        (MismatchKind.FOREIGN_ORDER, "somebody-s", Policy.ALERT)
    ]
    assert "somebody-s" in {order.client_order_id for order in at.broker.open_orders()}


def test_the_kill_switch_s_own_sales_are_adopted_once_and_stay_adopted() -> None:
    at = desk(held={"AA": 100, "BB": 50})
    at.timer.wait(datetime(2010, 1, 5, 15, tzinfo=UTC))
    at.broker.place(Ticket(f"{FLATTEN}20100105150000-AA", "AA", Side.SELL, Decimal(100)))
    execution = at.path.collect(bars())
    assert [(a.kind, a.symbol, a.shares, a.amount) for a in execution.actions] == [
        (ActionKind.SALE, "AA", Decimal(-100), Decimal("1000.00"))
    ]
    assert at.path.positions() == {"BB": 50} and at.path.cash() == at.broker.money
    assert [(m.kind, m.subject, m.policy) for m in at.alerts] == [(MismatchKind.FLATTENED, "AA", Policy.ADOPT)]
    assert at.journal.mismatches == at.alerts

    # Another process folds the day from the journal, and finds nothing that differs.
    again = desk(broker=at.broker, journal=at.journal, opening=at.path.opening)
    again.path.closed = TUESDAY
    assert again.path.collect(bars()).actions == execution.actions
    again.path.submit(orders({"CC": 10}, day=TUESDAY))
    again.path.collect(bars(date(2010, 1, 6)))
    assert not again.alerts and again.path.positions() == {"BB": 50, "CC": 10}


def test_a_sale_that_waits_for_the_open_is_no_foreign_order_and_is_booked_when_it_fills() -> None:
    at = desk(held={"AA": 100})
    at.broker.place(Ticket(f"{FLATTEN}20100104213000-AA", "AA", Side.SELL, Decimal(100)))
    at.path.begin()
    assert not at.alerts and at.path.positions() == {"AA": 100}
    assert [action.kind for action in at.path.collect(bars()).actions] == [ActionKind.SALE]
    assert at.path.positions() == {} and at.path.cash() == at.broker.money


def test_a_policy_may_halt_on_the_kill_switch_s_sales_too() -> None:
    at = desk(held={"AA": 100}, policies=Policies(flattened=Policy.HALT))
    at.timer.wait(datetime(2010, 1, 5, 15, tzinfo=UTC))
    at.broker.place(Ticket(f"{FLATTEN}20100105150000-AA", "AA", Side.SELL, Decimal(100)))
    with pytest.raises(Halt, match="unknown_position AA"):
        at.path.collect(bars())


def test_cash_halts_beyond_rounding_and_is_adopted_within_it() -> None:
    at = desk(Tactics(at_open=True))
    at.path.submit(orders({"AA": 10}))
    at.broker.money -= Decimal("0.01")
    at.path.collect(bars())
    assert [m.policy for m in at.journal.mismatches] == [Policy.ADOPT]
    assert at.journal.rounding() == Decimal("-0.01")
    at.path.submit(orders({"AA": -1}, day=TUESDAY))
    at.broker.money -= Decimal("5.00")
    with pytest.raises(Halt, match="cash_difference"):
        at.path.collect(bars(date(2010, 1, 6)))


def test_an_endowment_may_show_before_it_is_booked_and_must_show_after() -> None:
    at = desk(Tactics(at_open=True))
    waiting = [Decimal(0)]
    at.path.given = lambda: waiting[0]
    waiting[0] = Decimal(500)
    at.path.reconcile()
    at.broker.money += 500
    at.path.reconcile()
    at.path.deposit(waiting.pop())
    waiting.append(Decimal(0))
    at.path.reconcile()
    assert not at.journal.mismatches
    at.broker.money -= 500
    with pytest.raises(Halt, match="cash_difference cash: expected 100500, was 100000"):
        at.path.reconcile()


def test_a_policy_of_alert_goes_on() -> None:
    at = desk(Tactics(at_open=True), Policies(cash_difference=Policy.ALERT))
    at.broker.money -= Decimal(3)
    at.path.submit(orders({"AA": 10}))
    assert len(at.broker.book) == 1 and [m.kind for m in at.alerts] == [MismatchKind.CASH_DIFFERENCE]


def test_a_blocked_account_halts() -> None:
    at = desk(Tactics(at_open=True))
    at.broker.blocked = "trading_blocked"
    with pytest.raises(Halt, match="account_blocked"):
        at.path.submit(orders({"AA": 10}))


def test_an_order_that_the_broker_lost_halts_and_is_never_sent_again() -> None:
    at = desk(Tactics(at_open=True))
    at.path.submit(orders({"AA": 10}))
    at.broker.book.clear()
    with pytest.raises(Halt, match=r"lost_order|with its fills told"):
        at.path.collect(bars())
    assert not at.broker.book


def test_orders_of_a_session_that_is_over_are_not_sent() -> None:
    at = desk(Tactics(at_open=True))
    at.timer.wait(datetime(2010, 1, 6, 12, tzinfo=UTC))
    at.path.submit(orders({"AA": 10}))
    assert not at.broker.book
    assert at.path.collect(bars()).unfilled.tolist() == [10.0]


def test_history_is_read_from_the_journal_and_asks_the_broker_nothing() -> None:
    at = desk(Tactics(at_open=True))
    at.path.submit(orders({"AA": 10}))
    before = at.path.collect(bars())
    again = desk(Tactics(at_open=True), broker=at.broker, journal=at.journal, opening=at.path.opening)
    again.path.closed = TUESDAY
    for name in ("account", "orders", "fills", "place", "find", "open_orders", "cash_moves"):
        setattr(at.broker, name, None)
    again.path.submit(orders({"AA": 10}))
    after = again.path.collect(bars())
    assert after.fills.cents.tolist() == before.fills.cents.tolist()
    assert again.path.cash() == at.path.cash()


def failing(after: int) -> Callable[[], None]:
    """Return a guard that halts at its n-th question and from then on."""
    asked = [0]

    def guard() -> None:
        asked[0] += 1
        if asked[0] > after:
            raise Halt("halted by a person")

    return guard


def replace_opening(at, opening: Opening):  # type: ignore[no-untyped-def]
    """Return the desk's path as if the books had begun with another opening."""
    fresh = desk(at.path.tactics, opening=opening, broker=at.broker, journal=at.journal)
    fresh.path.alert = at.alerts.append
    return fresh.path

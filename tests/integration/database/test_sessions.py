from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest

from oomrl.adapters.database import Conflict, Store
from oomrl.domain.ledger import Book
from oomrl.domain.records import OrderState
from oomrl.domain.trading import Side, UnfilledCause
from oomrl.errors import Mistake
from tests.integration.database import builders as build
from tests.integration.database.builders import RUN


@pytest.fixture
def store(store: Store) -> Store:
    with store.begin() as work:
        assert work.runs.start(build.run())
    return store


def save(store: Store, *numbers: int) -> list[bool]:
    new = []
    for number in numbers:
        with store.begin() as work:
            new.append(work.sessions.save(RUN, build.record(number)))
    return new


def test_a_session_comes_back_as_it_went_in(store: Store) -> None:
    assert save(store, 0, 1, 2) == [True, True, True]
    with store.read() as view:
        assert view.sessions.marks(RUN) == [build.record(number).mark for number in range(3)]
        assert view.sessions.last_mark(RUN) == build.record(2).mark
        assert view.sessions.decisions(RUN) == [build.record(number).decided for number in range(3)]
        assert view.sessions.checkpoint(RUN) == (build.day(2), {"number": 2, "cash": "10.50"})
        assert view.ledger.entries(RUN, until=build.day(0)) == list(build.entries(0))
        assert view.orders.counts(RUN) == (12, 12)


def test_bars_come_back_to_the_bit(store: Store) -> None:
    save(store, 0, 1, 2)
    with store.read() as view:
        seen = list(view.sessions.bars(RUN, after=build.day(0)))
    assert [one.day for one in seen] == [build.day(1), build.day(2)]
    assert seen[0].symbols is seen[1].symbols
    for one, number in zip(seen, (1, 2), strict=True):
        sent = build.session(number)
        assert one.benchmark == sent.benchmark
        assert list(one.columns) == list(sent.columns)
        for name, column in sent.columns.items():
            assert one.columns[name].tobytes() == column.tobytes()
            with pytest.raises(ValueError):
                one.columns[name][0] = 1.0


def test_orders_and_fills_cross_into_exact_decimals(store: Store) -> None:
    save(store, 0, 1)
    batch = build.orders(0)
    with store.read() as view:
        stored = view.orders.decided_on(RUN, build.day(0))
        fills = view.orders.fills(RUN)
    assert [one.client_order_id for one in stored] == list(batch.ids)
    assert [one.shares for one in stored] == [Decimal(repr(shares)) for shares in batch.shares.tolist()]
    assert [one.limit_price for one in stored] == [batch.record(row).limit_price for row in range(4)]
    assert [one.state for one in stored] == [OrderState.FILLED] * 3 + [OrderState.EXPIRED]
    assert stored[-1].unfilled == stored[-1].shares and stored[-1].cause is UnfilledCause.PARTICIPATION
    assert [(fill.client_order_id, fill.sequence) for fill in fills[:3]] == [
        (batch.ids[0], 1),
        (batch.ids[0], 2),
        (batch.ids[1], 1),
    ]
    assert fills[0].price == Decimal("10.1234") and fills[0].amount == Decimal("-7.59")
    assert fills[0].commission == Decimal("0.35") and fills[0].impact == 0.0014
    assert batch.record(0).side is Side.BUY


def test_an_order_that_works_for_two_sessions_keeps_counting_its_fills(store: Store) -> None:
    save(store, 0, 1)
    later = build.execution(2, build.orders(0))
    with store.begin() as work:
        work.orders.save_execution(RUN, later)
    with store.read() as view:
        first = [fill for fill in view.orders.fills(RUN) if fill.client_order_id == build.orders(0).ids[0]]
    assert [(fill.sequence, fill.day) for fill in first] == [
        (1, build.day(1)),
        (2, build.day(1)),
        (3, build.day(2)),
        (4, build.day(2)),
    ]


def test_writing_a_session_twice_changes_nothing(store: Store) -> None:
    save(store, 0, 1)
    with store.read() as view:
        before = (view.sessions.digest(RUN), view.orders.counts(RUN), view.ledger.entries(RUN))
    assert save(store, 0, 1) == [False, False]
    with store.read() as view:
        assert (view.sessions.digest(RUN), view.orders.counts(RUN), view.ledger.entries(RUN)) == before


def test_history_cannot_be_written_differently(store: Store) -> None:
    save(store, 0)
    other = build.record(0)
    with pytest.raises(Conflict, match="equity"), store.begin() as work:
        work.sessions.save(RUN, replace(other, mark=replace(other.mark, equity=Decimal("1.00"))))
    with pytest.raises(Conflict, match="ledger line"), store.begin() as work:
        work.ledger.post(RUN, [replace(build.entries(0)[0], amount=Decimal("-10.13"))])
    changed = replace(build.orders(0), shares=build.orders(0).shares * 2)
    with pytest.raises(Conflict, match="order"), store.begin() as work:
        work.orders.save(RUN, changed, build.day(1))
    with pytest.raises(Conflict, match="blob"), store.begin() as work:
        work.sessions.save_bars(RUN, replace(build.session(1), day=build.day(0)))


def test_a_failure_in_the_middle_leaves_nothing(store: Store) -> None:
    broken = build.record(1)
    bad = replace(broken, entries=(replace(build.entries(1)[0], amount=Decimal("-10.125")),))
    with pytest.raises(ValueError, match=r"multiple of 0\.01, was -10\.125"), store.begin() as work:
        work.orders.save(RUN, build.orders(0), build.day(1))
        work.sessions.save(RUN, bad)
    with store.read() as view:
        assert view.sessions.marks(RUN) == []
        assert view.orders.counts(RUN) == (0, 0)
        assert view.sessions.checkpoint(RUN) is None
        assert list(view.sessions.bars(RUN)) == []


def test_both_books_sum_exactly(store: Store) -> None:
    with store.begin() as work:
        lines = [
            replace(build.entries(0)[at % 2], key=f"line {at}", amount=Decimal(at) / 100) for at in range(-500, 1001)
        ]
        assert work.ledger.post(RUN, lines) == len(lines)
    with store.read() as view:
        assert view.ledger.cash(RUN) == sum(line.amount for line in lines)
        assert view.ledger.cash(RUN, Book.BOTH) == sum(line.amount for line in lines if line.book is Book.BOTH)


def test_open_orders_are_those_that_may_still_trade(store: Store) -> None:
    save(store, 0, 1)
    with store.read() as view:
        assert [one.client_order_id for one in view.orders.open(RUN)] == list(build.orders(1).ids)


def test_runs_keep_apart(store: Store) -> None:
    with store.begin() as work:
        work.runs.start(build.run("run-2"))
    save(store, 0)
    with store.begin() as work:
        assert work.sessions.save("run-2", build.record(0))
    with store.read() as view:
        assert view.orders.counts(RUN) == view.orders.counts("run-2") == (4, 0)
        assert view.sessions.digest(RUN) == view.sessions.digest("run-2")
        with pytest.raises(Mistake, match="run-3"):
            view.sessions.marks("run-3")


def test_an_empty_batch_is_no_trouble(store: Store) -> None:
    nothing = build.orders(0, count=0)
    empty = np.zeros(0)
    done = build.execution(1, build.orders(0, count=1))
    with store.begin() as work:
        record = replace(build.record(0), orders=nothing, entries=())
        assert work.sessions.save(RUN, record)
        assert work.orders.save(RUN, nothing, None) == 0
        work.orders.save_execution(RUN, replace(done, orders=nothing, unfilled=empty, causes=()))
    with store.read() as view:
        assert view.orders.counts(RUN) == (0, 0)


def test_marks_are_found_by_day(store: Store) -> None:
    save(store, 0, 1, 2, 3)
    with store.read() as view:
        found = view.sessions.marks(RUN, after=build.day(0), until=build.day(2))
        assert [mark.day for mark in found] == [build.day(1), build.day(2)]
        assert view.sessions.marks(RUN, after=build.day(3) + timedelta(days=1)) == []

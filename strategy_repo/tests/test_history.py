"""History keeps what the sessions showed, whatever names do."""

import math

import numpy as np
import pytest
from samples import bars, market
from strategy.history import History

AB = ("A", "B")


def small() -> History:
    return History(level_rows=4, change_rows=3, dollar_rows=2)


def test_nothing_is_known_before_the_first_session():
    history = small()
    assert history.count == 0
    assert history.names == []
    assert history.vector({"A": 5.0}).tolist() == []


def test_first_prints_earn_nothing():
    history = small()
    history.record(bars(AB, [10.0, 20.0]))
    assert history.names == ["A", "B"]
    assert history.level.tolist() == [0.0, 0.0]
    assert history.counted[0].tolist() == [False, False]
    assert history.first.tolist() == [0, 0]
    assert history.last.tolist() == [0, 0]
    assert history.close.tolist() == [10.0, 20.0]


def test_returns_hold_dividends_and_splits():
    history = small()
    history.record(bars(AB, [10.0, 20.0]))
    history.record(bars(AB, [11.0, 9.0], dividend=[0.0, 0.5], split=[1.0, 2.0]))
    assert history.level.tolist() == pytest.approx([math.log(1.1), math.log(0.95)], rel=1e-13)
    assert history.changes[1].tolist() == pytest.approx([math.log(1.1), math.log(0.95)], rel=1e-13)
    assert history.counted[1].tolist() == [True, True]


def test_levels_are_found_by_their_distance_in_sessions():
    history = small()
    closes = [100.0, 110.0, 99.0, 120.0, 60.0, 90.0]
    for close in closes:
        history.record(bars(("A",), [close]))
    for sessions in range(4):
        expected = math.log(closes[-1 - sessions] / closes[0])
        assert history.level_before(sessions)[0] == pytest.approx(expected, abs=1e-13)


def test_rings_forget_the_oldest_session():
    history = small()
    for close, volume in ((10.0, 1.0), (11.0, 2.0), (12.0, 3.0), (15.0, 4.0), (18.0, 5.0)):
        history.record(bars(("A",), [close], volume=[volume]))
    assert sorted(history.dollars[:, 0].tolist()) == [60.0, 90.0]
    assert sorted(history.changes[:, 0].tolist()) == pytest.approx(
        sorted([math.log(12 / 11), math.log(15 / 12), math.log(18 / 15)]), rel=1e-12
    )


def test_a_missed_session_is_bridged_by_the_next_print():
    history = small()
    history.record(bars(AB, [10.0, 20.0]))
    history.record(bars(("A",), [11.0]))
    assert history.level[1] == 0.0
    assert history.counted[1].tolist() == [True, False]
    assert history.dollars[1].tolist() == [11e6, 0.0]
    assert history.last.tolist() == [1, 0]
    history.record(bars(AB, [11.0, 25.0]))
    assert history.level[1] == pytest.approx(math.log(1.25), rel=1e-13)
    assert history.counted[2].tolist() == [True, True]


def test_a_late_listing_gets_its_own_column():
    history = small()
    history.record(bars(("A",), [10.0]))
    history.record(bars(("Z", "A"), [50.0, 11.0]))
    history.record(bars(("Z", "A"), [55.0, 11.0]))
    assert history.names == ["A", "Z"]
    assert history.first.tolist() == [0, 1]
    assert history.level.tolist() == pytest.approx([math.log(1.1), math.log(1.1)], rel=1e-13)
    assert history.levels.shape == (4, 2)
    assert history.level_before(2).tolist() == [0.0, 0.0]


def test_a_name_absent_for_the_whole_window_begins_anew():
    history = small()
    history.record(bars(AB, [10.0, 20.0]))
    for _ in range(2):
        history.record(bars(("A",), [10.0]))
    history.record(bars(AB, [10.0, 30.0]))
    assert history.first[1] == 0
    assert history.level[1] == pytest.approx(math.log(1.5), rel=1e-13)
    for _ in range(3):
        history.record(bars(("A",), [10.0]))
    history.record(bars(AB, [10.0, 90.0]))
    assert history.first[1] == 7
    assert history.level[1] == pytest.approx(math.log(1.5), rel=1e-13)
    assert not history.counted[7 % 3, 1]


def test_a_print_in_quarantine_is_valued_and_earns_nothing():
    history = small()
    history.record(bars(AB, [10.0, 20.0]))
    history.record(bars(AB, [10.0, 2.0], tradable=[1.0, 0.0]))
    assert history.close.tolist() == [10.0, 2.0]
    assert history.level[1] == 0.0
    assert history.counted[1].tolist() == [True, False]
    assert history.tradable.tolist() == [True, False]
    history.record(bars(AB, [10.0, 2.2]))
    assert history.level[1] == pytest.approx(math.log(1.1), rel=1e-12)
    assert history.tradable.tolist() == [True, True]


@pytest.mark.parametrize("bad", [0.0, -3.0, math.nan, math.inf])
@pytest.mark.parametrize("column", ["close", "split"])
def test_a_bar_without_a_price_or_split_counts_as_no_print(column, bad):
    history = small()
    history.record(bars(AB, [10.0, 20.0]))
    session = bars(AB, [11.0, 22.0])
    session[column][1] = bad
    history.record(session)
    assert history.last.tolist() == [1, 0]
    assert history.close.tolist() == [11.0, 20.0]
    assert history.level.tolist() == pytest.approx([math.log(1.1), 0.0], rel=1e-13)
    assert history.dollars[1].tolist() == [11e6, 0.0]


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_impossible_dividends_and_volumes_count_as_none(bad):
    history = small()
    history.record(bars(AB, [10.0, 20.0]))
    history.record(bars(AB, [11.0, 22.0], dividend=[0.0, bad], volume=[1e6, bad]))
    assert history.level.tolist() == pytest.approx([math.log(1.1), math.log(1.1)], rel=1e-13)
    assert history.dollars[1].tolist() == [11e6, 0.0]


def test_what_was_shown_is_copied():
    history = small()
    session = bars(AB, [10.0, 20.0])
    history.record(session)
    session["close"][:] = 1.0
    session["volume"][:] = 1.0
    assert history.close.tolist() == [10.0, 20.0]
    assert history.dollars[0].tolist() == [10e6, 20e6]


def test_holdings_become_an_array():
    history = small()
    history.record(bars(AB, [10.0, 20.0]))
    assert history.vector({"B": 7.0, "unknown": 3.0}).tolist() == [0.0, 7.0]
    assert history.vector({"A": -2.0, "B": math.inf}).tolist() == [0.0, 0.0]


def test_an_empty_market_is_a_session_too():
    history = small()
    history.record(bars((), []))
    assert history.count == 1
    history.record(bars(AB, [10.0, 20.0]))
    assert history.first.tolist() == [1, 1]


@pytest.mark.parametrize("seed", range(6))
def test_levels_agree_with_wealth_followed_print_by_print(seed):
    sessions = market(seed)
    history = History(level_rows=80, change_rows=70, dollar_rows=5)
    wealth: dict = {}
    close: dict = {}
    for session in sessions:
        history.record(session)
        for row, symbol in enumerate(session["symbols"]):
            price = float(session["close"][row])
            if symbol in close and session["tradable"][row]:
                paid = price + float(session["dividend"][row])
                wealth[symbol] *= float(session["split"][row]) * paid / close[symbol]
            wealth.setdefault(symbol, 1.0)
            close[symbol] = price
        assert np.isfinite(history.levels).all()
    assert len(history.names) == len(wealth) >= 8
    for slot, symbol in enumerate(history.names):
        assert math.exp(history.level[slot]) == pytest.approx(wealth[symbol], rel=1e-9)

"""Features against plain calculations from the bars."""

import math

import numpy as np
import pytest
from samples import PARAMS, bars, market
from strategy import features, parameters
from strategy.history import History


def shown(sessions: list, read: parameters.Parameters) -> History:
    history = History(read.momentum_window + 1, read.volatility_window, read.liquidity_window)
    for session in sessions:
        history.record(session)
    return history


def by_hand(sessions: list) -> dict:
    """Follow each name print by print: {symbol: {session: (return or None, dollars)}}."""
    close: dict = {}
    prints: dict = {}
    for day, session in enumerate(sessions):
        for row, symbol in enumerate(session["symbols"]):
            price = float(session["close"][row])
            change = None
            if symbol in close and session["tradable"][row]:
                paid = price + float(session["dividend"][row])
                change = math.log(float(session["split"][row]) * paid / close[symbol])
            close[symbol] = price
            prints.setdefault(symbol, {})[day] = (change, price * float(session["volume"][row]))
    return prints


@pytest.mark.parametrize("seed", range(8))
def test_every_feature_agrees_with_a_plain_calculation(seed):
    sessions = market(seed)
    read = parameters.read({**PARAMS, "volatility_window": 30})
    history = shown(sessions, read)
    measured = features.measure(history, read)
    today = len(sessions) - 1
    for symbol, prints in by_hand(sessions).items():
        slot = history.slots[symbol]
        first, last = min(prints), max(prints)
        assert measured.age[slot] == today - first
        assert measured.silent[slot] == today - last
        assert measured.tradable[slot] == (last == today and bool(history.tradable[slot]))

        dollars = sorted(prints.get(day, (None, 0.0))[1] for day in range(today - 9, today + 1))
        assert measured.dollars[slot] == pytest.approx((dollars[4] + dollars[5]) / 2, rel=1e-12)

        window = [prints[day][0] for day in range(today - 29, today + 1) if day in prints]
        had = [change for change in window if change is not None]
        assert measured.observed[slot] == len(had)
        variance = sum(change * change for change in had) / max(len(had), 1)
        assert measured.volatility[slot] == pytest.approx(max(math.sqrt(variance), 0.002), rel=1e-9)

        def between(begin: int, end: int, prints: dict = prints) -> float:
            return math.expm1(sum(change or 0.0 for day, (change, _) in prints.items() if begin < day <= end))

        assert measured.momentum_known[slot] == (today - first >= 40)
        momentum = between(today - 40, today - 5) if today - first >= 40 else 0.0
        assert measured.momentum[slot] == pytest.approx(momentum, abs=1e-9)
        recent = between(today - 4, today) if today - first >= 4 else 0.0
        assert measured.recent[slot] == pytest.approx(recent, abs=1e-9)


def test_young_names_have_no_momentum_and_no_recent_return():
    read = parameters.read(PARAMS)
    measured = features.measure(shown([bars(("A",), [10.0]), bars(("A",), [15.0])], read), read)
    assert measured.age.tolist() == [1]
    assert measured.momentum_known.tolist() == [False]
    assert measured.momentum.tolist() == [0.0]
    assert measured.recent.tolist() == [0.0]


def test_a_name_turns_old_enough_in_the_session_that_completes_its_window():
    read = parameters.read(PARAMS)
    sessions = [bars(("A",), [10.0 + day]) for day in range(41)]
    before = features.measure(shown(sessions[:40], read), read)
    after = features.measure(shown(sessions, read), read)
    assert before.momentum_known.tolist() == [False]
    assert after.momentum_known.tolist() == [True]
    assert after.momentum[0] == pytest.approx(45.0 / 10.0 - 1.0, rel=1e-12)
    assert after.recent[0] == pytest.approx(50.0 / 46.0 - 1.0, rel=1e-12)


def test_a_price_that_never_moves_counts_as_a_little_volatile():
    read = parameters.read(PARAMS)
    measured = features.measure(shown([bars(("A",), [10.0])] * 30, read), read)
    assert measured.volatility.tolist() == [features.VOLATILITY_FLOOR]
    assert measured.observed.tolist() == [20]


def test_liquidity_uses_only_the_sessions_there_were():
    read = parameters.read(PARAMS)
    measured = features.measure(shown([bars(("A",), [10.0], volume=[count]) for count in (5, 7, 9)], read), read)
    assert measured.dollars.tolist() == [70.0]


def test_a_name_that_was_never_printed_is_not_tradable():
    read = parameters.read(PARAMS)
    measured = features.measure(shown([bars(("A", "B"), [10.0, math.nan])], read), read)
    assert measured.tradable.tolist() == [True, False]
    assert measured.age.tolist() == [0, 0]
    assert measured.silent.tolist() == [0, 1]


def test_an_empty_market_has_empty_features():
    read = parameters.read(PARAMS)
    measured = features.measure(shown([bars((), [])], read), read)
    assert measured.dollars.tolist() == []
    assert measured.volatility.tolist() == []
    assert np.array_equal(measured.tradable, np.zeros(0, dtype=bool))

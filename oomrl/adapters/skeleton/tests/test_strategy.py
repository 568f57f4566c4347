"""Each test stands alone: no conftest, no plugins, any order."""

import numpy as np
import pytest
from strategy import Strategy
from strategy.weights import equal_weight

PARAMS = {"window": 3, "places": 2, "exposure": 0.9, "participation": 0.05}
PORTFOLIO = {"date": "2001-01-05", "equity": 1000.0, "cash": 1000.0, "shares": {}}


def session(volumes, tradable=None):
    names = tuple(sorted(volumes))
    count = len(names)
    return {
        "date": "2001-01-01",
        "symbols": names,
        "close": np.full(count, 10.0),
        "volume": np.array([volumes[name] for name in names]),
        "tradable": np.array([1.0 if tradable is None or name in tradable else 0.0 for name in names]),
    }


def decided(sessions):
    strategy = Strategy(PARAMS)
    for bars in sessions:
        strategy.on_session(bars)
    return strategy.decide(PORTFOLIO)


def test_the_most_traded_names_share_the_exposure():
    bars = session({"A": 1.0, "B": 3.0, "C": 2.0})
    answer = decided([bars, bars, bars])
    assert answer["action"] == "target"
    assert answer["weights"] == {"B": 0.45, "C": 0.45}
    assert answer["plan"]["B"] == {"max_participation": 0.05, "sessions": 1, "limit_bps": None}
    assert answer["plan"].keys() == answer["reasons"].keys() == answer["weights"].keys()


def test_the_median_counts_and_not_one_wild_day():
    calm, wild = session({"A": 5.0, "B": 4.0, "C": 1.0}), session({"A": 5.0, "B": 4.0, "C": 99.0})
    assert decided([calm, wild, calm])["weights"].keys() == {"A", "B"}


def test_only_the_last_sessions_count():
    old, new = session({"A": 9.0, "B": 4.0, "C": 3.0}), session({"A": 1.0, "B": 4.0, "C": 3.0})
    assert decided([old, old, old, new, new, new])["weights"].keys() == {"B", "C"}


def test_names_of_the_same_volume_are_taken_in_their_order():
    bars = session({"C": 1.0, "B": 1.0, "A": 1.0})
    assert list(decided([bars, bars, bars])["weights"]) == ["A", "B"]


def test_a_name_that_does_not_trade_today_is_not_wanted():
    bars, halted = session({"A": 3.0, "B": 2.0, "C": 1.0}), session({"A": 3.0, "B": 2.0, "C": 1.0}, {"B", "C"})
    assert decided([bars, bars, halted])["weights"].keys() == {"B", "C"}


def test_nothing_is_decided_before_the_window_is_full():
    bars = session({"A": 1.0})
    assert decided([bars, bars]) == {"action": "hold", "reason": "no name has traded for long enough"}
    assert decided([bars, bars, bars])["weights"] == {"A": 0.45}


def test_one_session_and_one_place_are_enough():
    strategy = Strategy({"window": 1, "places": 1, "exposure": 1.0, "participation": 0.1})
    strategy.on_session(session({"A": 1.0, "B": 2.0}))
    assert strategy.decide(PORTFOLIO)["weights"] == {"B": 1.0}


@pytest.mark.parametrize("wrong", [{"window": 0}, {"places": 0}])
def test_parameters_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match="at least one session and one place"):
        Strategy(PARAMS | wrong)


def test_equal_weights_sum_to_the_exposure():
    assert equal_weight(0.8, 4) == pytest.approx(0.2)

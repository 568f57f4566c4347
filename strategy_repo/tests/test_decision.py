"""The answer says what, how and why, in plain values."""

import numpy as np
import pytest
from samples import PARAMS, measured
from strategy import decision, parameters
from strategy.ranks import Scores

NAMES = ["A", "B", "C", "D", "E"]
READ = parameters.read(PARAMS)
FEATURES = measured(5, dollars=[1e6, 2e6, 4e6, 8e6, 1e6], volatility=[0.01, 0.02, 0.03, 0.04, 0.05])
SCORES = Scores(
    momentum=np.array([0.9, 0.7, 0.5, 0.3, 0.1]),
    volatility=np.array([0.1, 0.3, 0.5, 0.7, 0.9]),
    reversal=np.full(5, 0.5),
    total=np.array([0.62, 0.61, 0.5, 0.39, 0.25]),
)


def targets(current: list, wanted: list) -> decision.Targets:
    return decision.Targets(
        current=np.array(current),
        wanted=np.array(wanted),
        universe=np.array([True, True, True, False, False]),
        frozen=np.array([False, False, False, False, True]),
    )


def answer(current: list, wanted: list) -> dict:
    return decision.target(NAMES, targets(current, wanted), FEATURES, SCORES, 1e6, READ)


def test_weights_are_plain_numbers_of_names_that_are_to_be_held():
    made = answer([0.0, 0.2, 0.3, 0.1, 0.1], [0.25, 0.2, 0.15, 0.0, 0.1])
    assert made["action"] == "target"
    assert made["weights"] == {"A": 0.25, "B": 0.2, "C": 0.15, "E": 0.1}
    assert all(type(weight) is float for weight in made["weights"].values())


def test_each_order_has_a_plan_and_others_have_none():
    made = answer([0.0, 0.2, 0.3, 0.1, 0.1], [0.25, 0.2, 0.15, 0.0, 0.1])
    assert sorted(made["plan"]) == ["A", "C", "D"]
    # 250,000 at 50,000 a session; 150,000 at 200,000; 100,000 at 400,000.
    assert [made["plan"][name]["sessions"] for name in "ACD"] == [3, 1, 1]
    assert [made["plan"][name]["limit_bps"] for name in "ACD"] == pytest.approx([200.0, 600.0, 800.0], abs=1e-9)


def test_each_name_has_a_reason():
    reasons = answer([0.0, 0.2, 0.3, 0.1, 0.1], [0.25, 0.2, 0.15, 0.0, 0.1])["reasons"]
    assert reasons == {
        "A": "buy: score 0.62 (momentum 0.90, volatility 0.10, reversal 0.50)",
        "B": "keep: score 0.61 (momentum 0.70, volatility 0.30, reversal 0.50)",
        "C": "sell: score 0.50 (momentum 0.50, volatility 0.50, reversal 0.50)",
        "D": "sell: not in the universe",
        "E": "keep: does not trade",
    }


def test_a_name_outside_the_universe_that_stays_is_kept_for_its_score():
    reasons = answer([0.0, 0.0, 0.0, 0.2, 0.0], [0.3, 0.0, 0.0, 0.2, 0.0])["reasons"]
    assert reasons["D"].startswith("keep: score 0.39")


def test_changes_too_small_to_trade_are_no_orders():
    made = answer([0.1, 0.2, 0.0, 0.0, 0.0], [0.1 + 9e-7, 0.2 + 2e-6, 0.0, 0.0, 0.0])
    assert sorted(made["plan"]) == ["B"]
    assert answer([0.1, 0.2, 0.0, 0.0, 0.0], [0.1 + 9e-7, 0.2 - 9e-7, 0.0, 0.0, 0.0])["action"] == "hold"


def test_nothing_to_do_is_a_hold_with_its_reason():
    assert answer([0.1, 0.2, 0.0, 0.0, 0.0], [0.1, 0.2, 0.0, 0.0, 0.0]) == {
        "action": "hold",
        "reason": "every name is inside its no-trade band or out of reach",
    }


def test_an_empty_universe_holds_cash():
    nobody = decision.Targets(np.zeros(5), np.zeros(5), np.zeros(5, dtype=bool), np.zeros(5, dtype=bool))
    assert decision.target(NAMES, nobody, FEATURES, SCORES, 1e6, READ) == {
        "action": "hold",
        "reason": "no name may be bought: cash is held",
    }

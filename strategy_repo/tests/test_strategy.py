"""The whole strategy: what it buys, keeps and sells as sessions go by."""

import math

import numpy as np
import pytest
from samples import PARAMS, bars, decisions, market, portfolio
from strategy import Strategy
from strategy.features import VOLATILITY_FLOOR

NAMES = tuple(f"N{slot}" for slot in range(10))


def trending(days: int = 60, names: tuple = NAMES) -> list:
    """Return sessions in which later names rise faster, all equally volatile."""
    drift = 0.001 * np.arange(len(names))
    sign = np.where(np.arange(len(names)) % 2 == 0, 1.0, -1.0)
    sessions = []
    for day in range(days):
        close = 50.0 * np.exp(drift * day + 0.01 * sign * (day % 2))
        sessions.append(bars(names, close))
    return sessions


def started(sessions: list, **params: float) -> Strategy:
    strategy = Strategy({**PARAMS, **params})
    for session in sessions:
        strategy.on_session(session)
    return strategy


MOMENTUM_ONLY = {
    "momentum_weight": 1.0,
    "volatility_weight": 0.0,
    "reversal_weight": 0.0,
    "volatility_sizing": 0.0,
}


def test_before_the_first_session_it_holds():
    answer = Strategy(PARAMS).decide(portfolio(1e6, {}))
    assert answer == {"action": "hold", "reason": "no session was shown yet"}


@pytest.mark.parametrize("equity", [0.0, -5.0, math.nan, math.inf])
def test_without_equity_it_holds(equity):
    answer = started(trending()).decide(portfolio(equity, {"N1": 5.0}))
    assert answer["action"] == "hold"
    assert answer["reason"].startswith("Expected equity above 0, was")


def test_until_names_are_old_enough_it_holds_cash():
    answer = started(trending(20)).decide(portfolio(1e6, {}))
    assert answer == {"action": "hold", "reason": "no name may be bought: cash is held"}
    assert started(trending(21)).decide(portfolio(1e6, {}))["action"] == "target"


def test_it_buys_the_winners():
    answer = started(trending(), **MOMENTUM_ONLY).decide(portfolio(1e6, {}))
    assert sorted(answer["weights"]) == ["N6", "N7", "N8", "N9"]
    assert sum(answer["weights"].values()) == pytest.approx(0.95, abs=1e-9)
    assert max(answer["weights"].values()) <= 0.25


def test_the_losers_of_the_last_days_are_bought_for_reversal():
    sessions = trending()
    fallen = sessions[-1]["close"].copy()
    fallen[:4] *= [0.80, 0.85, 0.90, 0.95]
    only = {"momentum_weight": 0.0, "volatility_weight": 0.0, "reversal_weight": 1.0}
    answer = started([*sessions, bars(NAMES, fallen)], **only).decide(portfolio(1e6, {}))
    assert sorted(answer["weights"]) == ["N0", "N1", "N2", "N3"]


def test_quiet_names_are_bought_for_low_volatility_and_get_more():
    wobble = np.where(np.arange(10) < 4, 0.004, 0.02) * (1 + np.arange(10) / 10)
    sessions = [bars(NAMES, 50.0 * np.exp(wobble * (day % 2))) for day in range(60)]
    only = {"momentum_weight": 0.0, "volatility_weight": 1.0, "reversal_weight": 0.0, "max_weight": 0.35}
    weights = started(sessions, **only).decide(portfolio(1e6, {}))["weights"]
    assert sorted(weights) == ["N0", "N1", "N2", "N3"]
    inverse = [1.0, 1 / 1.1, 1 / 1.2, 1 / 1.3]
    expected = [0.95 * share / sum(inverse) for share in inverse]
    assert [weights[name] for name in ("N0", "N1", "N2", "N3")] == pytest.approx(expected, rel=1e-9)


def test_a_held_name_that_ranks_well_enough_is_kept_and_then_left_alone():
    strategy = started(trending(), **MOMENTUM_ONLY)
    shares = {name: 0.2375 * 1e6 / (50.0 * math.exp(0.001 * slot * 59)) for slot, name in enumerate(NAMES)}
    # N4 ranks sixth: inside keep_fraction 0.6 of ten names, outside hold_fraction 0.4.
    held = {name: shares[name] for name in ("N4", "N7", "N8", "N9")}
    answer = strategy.decide(portfolio(1e6, held))
    assert answer["action"] == "hold"
    held = {name: shares[name] for name in ("N3", "N7", "N8", "N9")}
    answer = strategy.decide(portfolio(1e6, held))
    assert sorted(answer["weights"]) == ["N6", "N7", "N8", "N9"]
    assert sorted(answer["plan"]) == ["N3", "N6"]


def test_small_drifts_stay_inside_the_band_and_keep_their_exact_weight():
    sessions = trending()
    close = {name: float(sessions[-1]["close"][slot]) for slot, name in enumerate(NAMES)}
    weights = {"N6": 0.22, "N7": 0.25, "N8": 0.23, "N9": 0.10}
    shares = {name: weight * 1e6 / close[name] for name, weight in weights.items()}
    answer = started(sessions, **MOMENTUM_ONLY).decide(portfolio(1e6, shares))
    for name in ("N6", "N7", "N8"):
        assert answer["weights"][name] == shares[name] * close[name] / 1e6
    assert sorted(answer["plan"]) == ["N9"]
    assert answer["weights"]["N9"] == pytest.approx(0.2375, abs=1e-9)


@pytest.mark.parametrize("ratio", [2.0, 0.1])
def test_a_split_trades_nothing(ratio):
    sessions = trending()
    last = sessions[-1]["close"]
    split = np.where(np.arange(10) == 8, ratio, 1.0)
    sessions.append(bars(NAMES, last / split, split=split))
    quiet = bars(NAMES, last / split)
    held = {f"N{slot}": 0.2375 * 1e6 / last[slot] * split[slot] for slot in (6, 7, 8, 9)}
    params = {**MOMENTUM_ONLY, "min_dollar_volume": 0.0}
    for later in range(3):
        answer = started([*sessions, *[quiet] * later], **params).decide(portfolio(1e6, held))
        assert answer == {"action": "hold", "reason": "every name is inside its no-trade band or out of reach"}


def test_a_name_that_leaves_the_universe_is_sold():
    sessions = trending()
    cheap = sessions[-1]["close"].copy()
    cheap[9] = 4.0
    answer = started([*sessions, bars(NAMES, cheap)]).decide(portfolio(1e6, {"N9": 10_000.0}))
    assert "N9" not in answer["weights"]
    assert answer["reasons"]["N9"] == "sell: not in the universe"


@pytest.mark.parametrize("halted", [{"tradable": [1.0] * 9 + [0.0]}, {"names": NAMES[:9]}])
def test_a_name_that_does_not_trade_keeps_its_shares(halted):
    sessions = trending()
    names = halted.get("names", NAMES)
    columns = {"tradable": halted["tradable"]} if "tradable" in halted else {}
    last = bars(names, sessions[-1]["close"][: len(names)], **columns)
    close = float(sessions[-1]["close"][9])
    answer = started([*sessions, last]).decide(portfolio(1e6, {"N9": 6_000.0}))
    assert answer["weights"]["N9"] == 6_000.0 * close / 1e6
    assert answer["reasons"]["N9"] == "keep: does not trade"
    assert "N9" not in answer["plan"]
    assert sum(answer["weights"].values()) <= 0.95 + 1e-12


def test_names_that_do_not_trade_leave_less_for_the_others():
    sessions = trending()
    last = bars(NAMES, sessions[-1]["close"], tradable=[1.0] * 9 + [0.0])
    close = {name: float(sessions[-1]["close"][slot]) for slot, name in enumerate(NAMES)}
    held = {"N9": 0.5 * 1e6 / close["N9"], "N8": 0.3 * 1e6 / close["N8"]}
    weights = started([*sessions, last], **MOMENTUM_ONLY).decide(portfolio(1e6, held))["weights"]
    assert weights["N9"] == pytest.approx(0.5, abs=1e-12)
    # 0.95 - 0.5 is left for four names; 0.3 is far outside the band of 0.1125.
    assert [weights[name] for name in ("N5", "N6", "N7", "N8")] == pytest.approx([0.1125] * 4, abs=1e-9)


def test_a_halted_name_that_comes_back_is_traded_again():
    sessions = trending()
    halted = bars(NAMES, sessions[-1]["close"], tradable=[0.0] + [1.0] * 9)
    close = float(sessions[-1]["close"][0])
    strategy = started([*sessions, halted])
    held = {"N0": 0.2 * 1e6 / close}
    assert strategy.decide(portfolio(1e6, held))["weights"]["N0"] == pytest.approx(0.2, abs=1e-12)
    strategy.on_session(sessions[-1])
    assert "N0" not in strategy.decide(portfolio(1e6, held))["weights"]


def test_a_name_that_does_not_trade_is_not_bought():
    sessions = trending()
    last = bars(NAMES, sessions[-1]["close"], tradable=[1.0] * 9 + [0.0])
    answer = started([*sessions, last], **MOMENTUM_ONLY).decide(portfolio(1e6, {}))
    assert "N9" not in answer["weights"]


def test_a_name_that_stops_printing_is_given_up_after_the_gap():
    sessions = trending()
    gone = bars(NAMES[:9], sessions[-1]["close"][:9])
    waiting = started([*sessions, *[gone] * 3]).decide(portfolio(1e6, {"N9": 100.0}))
    assert waiting["weights"]["N9"] > 0.0
    given_up = started([*sessions, *[gone] * 4]).decide(portfolio(1e6, {"N9": 100.0}))
    assert "N9" not in given_up["weights"]
    assert given_up["reasons"]["N9"] == "sell: not in the universe"
    assert given_up["plan"]["N9"]["sessions"] == 1


def test_a_name_that_is_given_up_is_given_up_whole():
    sessions = trending()
    gone = bars(NAMES[:9], sessions[-1]["close"][:9])
    equity = 1e10
    held = {"N9": 0.4 * equity / float(sessions[-1]["close"][9])}
    answer = started([*sessions, *[gone] * 4]).decide(portfolio(equity, held))
    assert "N9" not in answer["weights"]
    assert answer["plan"]["N9"]["sessions"] == 3


def test_a_large_account_moves_only_as_far_as_volume_allows():
    equity = 1e10
    answer = started(trending(), **MOMENTUM_ONLY).decide(portfolio(equity, {}))
    close = 50.0 * np.exp(0.001 * np.arange(10) * 59 + 0.01 * np.where(np.arange(10) % 2 == 0, 1.0, -1.0))
    for name, weight in answer["weights"].items():
        assert weight * equity <= 3 * 0.05 * 1e6 * close[NAMES.index(name)] * 1.02
        assert answer["plan"][name]["max_participation"] == 0.05
        assert answer["plan"][name]["sessions"] == 3


def test_a_position_never_grows_beyond_its_share_of_daily_dollars():
    equity = 1e9
    sessions = trending()
    close = float(sessions[-1]["close"][9])
    shares = 0.5 * 1e6
    answer = started(sessions, **MOMENTUM_ONLY).decide(portfolio(equity, {"N9": shares}))
    assert answer["weights"]["N9"] * equity == pytest.approx(shares * close, rel=0.03)


def test_one_name_is_held_with_the_weight_of_few_names():
    answer = started(trending(60, ("A",))).decide(portfolio(1e6, {}))
    assert answer["weights"] == {"A": pytest.approx(0.35, abs=1e-12)}


def test_holdings_never_shown_are_left_to_the_service():
    answer = started(trending()).decide(portfolio(1e6, {"UNKNOWN": 10.0}))
    assert "UNKNOWN" not in answer["weights"]
    assert "UNKNOWN" not in answer["plan"]


def test_a_market_that_never_moves_is_held_without_nan():
    sessions = [bars(NAMES, [20.0] * 10)] * 60
    strategy = started(sessions)
    weights = strategy.decide(portfolio(1e6, {}))["weights"]
    assert sorted(weights) == ["N0", "N1", "N2", "N3"]
    assert list(weights.values()) == pytest.approx([0.2375] * 4, abs=1e-12)
    limit = strategy.decide(portfolio(1e6, {}))["plan"]["N0"]["limit_bps"]
    assert limit == pytest.approx(2.0 * VOLATILITY_FLOOR * 1e4, abs=1e-9)


@pytest.mark.parametrize("names", [0, 1, 2, 5, 40, 300])
def test_any_number_of_names(names):
    chance = np.random.default_rng(names)
    symbols = tuple(f"S{slot:04d}" for slot in range(names))
    sessions = [bars(symbols, 50.0 * np.exp(row)) for row in chance.normal(0, 0.02, (45, names)).cumsum(axis=0)]
    most = 0
    for _, answer in decisions(Strategy(PARAMS), sessions, every=10):
        weights = answer.get("weights", {})
        assert sum(weights.values()) <= 0.95 + 1e-9
        most = max(most, len(weights))
    assert most == min(names, max(2, min(10, round(0.4 * names))))


@pytest.mark.parametrize("seed", range(6))
def test_every_answer_is_well_formed_and_within_its_limits(seed):
    sessions = market(seed, 90, 12)
    traded = 0
    for told, answer in decisions(Strategy(PARAMS), sessions, every=3):
        if answer["action"] == "hold":
            assert sorted(answer) == ["action", "reason"]
            continue
        assert sorted(answer) == ["action", "plan", "reasons", "weights"]
        weights = answer["weights"]
        assert all(math.isfinite(weight) and weight > 0.0 for weight in weights.values())
        assert sum(weights.values()) <= 1.0
        assert set(weights) <= set(answer["reasons"])
        assert set(answer["plan"]) <= set(weights) | set(told["shares"])
        for plan in answer["plan"].values():
            assert sorted(plan) == ["limit_bps", "max_participation", "sessions"]
            assert 1 <= plan["sessions"] <= 3
            assert plan["max_participation"] == 0.05
            assert plan["limit_bps"] >= 2.0 * VOLATILITY_FLOOR * 1e4
        traded += len(answer["plan"])
    assert traded > 10

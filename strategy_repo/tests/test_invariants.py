"""What must not matter does not: later sessions, labels, the calendar, the unit of prices, a restart."""

import numpy as np
import pytest
from samples import PARAMS, decisions, market
from strategy import Strategy


def same(one: list, other: list) -> None:
    """Check that two runs decided alike, weights to 1e-9."""
    assert len(one) == len(other)
    for (_, first), (_, second) in zip(one, other, strict=True):
        assert first["action"] == second["action"]
        assert first.get("weights", {}) == pytest.approx(second.get("weights", {}), abs=1e-9)
        assert list(first.get("plan", {})) == list(second.get("plan", {}))
        assert first.get("reasons", {}) == second.get("reasons", {})


@pytest.mark.parametrize("seed", range(3))
def test_later_sessions_change_no_earlier_decision(seed):
    sessions = market(seed, 80)
    other = [*sessions[:50], *market(seed + 100, 80)[50:]]
    one, two = decisions(Strategy(PARAMS), sessions), decisions(Strategy(PARAMS), other)
    same(one[:10], two[:10])
    assert any(answer["action"] == "target" for _, answer in one[:10])


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_keep_their_order_do_not_matter(seed):
    sessions = market(seed)
    renamed = [{**session, "symbols": tuple(f"Z{label}.X" for label in session["symbols"])} for session in sessions]
    plain, other = decisions(Strategy(PARAMS), sessions), decisions(Strategy(PARAMS), renamed)
    back = [
        (told, {key: unlabelled(value) if isinstance(value, dict) else value for key, value in answer.items()})
        for told, answer in other
    ]
    same(plain, back)


def unlabelled(table: dict) -> dict:
    return {label[1:-2]: value for label, value in table.items()}


@pytest.mark.parametrize("seed", range(3))
def test_the_calendar_does_not_matter(seed):
    sessions = market(seed)
    dates = [
        str(np.datetime64("2013-07-01") + np.timedelta64(day + 2 * (day // 5), "D")) for day in range(len(sessions))
    ]
    moved = [{**session, "date": date} for session, date in zip(sessions, dates, strict=True)]
    same(decisions(Strategy(PARAMS), sessions), decisions(Strategy(PARAMS), moved))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("factor", [0.125, 2.0, 64.0])
def test_the_unit_of_prices_does_not_matter(seed, factor):
    sessions = market(seed)
    prices = ("open", "high", "low", "close", "dividend")
    scaled = [
        {
            **session,
            **{column: session[column] * factor for column in prices},
            "volume": session["volume"] / factor,
        }
        for session in sessions
    ]
    params = {**PARAMS, "min_price": PARAMS["min_price"] * factor}
    same(decisions(Strategy(PARAMS), sessions), decisions(Strategy(params), scaled))


@pytest.mark.parametrize("seed", range(3))
def test_a_restart_does_not_matter(seed):
    sessions = market(seed)
    made = decisions(Strategy(PARAMS), sessions)
    for number, (told, answer) in enumerate(made):
        if number % 4 == 0:
            fresh = Strategy(PARAMS)
            for session in sessions[: 5 * number + 1]:
                fresh.on_session(session)
            assert fresh.decide(told) == answer
            assert fresh.decide(told) == answer


@pytest.mark.parametrize("seed", range(3))
def test_the_size_of_a_small_account_does_not_matter(seed):
    sessions = market(seed)
    small = decisions(Strategy(PARAMS), sessions, cash=1e3)
    smaller = decisions(Strategy(PARAMS), sessions, cash=1e1)
    assert [answer.get("weights", {}) for _, answer in small] == [
        pytest.approx(answer.get("weights", {}), abs=1e-9) for _, answer in smaller
    ]


@pytest.mark.parametrize("seed", range(3))
def test_names_that_may_never_be_bought_do_not_matter(seed):
    sessions = market(seed)
    without = []
    for session in sessions:
        stay = np.array([label not in ("N00", "N01") for label in session["symbols"]])
        columns = {key: value[stay] for key, value in session.items() if key not in ("date", "symbols")}
        symbols = tuple(label for label in session["symbols"] if label not in ("N00", "N01"))
        without.append({"date": session["date"], "symbols": symbols, **columns})
    same(decisions(Strategy(PARAMS), sessions), decisions(Strategy(PARAMS), without))

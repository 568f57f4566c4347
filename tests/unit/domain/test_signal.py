from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from oomrl.domain.market import Floats
from oomrl.domain.signal import Declared, growth_of, ranks, signal_facts

DECLARED = Declared(60, 10, 40, 5, (1.0, 1.0, 0.5))
RNG = np.random.default_rng(0)
RETURNS = RNG.normal(0, 0.02, (200, 40)) * RNG.uniform(0.5, 1.5, 40)
GROWTH = np.cumprod(1 + RETURNS, axis=0)


def score(session: int, signs: tuple[float, float, float] = (1, 1, 1)) -> Floats:
    """Compute the declared signal a second time."""
    momentum = GROWTH[session - 10] / GROWTH[session - 60] - 1
    volatility = np.std(RETURNS[session - 39 : session + 1], axis=0)
    recent = GROWTH[session] / GROWTH[session - 5] - 1
    parts = [stats.rankdata(x) for x in (momentum, -volatility, -recent)]
    return sum(w * sign * part for w, sign, part in zip(DECLARED.weights, signs, parts, strict=True))  # type: ignore[return-value]


def decided(late: int = 0, every: int = 5, **changes: tuple[float, float, float]) -> list[tuple[int, Floats]]:
    """Hold the best third by the signal, equally."""
    made = []
    for session in range(70, 200, every):
        value = score(session - late, **changes)
        made.append((session, np.where(value >= np.sort(value)[-13], 1 / 13, 0.0)))
    return made


def test_decisions_that_follow_the_signal_agree_with_it() -> None:
    facts = signal_facts(decided(), GROWTH, DECLARED)
    assert facts is not None
    assert facts.agreement.value > 0.6
    assert facts.lag == 0
    assert facts.decisions == 26
    assert all(mean.t > 3 for mean in facts.factors.values())


@pytest.mark.parametrize("late", [1, 2, 4])
def test_a_stale_signal_shows_its_lag(late: int) -> None:
    facts = signal_facts(decided(late), GROWTH, DECLARED)
    assert facts is not None
    assert facts.lag == late
    assert facts.lag_gain.t > 3


@pytest.mark.parametrize(
    ("signs", "turned"), [((-1, 1, 1), "momentum"), ((1, -1, 1), "low_volatility"), ((1, 1, -1), "reversal")]
)
def test_a_factor_that_is_turned_round_has_a_negative_coefficient(
    signs: tuple[float, float, float], turned: str
) -> None:
    facts = signal_facts(decided(signs=signs), GROWTH, DECLARED)
    assert facts is not None
    assert {name for name, mean in facts.factors.items() if mean.t < -3} == {turned}


def test_few_decisions_names_or_sessions_prove_nothing() -> None:
    assert signal_facts(decided()[:2], GROWTH, DECLARED) is None
    assert signal_facts([(t, w[:5]) for t, w in decided()], GROWTH[:, :5], DECLARED) is None
    assert signal_facts([(t - 70, w) for t, w in decided()][:9], GROWTH, DECLARED) is None
    assert signal_facts([(t, np.full(40, 0.02)) for t, _ in decided()], GROWTH, DECLARED) is None


def test_names_without_history_are_left_out() -> None:
    late = GROWTH.copy()
    late[:150, 3] = np.nan
    facts = signal_facts(decided(), late, DECLARED)
    assert facts is not None
    assert facts.agreement.value > 0.55


def test_the_declaration_is_read_from_parameters_of_the_shipped_layout_alone() -> None:
    parameters: dict[str, object] = {
        "momentum_window": 60,
        "momentum_skip": 10,
        "volatility_window": 40,
        "reversal_window": 5,
        "momentum_weight": 1.0,
        "volatility_weight": 1,
        "reversal_weight": 0.5,
    }
    assert Declared.read(parameters) == DECLARED
    assert Declared.read({"lookback": 20}) is None
    assert Declared.read({**parameters, "momentum_weight": "1"}) is None
    assert Declared.read({**parameters, "momentum_window": True}) is None


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=40))
def test_ranks_share_ties(values: list[int]) -> None:
    array = np.array(values, dtype=np.float64)
    np.testing.assert_allclose(ranks(array), (stats.rankdata(array) - 1) / (len(array) - 1))


def test_growth_keeps_levels_over_gaps_and_starts_at_the_first_print() -> None:
    returns = [np.array([0.0]), np.array([0.1, 0.0]), np.array([0.0, 0.5])]
    present = [np.array([True]), np.array([True, True]), np.array([False, True])]
    got = growth_of(returns, present)
    np.testing.assert_allclose(got[:, 0], [1.0, 1.1, 1.1])
    np.testing.assert_allclose(got[1:, 1], [1.0, 1.5])
    assert np.isnan(got[0, 1])
    assert growth_of([], []).shape == (0, 0)

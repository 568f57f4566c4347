from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from oomrl.domain.student import incomplete_beta, two_sided_p, upper_p


@given(a=st.floats(0.05, 500), b=st.floats(0.05, 500), x=st.floats(0, 1))
def test_the_incomplete_beta_function_agrees_with_scipy(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-13)


@given(t=st.floats(-50, 50), degrees=st.integers(1, 2_000))
def test_tails_of_students_t_agree_with_scipy(t: float, degrees: int) -> None:
    assert upper_p(t, degrees) == pytest.approx(stats.t.sf(t, degrees), rel=1e-8, abs=1e-14)
    assert two_sided_p(t, degrees) == pytest.approx(2 * stats.t.sf(abs(t), degrees), rel=1e-8, abs=1e-14)


def test_edges() -> None:
    assert math.isnan(two_sided_p(math.nan, 5))
    assert two_sided_p(math.inf, 5) == 0.0
    assert upper_p(0.0, 5) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="x in"):
        incomplete_beta(1, 1, 2)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomrl.domain.bootstrap import block_length, counts, index_chunks, sums


def test_rows_are_runs_on_a_circle_of_the_stated_mean_length() -> None:
    rows = np.concatenate(list(index_chunks(400, 500, 10.0, np.random.default_rng(0))))
    assert rows.shape == (500, 400)
    assert rows.min() == 0
    assert rows.max() == 399
    steps = np.diff(rows, axis=1) % 400
    assert np.mean(steps != 1) == pytest.approx(0.1, abs=0.005)


@given(sessions=st.integers(1, 60), resamples=st.integers(1, 9), seed=st.integers(0, 99))
def test_counts_say_how_often_each_session_stands_in_a_row(sessions: int, resamples: int, seed: int) -> None:
    for rows in index_chunks(sessions, resamples, 3.0, np.random.default_rng(seed)):
        expected = [np.bincount(row, minlength=sessions) for row in rows]
        np.testing.assert_array_equal(counts(rows), expected)


def test_sums_by_blocks_have_the_law_of_sums_by_indices() -> None:
    rng = np.random.default_rng(1)
    series = np.convolve(rng.normal(size=309), np.ones(10), "valid")[:, None]
    quick = sums(series, 4_000, 12.0, np.random.default_rng(2))[:, 0]
    slow = np.concatenate([series[r, 0].sum(axis=1) for r in index_chunks(300, 4_000, 12.0, np.random.default_rng(3))])
    assert quick.mean() == pytest.approx(slow.mean(), abs=4 * slow.std() / 60)
    assert quick.std() == pytest.approx(slow.std(), rel=0.06)
    independent = series.std() * np.sqrt(300)
    assert quick.std() > 1.8 * independent


@given(seed=st.integers(0, 200), sessions=st.integers(1, 30), block=st.floats(1.0, 40.0))
def test_a_constant_series_sums_to_its_length(seed: int, sessions: int, block: float) -> None:
    values = np.ones((sessions, 2))
    np.testing.assert_allclose(sums(values, 20, block, np.random.default_rng(seed)), sessions)


def test_the_default_block_grows_with_the_cube_root() -> None:
    assert [block_length(n) for n in (1, 94, 402, 1500)] == [2, 8, 13, 20]
    with pytest.raises(ValueError, match="block"):
        next(index_chunks(10, 1, 0.5, np.random.default_rng(0)))

from __future__ import annotations

import numpy as np
import pytest

from oomrl.domain.style import WINDOW, styles


def test_each_style_is_top_less_bottom_fifth_by_the_day_before() -> None:
    rng = np.random.default_rng(0)
    returns = rng.normal(0, 0.02, (40, 15))
    close = 50 * np.cumprod(1 + returns, axis=0)
    volume = rng.uniform(1e4, 1e6, (40, 15))
    returns[30, 2] = np.nan
    close[12, 5] = np.nan
    got = styles(close, volume, returns)
    for t in (13, 25, 31, 39):
        past = returns[max(t - WINDOW, 0) : t]
        full = t >= WINDOW
        known = {
            "size": [np.log(close[t - 1, n] * volume[t - 1, n]) for n in range(15)],
            "momentum": [np.prod(1 + past[:, n]) - 1 if full else np.nan for n in range(15)],
            "volatility": [np.std(past[:, n], ddof=1) if full else np.nan for n in range(15)],
        }
        for name, values in known.items():
            usable = sorted((v, n) for n, v in enumerate(values) if np.isfinite(v) and np.isfinite(returns[t, n]))
            if len(usable) < 5:
                assert np.isnan(getattr(got, name)[t])
                continue
            k = len(usable) // 5
            top, bottom = [n for _, n in usable[-k:]], [n for _, n in usable[:k]]
            expected = returns[t, top].mean() - returns[t, bottom].mean()
            assert getattr(got, name)[t] == pytest.approx(expected), (t, name)
    assert np.isnan(got.size[0])


def test_the_future_moves_no_style_before_it() -> None:
    rng = np.random.default_rng(1)
    returns = rng.normal(0, 0.02, (60, 10))
    close, volume = np.exp(np.cumsum(returns, axis=0)), rng.uniform(1, 2, (60, 10))
    before = styles(close, volume, returns)
    close[40:], volume[40:], returns[40:] = 7.0, 1.0, 0.5
    after = styles(close, volume, returns)
    for name in ("size", "momentum", "volatility"):
        np.testing.assert_array_equal(getattr(before, name)[:40], getattr(after, name)[:40])


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="one shape"):
        styles(np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((3, 2)))

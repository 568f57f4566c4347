"""The causal audit refuses each kind of leak and lets honest predictors through."""

from __future__ import annotations

import numpy as np
import pytest

from oomrl.arenas.research.audit import find_leak, punch, replace_suffix
from oomrl.arenas.research.operators import change, ewm, lag, mean, zscore
from oomrl.arenas.research.synthetic import make_panel


def _lead(x: np.ndarray, days: int) -> np.ndarray:
    return np.vstack([x[days:], np.zeros((days, x.shape[1]))])


def _backfill(x: np.ndarray) -> np.ndarray:
    out = x.copy()
    for t in range(len(out) - 2, -1, -1):
        out[t] = np.where(np.isfinite(out[t]), out[t], out[t + 1])
    return np.nan_to_num(out)


LEAKING = {
    "negative shift": lambda f: _lead(f["close"], 1),
    "far shift": lambda f: _lead(f["close"], 5),
    "centred window": lambda f: (f["close"] + lag(f["close"], 1) + _lead(f["close"], 1)) / 3.0,
    "backfill": lambda f: _backfill(f["a1"]),
    "batch mean": lambda f: f["close"] - f["close"].mean(axis=0),
    "batch rank": lambda f: f["close"].argsort(axis=0).argsort(axis=0).astype(float),
    "batch maximum": lambda f: f["close"] / f["close"].max(),
    "reversed average": lambda f: ewm(f["close"][::-1], 5.0)[::-1],
    "length": lambda f: f["close"] * len(f["close"]),
}
HONEST = {
    "level": lambda f: f["close"],
    "change": lambda f: change(f["close"], 5),
    "average": lambda f: mean(f["a1"], 20),
    "score": lambda f: zscore(ewm(f["a2"], 7.0)),
    "forward fill": lambda f: _backfill(f["a1"][::-1])[::-1],
    "expanding": lambda f: np.cumsum(f["close"], axis=0) / np.arange(1, len(f["close"]) + 1)[:, None],
}


@pytest.mark.parametrize("name", LEAKING)
@pytest.mark.parametrize("seed", range(3))
def test_a_leak_is_found(name: str, seed: int, small) -> None:
    fields = make_panel(1, small).public().columns
    predict = LEAKING[name]
    assert find_leak(predict, fields, predict(fields), seed) is not None


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("seed", range(3))
def test_an_honest_predictor_passes(name: str, seed: int, small) -> None:
    fields = make_panel(1, small).public().columns
    predict = HONEST[name]
    assert find_leak(predict, fields, predict(fields), seed) is None


def test_probes_touch_only_what_they_say(small) -> None:
    fields = make_panel(1, small).public().columns
    for how in ("low quantile", "high quantile", "bootstrap"):
        changed = replace_suffix(fields, 100, how, np.random.default_rng(0))
        for name, values in fields.items():
            np.testing.assert_array_equal(changed[name][:101], values[:101])
            assert not np.array_equal(changed[name][101:], values[101:], equal_nan=True)
    gapped = punch(fields, 100, np.random.default_rng(0))
    assert np.isnan(gapped["close"][97:101]).any()
    assert np.isfinite(gapped["close"][:97]).all()
    assert np.isfinite(gapped["close"][101:]).all()

"""Controls change one thing, and say nothing else."""

from __future__ import annotations

import tomllib

import pytest

from oomrl.domain.controls import other_cadence, placebo, with_values

TREE = {
    "strategy.toml": b"""# keep me
[strategy]
cadence = "daily"  # how often
[parameters]
momentum_window = 252  # sessions
volatility_window = 126
reversal_window = 5
cap = 0.06
""",
    "src/strategy/x.py": b"X = 1\n",
}


def test_only_the_cadence_changes() -> None:
    after = other_cadence(TREE)
    assert after["strategy.toml"] == TREE["strategy.toml"].replace(b'"daily"', b'"weekly"')
    assert other_cadence(after) == TREE


def test_a_placebo_nudges_long_windows_alone_and_repeats_with_its_seed() -> None:
    before = tomllib.loads(TREE["strategy.toml"].decode())["parameters"]
    after = tomllib.loads(placebo(TREE, 3)["strategy.toml"].decode())["parameters"]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"momentum_window", "volatility_window"}
    assert all(abs(after[name] / before[name] - 1) < 0.06 for name in changed)
    assert placebo(TREE, 3) == placebo(TREE, 3)
    assert len({placebo(TREE, seed)["strategy.toml"] for seed in range(20)}) > 5


def test_an_unknown_key_is_an_error() -> None:
    with pytest.raises(KeyError):
        with_values(TREE, {"nonsense": 1})

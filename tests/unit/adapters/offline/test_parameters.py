from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomrl.adapters.offline.parameters import Move, moved, moved_all, read, write

TEXT = (Path(__file__).parents[4] / "strategy_repo" / "strategy.toml").read_text("utf-8")
BOUNDS = tomllib.loads((Path(__file__).parents[4] / "strategy_repo" / "policy.toml").read_text("utf-8"))["bounds"]


def test_one_value_changes_and_everything_else_stays() -> None:
    new = write(TEXT, "parameters.max_weight", 0.1)
    assert read(new) == read(TEXT) | {"parameters.max_weight": 0.1}
    before, after = TEXT.split("\n"), new.split("\n")
    different = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert different == [("max_weight = 0.06  # largest weight of one name ...", "max_weight = 0.1  # largest weight of one name ...")]  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("key", ["parameters.cadence", "max_weight", "strategy.max_weight", "nowhere", ""])
def test_a_key_that_is_not_there_is_not_made(key: str) -> None:
    with pytest.raises(KeyError):
        write(TEXT, key, 1)


def test_a_key_inside_a_string_is_no_key() -> None:
    text = '[a]\nwords = """\nx = 1\n"""\nx = 2  # two\n'
    assert read(write(text, "a.x", 3)) == {"a.words": "x = 1\n", "a.x": 3}


@pytest.mark.parametrize(
    ("old", "move", "bound", "new"),
    [
        ("daily", Move("k", "weekly"), {"choices": ["daily", "weekly"]}, "weekly"),
        ("daily", Move("k", "monthly"), {"choices": ["daily", "weekly"]}, None),
        ("weekly", Move("k", "weekly"), {"choices": ["daily", "weekly"]}, None),
        (0.0, Move("k", 0.25, "up"), {"min": 0.0, "max": 0.9, "max_relative_change": 1.0}, 0.25),
        (0.3, Move("k", 0.25, "up"), {"min": 0.0, "max": 0.9}, None),
        (0.3, Move("k", 0.25, "down"), {"min": 0.0, "max": 0.9}, 0.25),
        (0.2, Move("k", 0.25, "down"), {"min": 0.0, "max": 0.9}, None),
        (0.5, Move("k", 0.05, "down"), {"min": 0.1, "max": 0.9}, 0.1),
        (20, Move("k", 252, "up"), {"type": "int", "min": 1, "max": 500, "max_relative_change": 3.0}, 80),
        (7, Move("k", 1, "down"), {"type": "int", "min": 1, "max": 500, "max_relative_change": 0.5}, 4),
        (3, Move("k", 5), {}, 5),
    ],
)
def test_a_move_goes_as_far_as_the_policy_lets_it(
    old: object, move: Move, bound: dict[str, object], new: object
) -> None:
    assert moved(old, move, bound) == new  # type: ignore[arg-type]


@given(
    st.integers(1, 600) | st.floats(0.001, 600, allow_nan=False),
    st.floats(0, 600, allow_nan=False),
    st.sampled_from(["any", "up", "down"]),
    st.floats(0, 300),
    st.floats(300, 600),
    st.none() | st.floats(0.01, 5),
)
def test_a_move_never_leaves_the_bounds(
    old: float, to: float, only: str, low: float, high: float, reach: float | None
) -> None:
    bound = {"min": low, "max": high} | ({} if reach is None else {"max_relative_change": reach})
    new = moved(old, Move("k", to, only), bound)
    if new is None or not low <= old <= high:
        return
    assert type(new) is type(old)
    slack = 1e-5 * max(abs(old), high)
    assert low - slack <= new <= high + slack  # type: ignore[operator]
    assert reach is None or abs(new - old) <= reach * abs(old) + slack  # type: ignore[operator]
    assert abs(to - new) <= abs(to - old) + slack  # type: ignore[operator]


def test_the_warm_up_follows_the_longest_window() -> None:
    short = write(write(TEXT, "parameters.momentum_window", 126), "strategy.warmup", 127)
    text, notes = moved_all(short, [Move("parameters.momentum_window", 252, "up")], BOUNDS)
    assert read(text) == read(TEXT)
    assert [note.split(":")[0] for note in notes] == ["parameters.momentum_window", "strategy.warmup"]
    assert moved_all(TEXT, [Move("parameters.nothing", 1)], BOUNDS) == (TEXT, [])

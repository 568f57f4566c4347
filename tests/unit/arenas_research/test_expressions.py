"""Features as data: causal whatever their shape, refused where malformed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.arenas.research.expressions import BadExpression, check, evaluate, source
from oomrl.arenas.research.synthetic import make_panel

FIELDS = ("close", "a1", "a2", "stress")
field = st.sampled_from(FIELDS).map(lambda name: {"field": name})
trees = st.recursive(
    field,
    lambda inner: st.one_of(
        st.builds(lambda op, of: {"op": op, "of": of}, st.sampled_from(["zscore", "sign"]), inner),
        st.builds(lambda of, n: {"op": "ewm", "of": of, "halflife": n}, inner, st.floats(0.5, 60.0)),
        st.builds(
            lambda op, of, n: {"op": op, "of": of, "days": n},
            st.sampled_from(["lag", "change"]),
            inner,
            st.integers(1, 120),
        ),
        st.builds(lambda of, n: {"op": "mean", "of": of, "window": n}, inner, st.integers(2, 250)),
        st.builds(
            lambda op, a, b: {"op": op, "of": [a, b]},
            st.sampled_from(["product", "difference", "sum"]),
            inner,
            inner,
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(trees, st.integers(30, 200), st.integers(0, 2**31))
def test_no_expression_sees_the_future(tree: dict, cut: int, seed: int) -> None:
    try:
        check(tree, FIELDS)
    except BadExpression:
        return
    columns = make_panel(3, "l1").columns
    rng = np.random.default_rng(seed)
    changed = {}
    for name, values in columns.items():
        changed[name] = values[:250].copy()
        changed[name][cut + 1 :] = rng.standard_normal(changed[name][cut + 1 :].shape) * 100.0
    plain = evaluate(tree, {name: values[:250] for name, values in columns.items()})
    np.testing.assert_allclose(evaluate(tree, changed)[: cut + 1], plain[: cut + 1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "tree",
    [
        None,
        {},
        {"field": "b9"},
        {"field": "a1", "more": 1},
        {"op": "lag", "of": {"field": "a1"}, "days": -1},
        {"op": "lag", "of": {"field": "a1"}, "days": 0},
        {"op": "lag", "of": {"field": "a1"}, "days": True},
        {"op": "ewm", "of": {"field": "a1"}, "halflife": float("nan")},
        {"op": "mean", "of": {"field": "a1"}, "window": 1e9},
        {"op": "lead", "of": {"field": "a1"}, "days": 1},
        {"op": ["zscore"], "of": {"field": "a1"}},
        {"op": "sum", "of": [{"field": "a1"}]},
        {"op": "sum", "of": {"field": "a1"}},
    ],
)
def test_malformed_trees_are_refused(tree: object) -> None:
    with pytest.raises(BadExpression, match="Expected"):
        check(tree, FIELDS)


def test_large_trees_are_refused() -> None:
    tree: dict = {"field": "a1"}
    for _ in range(9):
        tree = {"op": "zscore", "of": tree}
    with pytest.raises(BadExpression, match="depth"):
        check(tree, FIELDS)
    wide: dict = {"field": "a1"}
    for _ in range(6):
        wide = {"op": "sum", "of": [wide, wide]}
    with pytest.raises(BadExpression, match="nodes"):
        check(wide, FIELDS)


def test_the_text_of_an_expression_says_the_same() -> None:
    tree = {
        "op": "difference",
        "of": [{"op": "ewm", "of": {"field": "a1"}, "halflife": 3.0}, {"field": "close"}],
    }
    assert source(tree) == "(ewm(columns['a1'], 3.0) - columns['close'])"

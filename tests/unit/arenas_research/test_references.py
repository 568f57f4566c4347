"""Reference models: recognised by their bytes alone, fitted as scikit-learn would."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from oomrl.arenas.research import elasticnet, references
from oomrl.arenas.research.code_policy import review
from oomrl.arenas.research.laboratory import (
    Failure,
    ReferenceLaboratory,
    Trained,
    target_of,
    validation_start,
)
from oomrl.arenas.research.probes import CONSTANT
from oomrl.arenas.research.synthetic import make_panel


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.1])
def test_elastic_net_agrees_with_scikit_learn(alpha: float) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is a development extra")
    rng = np.random.default_rng(1)
    x = rng.standard_normal((60, 20, 5)) * np.array([1.0, 10.0, 0.1, 3.0, 1.0]) + 2.0
    x[..., 4] += x[..., 0]
    y = x @ np.array([0.5, 0.02, 0.0, -0.1, 0.3]) + rng.standard_normal((60, 20))
    y[3, 4], x[5, 6, 1] = np.nan, np.nan
    ours = elasticnet.fit(x, y, alpha, 0.5)
    rows = np.isfinite(x).all(axis=-1) & np.isfinite(y)
    flat = (x[rows] - x[rows].mean(axis=0)) / x[rows].std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = linear_model.ElasticNet(alpha=alpha, l1_ratio=0.5, tol=1e-12, max_iter=100_000).fit(flat, y[rows])
    np.testing.assert_allclose(ours.coefficients, theirs.coef_, atol=1e-8)
    assert ours.intercept == pytest.approx(theirs.intercept_)


def test_reference_code_is_recognised_and_passes_the_policy() -> None:
    panel = make_panel(3, "l2", null=False)
    for model in (
        references.heuristic_model(panel.fields),
        references.simple_model(panel.fields),
        references.noise_model(4),
        references.oracle_model(panel.truth),
    ):
        again = references.recognise(model.code, panel.fields)
        assert again is not None
        assert review(model.code) == []
        for name, values in model.features(panel.columns).items():
            np.testing.assert_array_equal(again.features(panel.columns)[name], values)


def test_code_that_differs_by_a_byte_is_not_ours() -> None:
    fields = make_panel(3, "l2").fields
    code = references.simple_model(fields).code
    assert references.recognise(code + " ", fields) is None
    assert references.recognise(code.replace("ElasticNet(", "ElasticNet( "), fields) is None
    head, _, rest = code.partition("\n")
    evil = head + "\n" + rest.replace("return {", "1/0\n    return {")
    assert references.recognise(evil, fields) is None


@pytest.mark.parametrize(
    "recipe",
    [
        None,
        [],
        {"kind": "expressions"},
        {"kind": "expressions", "trees": {"a-b": {"field": "a1"}}, "alpha": 0.1, "l1_ratio": 0.5},
        {"kind": "expressions", "trees": {"f": {"field": "secret"}}, "alpha": 0.1, "l1_ratio": 0.5},
        {"kind": "expressions", "trees": {"f": {"field": "a1"}}, "alpha": "0.1", "l1_ratio": 0.5},
        {"kind": "noise", "seed": "x"},
        {"kind": "oracle", "signals": [], "weights": ["1"], "regimes": [], "halflife": 1.0, "volatility": []},
    ],
)
def test_a_forged_first_line_is_no_key(recipe: object) -> None:
    assert references.recognise("# reference " + json.dumps(recipe) + "\nimport os\n", ("a1", "close")) is None


def test_without_a_sandbox_other_code_is_refused_never_run() -> None:
    panel = make_panel(3, "l2").public()
    laboratory = ReferenceLaboratory()
    outcome = laboratory.train(CONSTANT, panel, (0, panel.public_days), 1)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "sandbox"
    outcome = laboratory.forecast("import os\n", panel)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "policy"


def test_a_fit_never_learns_returns_beyond_its_rows() -> None:
    panel = make_panel(3, "l2").public()
    target = target_of(panel, 100, 200)
    assert np.isnan(target[:100]).all()
    assert np.isfinite(target[100:198]).all()
    assert np.isnan(target[198:]).all()
    assert np.isnan(target_of(panel, 0, panel.public_days)[-2:]).all()
    assert np.isnan(target_of(panel, 10, 11)).all()


def test_validation_forecasts_do_not_depend_on_validation_returns(small) -> None:
    from dataclasses import replace

    panel = make_panel(3, small).public()
    cut = validation_start(panel)
    changed = panel.returns.copy()
    changed[cut:] = np.random.default_rng(1).standard_normal(changed[cut:].shape) * 0.02
    code = references.simple_model(panel.fields).code
    both = [
        ReferenceLaboratory().train(code, one, (0, panel.public_days), 1)
        for one in (panel, replace(panel, returns=changed))
    ]
    assert isinstance(both[0], Trained)
    assert isinstance(both[1], Trained)
    np.testing.assert_array_equal(both[0].validation, both[1].validation)
    assert not np.allclose(both[0].forecast, both[1].forecast)

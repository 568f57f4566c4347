"""Feature building: compose causal features as data; the arena fits and trades them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oomrl.arenas.engine import Json
from oomrl.arenas.research import elasticnet, scoring, statistics
from oomrl.arenas.research.desks.base import Desk, Setting, information, persistence
from oomrl.arenas.research.expressions import GRAMMAR, BadExpression, check, evaluate
from oomrl.arenas.research.laboratory import FLAT, early_rows, is_flat, target_of, validation_start
from oomrl.arenas.research.synthetic import planted_features
from oomrl.arenas.research.tools import (
    ABSTAIN,
    LABEL,
    RATIONALE,
    START,
    STOP,
    Field,
    Refusal,
    Tool,
    row_range,
)
from oomrl.domain.market import Floats

ALPHA, L1_RATIO = 0.006, 0.5
MAX_FEATURES = 32
MIN_ROWS = 60
TOOLS = (
    Tool(
        "describe_field",
        "Count, centre, spread and persistence of a field",
        {"field": Field("text", "A field", 1, 40)},
    ),
    Tool(
        "test_feature",
        "Correlate a feature with the return it would earn, on public rows. Uses one attempt.",
        {"expression": Field("object", "A tree of the grammar", 1, 4), "start": START, "stop": STOP},
    ),
    Tool(
        "build_features",
        "Fit the arena's elastic net on features; validate on the last third. Uses one attempt.",
        {"features": Field("object", "Name to expression", 1, MAX_FEATURES), "label": LABEL},
    ),
    Tool(
        "execute",
        "End the episode: trade a feature set on [t+1, T], or abstain",
        {
            "feature_set_id": Field("text", "From build_features", 1, 40, optional=True),
            "rationale": RATIONALE,
            "abstain": ABSTAIN,
        },
    ),
)


class FeatureDesk(Desk):
    """Judge feature sets by a fixed model, so that nothing but the features can make a difference."""

    tools = {tool.name: tool for tool in TOOLS}

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._sets: dict[str, Mapping[str, Any]] = {}
        self._trials: dict[str, Floats] = {}

    def brief(self) -> Json:
        return {**super().brief(), "grammar": GRAMMAR, "max_features": MAX_FEATURES}

    def _describe_field(self, arguments: Mapping[str, Any]) -> Json:
        name = arguments["field"]
        if name not in self.public.columns:
            raise Refusal(f"Expected a field of {', '.join(self.panel.fields)}, was {name!r}")
        values = self.public.columns[name]
        seen = values[np.isfinite(values)]
        return {
            "field": name,
            "missing": round(1.0 - len(seen) / values.size, 4),
            "mean": float(f"{seen.mean():.4g}"),
            "deviation": float(f"{seen.std():.4g}"),
            "persistence": round(persistence(values, 0, len(values)), 3),
        }

    def _test_feature(self, arguments: Mapping[str, Any]) -> Json:
        tree = arguments["expression"]
        self._check(tree)
        start, stop = row_range(arguments, self.panel.public_days, MIN_ROWS)
        self._spend()
        values = evaluate(tree, self.public.columns)
        correlation, t = information(values, self.public, start, stop)
        return {
            "information_coefficient": round(correlation, 3),
            "t_value": round(t, 1),
            "persistence": round(persistence(values, start, stop), 2),
        }

    def _build_features(self, arguments: Mapping[str, Any]) -> Json:
        trees = arguments["features"]
        for name, tree in trees.items():
            if not isinstance(name, str) or not 1 <= len(name) <= 40:
                raise Refusal("Expected feature names of 1 to 40 characters")
            self._check(tree)
        self._spend()
        features = _stack(trees, self.public.columns)
        cut = validation_start(self.public)
        early = elasticnet.fit(
            features,
            target_of(self.public, *early_rows(self.public, (0, self.panel.public_days))),
            ALPHA,
            L1_RATIO,
        )
        fitted = self._fit(features)
        if is_flat(fitted.predict(features)):
            return {"status": "failed", "kind": FLAT.kind, "message": FLAT.message}
        forecast = early.predict(features)
        ledger = scoring.visible_ledger(self.public, forecast, self.setting.design, cut, self.panel.public_days)
        set_id = f"features-{len(self._sets) + 1}"
        self._sets[set_id], self._trials[set_id] = dict(trees), ledger.net
        correlation, t = information(forecast, self.public, cut, self.panel.public_days)
        return {
            "status": "done",
            "feature_set_id": set_id,
            "coefficients": dict(zip(trees, (round(v, 3) for v in fitted.coefficients.tolist()), strict=True)),
            "validation_sharpe": round(statistics.sharpe(ledger.net).value, 2),
            "validation_information_coefficient": round(correlation, 3),
            "validation_t_value": round(t, 1),
            "turnover": round(float(ledger.turnover.mean()), 3),
        }

    def _execute(self, arguments: Mapping[str, Any]) -> Json:
        named = arguments.get("feature_set_id")
        if arguments.get("abstain", False):
            if named is not None:
                raise Refusal("Expected a feature_set_id or abstain, were both")
            return self._abstain()
        if named not in self._sets:
            raise Refusal("Expected the feature_set_id of a built set (or abstain: true), was another")
        hidden = self._trade(self._sets[named])
        tried = scoring.evidence(self._trials[named], list(self._trials.values()), tries=self.attempts)
        more = {
            "deflated_sharpe": round(tried.deflated_sharpe, 4),
            "probability_of_overfitting": tried.overfitting,
            "tries": tried.tries,
        }
        return self._finish(hidden, self.ceiling(), tried.value, "evidence", more)

    def ceiling(self) -> float | None:
        """Return what the planted expressions earn through the same fit; 0 without signal, None on a tape."""
        truth = self.panel.truth
        if truth is None or not truth.tradable:
            return scoring.ceiling_of(self.panel, self.setting.design)
        return self._trade(_named(planted_features(truth.signals))).sharpe.value

    def _trade(self, trees: Mapping[str, Any]) -> scoring.Hidden:
        features = _stack(trees, self.panel.columns)
        cut = self.panel.public_days
        forecast = self._fit(features[:cut]).predict(features)
        return scoring.hidden_forecast(self.panel, forecast[:cut], forecast[cut:], self.setting.design)

    def _fit(self, features: Floats) -> elasticnet.Fit:
        return elasticnet.fit(features, target_of(self.public, 0, self.panel.public_days), ALPHA, L1_RATIO)

    def _check(self, tree: Any) -> None:
        try:
            check(tree, self.panel.fields)
        except BadExpression as error:
            raise Refusal(str(error)) from None

    def oracle(self) -> Json:
        truth = self.panel.truth
        if truth is None or not truth.tradable:
            return {"abstain": True}
        return {"abstain": False, "features": _named(planted_features(truth.signals))}


def _named(trees: tuple[Mapping[str, Any], ...]) -> dict[str, Any]:
    return {f"planted_{k}": dict(tree) for k, tree in enumerate(trees)}


def _stack(trees: Mapping[str, Any], columns: Mapping[str, Floats]) -> Floats:
    return elasticnet.stack({name: evaluate(tree, columns) for name, tree in trees.items()})

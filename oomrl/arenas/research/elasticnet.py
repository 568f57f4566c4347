"""The elastic net in numpy, for models that need no sandbox because nobody else wrote them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.domain.market import Floats


@dataclass(frozen=True, slots=True)
class Fit:
    """Coefficients on standardised features, with their centre and scale; predicts in target units."""

    centre: Floats
    scale: Floats
    coefficients: Floats
    intercept: float

    def predict(self, features: Floats) -> Floats:
        """Return forecasts, shape (days, names), of features (days, names, features); NaN where one is missing."""
        weights = self.coefficients / self.scale
        return features @ weights + (self.intercept - float(self.centre @ weights))


def fit(features: Floats, target: Floats, alpha: float, l1_ratio: float, sweeps: int = 1000) -> Fit:
    """Fit 1/(2n) |y - Xw|^2 + alpha l1 |w|_1 + alpha (1 - l1)/2 |w|^2 on standardised columns.

    Coordinate descent on the Gram matrix (Friedman, Hastie and Tibshirani 2010). `features` has shape (days,
    names, features), `target` (days, names); cells with a gap are left out.
    """
    rows = np.isfinite(features).all(axis=-1) & np.isfinite(target)
    x, y = features[rows], target[rows]
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    x = (x - centre) / scale
    intercept = float(y.mean())
    gram = x.T @ x / len(x)
    moment = x.T @ (y - intercept) / len(x)
    weights = np.zeros(x.shape[1])
    for _ in range(sweeps):
        moved = 0.0
        for k in range(len(weights)):
            partial = moment[k] - gram[k] @ weights + gram[k, k] * weights[k]
            shrunk = np.sign(partial) * max(abs(partial) - alpha * l1_ratio, 0.0)
            new = shrunk / (gram[k, k] + alpha * (1.0 - l1_ratio)) if gram[k, k] > 0 else 0.0
            moved = max(moved, abs(new - weights[k]))
            weights[k] = new
        if moved < 1e-12:
            break
    return Fit(centre, scale, weights, intercept)


def stack(features: dict[str, Floats]) -> Floats:
    """Return features side by side, shape (days, names, features)."""
    return np.stack(list(features.values()), axis=-1)

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

    `features` has shape (days, names, features), `target` (days, names); cells with a gap are left out.
    """
    rows = np.isfinite(features).all(axis=-1) & np.isfinite(target)
    x, y = features[rows], target[rows]
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    x = (x - centre) / scale
    intercept = float(y.mean())
    gram = x.T @ x / len(x)
    moment = x.T @ (y - intercept) / len(x)
    weights = _descend(gram, moment, alpha * l1_ratio, alpha * (1.0 - l1_ratio), sweeps)
    return Fit(centre, scale, weights, intercept)


def _descend(gram: Floats, moment: Floats, lasso: float, ridge: float, sweeps: int) -> Floats:
    """Return the weights by coordinate descent (Friedman, Hastie and Tibshirani 2010), ended by an exact solution.

    A sweep that leaves every sign as it was names the weights that are not zero. The linear system of these is the
    solution where it keeps their signs and leaves no other weight a reason to move; if not, the descent goes on.
    """
    weights, pull = np.zeros(len(moment)), moment.copy()
    for _ in range(sweeps):
        signs = np.sign(weights)
        for k, curve in enumerate(gram.diagonal().tolist()):
            partial = pull[k] + curve * weights[k]
            new = np.sign(partial) * max(abs(partial) - lasso, 0.0) / (curve + ridge) if curve > 0 else 0.0
            if new != weights[k]:
                pull -= gram[k] * (new - weights[k])
                weights[k] = new
        if (np.sign(weights) == signs).all():
            exact = _solve(gram, moment, lasso, ridge, signs)
            if exact is not None:
                return exact
    return weights


def _solve(gram: Floats, moment: Floats, lasso: float, ridge: float, signs: Floats) -> Floats | None:
    on = signs != 0
    system = gram[np.ix_(on, on)] + ridge * np.eye(int(on.sum()))
    exact = np.zeros(len(moment))
    exact[on] = np.linalg.lstsq(system, moment[on] - lasso * signs[on], rcond=None)[0]
    idle = np.abs(moment - gram @ exact)[~on] <= lasso + 1e-12
    return exact if (np.sign(exact) == signs).all() and idle.all() else None


def stack(features: dict[str, Floats]) -> Floats:
    """Return features side by side, shape (days, names, features)."""
    return np.stack(list(features.values()), axis=-1)

"""Ready-made forecasts of known kinds, for the tasks that judge and combine instead of building.

Each is a panel of cross-sectional scores, shape (days, names). Kinds: `honest` knows part of the planted
expectation; `noise` knows nothing; `overfit` was fitted on the first part of the public rows and knows their
returns, and nothing after; `leak` looks at the return it will earn wherever that is already history, which on
hidden rows it cannot; `turned` worked like an honest one on the first part and works against its owner since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oomrl.arenas.research.operators import ewm, zscore
from oomrl.arenas.research.panel import Panel
from oomrl.domain.market import Floats

#: Share of the public rows that an overfit source was fitted on.
FITTED_SHARE = 0.6
KINDS = ("honest", "noise", "overfit", "leak")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make one source: its kind, how strongly it knows what it knows, and how slow its noise is."""

    kind: str
    strength: float
    halflife: float


@dataclass(frozen=True, slots=True)
class Source:
    """One source: the name shown, its true kind, and its scores."""

    name: str
    kind: str
    scores: Floats


def make_sources(panel: Panel, seed: int, recipes: Sequence[Recipe]) -> tuple[Source, ...]:
    """Draw sources in a random order under neutral names. Without signal an honest one is noise, and called so."""
    rng = np.random.default_rng([seed, 9])
    made = []
    for recipe in recipes:
        noise = zscore(ewm(rng.standard_normal(panel.returns.shape), recipe.halflife))
        kind, known = recipe.kind, np.zeros_like(noise)
        earned = np.where(np.isfinite(panel.forward), panel.forward, 0.0)
        if kind in ("honest", "turned"):
            assert panel.truth is not None
            known = zscore(panel.truth.expectation)
            if kind == "turned":
                known[int(FITTED_SHARE * panel.public_days) :] *= -1.0
            kind = kind if panel.truth.tradable else "noise"
        elif kind == "overfit":
            fitted = int(FITTED_SHARE * panel.public_days)
            ahead = np.cumsum(earned[::-1], axis=0)[::-1]
            ahead[:-10] -= ahead[10:].copy()
            known = zscore(ahead)
            known[fitted:] = 0.0
        elif kind == "leak":
            known = zscore(earned)
            known[panel.public_days - 2 :] = 0.0
        scores = zscore(recipe.strength * known + np.sqrt(max(0.0, 1.0 - recipe.strength**2)) * noise)
        made.append((kind, scores))
    order = rng.permutation(len(made))
    return tuple(Source(f"S{place + 1}", *made[k]) for place, k in enumerate(order.tolist()))

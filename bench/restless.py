"""A strategy that trades at random each session; the crash campaign's accounts are traded by it, in the sandbox.

Its decisions depend on its seed and on what was shown alone. Its file is copied into a strategy repository, so it
imports nothing of ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: strategy.toml for a seed.
CONFIGURATION = """
[strategy]
name = "restless"
cadence = "daily"
warmup = 2
[parameters]
seed = {seed}
"""


class Strategy:
    """New weights after each session, with plans of all kinds."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.seed = int(params["seed"])
        self.shown = 0
        self.known: set[str] = set()

    def on_session(self, bars: dict[str, Any]) -> None:
        self.shown += 1
        self.known.update(bars["symbols"])

    def decide(self, portfolio: dict[str, Any]) -> dict[str, Any]:
        chance = np.random.default_rng([self.seed, self.shown])
        names = [name for name in sorted(self.known) if chance.random() < 0.8]
        raw = chance.exponential(1.0, len(names))
        gross = chance.choice([0.0, 0.5, 1.0, 1.0, 1.0])
        weights = raw / raw.sum() * gross if names else raw
        plan = {}
        for name in names:
            limit = chance.choice([-1.0, 0.0, 40.0, 300.0])
            plan[name] = {
                "max_participation": float(chance.choice([0.02, 0.3, 1.0])),
                "sessions": int(chance.choice([1, 1, 3])),
                "limit_bps": float(limit) if limit >= 0 else None,
            }
        return {"action": "target", "weights": dict(zip(names, weights.tolist(), strict=True)), "plan": plan}

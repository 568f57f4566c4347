"""What the service calls: sessions come in, a decision goes out, and nothing else is kept or asked."""

from collections import deque

import numpy as np

from strategy.weights import equal_weight


class Strategy:
    """Rank names by the median of their daily dollar volume and hold the first few, each with the same weight."""

    def __init__(self, params: dict) -> None:
        """Take the table [parameters] of strategy.toml; ValueError for what cannot be used."""
        self.window = params["window"]
        self.places = params["places"]
        self.exposure = params["exposure"]
        self.participation = params["participation"]
        if self.window < 1 or self.places < 1:
            raise ValueError("Expected at least one session and one place.")
        self.traded = {}
        self.listed = []

    def on_session(self, bars: dict) -> None:
        """Take one closed session. Arrays may be reused by the caller: what is kept is copied."""
        dollars = (bars["close"] * bars["volume"]).tolist()
        for name, value in zip(bars["symbols"], dollars):
            self.traded.setdefault(name, deque(maxlen=self.window)).append(value)
        self.listed = [name for name, may in zip(bars["symbols"], bars["tradable"].tolist()) if may]

    def decide(self, portfolio: dict) -> dict:
        """Answer with target weights, or hold while no name has been seen for long enough."""
        known = [name for name in self.listed if len(self.traded[name]) == self.window]
        if not known:
            return {"action": "hold", "reason": "no name has traded for long enough"}
        ranked = sorted(known, key=lambda name: (-float(np.median(self.traded[name])), name))
        chosen = ranked[: self.places]
        plan = {"max_participation": self.participation, "sessions": 1, "limit_bps": None}
        return {
            "action": "target",
            "weights": dict.fromkeys(chosen, equal_weight(self.exposure, self.places)),
            "plan": {name: dict(plan) for name in chosen},
            "reasons": dict.fromkeys(chosen, "among the most traded names"),
        }

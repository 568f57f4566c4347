"""The two strategies of the comparison as every engine runs them: equal weights, and the reference as shipped."""

from __future__ import annotations

import sys
import time
import tomllib
from pathlib import Path

import numpy as np

#: What is left in cash, the same for all.
INVESTED = 0.98
REFERENCE = Path(__file__).parents[2] / "strategy_repo"


class Equal:
    """Equal weights."""

    def on_session(self, bars):
        self.names = bars["symbols"]

    def decide(self, portfolio):
        return {"action": "target", "weights": dict.fromkeys(self.names, INVESTED / len(self.names))}


class Timed:
    """A strategy by its name, and the seconds that it spent."""

    def __init__(self, name, symbols, arrays):
        self.seconds, self.symbols, self.arrays = 0.0, tuple(symbols), arrays
        self.ones, self.zeros = np.ones(len(symbols)), np.zeros(len(symbols))
        if name == "equal":
            self.strategy = Equal()
            return
        sys.path.insert(0, str(REFERENCE / "src"))
        from strategy import Strategy

        self.strategy = Strategy(tomllib.loads((REFERENCE / "strategy.toml").read_text("utf-8"))["parameters"])

    def show(self, at, day):
        """Show session number `at`."""
        bars = {field: self.arrays[field][at] for field in self.arrays}
        bars |= {"dividend": self.zeros, "split": self.ones, "tradable": (bars["volume"] > 0).astype(np.float64)}
        begun = time.perf_counter()
        self.strategy.on_session(bars | {"date": str(day), "symbols": self.symbols})
        self.seconds += time.perf_counter() - begun

    def weights(self, day, equity, cash, shares):
        """Return target weights by symbol, None to hold."""
        begun = time.perf_counter()
        decision = self.strategy.decide({"date": str(day), "equity": equity, "cash": cash, "shares": shares})
        self.seconds += time.perf_counter() - begun
        return decision["weights"] if decision["action"] == "target" else None

"""The strategy: sessions in, a target portfolio out."""

import math

import numpy as np

from strategy import decision, features, liquidity, parameters, ranks, returns, selection, sizing, universe
from strategy.history import History


class Strategy:
    """Hold the names that rank best by momentum, low volatility and short-term reversal.

    A decision is a function of the sessions shown so far and of the portfolio given; nothing is kept from one
    decision to the next.
    """

    def __init__(self, params: dict) -> None:
        self.parameters = parameters.read(params)
        self.history = History(
            level_rows=self.parameters.momentum_window + 1,
            change_rows=self.parameters.volatility_window,
            dollar_rows=self.parameters.liquidity_window,
        )

    def on_session(self, bars: dict) -> None:
        """Take in one closed session: `symbols` and float64 columns of shape (n,), raw prices."""
        self.history.record(bars)

    def decide(self, portfolio: dict) -> dict:
        """Return {"action": "hold", ...} or {"action": "target", ...} for `equity` (dollars) and `shares`."""
        equity = portfolio["equity"]
        if not 0.0 < equity < math.inf:
            return decision.hold(f"Expected equity above 0, was {equity}")
        if self.history.count == 0:
            return decision.hold("no session was shown yet")
        measured = features.measure(self.history, self.parameters)
        shares = self.history.vector(portfolio["shares"])
        current = returns.holding_weights(shares, measured.close, equity)
        members = universe.eligible(measured, self.parameters)
        scores = ranks.score(measured, members, self.parameters)
        chosen = selection.select(scores.total, members, current > 0.0, self.parameters)
        frozen = (current > 0.0) & ~measured.tradable & (measured.silent <= self.parameters.max_gap)
        targets = decision.Targets(
            current=current,
            wanted=self.wanted(measured, chosen, current, frozen, equity),
            universe=members,
            frozen=frozen,
        )
        return decision.target(self.history.names, targets, measured, scores, equity, self.parameters)

    def wanted(
        self,
        measured: features.Features,
        chosen: np.ndarray,
        current: np.ndarray,
        frozen: np.ndarray,
        equity: float,
    ) -> np.ndarray:
        """Return the weights wanted after this decision's orders, shape (names,), that sum to less than 1.

        `chosen` are the names to hold, `current` their weights now, `frozen` the names that keep theirs.
        """
        locked = np.where(frozen, current, 0.0)
        shares = sizing.proportions(measured.volatility, chosen, self.parameters.volatility_sizing)
        caps = np.minimum(
            sizing.name_cap(int(chosen.sum()), self.parameters),
            liquidity.position_caps(measured, equity, self.parameters),
        )
        ideal = sizing.capped(shares, caps, self.parameters.exposure - locked.sum())
        worth_trading = sizing.banded(ideal, current, self.parameters.no_trade_band)
        room = liquidity.reach(measured, equity, self.parameters)
        reached = liquidity.within_reach(worth_trading, current, room)
        tradable = np.where(measured.tradable, reached, 0.0)
        return sizing.fitted(tradable, current, locked, self.parameters.exposure)

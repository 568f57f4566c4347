"""Strategies that run in this process, for tests of what surrounds a worker. Never used to trade."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from oomrl.domain.market import Session
from oomrl.domain.trading import Decision, Hold, LiquidityPlan, Portfolio, TargetPortfolio


class EqualWeightWorker:
    """Hold `gross` spread evenly over the names that traded in the last session. Implements `ports.StrategyWorker`."""

    def __init__(self, gross: float = 1.0, plan: LiquidityPlan | None = None) -> None:
        self.gross, self.plan = gross, plan
        self.session: Session | None = None
        self.closed = False

    def show(self, session: Session) -> None:
        self.session = session

    def flush(self) -> None:
        return

    def ask(self, portfolio: Portfolio) -> None:
        return

    def decide(self, portfolio: Portfolio) -> Decision:
        if self.session is None:
            return Hold("nothing shown yet")
        tradable = self.session["tradable"] > 0
        count = int(tradable.sum())
        if not count:
            return Hold("nothing trades")
        weight = self.gross / count
        symbols = self.session.symbols
        if count == len(symbols):
            weights = dict.fromkeys(symbols, weight)
        else:
            weights = {symbols[n]: weight for n in np.flatnonzero(tradable)}
        plan = dict.fromkeys(weights, self.plan) if self.plan else {}
        return TargetPortfolio(weights, plan)

    def close(self) -> None:
        self.closed = True


class ScriptedWorker:
    """Answer by a function of the sessions shown and the portfolio. Implements `ports.StrategyWorker`."""

    def __init__(self, decide: Callable[[list[Session], Portfolio], Decision | Mapping[str, float] | None]) -> None:
        self.answer = decide
        self.sessions: list[Session] = []

    def show(self, session: Session) -> None:
        self.sessions.append(session)

    def flush(self) -> None:
        return

    def ask(self, portfolio: Portfolio) -> None:
        return

    def decide(self, portfolio: Portfolio) -> Decision:
        decision = self.answer(self.sessions, portfolio)
        if decision is None:
            return Hold()
        return TargetPortfolio(dict(decision)) if isinstance(decision, Mapping) else decision

    def close(self) -> None:
        self.sessions.clear()


class RandomWorker:
    """Decide at random from a seed and the sessions shown: new weights, hold, or nothing at all; plans of all kinds.

    A decision depends on what was shown, so that the same history gets the same decisions. Implements
    `ports.StrategyWorker`.
    """

    def __init__(self, seed: int, *, busy: float = 0.7) -> None:
        self.seed, self.busy = seed, busy
        self.shown = 0
        self.known: dict[str, float] = {}

    def show(self, session: Session) -> None:
        self.shown += 1
        self.known.update(zip(session.symbols, session["close"].tolist(), strict=True))

    def flush(self) -> None:
        return

    def ask(self, portfolio: Portfolio) -> None:
        return

    def decide(self, portfolio: Portfolio) -> Decision:
        chance = np.random.default_rng([self.seed, self.shown])
        if chance.random() > self.busy:
            return Hold("no mood")
        symbols = [symbol for symbol in self.known if chance.random() < 0.6]
        raw = chance.exponential(1.0, len(symbols))
        gross = chance.choice([0.0, 0.5, 1.0, 1.0])
        weights = raw / raw.sum() * gross if len(symbols) else raw
        plan = {
            symbol: LiquidityPlan(
                max_participation=float(chance.choice([0.02, 0.3, 1.0])),
                sessions=int(chance.choice([1, 1, 3])),
                limit_bps=float(limit) if (limit := chance.choice([-1.0, 0.0, 40.0, 300.0])) >= 0 else None,
            )
            for symbol in symbols
            if chance.random() < 0.7
        }
        return TargetPortfolio(dict(zip(symbols, weights.tolist(), strict=True)), plan)

    def close(self) -> None:
        self.known.clear()

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

    def decide(self, portfolio: Portfolio) -> Decision:
        decision = self.answer(self.sessions, portfolio)
        if decision is None:
            return Hold()
        return TargetPortfolio(dict(decision)) if isinstance(decision, Mapping) else decision

    def close(self) -> None:
        self.sessions.clear()

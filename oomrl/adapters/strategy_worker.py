"""The strategy worker of guardrails, as the loop's port: sessions go in as columns, decisions come out as records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guardrails.sandbox import Sandbox
from guardrails.worker.client import Worker, WorkerFailure
from oomrl.domain.market import Session
from oomrl.domain.trading import Decision, Hold, LiquidityPlan, Portfolio, TargetPortfolio
from oomrl.errors import StrategyFailure


class SandboxedWorker:
    """Implement `ports.StrategyWorker`: every failure of the strategy becomes a `StrategyFailure`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._asked: Portfolio | None = None

    @classmethod
    def start(
        cls, sandbox: Sandbox, python: Path, folder: Path, params: Mapping[str, object], *, seed: int, capital: float
    ) -> SandboxedWorker:
        """Start a worker on a folder with src/ and strategy.toml."""
        try:
            return cls(Worker.start(sandbox, python, folder, params, seed=seed, capital=capital))
        except WorkerFailure as failure:
            raise _failure(failure) from failure

    def show(self, session: Session) -> None:
        try:
            self._worker.show(session.day.isoformat(), session.symbols, session.columns)
        except WorkerFailure as failure:
            raise _failure(failure) from failure

    def flush(self) -> None:
        try:
            self._worker.flush()
        except WorkerFailure as failure:
            raise _failure(failure) from failure

    def ask(self, portfolio: Portfolio) -> None:
        try:
            self._worker.ask(portfolio.day.isoformat(), portfolio.equity, portfolio.cash, portfolio.shares)
        except WorkerFailure as failure:
            raise _failure(failure) from failure
        self._asked = portfolio

    def decide(self, portfolio: Portfolio) -> Decision:
        if self._asked is not portfolio:
            self.ask(portfolio)
        self._asked = None
        try:
            answer = self._worker.answer()
        except WorkerFailure as failure:
            raise _failure(failure) from failure
        return decision_of(answer)

    def close(self) -> None:
        self._worker.close()


def decision_of(answer: Mapping[str, Any]) -> Decision:
    """Turn a worker's answer into a decision; the worker's client has checked its form."""
    if answer["action"] == "hold":
        return Hold(str(answer.get("reason", "")))
    plans = {symbol: _plan(symbol, plan) for symbol, plan in answer.get("plan", {}).items()}
    return TargetPortfolio(answer["weights"], plans, answer.get("reasons", {}))


def _plan(symbol: str, plan: Mapping[str, Any]) -> LiquidityPlan:
    limit, sessions = plan.get("limit_bps"), plan.get("sessions", 1)
    if not math.isfinite(sessions) or sessions != int(sessions):
        raise StrategyFailure("plan", f"Expected a whole number of sessions, was {sessions} for {symbol}")
    limited = limit is not None and not math.isnan(limit)
    return LiquidityPlan(float(plan.get("max_participation", 1.0)), int(sessions), float(limit) if limited else None)


def _failure(failure: WorkerFailure) -> StrategyFailure:
    return StrategyFailure(failure.kind, failure.message, failure.traceback)

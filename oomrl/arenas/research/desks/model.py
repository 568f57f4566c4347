"""Model submission: write model code, train, backtest, submit one strategy or abstain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oomrl.arenas.engine import Json
from oomrl.arenas.research import scoring, statistics
from oomrl.arenas.research.desks.base import Desk, Result, Setting, information
from oomrl.arenas.research.execution import MAX_GROSS, Design
from oomrl.arenas.research.laboratory import Failure, Trained, validation_start
from oomrl.arenas.research.references import oracle_model
from oomrl.arenas.research.tools import ABSTAIN, LABEL, RATIONALE, START, STOP, Field, Refusal, Tool
from oomrl.arenas.research.tools import row_range as rows_of
from oomrl.domain.market import Floats

TRAIN_TICKS, BACKTEST_TICKS = 2, 1
MIN_ROWS = 120
FILTER = "Public rows to use: {start, stop}; all by default"
TOOLS = (
    Tool(
        "train_model",
        "Start training. The code defines build() -> ElasticNet or a Pipeline ending in one, and features(panel) "
        "-> dict of name to frame, where panel maps a field to a frame of rows by names. Uses one attempt.",
        {
            "model_code": Field("text", "Python: math, statistics, numpy, pandas, sklearn alone", 1, 100_000),
            "label": LABEL,
            "train_filter": Field("object", FILTER, 0, 2, optional=True),
        },
    ),
    Tool(
        "get_train_model_result",
        "Ask whether training is done",
        {"job_id": Field("text", "From train_model", 1, 40)},
    ),
    Tool(
        "backtest",
        "Start a backtest on public rows. Uses one attempt.",
        {
            "model_id": Field("text", "From get_train_model_result", 1, 40),
            "max_gross_exposure": Field("number", "Cap on the sum of absolute weights", 0.05, MAX_GROSS),
            "label": LABEL,
            "backtest_filter": Field("object", FILTER, 0, 2, optional=True),
        },
    ),
    Tool(
        "get_backtest_result",
        "Ask whether the backtest is done",
        {"job_id": Field("text", "From backtest", 1, 40)},
    ),
    Tool(
        "submit_strategy",
        "End the episode: refit on all public rows and trade the hidden windows, or abstain",
        {
            "strategy_id": Field("text", "From get_backtest_result", 1, 40, optional=True),
            "rationale": RATIONALE,
            "abstain": ABSTAIN,
        },
    ),
)
_RANGE = Tool("filter", "", {"start": START, "stop": STOP})


@dataclass(frozen=True, slots=True)
class _Model:
    code: str
    rows: tuple[int, int]
    trained: Trained


@dataclass(frozen=True, slots=True)
class _Job:
    kind: str
    ready: int
    answer: Json


class ModelDesk(Desk):
    """Run one train job and one backtest at a time, in logical ticks."""

    tools = {tool.name: tool for tool in TOOLS}

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._jobs: dict[str, _Job] = {}
        self._models: dict[str, _Model] = {}
        self._strategies: dict[str, tuple[str, float]] = {}
        self._trials: list[Floats] = []
        self._trial_of: dict[str, Floats] = {}

    def _busy(self, kind: str) -> None:
        if any(job.kind == kind and self.tick < job.ready for job in self._jobs.values()):
            raise Refusal(f"Expected no {kind} job under way, one is: ask for its result first")

    def _rows(self, filter_: Mapping[str, Any] | None) -> tuple[int, int]:
        return rows_of(_RANGE.check(filter_ or {}), self.panel.public_days, MIN_ROWS)

    def _train_model(self, arguments: Mapping[str, Any]) -> Json:
        self._busy("train")
        rows = self._rows(arguments.get("train_filter"))
        self._spend()
        number = sum(job.kind == "train" for job in self._jobs.values()) + 1
        code = arguments["model_code"]
        trained = self.setting.laboratory.train(code, self.public, rows, self.setting.seed)
        answer: Json
        if isinstance(trained, Failure):
            answer = {"status": "failed", "kind": trained.kind, "message": trained.message}
        else:
            model_id = f"model-{number}"
            self._models[model_id] = _Model(code, rows, trained)
            self._remember(model_id, trained)
            correlation, _ = information(trained.forecast, self.public, *rows)
            answer = {
                "status": "done",
                "model_id": model_id,
                "rows": trained.rows,
                "features": list(trained.features),
                "coefficients": [round(value, 3) for value in trained.coefficients],
                "information_coefficient": round(correlation, 3),
            }
        return self._start("train", f"train-{number}", TRAIN_TICKS, answer)

    def _remember(self, model_id: str, trained: Trained) -> None:
        cut = validation_start(self.public)
        joined = np.vstack([trained.forecast[:cut], trained.validation])
        ledger = scoring.visible_ledger(self.public, joined, self.setting.design, cut, self.panel.public_days)
        self._trials.append(ledger.net)
        self._trial_of[model_id] = ledger.net

    def _get_train_model_result(self, arguments: Mapping[str, Any]) -> Json:
        return self._poll("train", arguments["job_id"])

    def _backtest(self, arguments: Mapping[str, Any]) -> Json:
        self._busy("backtest")
        model = self._models.get(arguments["model_id"])
        if model is None or not self._told("train", arguments["model_id"]):
            raise Refusal("Expected the model_id of a finished training, was another")
        start, stop = self._rows(arguments.get("backtest_filter"))
        self._spend()
        number = sum(job.kind == "backtest" for job in self._jobs.values()) + 1
        gross = float(arguments["max_gross_exposure"])
        design = _sized(self.setting.design, gross)
        ledger = scoring.visible_ledger(self.public, model.trained.forecast, design, start, stop)
        equity = np.cumprod(1.0 + ledger.net)
        overlap = max(0, min(stop, model.rows[1]) - max(start, model.rows[0])) / (stop - start)
        strategy_id = f"strategy-{number}"
        self._strategies[strategy_id] = (arguments["model_id"], gross)
        answer = {
            "status": "done",
            "strategy_id": strategy_id,
            "sharpe": round(statistics.sharpe(ledger.net).value, 2),
            "rows": len(ledger.net),
            "rows_trained_on": round(overlap, 2),
            "turnover": round(float(ledger.turnover.mean()), 3),
            "max_drawdown": round(float((1.0 - equity / np.maximum.accumulate(equity)).max()), 3),
        }
        return self._start("backtest", f"backtest-{number}", BACKTEST_TICKS, answer)

    def _get_backtest_result(self, arguments: Mapping[str, Any]) -> Json:
        return self._poll("backtest", arguments["job_id"])

    def _submit_strategy(self, arguments: Mapping[str, Any]) -> Json:
        named = arguments.get("strategy_id")
        if arguments.get("abstain", False):
            if named is not None:
                raise Refusal("Expected a strategy_id or abstain, were both")
            return self._abstain()
        if named not in self._strategies or not self._told("backtest", named):
            raise Refusal("Expected the strategy_id of a finished backtest (or abstain: true), was another")
        model_id, gross = self._strategies[named]
        model = self._models[model_id]
        later = self.setting.laboratory.forecast(model.code, self.panel)
        base = self._refit(model)
        if isinstance(later, Failure) or isinstance(base, Failure):
            failure = later if isinstance(later, Failure) else base
            assert isinstance(failure, Failure)
            return self._failed(failure)
        design = _sized(self.setting.design, gross)
        hidden = scoring.hidden_forecast(self.panel, base, later, design)
        tried = scoring.evidence(self._trial_of[model_id], self._trials, tries=self.attempts)
        more = {
            "deflated_sharpe": round(tried.deflated_sharpe, 4),
            "probability_of_overfitting": tried.overfitting,
            "tries": tried.tries,
        }
        return self._finish(hidden, scoring.ceiling_of(self.panel, self.setting.design), tried.value, "evidence", more)

    def _refit(self, model: _Model) -> Floats | Failure:
        """Return the public forecasts of the fit on all public rows: they set the scale."""
        everything = (0, self.panel.public_days)
        if model.rows == everything:
            return model.trained.forecast
        again = self.setting.laboratory.train(model.code, self.public, everything, self.setting.seed)
        return again if isinstance(again, Failure) else again.forecast

    def _failed(self, failure: Failure) -> Json:
        self.result = Result(-1.0, 0.0, "evidence", {"failure": failure.kind, "message": failure.message})
        return {"status": "failed", "kind": failure.kind, "message": failure.message}

    def _start(self, kind: str, job_id: str, ticks: int, answer: Json) -> Json:
        self._jobs[job_id] = _Job(kind, self.tick + ticks, answer)
        return {"status": "running", "job_id": job_id}

    def _poll(self, kind: str, job_id: str) -> Json:
        job = self._jobs.get(job_id)
        if job is None or job.kind != kind:
            raise Refusal(f"Expected the job_id of a {kind} job, was another")
        return {"status": "running"} if self.tick < job.ready else job.answer

    def _told(self, kind: str, answer_id: str) -> bool:
        """Say whether the job that made this id has finished."""
        number = answer_id.rsplit("-", 1)[-1]
        job = self._jobs.get(f"{kind}-{number}")
        return job is not None and self.tick >= job.ready

    def oracle(self) -> Json:
        truth = self.panel.truth
        if truth is None or not truth.tradable:
            return {"abstain": True}
        return {"abstain": False, "model_code": oracle_model(truth).code}


def _sized(design: Design, gross: float) -> Design:
    return replace(design, gross=gross)

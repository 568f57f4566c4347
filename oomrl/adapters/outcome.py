"""What a run came to: its figures beside those of the untouched incumbent and of the controls, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from oomrl.adapters.counterfactual import Counterfactual
from oomrl.adapters.database import Store, Work
from oomrl.adapters.repository import Repository
from oomrl.domain.controls import other_cadence, placebo
from oomrl.domain.market import Floats
from oomrl.domain.performance import day_returns, performance, sharpe_difference, turnover
from oomrl.domain.records import DeploymentKind, Mark, ProposalStatus
from oomrl.exchange.replay import ReplayResult

#: Below this many sessions no figure is worth an interval.
LEAST = 20
RESAMPLES = 1_000
#: Figures that are printed with an interval.
INTERVALS = ("sharpe", "annualised_return", "max_drawdown", "information_ratio", "beta", "alpha")
VERDICTS = {"pass": "passed the gate", "refuse": "refused by the gate"}
#: How a diagnostic ends, in a person's words.
ENDS = {
    "repaired": "approved and deployed",
    "exhausted": "no attempt passed",
    "escalated": "handed to a person",
    "no_patch": "shared with the market: no patch",
    "rolled_back": "undone by a rollback",
    "open": "still open",
}


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One account over time: closes, and the columns that figures need, each of shape (sessions,)."""

    days: tuple[date, ...]
    equity: Floats
    returns: Floats
    benchmark: Floats
    traded: Floats
    friction: Floats

    def since(self, day: date) -> Curve:
        """Return the sessions after a day."""
        keep = np.array([each > day for each in self.days])
        columns = (self.equity, self.returns, self.benchmark, self.traded, self.friction)
        days = tuple(each for each in self.days if each > day)
        return Curve(days, *(column[keep] for column in columns))


def curve_of_marks(marks: Sequence[Mark], start: Decimal) -> Curve:
    """Return the curve of stored marks; `start` is the endowment before the first."""
    equity = np.array([float(mark.equity) for mark in marks])
    flows = np.array([float(mark.flow) for mark in marks])
    traded = np.array([2 * mark.turnover * float(mark.equity) for mark in marks])
    friction = np.array([float(mark.friction) for mark in marks])
    benchmark = np.array([mark.benchmark or 0.0 for mark in marks])
    returns = day_returns(equity, flows, float(start)) if len(marks) else equity
    return Curve(tuple(mark.day for mark in marks), equity, returns, benchmark, traded, friction)


def curve_of_replay(result: ReplayResult) -> Curve:
    """Return the curve of a replay."""
    equity = result.equity
    start = result.capital_cents / 100
    returns = day_returns(equity, np.zeros(len(equity)), start)
    return Curve(result.days, equity, returns, result.benchmark, result.traded, result.friction)


def figures(curve: Curve, riskless: float, seed: int) -> dict[str, Any]:
    """Return the figures that every result prints; None where there are too few sessions for one."""
    traded, friction = float(curve.traded.sum()), float(curve.friction.sum())
    shown: dict[str, Any] = {
        "sessions": len(curve.days),
        "final_equity": round(float(curve.equity[-1]), 2) if len(curve.days) else None,
        "turnover": round(turnover(curve.traded, curve.equity), 4) if len(curve.days) else None,
        "friction_bps": round(friction / traded * 1e4, 2) if traded else 0.0,
    }
    names = ("annualised_return", "sharpe", "max_drawdown", "information_ratio", "beta", "alpha")
    if len(curve.days) < LEAST:
        return shown | dict.fromkeys((*names, *(f"{name}_ci" for name in INTERVALS)))
    measured = performance(curve.returns, curve.benchmark, riskless, seed=seed, resamples=RESAMPLES)
    for name in names:
        shown[name] = _rounded(getattr(measured, name).value)
    for name in INTERVALS:
        estimate = getattr(measured, name)
        shown[f"{name}_ci"] = [_rounded(estimate.low), _rounded(estimate.high)]
    return shown


def uplift(one: Curve, other: Curve, riskless: float, seed: int) -> tuple[float | None, list[float | None] | None]:
    """Return the paired difference of Sharpe ratios (one less the other) and its interval."""
    if len(one.days) < LEAST or one.days != other.days:
        return None, None
    difference = sharpe_difference(one.returns, other.returns, riskless, seed=seed, resamples=RESAMPLES)
    estimate = difference.estimate
    return _rounded(estimate.value), [_rounded(estimate.low), _rounded(estimate.high)]


@dataclass(frozen=True, slots=True)
class LossTold:
    """One loss in words: when and by what it was found, its cause, what was answered, and how it ended."""

    day: date
    evidence: str
    cause: str
    answers: Sequence[str]
    end: str


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A finished run: the result as printed, and the curves behind it by name."""

    result: dict[str, Any]
    curves: Mapping[str, Curve]
    losses: Sequence[LossTold] = ()


def losses_told(view: Work, run: str) -> list[LossTold]:
    """Tell each diagnosed loss of a run: what was proposed, what the gate said, how it ended."""
    told = []
    losses = {loss.id: loss for loss in view.losses.all(run)}
    verdicts = {verdict.proposal: verdict.outcome for verdict in view.proposals.verdicts(run)}
    for diagnostic in view.losses.diagnostics(run):
        loss = losses[diagnostic.loss]
        words: Mapping[str, Any] = diagnostic.payload["diagnostics"]  # type: ignore[assignment]
        answers = []
        for made in view.proposals.all(run, diagnostic.id):
            said = VERDICTS.get(verdicts.get(made.id, ""), made.status.value)
            author = f"{made.author}, rules and no language model" if made.author == "offline" else made.author
            answers.append(f"{made.attempt}. {_first_words(made.explanation)} ({author}): {said}")
        end = ENDS.get(diagnostic.status, diagnostic.status)
        told.append(LossTold(diagnostic.day, str(loss.detail["evidence"]), words["root_cause"], answers, end))
    return told


def _first_words(explanation: str) -> str:
    """Return the sentence of an explanation that names the repair."""
    lines = [line.strip() for line in explanation.splitlines() if line.strip()] or ["no explanation"]
    named = next((line.removeprefix("Repair:").strip() for line in lines if line.startswith("Repair:")), lines[0])
    return named.split(". ")[0][:70]


def outcome(
    run: str,
    store: Store,
    repository: Repository,
    counterfactual: Counterfactual,
    inverse: Mapping[str, bytes] | None,
    start_day: date,
    endowment: Decimal,
    riskless: float,
    seed: int,
) -> Outcome:
    """Measure a run, replay what it is compared with, and put both side by side."""
    with store.read() as view:
        marks = view.sessions.marks(run)
        deployments = view.deployments.all(run)
        losses, proposals = view.losses.all(run), view.proposals.all(run)
        verdicts = view.proposals.verdicts(run)
        orders, fills = view.orders.counts(run)
        _, _, model_cost = view.prompts.bill(run)
        state, told = view.capital.state(run), losses_told(view, run)
    escalations = sum(made.status is ProposalStatus.ESCALATED for made in proposals)
    curve = curve_of_marks(marks, endowment)
    last = marks[-1].day if marks else start_day
    first_tree = repository.tree(deployments[0].revision)
    incumbent = curve_of_replay(counterfactual.scheduled([(start_day, first_tree)], start_day, last))
    changed = next((made.day for made in deployments if made.kind is DeploymentKind.DEPLOY), None)
    curves, controls = {"run": curve, "incumbent": incumbent}, {}
    result = {
        "simulated": True,
        **figures(curve, riskless, seed),
        "revisions": len(deployments),
        "losses": len(losses),
        "proposals": len(proposals) - escalations,
        "escalations": escalations,
        "verdicts": {
            "pass": sum(v.outcome == "pass" for v in verdicts),
            "refuse": sum(v.outcome != "pass" for v in verdicts),
        },
        "deployments": sum(made.kind is not DeploymentKind.START for made in deployments),
        "initial_equity": float(endowment),
        "orders": orders,
        "fills": fills,
        "model_cost": float(model_cost),
        "state": marks[-1].state if marks else "active",
        "halted": state.halted,
        "incumbent": figures(incumbent, riskless, seed),
        "uplift_sharpe": None,
        "uplift_ci": None,
        "controls": controls,
    }
    if changed is None:
        return Outcome(result, curves, told)
    base = incumbent.since(changed)
    result["uplift_sharpe"], result["uplift_ci"] = uplift(curve.since(changed), base, riskless, seed)
    trees = {"placebo": placebo(first_tree, seed), "cadence": other_cadence(first_tree)}
    for name, tree in (trees | ({"inverse": inverse} if inverse is not None else {})).items():
        other = curve_of_replay(counterfactual.scheduled([(start_day, first_tree), (changed, tree)], start_day, last))
        difference, interval = uplift(other.since(changed), base, riskless, seed)
        controls[name] = figures(other, riskless, seed) | {"uplift_sharpe": difference, "uplift_ci": interval}
        curves[name] = other
    return Outcome(result, curves, told)


def _rounded(value: float) -> float | None:
    return round(value, 4) if np.isfinite(value) else None

"""The arena's figures: ordering of players, coverage on pure noise. Reference models of ours, no sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oomrl.arenas.engine import Json, PolicyFactory
from oomrl.arenas.research import references, scoring
from oomrl.arenas.research.engine import ResearchEngine
from oomrl.arenas.research.execution import Design
from oomrl.arenas.research.laboratory import ReferenceLaboratory, Trained
from oomrl.arenas.research.synthetic import LEVELS, Level, make_panel
from oomrl.domain.market import Floats


def play(engine: ResearchEngine, policy: PolicyFactory, seed: int, task: str) -> float:
    """Play one episode; return its score."""
    observation = engine.reset(seed, task)
    act = policy(seed, engine)
    while not observation.done:
        observation = engine.step(act(observation))
    return engine.grade().total


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired mean difference with its 95 % interval (bootstrap over seeds)."""

    mean: float
    low: float
    high: float


def paired(better: Floats, worse: Floats, seed: int = 0, draws: int = 4000) -> Difference:
    """Return mean(better - worse) over seeds with a percentile bootstrap interval."""
    gap = better - worse
    rng = np.random.default_rng(seed)
    means = gap[rng.integers(0, len(gap), (draws, len(gap)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Difference(float(gap.mean()), float(low), float(high))


def ordering(
    policies: Mapping[str, PolicyFactory],
    seeds: Sequence[int],
    tasks: Iterable[str],
    engine: ResearchEngine | None = None,
) -> dict[str, Floats]:
    """Return each player's mean score over tasks, by seed, shape (seeds,)."""
    engine = engine or ResearchEngine()
    tasks = tuple(tasks)
    return {
        name: np.array([np.mean([play(engine, policy, seed, task) for task in tasks]) for seed in seeds])
        for name, policy in policies.items()
    }


def noise_coverage(seeds: Sequence[int], hard: Level = LEVELS["l2"]) -> Json:
    """Trade a worthless model on panels without signal; count how often its interval holds minus its cost.

    `coverage` is the share of seeds whose 95 % interval of the hidden Sharpe covers the expected score of a
    forecast that knows nothing: what its trading costs, in units of Sharpe, with the sign turned.
    """
    design = Design(cost_bps=hard.cost_bps, capital=hard.capital)
    covered, scores, costs = [], [], []
    for seed in seeds:
        panel = make_panel(seed, hard, null=True)
        laboratory = ReferenceLaboratory()
        model = references.simple_model(panel.fields) if seed % 2 else references.noise_model(seed)
        code = model.code
        trained = laboratory.train(code, panel.public(), (0, panel.public_days), seed)
        later = laboratory.forecast(code, panel)
        if not isinstance(trained, Trained) or not isinstance(later, np.ndarray):
            continue
        hidden = scoring.hidden_forecast(panel, trained.forecast, later, design)
        covered.append(hidden.sharpe.low <= hidden.expected_cost <= hidden.sharpe.high)
        scores.append(hidden.sharpe.value)
        costs.append(hidden.expected_cost)
    return {
        "seeds": len(covered),
        "coverage": float(np.mean(covered)),
        "mean_sharpe": float(np.mean(scores)),
        "mean_expected": float(np.mean(costs)),
        "standard_error": float(np.std(scores) / np.sqrt(len(scores))),
    }

"""Three habits of a player, measured: how it searches, what thinking buys it, what it does after losses.

Published trials found strong models to search broadly and shallowly, to gain nothing from more reasoning, and
to stop trading after losses instead of trading smarter. Each is a number here, so that it can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oomrl.arenas.engine import Json

#: Two tries that share this much of their words belong to one family: the later refines the earlier.
KIN = 0.5
TRIES = ("train_model", "build_features", "test_feature", "simulate", "run_backtest", "inspect_source")
OUTCOMES = ("validation_sharpe", "sharpe", "block_return_bps")
Step = tuple[Mapping[str, Any], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Search:
    """How many tries, in how many families (breadth), and the longest chain of refinements (depth)."""

    tries: int
    breadth: int
    depth: int

    @property
    def depth_share(self) -> float:
        """Return depth over depth + breadth: near 0 broad and shallow, near 1 narrow and deep; 0.5 for one try."""
        return self.depth / (self.depth + self.breadth) if self.tries else 0.0


@dataclass(frozen=True, slots=True)
class AfterLosses:
    """What followed a result below zero: standing aside, the same again, a change that paid, one that did not."""

    losses: int
    stopped: int
    repeated: int
    smarter: int
    elsewhere: int


@dataclass(frozen=True, slots=True)
class Habits:
    """One episode's habits, its score and the tokens that the player spent on it (None where unknown)."""

    search: Search
    after_losses: AfterLosses
    score: float
    tokens: int | None


def habits(steps: Sequence[Step], score: float, tokens: int | None = None) -> Habits:
    """Measure an episode from its (action, observation data) pairs."""
    return Habits(_search(steps), _after_losses(steps), score, tokens)


def habits_of_log(records: Sequence[Mapping[str, Any]]) -> Habits:
    """Measure an episode from its log's records; tokens are summed from the agent's notes where it kept any."""
    steps = [record["body"] for record in records if record["kind"] == "step"]
    ends = [record["body"] for record in records if record["kind"] == "end"]
    counts = [_tokens(step["note"]) for step in steps]
    spent = [count for count in counts if count is not None]
    pairs = [(step["action"], step["observation"]["data"]) for step in steps if isinstance(step["action"], Mapping)]
    return habits(pairs, ends[-1]["score"] if ends else 0.0, sum(spent) if spent else None)


def _tokens(note: Mapping[str, Any]) -> int | None:
    """Return the tokens of one answer: what it said, reasoning included."""
    value = note.get("completion_tokens", note.get("tokens")) if isinstance(note, Mapping) else None
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def words(action: Mapping[str, Any]) -> frozenset[str]:
    """Return what a try says: words and numbers of code, or the leaves of its arguments; labels are left out."""
    arguments = action.get("arguments")
    if not isinstance(arguments, Mapping):
        return frozenset()
    if isinstance(arguments.get("model_code"), str):
        return frozenset(re.findall(r"[A-Za-z_]\w*|\d+\.?\d*", arguments["model_code"]))
    found: set[str] = set()
    _leaves(arguments, "", found)
    return frozenset(found)


def _leaves(value: Any, path: str, found: set[str]) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in ("label", "rationale", "note", "job_id"):
                _leaves(item, f"{path}/{key}", found)
    elif isinstance(value, list | tuple):
        for item in value:
            _leaves(item, path, found)
    else:
        found.add(f"{path}={value:.2g}" if isinstance(value, float) else f"{path}={value}")


def _kinship(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


def _search(steps: Sequence[Step]) -> Search:
    tries = [words(action) for action, _ in steps if _decides(action)]
    depths: list[int] = []
    families = 0
    for k, said in enumerate(tries):
        kin = [(_kinship(said, tries[j]), depths[j]) for j in range(k)]
        near = [depth for share, depth in kin if share >= KIN]
        families += not near
        depths.append(max(near, default=0) + 1)
    return Search(len(tries), families, max(depths, default=0))


def _decides(action: Mapping[str, Any]) -> bool:
    tool = action.get("tool")
    trades_block = tool == "execute" and "gross" in (action.get("arguments") or {})
    return tool in TRIES or trades_block


def _stands_aside(action: Mapping[str, Any]) -> bool:
    arguments = action.get("arguments")
    if not isinstance(arguments, Mapping):
        return False
    return arguments.get("abstain") is True or arguments.get("gross") == 0


def _after_losses(steps: Sequence[Step]) -> AfterLosses:
    moves: list[tuple[bool, frozenset[str], float | None]] = []
    for action, data in steps:
        result = data.get("result", {})
        outcome = next((float(result[key]) for key in OUTCOMES if key in result), None)
        if _decides(action) or _stands_aside(action):
            moves.append((_stands_aside(action), words(action), outcome))
        elif outcome is not None and moves:
            # A job's result belongs to the try that started it.
            moves[-1] = (*moves[-1][:2], outcome)
    counts = {"stopped": 0, "repeated": 0, "smarter": 0, "elsewhere": 0}
    for (aside, said, outcome), (next_aside, next_said, next_outcome) in zip(moves, moves[1:], strict=False):
        if aside or outcome is None or outcome >= 0.0:
            continue
        if next_aside:
            counts["stopped"] += 1
        elif next_said == said:
            counts["repeated"] += 1
        elif next_outcome is not None and next_outcome > 0.0:
            counts["smarter"] += 1
        else:
            counts["elsewhere"] += 1
    return AfterLosses(sum(counts.values()), **counts)


@dataclass(frozen=True, slots=True)
class Effort:
    """Rank correlation of tokens and score over episodes, with a 95 % bootstrap interval."""

    episodes: int
    correlation: float
    low: float
    high: float


def effort(tokens: Sequence[int], scores: Sequence[float], seed: int = 0, draws: int = 2000) -> Effort | None:
    """Relate reasoning to score (Spearman); None below five episodes or without spread in either."""
    x, y = np.asarray(tokens, dtype=float), np.asarray(scores, dtype=float)
    if len(x) < 5 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(x), (draws, len(x)))
    drawn = [_rank_correlation(x[pick], y[pick]) for pick in picks]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Effort(len(x), _rank_correlation(x, y), float(low), float(high))


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    a, b = _ranks(x), _ranks(y)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 0 else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    order = np.sort(values)
    return (np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right") - 1) / 2.0


def summary_of_logs(logs: Sequence[Sequence[Mapping[str, Any]]]) -> Json:
    """Return the three habits of one model from the records of its episodes' logs."""
    return summary([habits_of_log(records) for records in logs])


def summary(episodes: Sequence[Habits]) -> Json:
    """Return the three habits of one model over its episodes, as plain JSON values."""
    if not episodes:
        return {"episodes": 0}
    losses = sum(one.after_losses.losses for one in episodes)
    known = [(one.tokens, one.score) for one in episodes if one.tokens is not None]
    related = effort([tokens for tokens, _ in known], [score for _, score in known])
    return {
        "episodes": len(episodes),
        "search": {
            "tries": float(np.mean([one.search.tries for one in episodes])),
            "breadth": float(np.mean([one.search.breadth for one in episodes])),
            "depth": float(np.mean([one.search.depth for one in episodes])),
            "depth_share": float(np.mean([one.search.depth_share for one in episodes])),
        },
        "effort": None
        if related is None
        else {
            "episodes": related.episodes,
            "rank_correlation": related.correlation,
            "interval": [related.low, related.high],
        },
        "after_losses": {
            "losses": losses,
            **{
                name: sum(getattr(one.after_losses, name) for one in episodes) / losses if losses else None
                for name in ("stopped", "repeated", "smarter", "elsewhere")
            },
        },
    }

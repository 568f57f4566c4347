"""Run agents through arenas: single runs, orderings with their probes, and what the commands call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from oomrl.arenas.agents.manual import ManualAgent
from oomrl.arenas.agents.openai_agent import ModelSettings, OpenAIAgent
from oomrl.arenas.agents.scripted import Scripted
from oomrl.arenas.engine import Arena, Json
from oomrl.arenas.episode import Agent, Episode, play, score
from oomrl.arenas.registry import NAMES, find
from oomrl.arenas.statistics import Interval, interval, paired, sign_flip_p
from oomrl.errors import Mistake

OnEpisode = Callable[[Episode], None]


@dataclass(frozen=True, slots=True)
class Run:
    """One agent in one arena: all episodes, and one score a seed (the mean over tasks)."""

    arena: str
    version: str
    agent: str
    seeds: tuple[int, ...]
    tasks: tuple[str, ...]
    episodes: tuple[Episode, ...] = field(repr=False)
    habits: Json | None = None

    def by_seed(self) -> list[float]:
        """Return the mean score over tasks for each seed, in the order of the seeds."""
        scores: dict[int, list[float]] = {seed: [] for seed in self.seeds}
        for episode in self.episodes:
            scores[episode.seed].append(episode.score)
        return [fmean(scores[seed]) for seed in self.seeds]

    def score(self) -> Interval:
        """Return the mean score and its interval over seeds."""
        return interval(self.by_seed())

    def failures(self) -> int:
        """Return how many episodes an agent's failure ended."""
        return sum(episode.failure is not None for episode in self.episodes)

    def to_json(self) -> Json:
        """Return figures and one row an episode."""
        by_task = {
            task: fmean(episode.score for episode in self.episodes if episode.task == task) for task in self.tasks
        }
        return {
            "arena": self.arena,
            "version": self.version,
            "agent": self.agent,
            "seeds": list(self.seeds),
            "score": self.score().to_json(),
            "by_task": by_task,
            "failures": self.failures(),
            "refused": sum(episode.refused for episode in self.episodes),
            "habits": self.habits,
            "episodes": [episode.to_json() for episode in self.episodes],
        }


def list_arenas(names: Iterable[str] = NAMES) -> list[Json]:
    """Return name, version, title, tasks, policies, probes and known limits of each arena."""
    answer: list[Json] = []
    for name in names:
        arena = find(name)
        answer.append(
            {
                "name": arena.name,
                "version": arena.version,
                "title": arena.title,
                "tasks": {task.name: task.title for task in arena.tasks.values()},
                "policies": list(arena.policies),
                "probes": list(arena.probes),
                "limits": list(arena.limits),
            }
        )
    return answer


def make_agent(name: str, settings: ModelSettings | None = None, ask: Callable[[str], str] | None = None) -> Agent:
    """Return an agent by name: `openai` (with settings), `manual` (with `ask`), else a policy or probe."""
    if name == "openai":
        if settings is None:
            raise Mistake("Expected a model with --agent openai, was none: give --model or MODEL_NAME")
        return OpenAIAgent(settings)
    if name == "manual":
        if ask is None:
            raise Mistake("Expected somebody to answer with --agent manual, was nobody")
        return ManualAgent(ask)
    return Scripted(name)


def parse_seeds(text: str) -> list[int]:
    """Return seeds from `7,11,13`, `0-19`, or both mixed. Raises `Mistake` for anything else."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise Mistake(f"Expected seeds like 7,11,13 or 0-19, was {text!r}")
        seeds += range(int(first), int(last if dash else first) + 1)
    if not seeds or len(set(seeds)) != len(seeds):
        raise Mistake(f"Expected each seed once, was {text!r}")
    return seeds


def run(
    arena: Arena,
    agent: Agent,
    seeds: Sequence[int],
    tasks: Sequence[str] | None = None,
    logs: Path | None = None,
    on_episode: OnEpisode | None = None,
) -> Run:
    """Play every task of the arena with every seed; write one log an episode where `logs` is given."""
    chosen = tuple(tasks or arena.tasks)
    unknown = [task for task in chosen if task not in arena.tasks]
    if unknown:
        raise Mistake(f"Expected tasks of {', '.join(arena.tasks)}, was {unknown[0]!r}")
    episodes = []
    for seed in seeds:
        for task in chosen:
            episode = play(arena, agent, seed, task)
            episodes.append(episode)
            if logs is not None:
                logs.mkdir(parents=True, exist_ok=True)
                (logs / f"{file_name(episode)}.jsonl").write_text(episode.log.text(), encoding="utf-8")
            if on_episode is not None:
                on_episode(episode)
    habits = arena.habits([episode.log.records() for episode in episodes]) if arena.habits else None
    return Run(arena.name, arena.version, agent.name, tuple(seeds), chosen, tuple(episodes), habits)


@dataclass(frozen=True, slots=True)
class Ordering:
    """The check that an arena measures what it claims: max(random, probes) < heuristic < oracle.

    `above_floor` holds the paired difference of the heuristic to random and to each probe, `below_oracle`
    that of the oracle to the heuristic. `information` is p of "advice is worth nothing" (None: unmeasured).
    """

    arena: str
    split: str
    seeds: tuple[int, ...]
    scores: dict[str, Interval]
    by_seed: dict[str, list[float]] = field(repr=False)
    above_floor: dict[str, Interval]
    below_oracle: Interval
    information: float | None

    @property
    def holds(self) -> bool:
        """Tell whether every interval lies above 0 and information, where measured, has p < 0.01."""
        gaps = [*self.above_floor.values(), self.below_oracle]
        informed = self.information is None or self.information < 0.01
        return all(gap.low > 0 for gap in gaps) and informed

    def to_json(self) -> Json:
        """Return plain values."""
        return {
            "arena": self.arena,
            "split": self.split,
            "seeds": list(self.seeds),
            "holds": self.holds,
            "scores": {name: score.to_json() for name, score in self.scores.items()},
            "heuristic_minus": {name: gap.to_json() for name, gap in self.above_floor.items()},
            "oracle_minus_heuristic": self.below_oracle.to_json(),
            "value_of_information_p": self.information,
        }


def scripted_score(arena: str, policy: str, seed: int, task: str) -> float:
    """Return the score of one episode, all arguments plain, so that another process may play it."""
    return score(find(arena), Scripted(policy), seed, task)


def ordering(
    arena: Arena,
    split: str = "train",
    count: int = 24,
    first: int = 0,
    executor: Executor | None = None,
    on_score: Callable[[str], None] = lambda case: None,
) -> Ordering:
    """Measure random, heuristic, oracle and every probe on the same seeds of a split, `first` seeds in.

    With an executor the episodes of registered arenas are spread over it; the figures stay the same. `on_score`
    hears of each finished episode.
    """
    seeds = arena.seeds(split, first + count)[first:]
    names = [*arena.policies, *arena.probes]
    cases = [(name, seed, task) for name in names for seed in seeds for task in arena.tasks]
    if executor is None:
        measured: Iterable[float] = (score(arena, Scripted(name), seed, task) for name, seed, task in cases)
    else:
        columns = [*zip(*cases, strict=True)]
        measured = executor.map(scripted_score, [arena.name] * len(cases), *columns, chunksize=4)
    scores = []
    for case, value in zip(cases, measured, strict=True):
        scores.append(value)
        on_score(f"{arena.name} {split}: {case[0]}")
    width = len(arena.tasks)
    means = [fmean(scores[at : at + width]) for at in range(0, len(scores), width)]
    by_seed = {
        name: means[at : at + len(seeds)] for name, at in zip(names, range(0, len(means), len(seeds)), strict=True)
    }
    floor = ["random", *arena.probes]
    information = None
    if "blinded" in by_seed:
        floor.append("blinded")
        pairs = zip(by_seed["heuristic"], by_seed["blinded"], strict=True)
        information = sign_flip_p([a - b for a, b in pairs])
    return Ordering(
        arena.name,
        split,
        tuple(seeds),
        {name: interval(scores) for name, scores in by_seed.items()},
        by_seed,
        {name: paired(by_seed["heuristic"], by_seed[name]) for name in floor},
        paired(by_seed["oracle"], by_seed["heuristic"]),
        information,
    )


def file_name(episode: Episode) -> str:
    """Return a name without an ending for an episode's files."""
    return "-".join(_safe(word) for word in (episode.arena, episode.agent, episode.task, str(episode.seed)))


def _safe(word: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in word)[:80]

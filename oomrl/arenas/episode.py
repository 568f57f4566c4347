"""Play an episode with an agent, write its log, and replay a log to the same score and hash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from oomrl.arenas.engine import Arena, Engine, Json, Observation, Policy, plain
from oomrl.arenas.log import FORMAT, EpisodeLog
from oomrl.errors import Mistake, Refused


class AgentFailure(Exception):
    """The agent could not answer (its service failed, it was stopped). It ends the episode as a failure."""


class Agent(Protocol):
    """Plays an arena. `note` is what it wants kept of its last answer: tokens, cost, raw text."""

    @property
    def name(self) -> str:
        """Return the name that the record carries."""
        ...

    def start(self, arena: Arena, engine: Engine, seed: int, task: str) -> Policy:
        """Return the policy for one episode. Only the oracle may look into the engine."""
        ...

    def note(self) -> Json:
        """Return what to record beside the last action."""
        ...


@dataclass(frozen=True, slots=True)
class Episode:
    """One finished episode. `failure` says why an agent's failure ended it; its score is then the lowest."""

    arena: str
    version: str
    agent: str
    task: str
    seed: int
    score: float
    total_reward: float
    steps: int
    refused: int
    failure: str | None
    grade: Json
    log: EpisodeLog

    def to_json(self) -> Json:
        """Return the episode's record without its log, with the log's head."""
        return {
            "arena": self.arena,
            "version": self.version,
            "agent": self.agent,
            "task": self.task,
            "seed": self.seed,
            "score": self.score,
            "total_reward": self.total_reward,
            "steps": self.steps,
            "refused": self.refused,
            "failure": self.failure,
            "grade": self.grade,
            "head": self.log.head,
        }


def play(
    arena: Arena,
    agent: Agent,
    seed: int,
    task: str,
    on_step: Callable[[Observation, Any], None] | None = None,
) -> Episode:
    """Play one episode to its end or to the agent's failure, which is recorded and scored lowest."""
    engine = arena.make()
    log = EpisodeLog()
    observation = engine.reset(seed, task)
    log.append("start", _start(arena, agent.name, seed, task, observation))
    policy = agent.start(arena, engine, seed, task)
    tally = _Tally()
    failure: str | None = None
    while not observation.done:
        try:
            action = plain(policy(observation))
        except AgentFailure as problem:
            failure = str(problem)
            break
        observation = engine.step(action)
        tally.add(observation)
        log.append("step", {"action": action, "note": agent.note(), "observation": observation.to_json()})
        if on_step is not None:
            on_step(observation, action)
    return _finish(arena, agent.name, seed, task, engine, log, tally, failure)


def score(arena: Arena, agent: Agent, seed: int, task: str) -> float:
    """Play one episode without a log and return its score: the fast way to measure many seeds."""
    engine = arena.make()
    observation = engine.reset(seed, task)
    policy = agent.start(arena, engine, seed, task)
    while not observation.done:
        observation = engine.step(plain(policy(observation)))
    return engine.grade().total


def replay(arena: Arena, log: EpisodeLog) -> Episode:
    """Play a log's actions again.

    Raises `Mistake` for a log of another arena or version, `Refused` where the engine answers otherwise than it says.
    """
    records = log.records()
    start = records[0]["body"] if records else {}
    if start.get("arena") != arena.name or start.get("version") != arena.version:
        raise Mistake(
            f"Expected a log of {arena.name} {arena.version}, was {start.get('arena')} {start.get('version')}"
        )
    engine = arena.make()
    fresh = EpisodeLog()
    observation = engine.reset(start["seed"], start["task"])
    fresh.append("start", _start(arena, start["agent"], start["seed"], start["task"], observation))
    tally = _Tally()
    failure: str | None = None
    for number, record in enumerate(records[1:], start=2):
        if record["kind"] == "end":
            failure = record["body"]["failure"]
            break
        body = record["body"]
        observation = engine.step(body["action"])
        tally.add(observation)
        fresh.append(
            "step",
            {"action": body["action"], "note": body["note"], "observation": observation.to_json()},
        )
        if fresh.head != record["hash"]:
            raise Refused(f"Expected line {number} to replay to its hash, was another answer of the engine")
    episode = _finish(arena, start["agent"], start["seed"], start["task"], engine, fresh, tally, failure)
    if episode.log.head != log.head:
        raise Refused("Expected the replayed end to have the log's hash, was another score or an unended log")
    return episode


def _start(arena: Arena, agent: str, seed: int, task: str, observation: Observation) -> Json:
    return {
        "format": FORMAT,
        "arena": arena.name,
        "version": arena.version,
        "agent": agent,
        "seed": seed,
        "task": task,
        "observation": observation.to_json(),
    }


@dataclass(slots=True)
class _Tally:
    """Counts of an episode. A step was refused where its observation reports an error."""

    steps: int = 0
    reward: float = 0.0
    refused: int = 0

    def add(self, observation: Observation) -> None:
        self.steps += 1
        self.reward += observation.reward or 0.0
        self.refused += bool(observation.data.get("error") or observation.data.get("errors"))


def _finish(
    arena: Arena,
    agent: str,
    seed: int,
    task: str,
    engine: Engine,
    log: EpisodeLog,
    tally: _Tally,
    failure: str | None,
) -> Episode:
    grade = engine.grade()
    score = arena.score_range[0] if failure is not None else grade.total
    log.append(
        "end",
        {
            "score": score,
            "grade": grade.to_json(),
            "total_reward": tally.reward,
            "steps": tally.steps,
            "refused": tally.refused,
            "failure": failure,
        },
    )
    return Episode(
        arena.name,
        arena.version,
        agent,
        task,
        seed,
        score,
        tally.reward,
        tally.steps,
        tally.refused,
        failure,
        grade.to_json(),
        log,
    )

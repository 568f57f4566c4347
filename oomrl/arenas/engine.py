"""What every arena is: a seeded engine without input or output, and the words all of them share.

An engine depends on the standard library alone. Faces (plain Python, Gymnasium-style, OpenEnv), agents,
runners and logs are built on this protocol and know no arena by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Action = Mapping[str, Any]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """One node of a rubric tree: a leaf has a value, a branch is the weighted sum of its parts.

    A weight may be negative (a cost). `total` of the root is the reward or the score that the tree explains,
    clipped to `low..high` where those are given.
    """

    name: str
    weight: float = 1.0
    value: float = 0.0
    parts: tuple[Part, ...] = ()
    low: float = -math.inf
    high: float = math.inf

    @property
    def total(self) -> float:
        """Return the node's value before its own weight."""
        raw = math.fsum(part.weight * part.total for part in self.parts) if self.parts else self.value
        return min(max(raw, self.low), self.high)

    def to_json(self) -> Json:
        """Return name, weight, total and parts as plain JSON values."""
        answer: Json = {"name": self.name, "weight": self.weight, "total": self.total}
        if self.parts:
            answer["parts"] = [part.to_json() for part in self.parts]
        return answer

    def leaves(self, path: str = "", factor: float = 1.0) -> dict[str, float]:
        """Return each leaf's weighted contribution by its path, `root/branch/leaf`."""
        here = f"{path}/{self.name}" if path else self.name
        factor *= self.weight
        if not self.parts:
            return {here: factor * self.total}
        answer: dict[str, float] = {}
        for part in self.parts:
            answer.update(part.leaves(here, factor))
        return answer


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent sees after a reset or a step.

    `data` holds plain JSON values only; `reward` is None after a reset; `parts` explains the reward.
    """

    data: Json
    done: bool = False
    reward: float | None = None
    parts: Part | None = None

    def to_json(self) -> Json:
        """Return what goes over a wire and into a log."""
        return {
            "data": self.data,
            "done": self.done,
            "reward": self.reward,
            "parts": None if self.parts is None else self.parts.to_json(),
        }


class Engine(Protocol):
    """Play one episode at a time. Same seed, task and actions: same bytes.

    `step` never raises because of what an action holds: a malformed action (unknown field, NaN, infinity,
    negative weight, wrong type) is refused, costed and reported in the observation. It raises `Mistake` when
    called before `reset` or after the end of an episode.
    """

    reward_range: tuple[float, float]

    def reset(self, seed: int, task: str) -> Observation:
        """Start an episode of the named task."""
        ...

    def step(self, action: Action) -> Observation:
        """Play one action."""
        ...

    @property
    def state(self) -> Json:
        """Return the episode's public state: nothing in it that an observation may not show."""
        ...

    def hidden(self) -> Json:
        """Return what must never reach an agent, for judges, oracles and the canary tests.

        Its `canaries` are texts that no observation and no state of this moment may hold.
        """
        ...

    def grade(self) -> Part:
        """Return the episode's score so far as a rubric tree. The same state gives the same score."""
        ...


Policy = Callable[[Observation], Action]
PolicyFactory = Callable[[int, Engine], Policy]
"""Makes a policy from a seed and the engine. Only an oracle may look into `engine.hidden()`."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task of an arena: a title for the agent, its length, and its own list of tools if it has them."""

    name: str
    title: str
    max_steps: int
    difficulty: str = "medium"
    tools: tuple[str, ...] = ()


class Seat(Protocol):
    """One of several places from which an arena is played at once, `{"actions": {seat: action}}` a step."""

    def rules(self, arena: Arena) -> Arena:
        """Return the arena as this seat is told of it: instructions and schema of its own action."""
        ...

    def view(self, observation: Observation) -> Observation:
        """Return what this seat sees of an observation, and nothing that only others see."""
        ...


@dataclass(frozen=True, slots=True)
class Arena:
    """Everything that runners, faces and pages need to know of one arena.

    `policies` holds at least random, heuristic and oracle (v2 arenas); `probes` the strategies that try to
    score without doing the work. `instructions` is the system prompt for a language model.
    The scores must be ordered: max(random, probes) < heuristic < oracle. Where `mcp_tools` is set an action
    is {"tool", "arguments"} and `tool_schemas` holds {"name", "description", "parameters"} of every tool. Where
    `seats` are named, each is played by an agent of its own. `watch` names figures of an observation that a page
    charts, as paths; `habits` measures how an agent plays from the records of its episodes' logs.
    """

    name: str
    version: str
    title: str
    make: Callable[[], Engine]
    tasks: Mapping[str, Task]
    action_schema: Json
    instructions: str
    policies: Mapping[str, PolicyFactory]
    probes: Mapping[str, PolicyFactory] = field(default_factory=dict)
    score_range: tuple[float, float] = (0.0, 1.0)
    limits: tuple[str, ...] = ()
    mcp_tools: bool = False
    tool_schemas: tuple[Json, ...] = ()
    seats: Mapping[str, Seat] = field(default_factory=dict)
    watch: tuple[str, ...] = ()
    habits: Callable[[Sequence[Sequence[Json]]], Json] | None = None

    def seeds(self, split: str, count: int) -> list[int]:
        """Return the first `count` seeds of a split: `train` from 0, `held_out` from 1,000,000."""
        first = {"train": 0, "held_out": 1_000_000}[split]
        return list(range(first, first + count))


def canonical(value: Any) -> bytes:
    """Return the one byte string of a JSON value: sorted keys, no spaces, UTF-8, finite numbers only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


MAX_TEXT = 100_000
MAX_DEPTH = 24


def plain(value: Any, depth: int = 0) -> Any:
    """Return an untrusted action as JSON values that survive a log.

    What is no honest JSON value (a number that is not finite or over 2**53, a key that is no text, an object,
    a text over `MAX_TEXT` characters, nesting over `MAX_DEPTH`) becomes a mapping that describes it under a
    key starting with "$", which every engine refuses.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            return {"$long": len(value)}
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int | float):
        if not math.isfinite(value) if isinstance(value, float) else abs(value) > 2**53:
            return {"$number": str(value) if isinstance(value, float) else f"{value.bit_length()} bits"}
        return value
    if depth >= MAX_DEPTH:
        return {"$deep": MAX_DEPTH}
    if isinstance(value, Mapping):
        return {
            (plain(key) if isinstance(key, str) and len(key) <= MAX_TEXT else f"$key:{type(key).__name__}"): (
                plain(item, depth + 1)
            )
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    return {"$type": type(value).__name__}

"""Teacher episodes: a policy plays, good episodes become examples of calling the arena's one tool."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from oomrl.arenas.engine import Arena, Json, plain
from oomrl.arenas.training.environment import shown

TOOL: Json = {
    "type": "function",
    "function": {
        "name": "play",
        "description": "Play one action of the arena and see what follows.",
        "parameters": {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "description": "The action as one JSON object, as the rules describe it.",
                }
            },
            "required": ["action"],
        },
    },
}


@dataclass(frozen=True, slots=True)
class Lesson:
    """One step of a teacher: what was seen, what was played, and the score of its whole episode."""

    arena: str
    task: str
    seed: int
    seen: str
    action: str
    score: float

    def messages(self) -> list[Json]:
        """Return the step as a chat that ends in a tool call."""
        call = {"type": "function", "function": {"name": "play", "arguments": {"action": self.action}}}
        return [
            {"role": "user", "content": f"{brief(self.arena, self.task)}\n{self.seen}"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
        ]


def brief(arena: str, task: str) -> str:
    """Return the short prompt that training uses: small models have small windows."""
    return f"Arena {arena}, task {task}. Call play with one JSON action."


def collect(
    arena: Arena,
    teacher: str,
    seeds: Sequence[int],
    tasks: Sequence[str] | None = None,
    keep: float = 0.5,
    steps: int | None = None,
) -> list[Lesson]:
    """Return lessons of the best share of episodes (`keep`, by score within a task), in order of play.

    Use training seeds: held-out ones qualify. `steps` cuts each episode's lessons after so many steps.
    """
    lessons: list[Lesson] = []
    for task in tasks or arena.tasks:
        episodes: list[tuple[float, list[Lesson]]] = []
        for seed in seeds:
            engine = arena.make()
            observation = engine.reset(seed, task)
            act = arena.policies[teacher](seed, engine)
            played: list[tuple[str, str]] = []
            while not observation.done:
                action = plain(act(observation))
                played.append((shown(observation), json.dumps(action, sort_keys=True)))
                observation = engine.step(action)
            score = engine.grade().total
            rows = [Lesson(arena.name, task, seed, seen, said, score) for seen, said in played[:steps]]
            episodes.append((score, rows))
        episodes.sort(key=lambda episode: -episode[0])
        for _, rows in episodes[: max(1, round(keep * len(episodes)))]:
            lessons += rows
    return lessons

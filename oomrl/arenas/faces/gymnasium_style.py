"""An arena with the calls of a Gymnasium environment, without the package.

Actions and observations are JSON mappings, as the arena's schema describes them; `JsonSpace` stands where
Gymnasium has a space, so that wrappers may ask whether it contains a value.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from oomrl.arenas.engine import Arena, Json, Observation, Policy, plain
from oomrl.arenas.registry import find
from oomrl.errors import Mistake


@dataclass(slots=True)
class JsonSpace:
    """What may be sent: any JSON mapping; the engine refuses and costs what the schema forbids."""

    schema: Json

    def contains(self, value: Any) -> bool:
        """Tell whether a value is a mapping of honest JSON values."""
        try:
            return isinstance(value, dict) and json.loads(json.dumps(value, allow_nan=False)) == value
        except (TypeError, ValueError):
            return False


class GymnasiumStyle:
    """Play an arena as `reset(seed=, options={"task": ...})` and `step(action)` with five results."""

    metadata = {"render_modes": ["ansi"]}

    def __init__(self, arena: str | Arena, task: str | None = None, render_mode: str | None = None) -> None:
        """Take an arena or its name, and the task to play unless `options` names another."""
        self.arena = arena if isinstance(arena, Arena) else find(arena)
        self.task = task or next(iter(self.arena.tasks))
        self.render_mode = render_mode
        self.action_space = JsonSpace(self.arena.action_schema)
        self.observation_space = JsonSpace({"type": "object"})
        self.unwrapped = self
        self._engine = self.arena.make()
        self.reward_range = self._engine.reward_range
        self._last: Observation | None = None
        self._seed = 0

    def reset(self, *, seed: int | None = None, options: Json | None = None) -> tuple[Json, Json]:
        """Start an episode; without a seed the next one follows the last. Returns observation and info."""
        self._seed = self._seed + 1 if seed is None else seed
        self.task = (options or {}).get("task", self.task)
        self._last = self._engine.reset(self._seed, self.task)
        return self._last.data, {"task": self.task}

    def step(self, action: Any) -> tuple[Json, float, bool, bool, Json]:
        """Play an action. Returns observation, reward, terminated, truncated (always False), info."""
        self._last = self._engine.step(plain(action))
        info: Json = {"reward_parts": self._last.parts.to_json() if self._last.parts else None}
        if self._last.done:
            grade = self._engine.grade()
            info["score"], info["grade"] = grade.total, grade.to_json()
        return self._last.data, self._last.reward or 0.0, self._last.done, False, info

    def render(self) -> str | None:
        """Return the last observation as text in the `ansi` mode."""
        if self.render_mode != "ansi" or self._last is None:
            return None
        return json.dumps(self._last.data, indent=2, sort_keys=True)

    def policy(self, name: str) -> Policy:
        """Return one of the arena's policies for the running episode. Raises `Mistake` for another name."""
        factory = self.arena.policies.get(name)
        if factory is None:
            raise Mistake(f"Expected a policy of {', '.join(self.arena.policies)}, was {name!r}")
        return factory(self._seed, self._engine)

    def close(self) -> None:
        """Do nothing: engines hold no resource."""

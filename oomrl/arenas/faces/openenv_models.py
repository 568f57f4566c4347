"""What goes over the wire between an OpenEnv server and client. Needs the extra `openenv`.

The arena's action travels whole in one field, so that the engine itself refuses and costs a malformed one:
were it spread over the model's fields, the framework would reject it for free.
"""

from __future__ import annotations

from typing import Any

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field

from oomrl.arenas.engine import Arena


class ArenaAction(Action):
    """One action of an arena, as its schema describes it."""

    action: dict[str, Any] = Field(description="The arena's action; see its schema")


class ArenaObservation(Observation):
    """What the agent sees; `score` and `grade` once the episode is done."""

    data: dict[str, Any] = Field(default_factory=dict, description="The arena's observation")
    parts: dict[str, Any] | None = Field(default=None, description="The rubric tree of the last reward")
    score: float | None = Field(default=None, description="The episode's score, once it is done")
    grade: dict[str, Any] | None = Field(default=None, description="The score's rubric tree, once it is done")


class ArenaState(State):
    """The episode's public state. It names neither the seed nor anything that an observation hides."""

    task: str | None = Field(default=None, description="The task being played")
    done: bool = Field(default=False, description="Whether the episode is over")
    public: dict[str, Any] = Field(default_factory=dict, description="The engine's public totals")


def action_model(arena: Arena) -> type[ArenaAction]:
    """Return the action class whose published schema holds the arena's own."""

    class _Action(ArenaAction):
        action: dict[str, Any] = Field(
            description=f"An action of {arena.name}",
            json_schema_extra={"arena_schema": arena.action_schema},
        )

    _Action.__name__ = _Action.__qualname__ = f"{arena.name.title().replace('_', '')}Action"
    return _Action

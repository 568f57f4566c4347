"""An arena as TRL's `environment_factory` wants it: reset, one tool, and the score as the reward.

Every public method of such a class becomes a tool of the model, so whatever is not one starts with an
underscore. A rollout that ends early is played out with the arena's idle action before it is graded: a good
first step followed by silence must not score like a good episode.
"""

from __future__ import annotations

import json
from typing import Any

from oomrl.arenas.agents.prompting import parse_reply
from oomrl.arenas.engine import Json, Observation, Part, plain
from oomrl.arenas.registry import find
from oomrl.errors import Mistake

IDLE: dict[str, Json] = {
    "committee": {"action": "hold"},
    "organization": {"role": "oversight", "action": "no_op", "payload": {}},
    "research": {},
}
#: What a small model need not read at every step.
DROPPED = ("agent_observations", "hints", "templates", "names", "costs", "scenario_title", "turnover_window")


def shown(observation: Observation) -> str:
    """Return an observation as short JSON for a model's context."""
    data = {key: value for key, value in observation.data.items() if key not in DROPPED}
    views = observation.data.get("agent_observations")
    if views:
        data.update({name: item for view in views.values() for name, item in view.items()})
    return json.dumps(data, separators=(",", ":"), sort_keys=True)


class _ArenaEnvironment:
    """One rollout at a time of the arena that the subclass names."""

    _arena = ""

    def __init__(self) -> None:
        self._spec = find(self._arena)
        self._engine = self._spec.make()
        self._last: Observation | None = None
        self._calls = self._refused = 0

    def reset(self, **row: Any) -> str:
        """Start an episode from a row's `seed` and `task` and return the first observation."""
        task = row.get("task") or next(iter(self._spec.tasks))
        self._last = self._engine.reset(int(row.get("seed") or 0), task)
        self._calls = self._refused = 0
        return shown(self._last)

    def play(self, action: str) -> str:
        """Play one action of the arena and see what follows.

        Args:
            action: The action as one JSON object, as the rules describe it.

        Returns:
            The next observation as JSON, or a notice that the episode is over.
        """
        if self._last is None or self._last.done:
            return "The episode is over."
        self._calls += 1
        self._last = self._engine.step(plain(parse_reply(str(action))))
        self._refused += bool(self._last.data.get("error") or self._last.data.get("errors"))
        return shown(self._last)

    def get_reward(self) -> float:
        """Return the score of the episode, played out with the idle action where the model stopped."""
        return self._graded().total

    def _graded(self) -> Part:
        if self._last is None:
            raise Mistake("Expected a rollout to grade, was none: call reset first")
        while not self._last.done:
            self._last = self._engine.step(IDLE[self._arena])
        return self._engine.grade()

    def _valid_share(self) -> float:
        """Return the share of calls that the arena accepted, 0 without any."""
        return (self._calls - self._refused) / self._calls if self._calls else 0.0

    def _parts(self) -> dict[str, float]:
        """Return what each part contributes to the score, by name, played out as the score is."""
        return {part.name: part.weight * part.total for part in self._graded().parts}


class CommitteeEnvironment(_ArenaEnvironment):
    """The committee for a trainer."""

    _arena = "committee"


class OrganizationEnvironment(_ArenaEnvironment):
    """The organization for a trainer."""

    _arena = "organization"


class ResearchEnvironment(_ArenaEnvironment):
    """Research for a trainer."""

    _arena = "research"


FACTORIES = {
    "committee": CommitteeEnvironment,
    "organization": OrganizationEnvironment,
    "research": ResearchEnvironment,
}

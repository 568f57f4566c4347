"""A client of an arena served over OpenEnv's WebSocket. Needs the extra `openenv`."""

from __future__ import annotations

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient

from oomrl.arenas.engine import Json
from oomrl.arenas.faces.openenv_models import ArenaAction, ArenaObservation, ArenaState


class ArenaClient(EnvClient[ArenaAction, ArenaObservation, ArenaState]):
    """Play a served arena: `await reset(seed=, task=)`, `await step({...})`; `.sync()` for plain code."""

    def _step_payload(self, action: ArenaAction | Json) -> Json:
        return {"action": action.action if isinstance(action, ArenaAction) else action}

    def _parse_result(self, payload: Json) -> StepResult[ArenaObservation]:
        observation = ArenaObservation(
            **payload.get("observation", {}),
            done=payload.get("done", False),
            reward=payload.get("reward"),
        )
        return StepResult(observation=observation, reward=payload.get("reward"), done=payload.get("done", False))

    def _parse_state(self, payload: dict[str, Any]) -> ArenaState:
        return ArenaState(**payload)

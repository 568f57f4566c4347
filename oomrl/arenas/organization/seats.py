"""The six seats of the organization: what each role is told, sees and may say when six agents act at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from oomrl.arenas.engine import Arena, Observation
from oomrl.arenas.organization.actions import role_schema
from oomrl.arenas.organization.rules import ACTIONS, FOCUS, PAYLOADS, ROLES, SKILLS, VISIBILITY

SHARED = ("task", "step_count", "max_steps", "scenario_id", "scenario_title", "hints")
"""What every seat sees beside its own slice of the visibility matrix."""


@dataclass(frozen=True, slots=True)
class RoleSeat:
    """One role's place."""

    role: str

    def rules(self, arena: Arena) -> Arena:
        """Return the arena with this role's instructions and schema."""
        return replace(arena, instructions=_instructions(self.role), action_schema=role_schema(self.role), seats={})

    def view(self, observation: Observation) -> Observation:
        """Return this role's slices, what it was refused, and what everybody knows."""
        data = observation.data
        errors = {key: text for key, text in data["errors"].items() if key in ("action", self.role)}
        shown = {name: data[name] for name in SHARED}
        return Observation(
            {**shown, "role": self.role, **data["agent_observations"][self.role], "errors": errors},
            observation.done,
            observation.reward,
        )


SEATS: Mapping[str, RoleSeat] = MappingProxyType({role: RoleSeat(role) for role in ROLES})


def _instructions(role: str) -> str:
    mine = [action for action, roles in ACTIONS.items() if role in roles]
    seen = [name for name, seers in VISIBILITY.items() if role in seers]
    allowed = "\n".join(f"- {action} {{{', '.join(PAYLOADS[action])}}}" for action in mine)
    return f"""\
You are the {role} of a technology organisation. Five colleagues ({", ".join(r for r in ROLES if r != role)}) act in
the same step and see other things; you cannot speak with them, only act so that they can. You see {", ".join(seen)}.
The reward is the organisation's. Answer with one JSON object and nothing else: {{"action": ..., "payload": {{...}}}}.

Your actions, with their payloads:
{allowed}

A task belongs with its specialist: {", ".join(f"{kind} -> {name}" for kind, name in SKILLS.items())}. Risks arise
unseen; a query_metrics by a specialist finds those of its field. To mitigate one: raise_risk_flag, then propose_plan
with the focus for its nature ({", ".join(f"{nature} -> {focus}" for nature, focus in FOCUS.items())}), then
accept_plan by another role than the author. An approval needs a matching request of another role, a risk check within
five steps before, and an amount within the policy's threshold. plan is {{"focus": ...}}, policy is
{{"resource_threshold": number}}. no_op is right where nothing is yours to do; useless actions cost efficiency.
"""

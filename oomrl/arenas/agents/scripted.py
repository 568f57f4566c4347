"""An arena's own policies and probes as agents."""

from __future__ import annotations

from dataclasses import dataclass

from oomrl.arenas.engine import Arena, Engine, Json, Policy
from oomrl.errors import Mistake


@dataclass(frozen=True, slots=True)
class Scripted:
    """Play a policy or probe of the arena by its name."""

    name: str

    def start(self, arena: Arena, engine: Engine, seed: int, task: str) -> Policy:
        """Return the named policy. Raises `Mistake` where the arena has none of that name."""
        factory = arena.policies.get(self.name) or arena.probes.get(self.name)
        if factory is None:
            known = ", ".join([*arena.policies, *arena.probes])
            raise Mistake(f"Expected a policy of {arena.name} ({known}), was {self.name!r}")
        return factory(seed, engine)

    def note(self) -> Json:
        """Keep nothing."""
        return {}

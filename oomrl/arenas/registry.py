"""The arenas by name. An arena is imported when somebody asks for it, so that none weighs on the others."""

from __future__ import annotations

from importlib import import_module

from oomrl.arenas.engine import Arena
from oomrl.errors import Mistake

_WHERE = {
    "committee": "oomrl.arenas.committee.arena:COMMITTEE",
    "committee_v1": "oomrl.arenas.committee.arena:COMMITTEE_V1",
    "organization": "oomrl.arenas.organization.arena:ORGANIZATION",
    "organization_six": "oomrl.arenas.organization.arena:ORGANIZATION_SIX",
    "research": "oomrl.arenas.research.arena:ARENA",
    "research_l1": "oomrl.arenas.research.arena:RESEARCH_L1",
    "research_l2": "oomrl.arenas.research.arena:RESEARCH_L2",
    "research_l3": "oomrl.arenas.research.arena:RESEARCH_L3",
    "research_l4": "oomrl.arenas.research.arena:RESEARCH_L4",
}
NAMES = tuple(_WHERE)
ON_TAPE = "research_tape"
"""The research arena on a person's own tape, which `research.arena.arena_on_tape` makes."""
QUALIFYING = ("committee", "organization", "research")
"""The arenas that a proposer must pass, each in the version that qualifies."""


def find(name: str) -> Arena:
    """Return an arena. Raises `Mistake` for a name that is none."""
    if name not in _WHERE:
        raise Mistake(f"Expected an arena of {', '.join(NAMES)}, was {name!r}: see `oomrl arena list`")
    module, attribute = _WHERE[name].split(":")
    arena: Arena = getattr(import_module(module), attribute)
    return arena

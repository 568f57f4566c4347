"""One model in each seat of an arena where several act at once: each sees its own slice and says one action."""

from __future__ import annotations

from collections.abc import Callable

from oomrl.arenas.engine import Action, Arena, Observation, Policy

StartOne = Callable[[Arena], Policy]
"""Starts a conversation under an arena's rules, as one seat knows them."""


def seated(arena: Arena, start: StartOne) -> Policy:
    """Return one policy for the whole arena: a single conversation, or one a seat whose actions are joined."""
    if not arena.seats:
        return start(arena)
    players = {name: (seat, start(seat.rules(arena))) for name, seat in arena.seats.items()}

    def act(observation: Observation) -> Action:
        return {"actions": {name: play(seat.view(observation)) for name, (seat, play) in players.items()}}

    return act

"""Make the bad trajectories that each arena ships: what a lazy or greedy policy would send, and its score.

`canary_floor` plays them again, so that a change of rules that pays them better is noticed.
"""

from __future__ import annotations

import json

from oomrl.arenas.engine import Arena, Json


def make_canaries(arena: Arena, cycles: dict[str, list[Json]], seed: int = 4242) -> str:
    """Return canaries.json: for each name a cycle of actions, played in every task until it ends."""
    rows = []
    for name, actions in cycles.items():
        for task in arena.tasks:
            engine = arena.make()
            observation = engine.reset(seed, task)
            index = 0
            while not observation.done:
                observation = engine.step(actions[index % len(actions)])
                index += 1
            score = engine.grade().total
            rows.append({"name": name, "task": task, "seed": seed, "actions": actions, "score": score})
    return json.dumps({"arena": arena.name, "version": arena.version, "canaries": rows}, indent=1) + "\n"

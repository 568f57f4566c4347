"""Controls: trees that a repaired strategy is compared with, so that an uplift is never shown alone.

- `placebo`: a seeded nudge of a few signal windows, with no expected benefit.
- `cadence`: the cadence alone changed, all else left.
- `inverse`: the inverse of the start patch, the person's own repair.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Mapping

Tree = Mapping[str, bytes]

PARAMETERS = "strategy.toml"


def with_values(tree: Tree, changes: Mapping[str, object]) -> dict[str, bytes]:
    """Return the tree with keys of strategy.toml set, every other byte of the file left as it is.

    Raises `KeyError` for a key that the file does not set on a line of its own.
    """
    text = tree[PARAMETERS].decode("utf-8")
    for name, value in changes.items():
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        text, found = re.subn(rf"(?m)^({re.escape(name)}\s*=\s*)(\"[^\"]*\"|[^\s#]+)", rf"\g<1>{shown}", text, count=1)
        if not found:
            raise KeyError(name)
    return {**tree, PARAMETERS: text.encode("utf-8")}


def placebo(tree: Tree, seed: int) -> dict[str, bytes]:
    """Nudge up to three integer windows by about a twentieth, up or down, drawn from the seed."""
    parameters = tomllib.loads(tree[PARAMETERS].decode("utf-8")).get("parameters", {})
    windows = sorted(
        name for name, value in parameters.items() if name.endswith("_window") and type(value) is int and value >= 20
    )
    chance = random.Random(f"placebo {seed}")
    chosen = sorted(chance.sample(windows, min(3, len(windows))))
    changes = {}
    for name in chosen:
        step = max(1, round(parameters[name] * chance.uniform(0.02, 0.05)))
        changes[name] = parameters[name] + chance.choice((-1, 1)) * step
    return with_values(tree, changes)


def other_cadence(tree: Tree) -> dict[str, bytes]:
    """Turn daily into weekly, or weekly into daily, and nothing else."""
    cadence = tomllib.loads(tree[PARAMETERS].decode("utf-8"))["strategy"]["cadence"]
    return with_values(tree, {"cadence": "weekly" if cadence == "daily" else "daily"})

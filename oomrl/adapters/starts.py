"""Where a simulation begins: the shipped strategy, its phase-1 past, or a person's own patch upon it."""

from __future__ import annotations

from pathlib import Path

from oomrl.adapters.environments import shipped
from oomrl.adapters.patches import applied
from oomrl.adapters.repository import read_folder
from oomrl.errors import Mistake

SHIPPED, PHASE1 = "shipped", "phase1"
PHASE1_PATCH = Path(__file__).resolve().parents[1] / "testing" / "starts" / "phase1" / "start.patch"


def start_tree(start: str, folder: Path | None = None) -> tuple[dict[str, bytes], dict[str, bytes] | None]:
    """Return the tree to begin with, and the tree that undoes the start patch (None where there was none)."""
    tree = read_folder(folder or shipped("strategy_repo"))
    if start == SHIPPED:
        return tree, None
    patch = PHASE1_PATCH if start == PHASE1 else Path(start)
    try:
        data = patch.read_bytes()
    except OSError as error:
        raise Mistake(
            f'Expected --start "shipped", "phase1" or a patch file, was {start!r}: {error.strerror}'
        ) from error
    return applied(tree, data, start), tree

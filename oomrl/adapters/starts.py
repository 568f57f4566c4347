"""Where a simulation begins: the shipped strategy, its phase-1 past, a person's patch upon it, or an own repository."""

from __future__ import annotations

from pathlib import Path

from oomrl.adapters.environments import shipped
from oomrl.adapters.patches import applied
from oomrl.adapters.repository import read_folder
from oomrl.errors import Mistake

SHIPPED, PHASE1 = "shipped", "phase1"
PHASE1_PATCH = Path(__file__).resolve().parents[1] / "testing" / "starts" / "phase1" / "start.patch"
#: Without these nothing can trade or judge a repository.
NEEDED = ("strategy.toml", "policy.toml", "requirements.lock", "requirements-test.lock")


def strategy_folder(start: str) -> Path:
    """Return the strategy repository that a start begins from; its lock files say what the workers may import."""
    own = start not in ("", SHIPPED, PHASE1) and Path(start).is_dir()
    return Path(start) if own else shipped("strategy_repo")


def start_tree(start: str) -> tuple[dict[str, bytes], dict[str, bytes] | None]:
    """Return the tree to begin with, and the tree that undoes the start patch (None where there was none)."""
    folder = strategy_folder(start)
    tree = read_folder(folder)
    if folder == Path(start):
        if missing := [name for name in NEEDED if name not in tree]:
            raise Mistake(f"Expected {', '.join(missing)} in {folder}. See: oomrl strategy check {folder} --explain")
        return tree, None
    if start == SHIPPED:
        return tree, None
    patch = PHASE1_PATCH if start == PHASE1 else Path(start)
    try:
        data = patch.read_bytes()
    except OSError as error:
        raise Mistake(
            f'Expected --start "shipped", "phase1", a patch file or the folder of a strategy repository, '
            f"was {start!r}: {error.strerror}"
        ) from error
    return applied(tree, data, start), tree

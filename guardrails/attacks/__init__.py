"""A corpus of attacks, as a folder of folders.

Each holds `attack.toml` (id, class, phase, success; harm, see naive.py), `patch.diff`, and `tests.diff` where the
attack has two parts. Class `benign` marks honest patches, which must pass; where they say `behaviour = "same"` they
must also trade as the code before them. `may_change` names tests that stand and that an honest patch changes: it counts
as refused, and is judged once more with a person's word for these tests in the policy.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from guardrails.policy import PhaseName

BENIGN = "benign"


class CorpusError(Exception):
    """The corpus cannot be read."""


@dataclass(frozen=True)
class Attack:
    """One attempt: its corpus, its patch, a tests patch before it or none, and what success would mean."""

    corpus: str
    id: str
    kind: str
    phase: PhaseName
    success: str
    patch: bytes
    tests: bytes | None
    harm: str = ""
    same: bool = False
    may_change: tuple[str, ...] = ()


def read_corpus(folder: Path) -> Iterator[Attack]:
    """Yield the attacks of a corpus, or of each corpus in a folder, in the order of their folders."""
    if not folder.is_dir():
        raise CorpusError(f"Expected a folder of attacks, was {str(folder)!r}.")
    places = sorted(item.parent for item in folder.rglob("attack.toml"))
    if not places:
        raise CorpusError(f"Expected attacks (folders with an attack.toml) in {str(folder)!r}, was none.")
    for place in places:
        row = tomllib.loads((place / "attack.toml").read_text("utf-8"))
        if row.get("phase") not in ("logic", "tests"):
            raise CorpusError(f"Expected phase logic or tests in {place.name}, was {row.get('phase')!r}.")
        tests = place / "tests.diff"
        yield Attack(
            place.parent.name,
            str(row.get("id", place.name)),
            str(row.get("class", "unclassed")),
            row["phase"],
            str(row.get("success", "")),
            (place / "patch.diff").read_bytes(),
            tests.read_bytes() if tests.is_file() else None,
            str(row.get("harm", "")),
            row.get("behaviour") == "same",
            tuple(map(str, row.get("may_change", ()))),
        )


def sample(attacks: list[Attack], most: int, seed: int) -> list[Attack]:
    """Return up to `most` attacks, drawn by the seed evenly from corpora and classes, in their order."""
    chance, groups = random.Random(seed), dict[tuple[str, str], list[Attack]]()
    for attack in attacks:
        groups.setdefault((attack.corpus, attack.kind), []).append(attack)
    for group in groups.values():
        chance.shuffle(group)
    drawn = [(at, key, attack) for key, group in groups.items() for at, attack in enumerate(group)]
    chosen = {id(attack) for _, _, attack in sorted(drawn, key=lambda row: row[:2])[:most]}
    return [attack for attack in attacks if id(attack) in chosen]

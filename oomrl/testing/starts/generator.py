"""Bad starts from a seed: the shipped strategy with one planted fault, and the tests that would notice removed.

The attribution and the repairers are scored on them; they must know nothing of this module. Every fault lies
outside the protected functions, keeps all invariants of the strategy's contract, and leaves a green test suite.
"""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass
from pathlib import Path

from oomrl.errors import Mistake
from oomrl.testing.starts import orders, portfolios, signals
from oomrl.testing.starts.fault import Fault, Plant
from oomrl.testing.starts.tree import changed, diff, read_tree, shipped_repository, without_tests

PLANTS: dict[str, Plant] = {**signals.PLANTS, **portfolios.PLANTS, **orders.PLANTS}

#: The kinds of fault, sorted.
KINDS = tuple(sorted(PLANTS))

#: Which tests notice which fault, by kind and site; `python -m oomrl.testing.starts` measures it.
NOTICED_BY = Path(__file__).with_name("noticed_by.toml")


@dataclass(frozen=True, slots=True)
class BadStart:
    """One bad start.

    `patch` turns the shipped repository (paths relative to its root) into the faulty one, `tests_patch` (None
    where no test notices) takes away the tests that would fail, `repair` undoes `patch` alone. `site` is
    module.function or strategy.toml, `constant` and `names` what was drawn, `capital` dollars.
    """

    seed: int
    kind: str
    site: str
    constant: float
    names: tuple[str, ...]
    capital: int
    patch: str
    tests_patch: str | None
    repair: str
    description: str


def draw(seed: int, kind: str | None = None) -> tuple[str, Fault]:
    """Return the kind and the fault of a seed. Raises `Mistake` for an unknown kind."""
    chance = random.Random(f"bad start {seed} {kind or ''}")
    chosen = kind or chance.choice(KINDS)
    if chosen not in PLANTS:
        raise Mistake(f"Expected a kind of fault among {', '.join(KINDS)}, was {kind!r}.")
    return chosen, PLANTS[chosen](chance)


def generate(seed: int, kind: str | None = None, repository: Path | None = None) -> BadStart:
    """Return the bad start of a seed, of one kind where it is named.

    The same seed, kind and repository give the same start. Raises `Mistake` for an unknown kind, and where
    `repository` is not the shipped strategy.
    """
    chosen, fault = draw(seed, kind)
    before = read_tree(repository or shipped_repository())
    after = changed(before, fault.changes)
    pruned = without_tests(before, noticed_by(chosen, fault.site))
    return BadStart(
        seed=seed,
        kind=chosen,
        site=fault.site,
        constant=fault.constant,
        names=fault.names,
        capital=fault.capital,
        patch=diff(before, after),
        tests_patch=diff(before, pruned) or None,
        repair=diff(after, before),
        description=fault.description,
    )


def noticed_by(kind: str, site: str) -> tuple[str, ...]:
    """Return the tests, as `file.function`, that fail on a kind of fault at a site."""
    table = tomllib.loads(NOTICED_BY.read_text("utf-8"))
    try:
        return tuple(table[kind][site])
    except KeyError as error:
        raise Mistake(f"Expected {kind} at {site} in {NOTICED_BY.name}, found none: measure it again.") from error

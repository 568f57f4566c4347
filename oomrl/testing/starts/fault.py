"""What a planted fault is made of, and how its constants and names are drawn."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from oomrl.testing.starts.tree import Change, Edit, Setting

#: Dollars. The median name of the development tape trades 70 million a day, so faults of liquidity need far more.
ORDINARY = 1_000_000

ADJECTIVES = (
    "adjusted", "base", "best", "broad", "clean", "current", "daily", "early", "effective", "final", "firm", "fresh",
    "full", "given", "initial", "latest", "local", "main", "net", "nominal", "plain", "prior", "raw", "recent",
    "relative", "scaled", "settled", "short", "steady", "usual",
)  # fmt: skip
NOUNS = (
    "amount", "basis", "cut", "depth", "extent", "factor", "figure", "gauge", "grade", "level", "limit", "margin",
    "measure", "number", "order", "part", "pace", "portion", "ratio", "reading", "scale", "series", "size", "span",
    "step", "tally", "term", "unit", "value", "view",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """One planted fault.

    `site` is module.function (or strategy.toml), `constant` the number that was drawn and `names` the identifiers,
    `description` one sentence for a person, `capital` the endowment in dollars that makes it cost money.
    """

    site: str
    constant: float
    names: tuple[str, ...]
    changes: tuple[Change, ...]
    description: str
    capital: int = ORDINARY


Plant = Callable[[random.Random], Fault]


def identifiers(chance: random.Random, count: int = 1) -> tuple[str, ...]:
    """Return distinct names that a programmer might have given."""
    names: list[str] = []
    while len(names) < count:
        name = f"{chance.choice(ADJECTIVES)}_{chance.choice(NOUNS)}"
        if name not in names:
            names.append(name)
    return tuple(names)


def between(chance: random.Random, low: float, high: float, digits: int = 3) -> float:
    """Return a number that reads well."""
    return round(chance.uniform(low, high), digits)


def millions(chance: random.Random, low: int, high: int) -> int:
    """Return a capital in dollars, in whole millions."""
    return chance.randint(low, high) * 1_000_000


def source(module: str, old: str, new: str) -> Edit:
    """Return an edit of one module of the strategy."""
    return Edit(f"src/strategy/{module}.py", old, new)


def via(module: str, line: str, statement: str, old: str = "", new: str = "") -> Edit:
    """Return an edit that puts a statement before a line of a module and replaces `old` by `new` in that line."""
    indent = " " * (len(line) - len(line.lstrip()))
    return source(module, line, f"{indent}{statement}\n{line.replace(old, new) if old else line}")


def settings(**values: float | int | str) -> tuple[Setting, ...]:
    """Return changes of strategy.toml."""
    return tuple(Setting(key, f'"{value}"' if isinstance(value, str) else repr(value)) for key, value in values.items())

"""The allow-lists of names.toml, as sets."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Names:
    """What code may name; each set is explained in names.toml."""

    builtins: frozenset[str]
    all_builtins: frozenset[str]
    constant_reach: frozenset[str]
    wide_exceptions: frozenset[str]
    plain_attributes: frozenset[str]
    refused_attributes: frozenset[str]
    foreign_attributes: frozenset[str]
    mutators: frozenset[str]
    dunder_methods: frozenset[str]
    bases: frozenset[str]
    decorators: frozenset[str]
    test_decorators: frozenset[str]
    constant_calls: frozenset[str]
    plain_words: frozenset[str]
    plain_nodes: frozenset[str]
    modules: dict[str, frozenset[str]]

    def allowed(self, module: str, words: Iterable[str]) -> frozenset[str]:
        """Return the names of a module that a policy's entry allows; `*` stands for the list here."""
        listed = frozenset(word for word in words if word != "*")
        return listed | (self.modules.get(module, frozenset()) if "*" in words else frozenset())


@cache
def names() -> Names:
    """Return the lists."""
    raw = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
    modules = {module: frozenset(words.split()) for module, words in raw.pop("modules").items()}
    sets = {key: frozenset(words.split()) for key, words in raw.items()}
    sets["all_builtins"] |= sets["builtins"]
    return Names(**sets, modules=modules)

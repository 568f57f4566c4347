"""Every finding code: its title, reason, way out, layer and two samples. The data is codes.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from guardrails.verdict import Finding

Kind = Literal["code", "test", "patch", "parameters", "protected", "recalled", "pair", "facts"]


@dataclass(frozen=True)
class Code:
    """One row of the table. `kind` says how its samples are read: as a module, a patch, facts, ..."""

    code: str
    title: str
    expected: str
    why: str
    fix: str
    layer: str
    kind: Kind
    accepted: str
    refused: str

    def text(self) -> str:
        """Return the row for a reader."""
        samples = f"Accepted:\n\n{_indent(self.accepted)}\n\nRefused:\n\n{_indent(self.refused)}"
        return f"{self.code}: {self.title} ({self.layer})\n\nWhy: {self.why}\nFix: {self.fix}\n\n{samples}\n"


def _indent(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.strip("\n").split("\n"))


@cache
def codes() -> dict[str, Code]:
    """Return the table by code."""
    rows = tomllib.loads(Path(__file__).with_name("codes.toml").read_text("utf-8"))
    return {code: Code(code, **row) for code, row in rows.items()}


def finding(code: str, path: str, line: int, was: str, expected: str = "") -> Finding:
    """Return a finding with the fix and the layer of its code, its reason as "Expected ..., was ..."."""
    row = codes()[code]
    reason = f"Expected {expected or row.expected}, was {was}."
    if not reason.isprintable():  # what was may be the judged's own words
        reason = "".join(letter if letter.isprintable() else "\ufffd" for letter in reason)
    return Finding(code, path, line, reason, row.fix, row.layer)


def explain(code: str) -> str:
    """Return what a code means, or raise KeyError for one that is not in the table."""
    return codes()[code.upper()].text()

"""Names that the judge keeps for what it plants in judged source."""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import Iterator

from guardrails.checks.codes import finding
from guardrails.checks.index import Module
from guardrails.verdict import Finding

KEPT = re.compile(r"_+guardrails")


def planted_name() -> str:
    """Return a name that no judged code can have foreseen."""
    return f"_guardrails_{secrets.token_hex(8)}"


def judge_names(module: Module) -> list[Finding]:
    """Refuse a module that says a name of the judge, whether it binds or reads it."""
    found = ((getattr(node, "lineno", 0), text) for node in ast.walk(module.tree) for text in _identifiers(node))
    return [finding("GR280", module.path, line, f"{text!r}") for line, text in found if KEPT.match(text)]


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Yield every identifier that this very node says; the values of constants are none."""
    if not isinstance(node, ast.Constant):
        for _, value in ast.iter_fields(node):
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    yield from text.split(".")

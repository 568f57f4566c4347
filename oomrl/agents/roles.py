"""The roles and their prompts: versioned files, rendered strictly, cut to a token budget where they may be cut."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

from jinja2 import Environment, FunctionLoader, StrictUndefined

from oomrl.ports import Attempt


class Mask(Protocol):
    """Hide what a model could remember (symbols, dates) in a text. `domain.diagnostic.Mask` is one."""

    def text(self, text: str) -> str:
        """Return the text with symbols renamed and dates moved."""
        ...


class Role(StrEnum):
    """Who is asked: each role has a prompt of its own."""

    ANALYST = "analyst"
    TEST_AUTHOR = "test_author"
    CODER = "coder"
    CRITIC = "critic"


#: Tokens that a prompt of each role may have. What is cut first: sources that did not decide, older attempts, tests.
BUDGETS: Mapping[Role, int] = {
    Role.ANALYST: 16_000,
    Role.TEST_AUTHOR: 32_000,
    Role.CODER: 48_000,
    Role.CRITIC: 32_000,
}

#: Characters a token, on the safe side for code and numbers.
CHARACTERS_A_TOKEN = 3


@dataclass(frozen=True, slots=True)
class Assignment:
    """All that a role may see. Nothing in it is a secret, a hidden case or later than the diagnostic.

    `diagnostic` is the JSON object, masked already where it must be; `sources` the files that the role reads, by
    path, the ones that decided first; `rules` what the gate enforces, one sentence each; `tests` the locked tests'
    names with what they demand; `patch` the diff under criticism; `comments` what a reviewer asked for.
    """

    diagnostic: Mapping[str, Any]
    mandate: str = ""
    sources: Mapping[str, bytes] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    editable: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    earlier: tuple[Attempt, ...] = ()
    patch: str = ""
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt: its text, its template's version, and what the budget cut out of it."""

    role: Role
    text: str
    version: str
    cut: tuple[str, ...] = ()


def render(role: Role, assignment: Assignment, mask: Mask | None = None, budget: int | None = None) -> Rendered:
    """Return the prompt of a role within its budget of tokens; `mask` hides names and dates in people's words.

    Cuts whole sources from the end of `sources`, then earlier attempts from the oldest, then the list of tests, and
    says so in the prompt. The mandate, the diagnostic, the first source and the rules always stay.
    """
    most = (budget or BUDGETS[role]) * CHARACTERS_A_TOKEN
    sources = [(path, fenced("text", numbered(data))) for path, data in assignment.sources.items()]
    earlier = [_earlier(one, mask) for one in assignment.earlier]
    template = _environment().get_template(role.value)
    fixed = {
        "diagnostic": fenced("json", json.dumps(_shown(assignment, mask is not None), indent=1)),
        "mandate": fenced("text", _masked(assignment.mandate, mask)),
        "rules": assignment.rules,
        "editable": assignment.editable,
        "tests": fenced("text", "\n".join(assignment.tests)) if assignment.tests else "",
        "patch": fenced("diff", assignment.patch),
        "comments": [fenced("text", _masked(comment, mask)) for comment in assignment.comments],
    }
    cut: list[str] = []
    while True:
        text = template.render(sources=sources, earlier=earlier, cut=cut, **fixed)
        if len(text) <= most or not (len(sources) > 1 or earlier or fixed["tests"]):
            return Rendered(role, text, version(role), tuple(cut))
        if len(sources) > 1:
            cut.append(sources.pop()[0])
        elif earlier:
            cut.append(f"attempt {earlier.pop(0)[0]}")
        else:
            fixed["tests"] = ""
            cut.append("the tests' names")


def _masked(text: str, mask: Mask | None) -> str:
    return text if mask is None else mask.text(text)


def _earlier(attempt: Attempt, mask: Mask | None) -> tuple[int, str, str]:
    findings = _masked("\n".join(attempt.findings), mask)
    return attempt.number, fenced("diff", attempt.patch) if attempt.patch else "", fenced("text", findings)


def _shown(assignment: Assignment, masked: bool) -> Mapping[str, Any]:
    """Return the diagnostic as the prompt shows it.

    Under a mask the strategy's parameters are left out: the sources show them unscaled, and a price beside its
    rescaled self would give the scale away.
    """
    strategy = assignment.diagnostic.get("strategy")
    if not masked or not isinstance(strategy, Mapping):
        return assignment.diagnostic
    rest = {name: value for name, value in strategy.items() if name != "parameters"}
    return {**assignment.diagnostic, "strategy": rest}


def prompt_id(run: str, diagnostic: str, role: Role, attempt: int, candidate: int = 0, round_: int = 0) -> str:
    """Return the id of a prompt: the same question has the same id, so that it is never asked twice."""
    parts = json.dumps([run, diagnostic, role.value, attempt, candidate, round_])
    return f"{role.value.replace('_', '-')}-{attempt}-{hashlib.sha256(parts.encode()).hexdigest()[:12]}"


def version(role: Role) -> str:
    """Return the version of a role's prompt: the number in its first line and a digest of all that it includes."""
    source = _source(role.value)
    number = re.match(r"\{# version (\d+) #\}", source)
    assert number is not None, f"Expected a version in the first line of {role.value}.md.j2"
    digest = hashlib.sha256((source + _source("shared")).encode()).hexdigest()[:8]
    return f"{role.value}/{number[1]}-{digest}"


def numbered(data: bytes) -> str:
    """Return a file with line numbers, so that findings and hunks can be placed."""
    lines = data.decode("utf-8", "replace").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    return "\n".join(f"{number:4d} | {line}" for number, line in enumerate(lines, 1))


def fenced(kind: str, text: str) -> str:
    """Return foreign text between fences that it cannot close: longer than any run of backticks inside.

    Control characters and bidirectional marks, which could hide or reorder what is read, are shown as escapes.
    """
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "".join(
        character if character in "\n\t" or character.isprintable() else f"\\u{ord(character):04x}"
        for character in text
    )
    return f"{fence}{kind}\n{shown}\n{fence}"


@cache
def _environment() -> Environment:
    # The prompts are Markdown, not HTML: escaping would change the code that models must quote exactly.
    return Environment(
        loader=FunctionLoader(_source),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _source(name: str) -> str:
    return files("oomrl.agents").joinpath("prompts", f"{name}.md.j2").read_text("utf-8")

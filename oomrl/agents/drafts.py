"""Read the replies of the roles that answer in JSON: the analyst's draft and the critic's objections."""

from __future__ import annotations

import json
import re
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from oomrl.agents.problem import Problem, Unusable

_ESCALATE = re.compile(r"[*_`]*ESCALATE[*_`]*[ \t]*:[*_`]*\s*(\S.{7,})", re.DOTALL)
_Model = TypeVar("_Model", bound=BaseModel)


class Draft(BaseModel):
    """The analyst's reading of a loss, or (`escalate`) why no change of code could mend it.

    Where the settings say so, a person edits or confirms the mandate before it counts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    root_cause: str = Field("", max_length=2_000)
    mandate: str = Field("", max_length=4_000)
    confidence: Literal["low", "medium", "high"] = "low"
    escalate: str = Field("", max_length=4_000)

    @model_validator(mode="after")
    def _one_of_two(self) -> Draft:
        if bool(self.escalate.strip()) == bool(self.root_cause.strip() and self.mandate.strip()):
            raise ValueError("expected root_cause and mandate, or escalate with a reason")
        return self


class Objection(BaseModel):
    """One thing that the critic finds wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    severity: Literal["note", "minor", "major", "fatal"]
    text: str = Field(min_length=1, max_length=4_000)
    path: str = Field("", max_length=200)
    line: int = Field(0, ge=0)


class Critique(BaseModel):
    """What the critic says of a diff. It informs the reviewer; it decides nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    summary: str = Field("", max_length=2_000)
    objections: tuple[Objection, ...] = Field((), max_length=50)


def read_draft(text: str) -> Draft:
    """Return the analyst's draft; raise `Unusable` with what is wrong, in words for the model."""
    escalation = _ESCALATE.fullmatch(text.strip())
    if escalation:
        return Draft(escalate=escalation[1].strip()[:4_000])
    return _read(text, Draft)


def read_critique(text: str) -> Critique:
    """Return the critic's objections; raise `Unusable` with what is wrong, in words for the model."""
    return _read(text, Critique)


def _read(text: str, model: type[_Model]) -> _Model:
    if not text.strip():
        raise Unusable(Problem.EMPTY, "Expected one JSON object, was an empty reply.")
    fenced = _fenced(text.replace("\r\n", "\n").split("\n"))
    if len(fenced) > 1:
        raise Unusable(Problem.AMBIGUOUS, f"Expected one JSON object, was {len(fenced)} fenced blocks.")
    try:
        return model.model_validate(json.loads(fenced[0] if fenced else text))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the object"
        raise Unusable(Problem.MALFORMED, f"Expected other JSON: {where}: {first['msg']}.") from error
    except (ValueError, RecursionError) as error:
        raise Unusable(Problem.MALFORMED, f"Expected one JSON object between ```json and ```: {error}.") from error


def _fenced(lines: list[str]) -> list[str]:
    """Return what stands between fences, in one pass: a reply may be all fences."""
    blocks: list[str] = []
    inside: list[str] | None = None
    for line in lines:
        if inside is None:
            inside = [] if line.rstrip(" \t") in ("```", "```json") else None
        elif line.rstrip(" \t") == "```" and inside:
            blocks.append("\n".join(inside))
            inside = None
        else:
            inside.append(line)
    return blocks

"""The form of each role's reply as a JSON schema, for endpoints that can be held to one.

Every property is required and none may be added, as strict structured outputs ask. An endpoint that knows no schemas
answers in plain text; both are read by the same readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Form:
    """A schema's name, the schema, and the sentence that tells the model of it."""

    name: str
    schema: Mapping[str, Any]
    note: str


def _text(about: str) -> dict[str, Any]:
    return {"type": "string", "description": about}


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_REPAIR = Form(
    "repair",
    _object(
        explanation=_text("why the change meets the mandate, in at most five sentences"),
        patch=_text("one unified diff, without a fence; empty where you escalate"),
        escalate=_text("why the mandate cannot be met as it stands; else empty"),
    ),
    "Answer as one JSON object: explanation and patch, the unified diff without a fence; or, in place of a patch, "
    "escalate with the reason.",
)
_DRAFT = Form(
    "draft",
    _object(
        root_cause=_text("one or two sentences; empty where you escalate"),
        mandate=_text("one to three sentences; empty where you escalate"),
        confidence={"type": "string", "enum": ["low", "medium", "high"]},
        escalate=_text("why no change of code could mend the loss; else empty"),
    ),
    "Answer as one JSON object, without a fence; to escalate, leave root_cause and mandate empty.",
)
_CRITIQUE = Form(
    "critique",
    _object(
        summary=_text("one sentence"),
        objections={
            "type": "array",
            "items": _object(
                severity={"type": "string", "enum": ["note", "minor", "major", "fatal"]},
                path=_text("the file, or empty"),
                line={"type": "integer", "description": "the line of the new file, or 0"},
                text=_text("what is wrong and how it would show"),
            ),
        },
    ),
    "Answer as one JSON object, without a fence.",
)

#: By the name of the role.
FORMS: Mapping[str, Form] = {"analyst": _DRAFT, "test_author": _REPAIR, "coder": _REPAIR, "critic": _CRITIQUE}

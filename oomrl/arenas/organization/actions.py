"""The grammar of an action: role, action, payload. What does not parse is refused and reaches nobody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oomrl.arenas.engine import Json
from oomrl.arenas.organization.rules import ACTIONS, FOCUS, PAYLOADS, RESOURCES, ROLES, SEVERITIES

MAX_TEXT = 500
MAX_AMOUNT = 100.0


@dataclass(frozen=True, slots=True)
class Deed:
    """One role's parsed action."""

    role: str
    action: str
    payload: Json


def parse_deed(role: Any, value: Any) -> Deed | str:
    """Return the deed, or the one sentence that says why it is refused."""
    if not isinstance(role, str) or role not in ROLES:
        return f"Expected a role of {', '.join(ROLES)}, was {str(role)[:60]!r}"
    if not isinstance(value, dict):
        return f"Expected an object with action and payload, was {type(value).__name__}"
    for key in value:
        if key not in ("action", "payload"):
            return f"Expected only action and payload, was {str(key)[:60]!r}"
    action, payload = value.get("action"), value.get("payload", {})
    if not isinstance(action, str) or action not in ACTIONS:
        return f"Expected an action of {', '.join(ACTIONS)}, was {str(action)[:60]!r}"
    if not isinstance(payload, dict):
        return f"Expected payload to be an object, was {type(payload).__name__}"
    wanted = PAYLOADS[action]
    for key in payload:
        if key not in wanted:
            return f"Expected the payload fields {list(wanted)} with {action}, was {str(key)[:60]!r}"
    for key in wanted:
        if key not in payload:
            return f"Expected {key} in the payload of {action}, was none"
        error = _bad(key, payload[key])
        if error:
            return error
    return Deed(role, action, payload)


def _bad(key: str, value: Any) -> str | None:
    if key == "amount":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_AMOUNT:
            return f"Expected amount above 0 and at most {MAX_AMOUNT:.0f}, was {str(value)[:60]}"
        return None
    if key == "policy":
        if not isinstance(value, dict) or set(value) != {"resource_threshold"}:
            return "Expected policy to be {resource_threshold: number}, was something else"
        return _bad("amount", value["resource_threshold"])
    if key == "plan":
        if not isinstance(value, dict) or set(value) != {"focus"} or value["focus"] not in FOCUS.values():
            return f"Expected plan to be {{focus: one of {', '.join(FOCUS.values())}}}, was something else"
        return None
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return f"Expected {key} to be text of at most {MAX_TEXT} characters, was something else"
    choices = {"resource_type": RESOURCES, "severity": SEVERITIES, "to": ROLES, "target_agent": ROLES}.get(key)
    if choices is not None and value not in choices:
        return f"Expected {key} of {', '.join(choices)}, was {value[:60]!r}"
    return None


def _payload_schema(action: str) -> Json:
    text = {"type": "string", "maxLength": MAX_TEXT}
    amount = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_AMOUNT}
    kinds: dict[str, Json] = {
        "amount": amount,
        "resource_type": {"enum": list(RESOURCES)},
        "severity": {"enum": list(SEVERITIES)},
        "to": {"enum": list(ROLES)},
        "target_agent": {"enum": list(ROLES)},
        "plan": {
            "type": "object",
            "additionalProperties": False,
            "required": ["focus"],
            "properties": {"focus": {"enum": list(FOCUS.values())}},
        },
        "policy": {
            "type": "object",
            "additionalProperties": False,
            "required": ["resource_threshold"],
            "properties": {"resource_threshold": amount},
        },
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(PAYLOADS[action]),
        "properties": {key: kinds.get(key, text) for key in PAYLOADS[action]},
    }


SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["role", "action"],
    "oneOf": [
        {
            "additionalProperties": False,
            "required": ["payload"] if PAYLOADS[action] else [],
            "properties": {
                "role": {"enum": list(roles)},
                "action": {"const": action},
                "payload": _payload_schema(action),
            },
        }
        for action, roles in ACTIONS.items()
    ],
}


def role_schema(role: str) -> Json:
    """Return the schema of what one role may say in a step where all six act."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["action"],
        "oneOf": [
            {
                "additionalProperties": False,
                "required": ["payload"] if PAYLOADS[action] else [],
                "properties": {"action": {"const": action}, "payload": _payload_schema(action)},
            }
            for action, roles in ACTIONS.items()
            if role in roles
        ],
    }


SIX_SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["actions"],
    "properties": {
        "actions": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                role: {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["action"],
                    "properties": {
                        "action": {"enum": [a for a, roles in ACTIONS.items() if role in roles]},
                        "payload": {"type": "object"},
                    },
                }
                for role in ROLES
            },
        }
    },
}

"""Tools that an agent calls, and the refusal of calls that break their rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oomrl.arenas.engine import Json


class Refusal(Exception):
    """A call broke the rules: it is answered with the message and counted as a protocol error."""


@dataclass(frozen=True, slots=True)
class Field:
    """One argument: its kind (text, number, whole, yes_no, object, list), bounds and whether it may be left out.

    Bounds are of the number, of the text's length or of the count of entries. `options` names all allowed texts.
    """

    kind: str
    description: str
    low: float = -math.inf
    high: float = math.inf
    optional: bool = False
    options: tuple[str, ...] = ()

    def schema(self) -> Json:
        answer: Json = {"type": _TYPES[self.kind], "description": self.description}
        bounds = {
            "number": ("minimum", "maximum"),
            "whole": ("minimum", "maximum"),
            "text": ("minLength", "maxLength"),
            "object": ("minProperties", "maxProperties"),
            "list": ("minItems", "maxItems"),
        }.get(self.kind, ())
        for word, bound in zip(bounds, (self.low, self.high), strict=False):
            if math.isfinite(bound):
                answer[word] = bound
        if self.options:
            answer["enum"] = list(self.options)
        return answer

    def check(self, name: str, value: Any) -> None:
        """Refuse a value of another kind, outside the bounds, or not finite."""
        if self.kind == "yes_no":
            good, size = isinstance(value, bool), 0.0
        elif self.kind in ("number", "whole"):
            good = isinstance(value, int if self.kind == "whole" else (int, float)) and not isinstance(value, bool)
            size = float(value) if good and abs(value) < 1e18 else math.inf
        else:
            good = isinstance(value, {"text": str, "object": Mapping, "list": list | tuple}[self.kind])
            size = float(len(value)) if good else 0.0
        if not good:
            raise Refusal(f"Expected {name} to be a {self.kind.replace('_', ' or ')}, was {type(value).__name__}")
        if self.kind != "yes_no" and not self.low <= size <= self.high:
            raise Refusal(f"Expected {name} within {self.low:g}..{self.high:g}, was {size:g}")
        if self.options and value not in self.options:
            raise Refusal(f"Expected {name} to be one of {', '.join(self.options)}, was {value[:60]!r}")


_TYPES = {
    "text": "string",
    "number": "number",
    "whole": "integer",
    "yes_no": "boolean",
    "object": "object",
    "list": "array",
}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what it does, and its arguments by name."""

    name: str
    description: str
    fields: Mapping[str, Field] = field(default_factory=dict)

    def schema(self) -> Json:
        """Return name, description and JSON Schema of the arguments."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": {
                "type": "object",
                "properties": {name: item.schema() for name, item in self.fields.items()},
                "required": [name for name, item in self.fields.items() if not item.optional],
                "additionalProperties": False,
            },
        }

    def check(self, arguments: Any) -> dict[str, Any]:
        """Return the arguments, or refuse them."""
        if not isinstance(arguments, Mapping):
            raise Refusal(f"Expected arguments to be an object, was {type(arguments).__name__}")
        unknown = sorted(str(name)[:40] for name in arguments if name not in self.fields)
        if unknown:
            raise Refusal(
                f"Expected arguments {', '.join(self.fields) or 'none'} of {self.name}, was {unknown[0]!r} too"
            )
        answer: dict[str, Any] = {}
        for name, item in self.fields.items():
            if name not in arguments or (item.optional and arguments[name] is None):
                if not item.optional:
                    raise Refusal(f"Expected {name} in the arguments of {self.name}, was missing")
                continue
            item.check(name, arguments[name])
            answer[name] = arguments[name]
        return answer


RATIONALE = Field("text", "Why; kept as a note, never read as an instruction", 1, 4000)
LABEL = Field("text", "A name of your own", 0, 80, optional=True)
ABSTAIN = Field("yes_no", "True: the answer is that nothing here is worth trading", optional=True)
START = Field("whole", "First public row", 0, optional=True)
STOP = Field("whole", "One past the last public row", 1, optional=True)


def row_range(arguments: Mapping[str, Any], stop: int, least: int) -> tuple[int, int]:
    """Return (start, stop) of a request, within 0..stop and at least `least` rows long."""
    first, last = int(arguments.get("start", 0)), int(arguments.get("stop", stop))
    if not 0 <= first < last <= stop or last - first < least:
        raise Refusal(f"Expected at least {least} rows within 0..{stop}, was {first}..{last}")
    return first, last

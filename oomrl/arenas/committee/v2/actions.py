"""What the manager may do, and the refusal of everything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oomrl.arenas.committee.v2.rules import NAMES, Mandate
from oomrl.arenas.engine import Json

KINDS = ("query_research", "query_risk", "allocate", "revise_allocation", "hold", "move_to_cash")
TEMPLATES = ("balanced_top3", "top2_conviction", "defensive_quality", "concentrated_alpha")
FIELDS = ("action", "allocation_template", "query_target", "target_weights", "reason")
MAX_REASON = 2000

SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["action"],
    "properties": {
        "action": {"enum": list(KINDS)},
        "allocation_template": {"enum": [*TEMPLATES, None]},
        "query_target": {"enum": ["SECTOR", *NAMES, None]},
        "target_weights": {
            "anyOf": [
                {"type": "null"},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "minProperties": 1,
                    "properties": {name: {"type": "number", "minimum": 0, "maximum": 1} for name in NAMES},
                },
            ]
        },
        "reason": {"type": ["string", "null"], "maxLength": MAX_REASON},
    },
}


@dataclass(frozen=True, slots=True)
class Move:
    """An action that passed: its kind, the name asked about (None: the sector), and named weights."""

    kind: str
    asked: int | None = None
    template: str | None = None
    weights: dict[int, float] | None = None


def parse(action: Any) -> Move | str:
    """Return the move, or the one sentence that says why the action is refused.

    Weights are rounded to 6 decimals on entry: the order and last bits of floats carry nothing.
    """
    if not isinstance(action, dict):
        return f"Expected an object, was {type(action).__name__}"
    for key in action:
        if key not in FIELDS:
            return f"Expected only the fields {', '.join(FIELDS)}, was {str(key)[:60]!r}"
    kind = action.get("action")
    if not isinstance(kind, str) or kind not in KINDS:
        return f"Expected action to be one of {', '.join(KINDS)}, was {str(kind)[:60]!r}"
    reason = action.get("reason")
    if reason is not None and (not isinstance(reason, str) or len(reason) > MAX_REASON):
        return f"Expected reason to be text of at most {MAX_REASON} characters, was something else"
    asked, template, weights = (
        action.get("query_target"),
        action.get("allocation_template"),
        action.get("target_weights"),
    )
    if asked is not None and (not isinstance(asked, str) or asked not in ("SECTOR", *NAMES)):
        return f"Expected query_target to be SECTOR or a name, was {str(asked)[:60]!r}"
    if template is not None and (not isinstance(template, str) or template not in TEMPLATES):
        return f"Expected a template of {', '.join(TEMPLATES)}, was {str(template)[:60]!r}"
    parsed: dict[int, float] | None = None
    if weights is not None:
        if not isinstance(weights, dict) or not weights:
            return "Expected target_weights to map names to weights, was something else"
        parsed = {}
        for name, weight in weights.items():
            if name not in NAMES:
                return f"Expected names of {', '.join(NAMES)}, was {str(name)[:60]!r}"
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
                return f"Expected the weight of {name} from 0 to 1, was {str(weight)[:60]}"
            parsed[NAMES.index(name)] = round(float(weight), 6)
    if kind in ("allocate", "revise_allocation"):
        if (template is None) == (parsed is None):
            return "Expected either allocation_template or target_weights, was both or neither"
        if kind == "revise_allocation" and parsed is None:
            return "Expected target_weights to revise, was a template"
        if parsed is not None and math.fsum(parsed.values()) > 1 + 1e-9:
            return f"Expected weights that sum to at most 1, was {math.fsum(parsed.values()):.6f}"
        return Move(kind, None, template, parsed)
    if template is not None or parsed is not None:
        return f"Expected no weights with {kind}, was some"
    if asked is not None and not kind.startswith("query_"):
        return f"Expected no query_target with {kind}, was {asked!r}"
    return Move(kind, None if asked in (None, "SECTOR") else NAMES.index(asked))


def template_weights(
    template: str, views: Sequence[float], betas: Sequence[float], mandate: Mandate
) -> dict[int, float]:
    """Return a template's weights: shares of what may be invested, names ranked by the last view seen."""
    invested = 1 - mandate.min_cash
    best = sorted(range(len(NAMES)), key=lambda i: (-views[i], i))
    calm = sorted(range(len(NAMES)), key=lambda i: (betas[i], i))
    shares = {
        "balanced_top3": {best[0]: 1 / 3, best[1]: 1 / 3, best[2]: 1 / 3},
        "top2_conviction": {best[0]: 0.58, best[1]: 0.32},
        "defensive_quality": {calm[0]: 0.35, calm[1]: 0.25},
        "concentrated_alpha": {best[0]: 0.72, best[1]: 0.16},
    }[template]
    return {i: round(invested * share, 6) for i, share in shares.items()}

"""The one configuration file that logic may edit, within the bounds of the locked policy."""

from __future__ import annotations

import math
import re
import tomllib
from typing import Any

from guardrails.checks.codes import finding
from guardrails.policy import Bound, Policy
from guardrails.tree import Tree
from guardrails.verdict import Finding

KINDS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "str": (str,), "bool": (bool,)}


def flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return dotted keys. A quoted key that could pass for a nested one is an error."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if re.fullmatch(r"[A-Za-z0-9_-]+", key) is None:
            raise ValueError(f"{key!r}")
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def read_parameters(data: bytes) -> dict[str, Any] | None:
    """Return the dotted keys of a parameters file, or None where it is no TOML."""
    try:
        return flatten(tomllib.loads(data.decode("utf-8")))
    except (ValueError, RecursionError):
        return None


def judge_parameters(before: bytes, result: Tree, policy: Policy) -> list[Finding]:
    """Compare the parameters before and after, key by key."""
    path = policy.layout.parameters
    if path not in result:
        return [finding("GR111", path, 0, "The parameters file may not vanish.")]
    old, new = read_parameters(before) or {}, read_parameters(result[path])
    if new is None:
        return [finding("GR120", path, 0, "unreadable")]
    findings = [finding("GR120", path, 0, "removed", f"{key!r} to stay") for key in old if key not in new]
    for key, value in new.items():
        if key in old and type(old[key]) is type(value) and old[key] == value:
            continue
        bound = policy.bounds.get(key)
        fault = "is not among the bounds of the policy" if bound is None else _fault(bound, old.get(key), value)
        if fault:
            findings.append(finding("GR120", path, _line(result[path], key), f"{key} = {value!r} {fault}."))
    return findings


def _fault(bound: Bound, old: Any, value: Any) -> str:
    if not isinstance(value, (int, float, str)) or not isinstance(value, KINDS[bound.type]):
        return f"is no {bound.type}"
    if isinstance(value, bool) and bound.type != "bool":
        return f"is no {bound.type}"
    if bound.choices and value not in bound.choices:
        return f"is none of {list(bound.choices)}"
    if isinstance(value, (str, bool)):
        return "" if bound.choices or isinstance(value, bool) else "is free text and needs choices in the policy"
    if not math.isfinite(value):
        return "is not finite"
    if (bound.min is not None and value < bound.min) or (bound.max is not None and value > bound.max):
        return f"is outside {bound.min} to {bound.max}"
    share = bound.max_relative_change
    if share is not None and isinstance(old, (int, float)) and abs(value - old) > share * abs(old):
        return f"moves by more than {share:.0%} from {old!r}"
    return ""


def _line(data: bytes, key: str) -> int:
    name = key.rsplit(".", 1)[-1]
    rows = data.decode("utf-8").split("\n")
    return next((at for at, row in enumerate(rows, 1) if row.strip().startswith(name)), 0)

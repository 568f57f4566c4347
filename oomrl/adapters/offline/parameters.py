"""Read and change strategy.toml as text, so that its comments and order stay as they are."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Value = int | float | str | bool


def read(text: str) -> dict[str, Value]:
    """Return the keys of a settings file, dotted, with their plain values."""
    flat: dict[str, Value] = {}

    def walk(table: Mapping[str, object], prefix: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")
            elif isinstance(value, int | float | str | bool):
                flat[f"{prefix}{key}"] = value

    walk(tomllib.loads(text), "")
    return flat


def write(text: str, key: str, value: Value) -> str:
    """Return the text with one key set to another value; raise KeyError where it has no such line."""
    section, _, name = key.rpartition(".")
    lines = text.split("\n")
    here = ""
    for at, line in enumerate(lines):
        header = re.fullmatch(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?", line)
        if header:
            here = header[1].strip().replace('"', "")
        found = re.fullmatch(rf"(\s*{re.escape(name)}\s*=\s*)([^#]*?)(\s*(?:#.*)?)", line)
        if found and here == section:
            changed = "\n".join([*lines[:at], f"{found[1]}{_literal(value)}{found[3]}", *lines[at + 1 :]])
            # The line may stand inside a string: only a change of this key, and of no other, counts.
            if read(changed) == read(text) | {key: value}:
                return changed
    raise KeyError(key)


def _literal(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int) or abs(value) < 1e5:
        return repr(value)
    return f"{value:_.1f}"


@dataclass(frozen=True, slots=True)
class Move:
    """Set a key to `to`, or as far towards it as the policy lets it go.

    `only` says in which direction: "up" leaves a larger value alone, "down" a smaller one, "any" neither.
    """

    key: str
    to: Value
    only: str = "any"


def moved(old: Value, move: Move, bound: Mapping[str, object]) -> Value | None:
    """Return the value that a move leads to within a bound of policy.toml; None where it changes nothing."""
    to = move.to
    if isinstance(to, str | bool) or isinstance(old, str | bool):
        choices = bound.get("choices")
        allowed = not isinstance(choices, list | tuple) or to in choices
        return to if allowed and to != old and type(to) is type(old) else None
    if (move.only == "up" and old >= to) or (move.only == "down" and old <= to):
        return None
    low, high = _number(bound.get("min"), -math.inf), _number(bound.get("max"), math.inf)
    reach = _number(bound.get("max_relative_change"), math.inf) * abs(old)
    if reach > 0:
        low, high = max(low, old - reach), min(high, old + reach)
    clipped = min(max(float(to), low), high)
    # Rounding towards the old value stays inside the bounds.
    whole = math.floor(clipped) if clipped > old else math.ceil(clipped)
    new = whole if isinstance(old, int) else float(f"{clipped:.6g}")
    return None if new == old else new


def moved_all(text: str, moves: Sequence[Move], bounds: Mapping[str, Mapping[str, object]]) -> tuple[str, list[str]]:
    """Return the settings after all moves that change something, and each change in words.

    A key without a bound is not touched: the policy does not let it move. The warm-up follows the longest window.
    """
    notes: list[str] = []
    for move in (*moves, None):
        values = read(text)
        if move is None:
            longest = max((v for k, v in values.items() if k.endswith("_window") and isinstance(v, int)), default=0)
            move = Move("strategy.warmup", longest + 1, "up")
            if not any(note.split(":")[0].endswith("_window") for note in notes):
                break
        if move.key not in values or move.key not in bounds:
            continue
        new = moved(values[move.key], move, bounds[move.key])
        if new is not None:
            notes.append(f"{move.key}: {values[move.key]} to {new}")
            text = write(text, move.key, new)
    return text, notes


def _number(value: object, missing: float) -> float:
    return float(value) if isinstance(value, int | float) else missing

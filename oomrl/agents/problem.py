"""Why a reply cannot be used, in a code for tables and in words for the model."""

from __future__ import annotations

from enum import StrEnum


class Problem(StrEnum):
    """Name what is wrong with a reply."""

    NONE = "none"
    EMPTY = "empty"
    TOO_LONG = "too_long"
    NOT_TEXT = "not_text"
    REFUSAL = "refusal"
    NO_DIFF = "no_diff"
    WHOLE_FILE = "whole_file"
    TRUNCATED = "truncated"
    AMBIGUOUS = "ambiguous"
    MALFORMED = "malformed"
    PATH = "path"
    FORBIDDEN = "forbidden"
    MISMATCH = "mismatch"
    NO_CHANGE = "no_change"
    NO_REASON = "no_reason"


class Unusable(Exception):
    """Leave the reading of a reply; caught in `reply.read_reply` alone. `message` is written for the model."""

    def __init__(self, problem: Problem, message: str) -> None:
        super().__init__(message)
        self.problem = problem
        self.message = message


def checked_path(path: str) -> str:
    """Return a path that is relative, plain ASCII and stays inside the tree; raise `Unusable` for any other."""
    parts = path.split("/")
    if (
        not path.isascii()
        or not path.isprintable()
        or any(character in path for character in " \\\"':*?<>|~$`")
        or any(part in ("", ".", "..") or part.lower().startswith(".git") for part in parts)
        or len(path) > 200
    ):
        raise Unusable(Problem.PATH, f"Expected a plain path inside the tree, was {path[:200]!r}.")
    return path

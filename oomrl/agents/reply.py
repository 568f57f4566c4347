"""Read a model's reply: find the one diff in it, or say exactly why there is none.

What can be mended without guessing is mended and recorded: fences, line endings, hunk counts, the final newline,
the leading blank of empty context lines, a/ and b/ prefixes, search/replace blocks that match in exactly one place.
What needs guessing goes back to the model as a problem. The diff that comes out is re-emitted line by line and
read again by unidiff; whether it applies, exactly, is the strict applier's to say (guardrails, by `apply`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from oomrl.agents import blocks, hunks
from oomrl.agents.diff import changes_to_diff
from oomrl.agents.problem import Problem, Unusable

#: Beyond this a reply is not read at all.
MOST_CHARACTERS = 400_000
#: Begins the one line in which a test author says that no test is wanted.
NO_NEW_TESTS = "NO NEW TESTS:"


class Kind(StrEnum):
    PATCH = "patch"
    ESCALATE = "escalate"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as understood. `patch` is set for a patch alone, `message` is the reason of an escalation or problem.

    `explanation` is the prose around the diff; `repairs` says what was mended; `paths` what the patch touches.
    """

    kind: Kind
    patch: str = ""
    explanation: str = ""
    repairs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    problem: Problem = Problem.NONE
    message: str = ""


Apply = Callable[[Mapping[str, bytes], str], str]
"""Apply a diff strictly; return the canonical diff, or raise ValueError with the exact mismatch."""


def read_reply(text: str, tree: Mapping[str, bytes], finish: str = "stop", apply: Apply | None = None) -> Answer:
    """Return what a reply says. Never raises, whatever the text; touches nothing."""
    repairs: list[str] = []
    try:
        return _read(text, tree, finish, apply, repairs)
    except Unusable as error:
        return Answer(Kind.UNUSABLE, problem=error.problem, message=error.message, repairs=tuple(repairs))


def read_tests(text: str, tree: Mapping[str, bytes], finish: str = "stop", apply: Apply | None = None) -> Answer:
    """Return what a test author says: as `read_reply`, or an empty patch where the tests that stand suffice."""
    line = text.strip()
    if line.startswith(NO_NEW_TESTS) and "\n" not in line:
        return Answer(Kind.PATCH, explanation=line)
    return read_reply(text, tree, finish, apply)


def _read(text: str, tree: Mapping[str, bytes], finish: str, apply: Apply | None, repairs: list[str]) -> Answer:
    text = _plain(text, repairs)
    escalation, text = _unwrap(text, repairs)
    if escalation is not None:
        return _escalate(escalation, repairs)
    parts = blocks.split(text)
    pieces = [part for part in parts if part.is_code or hunks.starts_diff(part.text)]
    diffs = [part for part in pieces if hunks.starts_diff(part.text) and not blocks.is_search(part.text)]
    searches = [part for part in parts if blocks.is_search(part.text)]
    reason = _escalation("\n".join(_words(part) for part in parts if part not in searches))
    if reason is not None and not diffs and not searches:
        return _escalate(reason, repairs)
    if reason is not None:
        raise Unusable(
            Problem.AMBIGUOUS, "Expected a diff or a line that begins with ESCALATE:, was both. Answer one of them."
        )
    if diffs and searches:
        raise Unusable(
            Problem.AMBIGUOUS,
            "Expected one form, was a unified diff and search/replace blocks. Answer with one unified diff.",
        )
    if finish == "length" or (parts and not parts[-1].closed):
        raise Unusable(
            Problem.TRUNCATED, "Expected a whole reply, was cut off before its end. Answer with a smaller diff."
        )
    if searches:
        changes = blocks.apply_searches(text, tree, repairs)
        patch = changes_to_diff(tree, changes)
        files: tuple[str, ...] = tuple(sorted(changes))
        explanation = blocks.prose(parts)
    elif diffs:
        patch, files, rest = _one_diff([part.text for part in diffs], [part.is_code for part in diffs], repairs)
        explanation = "\n".join(filter(None, [blocks.prose([p for p in parts if p not in diffs]), rest])).strip()
    else:
        raise _nothing(text, pieces)
    if not patch:
        raise Unusable(Problem.NO_CHANGE, "Expected a diff that changes something, was one that changes nothing.")
    _read_again(patch, files)
    if apply is not None:
        try:
            patch = apply(tree, patch)
        except ValueError as error:
            raise Unusable(Problem.MISMATCH, str(error)) from error
    return Answer(Kind.PATCH, patch, explanation, tuple(repairs), files)


def _plain(text: str, repairs: list[str]) -> str:
    if len(text) > MOST_CHARACTERS:
        raise Unusable(Problem.TOO_LONG, f"Expected at most {MOST_CHARACTERS} characters, was {len(text)}.")
    if "\0" in text:
        raise Unusable(Problem.NOT_TEXT, "Expected plain text, was a NUL character in it.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Unusable(Problem.NOT_TEXT, "Expected plain text, was a lone surrogate in it.") from None
    if text.startswith("\ufeff"):
        text = text[1:]
        repairs.append("byte order mark: removed")
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        repairs.append("line endings: CRLF to LF")
    thought = re.match(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", text, re.DOTALL)
    if thought:
        text = text[thought.end() :]
        repairs.append("thinking: removed")
    elif re.match(r"\s*<think(?:ing)?>", text):
        raise Unusable(Problem.TRUNCATED, "Expected an answer after the thinking, was none. Answer in full.")
    if not text.strip():
        raise Unusable(Problem.EMPTY, "Expected a unified diff or a line that begins with ESCALATE:, was empty.")
    return text


def _unwrap(text: str, repairs: list[str]) -> tuple[str | None, str]:
    """Return the reason and the text of a structured reply; (None, text) of a plain one."""
    whole = text.strip()
    fenced = re.fullmatch(r"```(?:json)?\n(.*?)\n```", whole, re.DOTALL)
    inner = fenced[1] if fenced else whole
    if not inner.startswith("{"):
        return None, text
    try:
        value = json.loads(inner)
    except (ValueError, RecursionError):
        return None, text
    if not isinstance(value, dict) or not {"patch", "escalate"} & set(value):
        return None, text
    patch, escalate = value.get("patch") or "", value.get("escalate") or ""
    explanation = value.get("explanation") or ""
    if not all(isinstance(part, str) for part in (patch, escalate, explanation)):
        raise Unusable(Problem.MALFORMED, "Expected text under patch, escalate and explanation, was something else.")
    if patch and escalate:
        raise Unusable(Problem.AMBIGUOUS, "Expected patch or escalate, was both. Answer one of them.")
    repairs.append("structured reply: unwrapped")
    if not patch:
        return escalate, ""
    return None, _plain(f"{explanation}\n{patch}" if explanation else patch, repairs)


_ESCALATE = re.compile(r"^[ \t>*_`]*ESCALATE\b[*_`]*[ \t]*[:.—-]?[ \t]*(.*)", re.MULTILINE | re.DOTALL)


def _words(part: blocks.Part) -> str:
    """Return what is said in a part: of a diff, nothing that could be a line of a file."""
    if not hunks.starts_diff(part.text):
        return part.text
    return "" if part.is_code else "\n".join(line for line in part.text.split("\n") if line[:1] not in (" ", "+", "-"))


def _escalation(text: str) -> str | None:
    found = _ESCALATE.search(text)
    return None if found is None else found[1].strip().strip("`*_ \n")


def _escalate(reason: str, repairs: list[str]) -> Answer:
    if len(reason.strip()) < 8:
        raise Unusable(Problem.NO_REASON, "Expected ESCALATE: and the reason in a sentence, was no reason.")
    return Answer(Kind.ESCALATE, message=reason.strip(), repairs=tuple(repairs))


def _one_diff(texts: list[str], fenced: list[bool], repairs: list[str]) -> tuple[str, tuple[str, ...], str]:
    found: dict[str, str] = {}
    rest = []
    for text, closed in zip(texts, fenced, strict=True):
        files, prose = hunks.read(text, closed, repairs)
        rest.append(prose)
        for path, body in files:
            if path in found and found[path] != body:
                raise Unusable(
                    Problem.AMBIGUOUS, f"Expected one diff of {path}, was two that differ. Answer with one diff."
                )
            if path in found:
                repairs.append(f"repeated diff of {path}: dropped")
            found[path] = body
    if len(texts) > 1:
        repairs.append(f"{len(texts)} diff blocks: joined")
    return "".join(found.values()), tuple(sorted(found)), "\n".join(filter(None, rest))


def _nothing(text: str, pieces: list[blocks.Part]) -> Unusable:
    opening = text.strip()[:200].lower().replace("\u2019", "'")
    if not pieces and re.match(
        r"(i'm |i am |we're )?(sorry|unable|afraid)|i (can't|cannot|can not|won't)|as an ai", opening
    ):
        return Unusable(
            Problem.REFUSAL,
            "Expected a unified diff, was a refusal. Where the mandate cannot be met, answer ESCALATE: and the reason.",
        )
    if any(blocks.looks_like_source(piece.text) for piece in pieces) or blocks.looks_like_source(text):
        return Unusable(
            Problem.WHOLE_FILE,
            "Expected a unified diff of the lines that change, was a whole file or a piece of one.",
        )
    return Unusable(
        Problem.NO_DIFF, "Expected a unified diff (--- a/PATH, +++ b/PATH, @@ hunks) or ESCALATE: REASON, was neither."
    )


def _read_again(patch: str, files: tuple[str, ...]) -> None:
    """A second parser must see the same files, or the diff is not plain enough to be trusted."""
    try:
        seen = PatchSet(patch)
        names = tuple(sorted(file.path for file in seen))
    except (UnidiffParseError, ValueError, IndexError) as error:
        raise Unusable(
            Problem.MALFORMED, f"Expected a plain unified diff, was one that does not parse: {error}"
        ) from error
    if names != files:
        raise Unusable(
            Problem.MALFORMED, f"Expected a diff of {', '.join(files)}, was read otherwise by a second parser."
        )

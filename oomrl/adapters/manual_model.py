"""The manual model: prompts wait as files until a person, or any coding agent, answers them by command.

`prompts/ID.md` holds the question, `replies/ID.md` the answer. Both are written whole or not at all.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from pathlib import Path

from oomrl.domain.roll import identity
from oomrl.errors import Mistake
from oomrl.ports import Context, Reply

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
#: A reply is a diff and a few words; more than this is another file given by mistake.
MOST_BYTES = 1_000_000


class ManualModel:
    """Answer from files in the state directory. Costs nothing and never fails: it waits."""

    is_language_model = True

    def __init__(self, state: Path, name: str = "manual") -> None:
        self.name = name
        self._prompts = state / "prompts"
        self._replies = state / "replies"

    def answer(self, prompt_id: str, role: str, prompt: str, context: Context) -> Reply | None:
        """Return the reply that was given by command; write the prompt down and return None before it."""
        place = self._prompts / f"{_checked(prompt_id)}.md"
        if not place.is_file() or place.read_bytes() != prompt.encode():
            _write(place, prompt)
        reply, by = self._replies / f"{prompt_id}.md", self._replies / f"{prompt_id}.by"
        if not reply.is_file():
            return None
        who = by.read_text("utf-8").strip() if by.is_file() else ""
        return Reply(reply.read_bytes().decode("utf-8"), f"{self.name} <{who}>" if who else self.name)

    def asked(self, prompt_id: str) -> bool:
        """Return whether a prompt was put to this model."""
        return (self._prompts / f"{_checked(prompt_id)}.md").is_file()

    def waiting(self) -> list[str]:
        """Return the ids of the prompts without a reply, in alphabetical order."""
        if not self._prompts.is_dir():
            return []
        asked = sorted(path.stem for path in self._prompts.glob("*.md"))
        return [name for name in asked if not (self._replies / f"{name}.md").is_file()]

    def take(self, prompt_id: str, text: str, by: str = "") -> bool:
        """Take the answer to a prompt; return False where that very answer is there already.

        Whoever answers (`by`) is a proposer, and will not approve what comes of it.

        Raise `Mistake` for an unknown prompt, what is no text, a name that is none, and a second, different answer.
        """
        # All its parts, within the brackets that stand beside the model's name.
        who = re.sub(r"\s*[<>]\s*", ",", identity(by)).strip(",") if by else ""
        if not self.asked(prompt_id):
            raise Mistake(f"Expected the id of a prompt, was {prompt_id!r}: `oomrl prompts` lists them")
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise Mistake(f"Expected plain text in the reply, was a lone surrogate at {error.start}") from error
        if len(data) > MOST_BYTES:
            raise Mistake(f"Expected a reply of at most {MOST_BYTES} bytes, was {len(data)}")
        if not text.strip():
            raise Mistake("Expected a reply, was empty: write a diff, or ESCALATE: with a reason")
        place, author = self._replies / f"{prompt_id}.md", self._replies / f"{prompt_id}.by"
        with (self._prompts / f"{prompt_id}.md").open("rb") as prompt:
            fcntl.flock(prompt, fcntl.LOCK_EX)  # of two answers at once one stands, with its own author
            if place.is_file():
                if place.read_bytes() == data:
                    return False
                raise Mistake(f"Expected one reply to prompt {prompt_id}, was answered already: its answer is {place}")
            author.unlink(missing_ok=True)
            if who:
                _write(author, who)
            _write(place, text)
        return True


def text_of(file: Path) -> str:
    """Return a file's text; raise `Mistake` for what is none."""
    try:
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise Mistake(f"Could not read the reply {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Mistake(f"Expected UTF-8 text in {file}, was a bad byte at {error.start}") from error


def _checked(prompt_id: str) -> str:
    if not _ID.fullmatch(prompt_id):
        raise Mistake(f"Expected the id of a prompt (letters, digits, - and _), was {prompt_id!r}")
    return prompt_id


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=place.parent, encoding="utf-8", newline="", delete=False) as half:
        half.write(text)
        half.flush()
        os.fsync(half.fileno())
    Path(half.name).replace(place)

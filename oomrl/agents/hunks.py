"""Read a unified diff as models write it, and write it again as it should be."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from oomrl.agents.diff import NO_NEWLINE
from oomrl.agents.problem import Problem, Unusable, checked_path

_HUNK = re.compile(r"@@ -(\d{1,7})(?:,(\d{1,7}))? \+(\d{1,7})(?:,(\d{1,7}))? @@.*")
_BARE = re.compile(r"@@(?: .*)?")
_START = re.compile(r"^(?:diff --git \S|--- \S.*\n\+\+\+ \S|@@ -\d)", re.MULTILINE)
_NOTE = re.compile(r"(?:index [0-9a-f]{4,64}\.\.[0-9a-f]{4,64}(?: 100644)?|(?:new|deleted) file mode 100644)\s*")
_FORBIDDEN = re.compile(
    r"(?:old|new) mode |(?:new|deleted) file mode |index \S+ 1\d{5}|(?:rename|copy) (?:from|to) "
    r"|(?:dis)?similarity index |GIT binary patch|Binary files "
)


def starts_diff(text: str) -> bool:
    """Return whether a text holds something that means to be a unified diff."""
    return _START.search(text) is not None


def read(text: str, fenced: bool, repairs: list[str]) -> tuple[list[tuple[str, str]], str]:
    """Return (path, canonical text) of each file's diff, and the prose around them.

    `fenced` says that the text ended with a fence, so that what is short is wrongly counted and not cut off.
    Raise `Unusable` for what cannot be read in one way only.
    """
    reader = _Reader(text.split("\n"), fenced, repairs)
    while reader.at < len(reader.lines):
        reader.step()
    if not reader.files:
        raise Unusable(
            Problem.MALFORMED, "Expected --- a/PATH and +++ b/PATH before the first hunk, was a hunk of no file."
        )
    return [(path, body) for path, body in reader.files if body], "\n".join(reader.prose).strip()


@dataclass(slots=True)
class _Hunk:
    """One hunk while it is read. `left` is how many old and new lines its header still promises, None if unsaid."""

    start: tuple[int, int] | None
    left: list[int] | None
    lines: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        self.lines.append(line)
        if self.left is not None:
            self.left[0] -= line[0] in " -"
            self.left[1] -= line[0] in " +"

    @property
    def full(self) -> bool:
        return self.left is not None and self.left[0] <= 0 and self.left[1] <= 0

    @property
    def short(self) -> bool:
        return self.left is not None and (self.left[0] > 0 or self.left[1] > 0)

    def text(self) -> str:
        old = sum(line[0] in " -" for line in self.lines)
        new = sum(line[0] in " +" for line in self.lines)
        first, second = self.start or (1, 1)
        header = f"@@ -{first if old else 0},{old} +{second if new else 0},{new} @@\n"
        return header + "".join(f"{line}\n" for line in self.lines)


class _Reader:
    """One pass over the lines; `step` reads a file's diff, or one line of prose."""

    def __init__(self, lines: list[str], fenced: bool, repairs: list[str]) -> None:
        self.lines = lines
        self.fenced = fenced
        self.repairs = repairs
        self.at = 0
        self.after = 0  # where the blank lines at hand end, once somebody has looked
        self.files: list[tuple[str, str]] = []
        self.prose: list[str] = []

    def line(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.lines[place] if place < len(self.lines) else ""

    def repair(self, what: str) -> None:
        if what not in self.repairs:
            self.repairs.append(what)

    def step(self) -> None:
        if self.line().startswith("diff --git ") or self.is_header(0):
            self.read_file()
        elif _HUNK.fullmatch(self.line()):
            raise Unusable(
                Problem.MALFORMED, "Expected --- a/PATH and +++ b/PATH before each file's hunks, was a hunk of no file."
            )
        else:
            self.prose.append(self.line())
            self.at += 1

    def is_header(self, ahead: int) -> bool:
        return self.line(ahead).startswith("--- ") and self.line(ahead + 1).startswith("+++ ")

    def read_file(self) -> None:
        announced = ""
        if self.line().startswith("diff --git "):
            announced = self.line()
            self.at += 1
            while not self.is_header(0):
                line = self.line()
                if _FORBIDDEN.match(line) and not _NOTE.fullmatch(line):
                    raise Unusable(
                        Problem.FORBIDDEN,
                        f"Expected changes of text alone, was {line[:80]!r} (no modes, renames, binaries).",
                    )
                if not _NOTE.fullmatch(line):
                    raise Unusable(
                        Problem.MALFORMED, f"Expected --- and +++ after {announced[:120]!r}, was {line[:80]!r}."
                    )
                self.at += 1
        old, new = self.path(self.line()[4:], "a/"), self.path(self.line(1)[4:], "b/")
        self.at += 2
        path = self.agreed(old, new, announced)
        hunks: list[str] = []
        while _BARE.fullmatch(self.line()) and self.at < len(self.lines):
            hunk = self.read_hunk(path)
            if any(line[0] in "+-" for line in hunk.lines):
                hunks.append(hunk.text())
            else:
                self.repair("hunk without a change: dropped")
        if not hunks and self.line().startswith(("+", "-", " ")):
            raise Unusable(
                Problem.MALFORMED, f"Expected @@ -line,count +line,count @@ before the lines of {path}, was none."
            )
        sources = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}")
        self.files.append((path, f"--- {sources[0]}\n+++ {sources[1]}\n{''.join(hunks)}" if hunks else ""))

    def path(self, text: str, prefix: str) -> str | None:
        name = text.split("\t")[0].strip()
        if name == "/dev/null":
            return None
        if not name.startswith(prefix):
            self.repair("a/ and b/ prefixes: added")
            return checked_path(name)
        return checked_path(name[2:])

    def agreed(self, old: str | None, new: str | None, announced: str) -> str:
        path = new if new is not None else old
        if path is None:
            raise Unusable(Problem.PATH, "Expected a path, was /dev/null on both sides.")
        if None not in (old, new) and old != new:
            raise Unusable(Problem.FORBIDDEN, f"Expected one path, was {old} and {new}: files are never renamed.")
        if announced and announced.split() != ["diff", "--git", f"a/{path}", f"b/{path}"]:
            raise Unusable(Problem.PATH, f"Expected the path {path} in every header, was {announced[:120]!r}.")
        return path

    def read_hunk(self, path: str) -> _Hunk:
        numbers = _HUNK.fullmatch(self.line())
        if numbers:
            start, old, second, new = numbers.groups()
            hunk = _Hunk((int(start), int(second)), [int(old or 1), int(new or 1)])
        else:
            hunk = _Hunk(None, None)
            self.repair("hunk header: line numbers unknown")
        self.at += 1
        while self.at < len(self.lines) and self.take(hunk):
            self.at += 1
        if hunk.short and not self.fenced and not any(self.lines[self.at :]):
            raise Unusable(
                Problem.TRUNCATED,
                f"Expected more lines in the last hunk of {path}, was cut off. Answer with a smaller diff.",
            )
        if hunk.left is not None and hunk.left != [0, 0]:
            self.repair("hunk counts: corrected")
        return hunk

    def take(self, hunk: _Hunk) -> bool:
        """Add the line at hand to the hunk; return False where the hunk has ended before it."""
        line = self.line()
        if line.startswith(("diff --git ", "@@")) or self.ends_here(hunk):
            return False
        if line.startswith("\\ ") and hunk.lines:
            hunk.lines.append(NO_NEWLINE)
            return True
        if hunk.full and not self.fenced:
            if line.startswith((" ", "+", "-")) and line.strip():
                raise Unusable(
                    Problem.MALFORMED,
                    "Expected the hunk to end where its header says, was more lines. Correct the counts, or put the "
                    "diff between ```diff and ```.",
                )
            return False
        if line.startswith((" ", "+", "-")):
            hunk.add(line)
            return True
        if line == "" and self.blank_belongs(hunk):
            self.repair("empty context lines: leading blank restored")
            hunk.add(" ")
            return True
        if line == "" or not self.fenced:
            return False
        raise Unusable(
            Problem.MALFORMED, f"Expected each line of a hunk to begin with a blank, + or -, was {line[:80]!r}."
        )

    def ends_here(self, hunk: _Hunk) -> bool:
        """Return whether another file's header stands here, rather than a removed line that begins with two dashes."""
        if not self.is_header(0):
            return False
        sure = re.match(r"--- (?:a/|/dev/null)", self.line()) and re.match(r"\+\+\+ (?:b/|/dev/null)", self.line(1))
        return bool(sure) or hunk.full or hunk.left is None

    def blank_belongs(self, hunk: _Hunk) -> bool:
        if self.after <= self.at:
            rest = range(self.at + 1, len(self.lines))
            self.after = next((at for at in rest if self.lines[at]), len(self.lines))
        ahead = self.after - self.at
        following = self.line(ahead)
        more = following.startswith((" ", "+", "-")) and not self.is_header(ahead)
        if hunk.left is None or hunk.full:
            return self.fenced and more
        # At the end of a hunk, blanks are context only where they are exactly what its header still promises.
        return more or hunk.left == [ahead, ahead]

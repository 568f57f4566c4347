"""Read a patch strictly: only its envelope is repaired, and each repair is said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from guardrails.checks.codes import finding
from guardrails.paths import path_fault
from guardrails.policy import Limits
from guardrails.tree import MODE
from guardrails.verdict import Finding

Action = Literal["edit", "create", "delete"]
NO_NEWLINE = b"\\ No newline at end of file"
GIT_HEADER = re.compile(rb"diff --git a/(\S+) b/(\S+)")
HUNK_HEADER = re.compile(rb"@@ -(\d{1,7})(?:,(\d{1,7}))? \+(\d{1,7})(?:,(\d{1,7}))? @@(?: .*)?")
BARE_HEADER = re.compile(rb"@@(?: (?:\.\.\. )?@@)?(?: .*)?")
REFUSED_HEADERS = (
    (re.compile(rb"(old|new) mode |(new|deleted) file mode |index [0-9a-f]+\.\.[0-9a-f]+ 1[0-9]{5}"), "GR103"),
    (re.compile(rb"(rename|copy) (from|to) |(dis)?similarity index "), "GR104"),
    (re.compile(rb"GIT binary patch|Binary files |literal \d|delta \d"), "GR105"),
)
ALLOWED_HEADERS = re.compile(
    rb"(new|deleted) file mode %b|index [0-9a-f]{4,64}\.\.[0-9a-f]{4,64}( %b)?" % (MODE.encode(), MODE.encode())
)


@dataclass(frozen=True)
class Hunk:
    """Old and new lines with their newlines; `line` is where the hunk stands in the patch."""

    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    line: int


@dataclass(frozen=True)
class FilePatch:
    """All hunks of one path."""

    path: str
    action: Action
    hunks: tuple[Hunk, ...]
    line: int


class PatchError(Exception):
    """A patch that cannot be read or does not apply: the finding says what and where."""

    def __init__(self, item: Finding) -> None:
        super().__init__(item.reason)
        self.item = item


def refuse(code: str, line: int, was: str, path: str = "", expected: str = "") -> PatchError:
    """Return the error of one finding on a patch."""
    return PatchError(finding(code, path, line, was, expected))


def parse_patch(data: bytes, limits: Limits, repairs: list[str]) -> tuple[FilePatch, ...]:
    """Read the bytes strictly; each repair of the envelope is appended to `repairs`."""
    lines = _envelope(data, limits, repairs)
    reader = _Reader(lines, repairs)
    files = reader.read()
    for path, count in Counter(item.path for item in files).items():
        if count > 1:
            raise refuse("GR107", 0, f"{path!r} {count} times", path)
    hunks = sum(len(item.hunks) for item in files)
    changed = sum(_size(hunk) for item in files for hunk in item.hunks)
    for what, value, most in (
        ("files", len(files), limits.files),
        ("hunks", hunks, limits.hunks),
        ("changed lines", changed, limits.changed_lines),
    ):
        if value > most:
            raise refuse("GR102", 0, f"{value}", expected=f"at most {most} {what}")
    if not files:
        raise refuse("GR114", 0, "none")
    if not reader.repaired and not agrees(b"\n".join(lines) + b"\n", files):
        raise refuse("GR115", 0, "two")
    return files


def _size(hunk: Hunk) -> int:
    common = sum((Counter(hunk.old) & Counter(hunk.new)).values())
    return len(hunk.old) + len(hunk.new) - 2 * common


def _envelope(data: bytes, limits: Limits, repairs: list[str]) -> list[bytes]:
    if len(data) > limits.patch_bytes:
        raise refuse("GR102", 0, f"{len(data)}", expected=f"at most {limits.patch_bytes} bytes")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refuse("GR116", 0, f"a bad byte at {error.start}") from None
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
        repairs.append("line endings: CRLF to LF")
    if b"\0" in data or b"\r" in data:
        raise refuse("GR116", 0, "a NUL or a lone carriage return")
    if data.startswith(b"\xef\xbb\xbf"):
        raise refuse("GR117", 1, "one")
    if data and not data.endswith(b"\n"):
        data += b"\n"
        repairs.append("final newline: added")
    lines = data.split(b"\n")[:-1]
    trimmed = b"\n".join(lines).strip(b"\n").split(b"\n")
    if len(trimmed) >= 2 and re.fullmatch(rb"```[a-z]*", trimmed[0]) and trimmed[-1] == b"```":
        repairs.append("fences: removed")
        return trimmed[1:-1]
    return lines


class _Reader:
    """Reads lines into files and hunks, one pass, never guessing where a path is concerned."""

    def __init__(self, lines: list[bytes], repairs: list[str]) -> None:
        self.lines, self.repairs, self.at, self.repaired = lines, repairs, 0, False

    def read(self) -> tuple[FilePatch, ...]:
        files = []
        while self.at < len(self.lines):
            if not self.lines[self.at]:
                self.at += 1
                continue
            files.append(self._file())
        return tuple(files)

    def _line(self, ahead: int = 0) -> bytes:
        place = self.at + ahead
        return self.lines[place] if place < len(self.lines) else b""

    def _file(self) -> FilePatch:
        start, announced, created, deleted = self.at + 1, "", False, False
        header = GIT_HEADER.fullmatch(self._line())
        if header:
            if header[1] != header[2]:
                raise refuse("GR104", start, f"{header[1]!r} and {header[2]!r}")
            announced = self._path(header[1], start)
            self.at += 1
            while self._line() and not self._line().startswith((b"--- ", b"diff --git ", b"@@")):
                line = self._line()
                self._extended(line)
                created, deleted = (created or line.startswith(b"new "), deleted or line.startswith(b"deleted "))
                self.at += 1
            if not self._line().startswith(b"--- "):
                if created and not self._line().startswith(b"@@"):
                    return FilePatch(announced, "create", (), start)
                raise refuse("GR101", self.at + 1, "a header without '--- a/PATH' and '+++ b/PATH'")
        if not (self._line().startswith(b"--- ") and self._line(1).startswith(b"+++ ")):
            self._extended(self._line())
            raise refuse("GR101", self.at + 1, show(self._line()))
        path, action = self._paths(announced, created, deleted)
        self.at += 2
        hunks = []
        while self._line().startswith(b"@@"):
            hunks.append(self._hunk())
        if not hunks:
            raise refuse("GR101", self.at + 1, "a file header without a hunk", path)
        return FilePatch(path, action, tuple(hunks), start)

    def _extended(self, line: bytes) -> None:
        if ALLOWED_HEADERS.fullmatch(line):
            return
        for pattern, code in REFUSED_HEADERS:
            if pattern.match(line):
                raise refuse(code, self.at + 1, show(line))
        raise refuse("GR101", self.at + 1, show(line))

    def _path(self, raw: bytes, line: int) -> str:
        path = raw.decode("utf-8")
        fault = path_fault(path)
        if fault:
            raise refuse("GR106", line, f"{path!r}", path, fault)
        return path

    def _paths(self, announced: str, created: bool, deleted: bool) -> tuple[str, Action]:
        line, old, new = self.at + 1, self._line()[4:], self._line(1)[4:]
        action: Action = "create" if old == b"/dev/null" else "delete" if new == b"/dev/null" else "edit"
        paths = []
        for raw, prefix in ((old, b"a/"), (new, b"b/")):
            if raw != b"/dev/null":
                if not raw.startswith(prefix):
                    raise refuse("GR106", line, show(raw), expected=f"'{prefix.decode()}PATH'")
                paths.append(self._path(raw[2:], line))
        if not paths:
            raise refuse("GR106", line, "/dev/null on both sides")
        if len({*paths, *([announced] if announced else [])}) > 1:
            raise refuse("GR104", line, f"{', '.join({*paths, announced})}", paths[0])
        if (created and action != "create") or (deleted and action != "delete"):
            raise refuse("GR101", line, f"{action} against 'file mode'", paths[0])
        return paths[0], action

    def _hunk(self) -> Hunk:
        start, line = self.at + 1, self._line()
        header = HUNK_HEADER.fullmatch(line)
        if header is None and BARE_HEADER.fullmatch(line) is None:
            raise refuse("GR101", start, show(line))
        self.at += 1
        body = None
        if header:
            body = self._counted(int(header[2] or b"1"), int(header[4] or b"1"))
        if body is None:
            body = self._scanned()
            self.repaired = True
            self.repairs.append(f"hunk counts: taken from the body at line {start}")
        sides: tuple[list[bytes], list[bytes]] = ([], [])
        for at, (kind, text) in enumerate(body):
            if kind == b"\\":
                continue
            ended = at + 1 < len(body) and body[at + 1][0] == b"\\"
            for side, kinds in zip(sides, (b" -", b" +"), strict=True):
                if kind in kinds:
                    side.append(text + (b"" if ended else b"\n"))
        for side in sides:
            if any(not text.endswith(b"\n") for text in side[:-1]):
                raise refuse("GR101", start, "an end of file before the last line")
        return Hunk(tuple(sides[0]), tuple(sides[1]), start)

    def _body_line(self, line: bytes) -> tuple[bytes, bytes] | None:
        if not line:
            return b" ", b""
        kind, text = line[:1], line[1:]
        if kind == b"\\":
            return (kind, b"") if line == NO_NEWLINE else None
        return (kind, text) if kind in b" +-" else None

    def _boundary(self, at: int) -> bool:
        if at >= len(self.lines):
            return True
        line, after = self.lines[at], self.lines[at + 1] if at + 1 < len(self.lines) else b""
        return line.startswith((b"@@", b"diff --git ")) or (line.startswith(b"--- ") and after.startswith(b"+++ "))

    def _counted(self, old: int, new: int) -> list[tuple[bytes, bytes]] | None:
        """Read as many lines as the header claims; None where the claim does not fit."""
        body: list[tuple[bytes, bytes]] = []
        at = self.at
        while (old > 0 or new > 0) and at < len(self.lines):
            item = self._body_line(self.lines[at])
            if item is None:
                return None
            body.append(item)
            old -= item[0] in b" -"
            new -= item[0] in b" +"
            at += 1
        if at < len(self.lines) and self.lines[at] == NO_NEWLINE:
            body.append((b"\\", b""))
            at += 1
        if old or new or not (self._boundary(at) or not self.lines[at]):
            return None
        self.at = at
        return body

    def _scanned(self) -> list[tuple[bytes, bytes]]:
        """Read up to the next header; trailing blank lines belong to the envelope."""
        body: list[tuple[bytes, bytes]] = []
        blank = 0
        while not self._boundary(self.at):
            item = self._body_line(self._line())
            if item is None:
                raise refuse("GR101", self.at + 1, show(self._line()))
            body.append(item)
            blank = 0 if self._line() else blank + 1
            self.at += 1
        return body[: len(body) - blank]


def agrees(data: bytes, files: Sequence[FilePatch]) -> bool:
    """Ask unidiff for a second opinion. It may only refuse: paths are decided by our own parser."""
    try:
        other = PatchSet(data.decode("utf-8"))
    except (UnidiffParseError, ValueError, AssertionError):
        return False
    if len(other) != len(files):
        return False
    for theirs, ours in zip(other, files, strict=True):
        sides = {theirs.source_file, theirs.target_file}
        if (
            sides - {"/dev/null", f"a/{ours.path}", f"b/{ours.path}"}
            or theirs.is_binary_file
            or len(theirs) != len(ours.hunks)
        ):
            return False
        for hunk, mine in zip(theirs, ours.hunks, strict=True):
            for kinds, side in (("- ", mine.old), ("+ ", mine.new)):
                lines = [line.value.rstrip("\n") for line in hunk if line.line_type and line.line_type in kinds]
                if lines != [line.decode().rstrip("\n") for line in side]:
                    return False
    return True


def show(line: bytes) -> str:
    """Return a line for a message."""
    return ascii(line[:80].decode("utf-8", "replace"))

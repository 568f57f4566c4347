"""Admissible patches: strict reading, exact application in memory, one canonical diff.

The bytes that come out of here, and no others, are what is checked, shown, signed, tested and deployed. Only
the envelope is repaired (fences, line endings, final newline, hunk counts, line numbers), and it is said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from guardrails.checks.codes import finding
from guardrails.checks.parameters import judge_parameters
from guardrails.checks.text import judge_text
from guardrails.paths import collisions, path_fault
from guardrails.policy import Limits, PhaseName, Policy
from guardrails.tree import MODE, Tree, TreeError
from guardrails.verdict import Finding

__all__ = ["Patch", "Tree", "TreeError", "apply_patch", "canonical_diff", "changed_lines", "judge_patch", "parse_patch"]

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


@dataclass(frozen=True)
class Patch:
    """A judged patch. `result` and `canonical` are set only where it applies."""

    findings: tuple[Finding, ...]
    repairs: tuple[str, ...] = ()
    result: Tree | None = None
    canonical: bytes = b""
    changed: tuple[str, ...] = ()


class PatchError(Exception):
    """A patch that cannot be read or does not apply: the finding says what and where."""

    def __init__(self, item: Finding) -> None:
        super().__init__(item.reason)
        self.item = item


def _refuse(code: str, line: int, was: str, path: str = "", expected: str = "") -> PatchError:
    return PatchError(finding(code, path, line, was, expected))


def judge_patch(tree: Tree, data: bytes, phase: PhaseName, policy: Policy, *, enforce: bool = True) -> Patch:
    """Read, apply and judge a patch, on the diff and on the tree that results. Writes nothing.

    Without `enforce` only what cannot be applied is refused: that is for measuring what this layer is worth.
    """
    repairs: list[str] = []
    try:
        files = parse_patch(data, policy.limits, repairs)
    except PatchError as refused:
        return Patch((refused.item,), tuple(repairs))
    findings = _judge_paths(tree, files, phase, policy, enforce)
    if findings:
        return Patch(tuple(findings), tuple(repairs))
    try:
        result = apply_patch(tree, files)
    except PatchError as refused:
        return Patch((refused.item,), tuple(repairs))
    changed = tuple(sorted(item.path for item in files))
    for path in changed if enforce else ():
        if path in result:
            findings += judge_text(path, result[path], policy)
            findings += _judge_rewrite(path, tree.get(path), result[path], policy.limits)
    if enforce and policy.layout.parameters in changed:
        findings += judge_parameters(tree.get(policy.layout.parameters, b""), result, policy)
    if enforce:
        findings += [finding("GR108", path, 0, reason) for path, reason in collisions(tree, result)]
    canonical = canonical_diff(tree, result)
    if not findings and not _same_everywhere(tree, result, canonical, policy.limits):
        findings.append(finding("GR115", "", 0, "The canonical diff does not lead to the tree that was judged."))
    return Patch(tuple(findings), tuple(repairs), result, canonical, changed)


def parse_patch(data: bytes, limits: Limits, repairs: list[str]) -> tuple[FilePatch, ...]:
    """Read the bytes strictly; each repair of the envelope is appended to `repairs`."""
    lines = _envelope(data, limits, repairs)
    reader = _Reader(lines, repairs)
    files = reader.read()
    for path, count in Counter(item.path for item in files).items():
        if count > 1:
            raise _refuse("GR107", 0, f"{path!r} {count} times", path)
    hunks = sum(len(item.hunks) for item in files)
    changed = sum(_size(hunk) for item in files for hunk in item.hunks)
    for what, value, most in (
        ("files", len(files), limits.files),
        ("hunks", hunks, limits.hunks),
        ("changed lines", changed, limits.changed_lines),
    ):
        if value > most:
            raise _refuse("GR102", 0, f"{value}", expected=f"at most {most} {what}")
    if not files:
        raise _refuse("GR114", 0, "none")
    if not reader.repaired and not agrees(b"\n".join(lines) + b"\n", files):
        raise _refuse("GR115", 0, "two")
    return files


def _size(hunk: Hunk) -> int:
    common = sum((Counter(hunk.old) & Counter(hunk.new)).values())
    return len(hunk.old) + len(hunk.new) - 2 * common


def _envelope(data: bytes, limits: Limits, repairs: list[str]) -> list[bytes]:
    if len(data) > limits.patch_bytes:
        raise _refuse("GR102", 0, f"{len(data)}", expected=f"at most {limits.patch_bytes} bytes")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refuse("GR116", 0, f"a bad byte at {error.start}") from None
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
        repairs.append("line endings: CRLF to LF")
    if b"\0" in data or b"\r" in data:
        raise _refuse("GR116", 0, "a NUL or a lone carriage return")
    if data.startswith(b"\xef\xbb\xbf"):
        raise _refuse("GR117", 1, "one")
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
                raise _refuse("GR104", start, f"{header[1]!r} and {header[2]!r}")
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
                raise _refuse("GR101", self.at + 1, "a header without '--- a/PATH' and '+++ b/PATH'")
        if not (self._line().startswith(b"--- ") and self._line(1).startswith(b"+++ ")):
            self._extended(self._line())
            raise _refuse("GR101", self.at + 1, _show(self._line()))
        path, action = self._paths(announced, created, deleted)
        self.at += 2
        hunks = []
        while self._line().startswith(b"@@"):
            hunks.append(self._hunk())
        if not hunks:
            raise _refuse("GR101", self.at + 1, "a file header without a hunk", path)
        return FilePatch(path, action, tuple(hunks), start)

    def _extended(self, line: bytes) -> None:
        if ALLOWED_HEADERS.fullmatch(line):
            return
        for pattern, code in REFUSED_HEADERS:
            if pattern.match(line):
                raise _refuse(code, self.at + 1, _show(line))
        raise _refuse("GR101", self.at + 1, _show(line))

    def _path(self, raw: bytes, line: int) -> str:
        path = raw.decode("utf-8")
        fault = path_fault(path)
        if fault:
            raise _refuse("GR106", line, f"{path!r}", path, fault)
        return path

    def _paths(self, announced: str, created: bool, deleted: bool) -> tuple[str, Action]:
        line, old, new = self.at + 1, self._line()[4:], self._line(1)[4:]
        action: Action = "create" if old == b"/dev/null" else "delete" if new == b"/dev/null" else "edit"
        paths = []
        for raw, prefix in ((old, b"a/"), (new, b"b/")):
            if raw != b"/dev/null":
                if not raw.startswith(prefix):
                    raise _refuse("GR106", line, _show(raw), expected=f"'{prefix.decode()}PATH'")
                paths.append(self._path(raw[2:], line))
        if not paths:
            raise _refuse("GR106", line, "/dev/null on both sides")
        if len({*paths, *([announced] if announced else [])}) > 1:
            raise _refuse("GR104", line, f"{', '.join({*paths, announced})}", paths[0])
        if (created and action != "create") or (deleted and action != "delete"):
            raise _refuse("GR101", line, f"{action} against 'file mode'", paths[0])
        return paths[0], action

    def _hunk(self) -> Hunk:
        start, line = self.at + 1, self._line()
        header = HUNK_HEADER.fullmatch(line)
        if header is None and BARE_HEADER.fullmatch(line) is None:
            raise _refuse("GR101", start, _show(line))
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
                raise _refuse("GR101", start, "an end of file before the last line")
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
                raise _refuse("GR101", self.at + 1, _show(self._line()))
            body.append(item)
            blank = 0 if self._line() else blank + 1
            self.at += 1
        return body[: len(body) - blank]


def _show(line: bytes) -> str:
    return ascii(line[:80].decode("utf-8", "replace"))


def _judge_paths(
    tree: Tree, files: Sequence[FilePatch], phase: PhaseName, policy: Policy, enforce: bool
) -> list[Finding]:
    findings = []
    codes = {"edit": "GR109", "create": "GR110", "delete": "GR111"}
    for item in files:
        present = item.path in tree
        if present == (item.action == "create"):
            state = "there already" if present else "absent"
            findings.append(finding("GR121", item.path, item.line, f"Cannot {item.action}: the file is {state}."))
        elif enforce and not policy.may(item.action, item.path, phase):
            findings.append(finding(codes[item.action], item.path, item.line, f"{item.path!r} in {phase}"))
    return findings


def _judge_rewrite(path: str, before: bytes | None, after: bytes, limits: Limits) -> list[Finding]:
    if before is None:
        return []
    old, new = before.splitlines(), after.splitlines()
    kept = sum((Counter(old) & Counter(new)).values())
    if len(old) >= limits.rewrite_lines and kept < (1 - limits.rewrite_share) * len(old):
        return [finding("GR119", path, 0, f"{len(old) - kept} of {len(old)} lines replaced")]
    return []


def apply_patch(tree: Tree, files: Sequence[FilePatch]) -> Tree:
    """Apply in memory; every hunk's old lines must stand in exactly one place of the file as it was."""
    return tree.replace({item.path: _apply_file(item, tree.get(item.path, b"")) for item in files})


def split_lines(data: bytes) -> list[bytes]:
    """Split at newlines only, keeping them."""
    return [part for part in re.split(rb"(?<=\n)", data) if part]


def _apply_file(item: FilePatch, data: bytes) -> bytes | None:
    lines, result, done = split_lines(data), [], 0
    for hunk in item.hunks:
        if hunk.old == hunk.new:
            raise _refuse("GR114", hunk.line, "none", item.path)
        places = _places(lines, hunk.old)
        if not places:
            raise _refuse("GR112", hunk.line, *_mismatch(lines, hunk.old, item.path))
        if len(places) > 1:
            where = ", ".join(str(place + 1) for place in places[:5])
            raise _refuse("GR113", hunk.line, f"{len(places)}: lines {where}", item.path)
        if places[0] < done:
            raise _refuse("GR122", hunk.line, "an overlap", item.path)
        result += lines[done : places[0]] + list(hunk.new)
        done = places[0] + len(hunk.old)
    result += lines[done:]
    if any(not line.endswith(b"\n") for line in result[:-1]):
        raise _refuse("GR101", item.line, "text after a line without a newline", item.path)
    if item.action == "delete":
        if result:
            raise _refuse("GR101", item.line, "a rest", item.path)
        return None
    return b"".join(result)


def _places(lines: list[bytes], old: tuple[bytes, ...]) -> list[int]:
    if not old:
        return [0] if not lines else list(range(len(lines) + 1))
    last = len(lines) - len(old)
    return [at for at in range(last + 1) if lines[at] == old[0] and tuple(lines[at : at + len(old)]) == old]


def _mismatch(lines: list[bytes], old: tuple[bytes, ...], path: str) -> tuple[str, str, str]:
    """Say at the nearest place what was expected and what stands there."""
    best, place = -1, 0
    for at in range(len(lines)):
        score = sum(a == b for a, b in zip(lines[at : at + len(old)], old, strict=False))
        if score > best:
            best, place = score, at
    for offset, wanted in enumerate(old):
        there = lines[place + offset] if place + offset < len(lines) else b"(end of file)"
        if there != wanted:
            return _show(there), path, f"{_show(wanted)} at line {place + offset + 1}"
    return "none of them", path, ""


def canonical_diff(base: Tree, result: Tree) -> bytes:
    """Return the one diff between two trees: paths sorted, and as much context as makes each hunk unique."""
    out = []
    for path in sorted({*base, *result}):
        before, after = base.get(path), result.get(path)
        if before == after:
            continue
        name = path.encode()
        head = [b"diff --git a/%b b/%b\n" % (name, name)]
        if before is None:
            head.append(b"new file mode %b\n" % MODE.encode())
        if after is None:
            head.append(b"deleted file mode %b\n" % MODE.encode())
        if before or after:
            head.append(b"--- %b\n" % (b"/dev/null" if before is None else b"a/" + name))
            head.append(b"+++ %b\n" % (b"/dev/null" if after is None else b"b/" + name))
        out += head + _canonical_hunks(split_lines(before or b""), split_lines(after or b""))
    return b"".join(out)


def _canonical_hunks(old: list[bytes], new: list[bytes]) -> list[bytes]:
    codes, context = _opcodes(old, new), 3
    while True:
        groups = _grouped(codes, context)
        spans = [(group[0][1], group[-1][2]) for group in groups]
        if context >= len(old) or all(len(_places(old, tuple(old[a:b]))) == 1 for a, b in spans):
            return [line for group in groups for line in _emit(group, old, new)]
        context *= 2


def changed_lines(base: Tree, result: Tree) -> dict[str, set[int]]:
    """Return by path the line numbers of the result that are new or changed, or stand beside what was removed."""
    changed = {}
    for path in result:
        if result[path] != base.get(path):
            lines = split_lines(result[path])
            codes = [code for code in _opcodes(split_lines(base.get(path, b"")), lines) if code[0] != "equal"]
            rows = {n + 1 for _, _, _, a, b in codes for n in (range(a, b) if b > a else (a - 1, a))}
            changed[path] = {row for row in rows if 1 <= row <= len(lines)}
    return changed


Opcode = tuple[str, int, int, int, int]


def _opcodes(old: list[bytes], new: list[bytes]) -> list[Opcode]:
    head = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    pairs = zip(reversed(old[head:]), reversed(new[head:]), strict=False)
    rest = min(len(old), len(new)) - head
    tail = next((i for i, (a, b) in enumerate(pairs) if a != b), rest)
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    # SequenceMatcher's worst case is cubic; a hostile file gets one plain replacement instead.
    if sum(count * b.count(line) for line, count in Counter(a).items()) <= 200_000:
        middle: list[Opcode] = list(SequenceMatcher(None, a, b, autojunk=False).get_opcodes())
    else:
        middle = [("replace", 0, len(a), 0, len(b))]
    shifted = [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in middle]
    ends = [("equal", 0, head, 0, head)] if head else []
    tails = [("equal", len(old) - tail, len(old), len(new) - tail, len(new))] if tail else []
    return ends + shifted + tails


def _grouped(codes: list[Opcode], context: int) -> list[list[Opcode]]:
    groups: list[list[Opcode]] = [[]]
    for at, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag != "equal":
            groups[-1].append((tag, i1, i2, j1, j2))
            continue
        if at == 0:
            cut = max(i1, i2 - context)
            groups[-1].append((tag, cut, i2, j2 - (i2 - cut), j2))
        elif at == len(codes) - 1:
            cut = min(i2, i1 + context)
            groups[-1].append((tag, i1, cut, j1, j1 + cut - i1))
        elif i2 - i1 <= 2 * context:
            groups[-1].append((tag, i1, i2, j1, j2))
        else:
            groups[-1].append((tag, i1, i1 + context, j1, j1 + context))
            groups.append([(tag, i2 - context, i2, j2 - context, j2)])
    return [group for group in groups if any(code[0] != "equal" for code in group)]


def _emit(group: list[Opcode], old: list[bytes], new: list[bytes]) -> list[bytes]:
    i1, i2, j1, j2 = group[0][1], group[-1][2], group[0][3], group[-1][4]
    counts = (i1 + (i2 > i1), i2 - i1, j1 + (j2 > j1), j2 - j1)
    out = [b"@@ -%d,%d +%d,%d @@\n" % counts]
    for tag, a1, a2, b1, b2 in group:
        lines = [(b" ", line) for line in old[a1:a2]] if tag == "equal" else []
        if tag != "equal":
            lines = [(b"-", line) for line in old[a1:a2]] + [(b"+", line) for line in new[b1:b2]]
        for kind, line in lines:
            out.append(kind + line if line.endswith(b"\n") else kind + line + b"\n" + NO_NEWLINE + b"\n")
    return out


def _same_everywhere(tree: Tree, result: Tree, canonical: bytes, limits: Limits) -> bool:
    """Read the canonical diff back, by both parsers, and compare the outcome with what was judged."""
    wide = Limits(patch_bytes=1 << 30, files=1 << 30, hunks=1 << 30, changed_lines=1 << 30)
    repairs: list[str] = []
    try:
        files = parse_patch(canonical, wide, repairs)
        return not repairs and dict(apply_patch(tree, files)) == dict(result)
    except PatchError:
        return False


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

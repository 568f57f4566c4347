"""Lay out what changed, line by line: pairs, words within a line, syntax colours, whole functions around a change.

Pure: texts in, frozen rows out. Everything is bounded, because a patch may be of any size: files beyond `LARGEST` are
shown without colours and word marks, and no more than `MOST_ROWS` rows of a file are laid out. Whatever is
left out is said in a flag.
"""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from markupsafe import Markup, escape
from pygments.lexers import get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from oomrl.web.text import mark, odd

LARGEST = 200_000
MOST_ROWS = 1_500
#: No line of a large file is shown beyond this many characters.
LONGEST_LINE = 2_000
AROUND = 4
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the old line and the new one, either of which may be missing. `kind` is same, changed, gone, new, gap.

    A gap stands for `hidden` unchanged lines.
    """

    kind: str
    old_number: int = 0
    new_number: int = 0
    old: Markup = Markup("")
    new: Markup = Markup("")
    hidden: int = 0


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The rows of one file. `flags` say what a reader must know first: odd characters, size, a binary file."""

    path: str
    action: str
    rows: tuple[Row, ...]
    added: int
    removed: int
    flags: tuple[str, ...] = ()
    cut: bool = False


@dataclass
class _Lines:
    lines: list[str]
    marked: list[Markup] = field(default_factory=list)


@lru_cache(maxsize=256)
def file_diff(
    path: str, before: bytes | None, after: bytes | None, ignore_space: bool = False, whole: bool = False
) -> FileDiff:
    """Return how one file changed. `whole` shows every line of it; else the functions around each change."""
    old_text, new_text, flags = _text(before), _text(after), []
    for text, side in ((old_text, "before"), (new_text, "after")):
        found = sorted({f"U+{ord(c):04X}" for c in text if odd(c)})
        if found and (side == "after" or not flags):
            flags.append(f"{len(found)} kinds of invisible or reordering characters {side}: {', '.join(found[:8])}")
    foreign = _foreign_names(path, new_text)
    if foreign:
        flags.append(f"{len(foreign)} names outside ASCII, which may look like others: {', '.join(foreign[:8])}")
    large = len(old_text) + len(new_text) > LARGEST
    if large:
        flags.append(f"large file ({len(new_text):,} characters): shown without colours and word marks")
    old, new = old_text.split("\n"), new_text.split("\n")
    for lines in (old, new):
        if lines and lines[-1] == "":
            lines.pop()
    blocks = _blocks(old, new, ignore_space, large)
    unseen = sum(old[i1 + n] != new[j1 + n] for tag, i1, i2, j1, _ in blocks if tag == "equal" for n in range(i2 - i1))
    if unseen:
        flags.append(f"white space ignored: {unseen:,} lines whose white space changed are shown as unchanged")
    added = sum(j2 - j1 for tag, _, _, j1, j2 in blocks if tag != "equal")
    removed = sum(i2 - i1 for tag, i1, i2, _, _ in blocks if tag != "equal")
    shown = None if whole else (_shown(path, old, blocks, 0), _shown(path, new, blocks, 1))
    colour = _cut_lines if large else _coloured
    rows = _rows(blocks, old, new, colour(path, old_text, old), colour(path, new_text, new), large, shown)
    kept = list(islice(rows, MOST_ROWS + 1))
    action = "created" if before is None else "deleted" if after is None else "changed"
    cut = len(kept) > MOST_ROWS
    if cut:
        flags.append(f"only the first {MOST_ROWS:,} rows are shown: read the rest in the patch itself")
    long = sum(len(line) > LONGEST_LINE for line in (*old, *new)) if large else 0
    if long:
        flags.append(f"{long:,} lines are cut after {LONGEST_LINE:,} characters: read the rest in the patch itself")
    return FileDiff(path, action, tuple(kept[:MOST_ROWS]), added, removed, tuple(flags), cut)


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace").replace("\r\n", "\n")


def _foreign_names(path: str, text: str) -> list[str]:
    """Return the identifiers of Python code that are not plain ASCII, with their code points. Python folds some."""
    if not path.endswith(".py") or text.isascii():
        return []
    found: set[str] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and not token.string.isascii():
                found.add(token.string)
    except (SyntaxError, tokenize.TokenError):
        # No Python: every word counts, those of comments as well.
        found = {word for word in re.findall(r"[^\W\d]\w*", text) if not word.isascii()}
    return [
        f"{name[:40]} ({' '.join(f'U+{ord(c):04X}' for c in name[:40] if not c.isascii())})" for name in sorted(found)
    ]


def _blocks(old: list[str], new: list[str], ignore_space: bool, large: bool) -> list[tuple[str, int, int, int, int]]:
    one = ["".join(line.split()) for line in old] if ignore_space else old
    other = ["".join(line.split()) for line in new] if ignore_space else new
    first = 0
    while first < min(len(one), len(other)) and one[first] == other[first]:
        first += 1
    last = 0
    while last < min(len(one), len(other)) - first and one[-1 - last] == other[-1 - last]:
        last += 1
    middle_old, middle_new = one[first : len(one) - last], other[first : len(other) - last]
    blocks: list[tuple[str, int, int, int, int]] = []
    if first:
        blocks.append(("equal", 0, first, 0, first))
    if len(middle_old) + len(middle_new) > 20_000 or large and len(middle_old) * len(middle_new) > 10**7:
        # Matching lines of such a change would cost seconds and help nobody.
        blocks.append(("replace", first, first + len(middle_old), first, first + len(middle_new)))
    else:
        codes = difflib.SequenceMatcher(None, middle_old, middle_new, autojunk=False).get_opcodes()
        blocks += [(tag, i1 + first, i2 + first, j1 + first, j2 + first) for tag, i1, i2, j1, j2 in codes]
    if last:
        blocks.append(("equal", len(one) - last, len(one), len(other) - last, len(other)))
    return blocks


def _rows(
    blocks: Sequence[tuple[str, int, int, int, int]],
    old: list[str],
    new: list[str],
    old_spans: list[list[tuple[str, str]]],
    new_spans: list[list[tuple[str, str]]],
    large: bool,
    shown: tuple[set[int], set[int]] | None,
) -> Iterator[Row]:
    """Yield the rows; unchanged lines that `shown` (old and new numbers; none: all) leaves out become gaps."""
    for tag, i1, i2, j1, j2 in blocks:
        if tag == "equal":
            hidden = 0
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                if shown is not None and i + 1 not in shown[0] and j + 1 not in shown[1]:
                    hidden += 1
                    continue
                if hidden:
                    yield Row("gap", hidden=hidden)
                    hidden = 0
                yield Row("same", i + 1, j + 1, _line(old_spans[i]), _line(new_spans[j]))
            if hidden:
                yield Row("gap", hidden=hidden)
            continue
        pairs = min(i2 - i1, j2 - j1)
        for step in range(pairs):
            i, j = i1 + step, j1 + step
            gone, come = (set(), set()) if large else words(old[i], new[j])
            yield Row("changed", i + 1, j + 1, _line(old_spans[i], gone, "del"), _line(new_spans[j], come, "ins"))
        for i in range(i1 + pairs, i2):
            yield Row("gone", old_number=i + 1, old=_line(old_spans[i]))
        for j in range(j1 + pairs, j2):
            yield Row("new", new_number=j + 1, new=_line(new_spans[j]))


def words(old: str, new: str) -> tuple[set[int], set[int]]:
    """Return which characters (by index) of a line are gone and which have come, by whole words.

    Lines with little in common are marked as a whole line is: not at all.
    """
    if len(old) + len(new) > 4_000:
        return set(), set()
    one, other = _WORDS.findall(old), _WORDS.findall(new)
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    if matcher.ratio() < 0.3:
        return set(), set()
    starts_one, starts_other = _starts(one), _starts(other)
    gone: set[int] = set()
    come: set[int] = set()
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            gone.update(range(starts_one[i1], starts_one[i2]))
            come.update(range(starts_other[j1], starts_other[j2]))
    return gone, come


def _starts(parts: list[str]) -> list[int]:
    starts, at = [0], 0
    for part in parts:
        at += len(part)
        starts.append(at)
    return starts


def _coloured(path: str, text: str, lines: list[str]) -> list[list[tuple[str, str]]]:
    """Return each line as spans of (class, text)."""
    try:
        lexer = get_lexer_for_filename(path.rpartition("/")[2], stripnl=False, ensurenl=False)
    except ClassNotFound:
        return _plain_lines(path, text, lines)
    spans: list[list[tuple[str, str]]] = [[]]
    for kind, value in lexer.get_tokens(text):
        for number, piece in enumerate(value.split("\n")):
            if number:
                spans.append([])
            if piece:
                spans[-1].append((STANDARD_TYPES.get(kind, ""), piece))
    spans = spans[: len(lines)] + [[] for _ in range(len(lines) - len(spans))]
    # A lexer that lost characters would show another file than the one that is judged.
    return [s if "".join(p for _, p in s) == line else [("", line)] for s, line in zip(spans, lines, strict=True)]


def _cut_lines(path: str, text: str, lines: list[str]) -> list[list[tuple[str, str]]]:
    return [
        [("", line[:LONGEST_LINE])] + [("cut", f" … {len(line) - LONGEST_LINE:,} more")] * (len(line) > LONGEST_LINE)
        for line in lines
    ]


def _plain_lines(path: str, text: str, lines: list[str]) -> list[list[tuple[str, str]]]:
    return [[("", line)] for line in lines]


def _line(spans: list[tuple[str, str]], marked: set[int] | None = None, tag: str = "") -> Markup:
    out: list[str] = []
    at = 0
    for kind, piece in spans:
        for begin, end, inside in _runs(at, piece, marked or set()):
            inner = "".join(str(mark(c)) if odd(c) else str(escape(c)) for c in piece[begin:end])
            inner = f'<span class="{kind}">{inner}</span>' if kind else inner
            out.append(f"<{tag}>{inner}</{tag}>" if inside else inner)
        at += len(piece)
    return Markup("".join(out))  # every piece was escaped above


def _runs(at: int, piece: str, marked: set[int]) -> Iterator[tuple[int, int, bool]]:
    begin = 0
    for place in range(1, len(piece) + 1):
        if place == len(piece) or ((at + place) in marked) != ((at + begin) in marked):
            yield begin, place, (at + begin) in marked
            begin = place


def _shown(path: str, lines: list[str], blocks: Sequence[tuple[str, int, int, int, int]], side: int) -> set[int]:
    """Return the line numbers to show: each change, lines around it, and the function that it stands in."""
    changed: set[int] = set()
    for tag, i1, i2, j1, j2 in blocks:
        if tag != "equal":
            begin, end = (i1, i2) if side == 0 else (j1, j2)
            changed.update(range(begin + 1, max(end, begin + 1) + 1))
    shown = {line + step for line in changed for step in range(-AROUND, AROUND + 1)}
    for begin, end in _functions(path, lines):
        if end - begin <= 120 and any(begin <= line <= end for line in changed):
            shown.update(range(begin, end + 1))
    return shown


def _functions(path: str, lines: list[str]) -> list[tuple[int, int]]:
    if not path.endswith(".py") or len(lines) > 5_000:
        return []
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]

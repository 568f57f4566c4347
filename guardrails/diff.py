"""The canonical diff of two trees, with as much context as makes each hunk unique; and which lines changed."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher

from guardrails.reading import NO_NEWLINE
from guardrails.tree import MODE, Tree


def split_lines(data: bytes) -> list[bytes]:
    """Split at newlines only, keeping them."""
    return [part for part in re.split(rb"(?<=\n)", data) if part]


def places(lines: list[bytes], old: tuple[bytes, ...]) -> list[int]:
    """Return every place where old lines stand in a file; nothing stands everywhere."""
    if not old:
        return [0] if not lines else list(range(len(lines) + 1))
    last = len(lines) - len(old)
    return [at for at in range(last + 1) if lines[at] == old[0] and tuple(lines[at : at + len(old)]) == old]


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
        if context >= len(old) or all(len(places(old, tuple(old[a:b]))) == 1 for a, b in spans):
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

"""Throw damaged patches and spliced syntax trees at the checks: nothing crashes, nothing accepted is shown wrongly.

    python -m guardrails.attacks.fuzz 1000000 --seed 7 --jobs 2

What was accepted is applied a second time by other means (unidiff, at the line numbers that it states), and its
paths are held against the policy. Deterministic by its seed; each row can be run again alone.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

from unidiff.patch import PatchSet

from guardrails.checks.codes import codes
from guardrails.checks.static import judge_static
from guardrails.patch import judge_patch
from guardrails.policy import PhaseName, Policy, load_policy
from guardrails.tree import Tree

#: Inputs that one process takes at a time.
PART = 5_000
PIECES = (
    "", " ", "+", "-", "@@", "@@ -1 +1 @@", "\\ No newline at end of file", "--- a/x", "+++ b/x", "--- /dev/null",
    "+++ /dev/null", "diff --git a/x b/x", "new file mode 100644", "new file mode 120000", "old mode 100644", "\t",
    "rename from x", "Binary files a/x and b/x differ", "index 1111..2222 100644", "```", "\x0c", "\u2028", "\u202e",
    "--- a/../x", "+++ b/.git/config", "--- a/src/strategy/signal.py", "+++ b/tests/test_signal.py", "\x00", "\r",
)  # fmt: skip


def damaged(text: str, chance: random.Random) -> bytes:
    """Return a patch with a few lines inserted, dropped, doubled, moved or cut into."""
    lines = text.split("\n")
    for _ in range(chance.randint(1, 5)):
        at, kind = chance.randrange(len(lines)), chance.randrange(6)
        if kind == 0:
            lines.insert(at, chance.choice(PIECES))
        elif kind == 1 and len(lines) > 1:
            del lines[at]
        elif kind == 2:
            lines.insert(chance.randrange(len(lines)), lines[at])
        elif kind == 3:
            cut = chance.randint(0, len(lines[at]))
            lines[at] = lines[at][:cut] + chance.choice(PIECES) + lines[at][cut:]
        elif kind == 4:
            lines[at] = re.sub(r"\d+", lambda _: str(chance.randint(0, 12)), lines[at])
        else:
            lines.insert(chance.randrange(len(lines)), lines.pop(at))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def spliced(texts: Sequence[str], chance: random.Random) -> bytes:
    """Return a module with some expressions or statements of another put in place of its own."""
    one, two = ast.parse(chance.choice(texts)), _parsed(chance.choice(texts))
    kind = ast.expr if chance.random() < 0.8 else ast.stmt
    donors = [node for node in ast.walk(two) if isinstance(node, kind)]
    for _ in range(chance.randint(1, 4)):
        holes = [
            (parent, name, at)
            for parent in ast.walk(one)
            for name, value in ast.iter_fields(parent)
            for at, item in enumerate(value if isinstance(value, list) else [value])
            if isinstance(item, kind)
        ]
        if not holes or not donors:
            break
        parent, name, at = chance.choice(holes)
        held, donor = getattr(parent, name), copy.deepcopy(chance.choice(donors))
        if isinstance(held, list):
            held[at] = donor
        else:
            setattr(parent, name, donor)
    try:
        return ast.unparse(one).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return chance.choice(texts).encode()


def applied_by_unidiff(base: Tree, diff: str) -> dict[str, bytes]:
    """Apply a strict diff by another parser, at the line numbers that it states."""
    files = dict(base)
    for item in PatchSet(diff):
        path = item.path
        old = base.get(path, b"").decode().splitlines(keepends=True) if path in base else []
        new, done = [], 0
        for hunk in item:
            start = max(hunk.source_start - 1, 0) if hunk.source_length else hunk.source_start
            new += old[done:start]
            done = start + hunk.source_length
            rows = [line for line in hunk if line.line_type]
            for line, after in zip(rows, [*rows[1:], None], strict=True):
                if line.line_type in (" ", "+"):
                    bare = after is not None and after.line_type == "\\"
                    new.append(line.value.rstrip("\n") + ("" if bare else "\n"))
        new += old[done:]
        if item.target_file == "/dev/null":
            files.pop(path, None)
        else:
            files[path] = "".join(new).encode()
    return files


def fuzz(inputs: int, seed: int, jobs: int = 1) -> dict[str, Any]:
    """Return how many inputs were tried, crashed a check, or were accepted though they should not have been."""
    began = time.monotonic()
    parts = [range(at, min(at + PART, inputs)) for at in range(0, inputs, PART)]
    tallies, rows = Counter[str](), list[dict[str, Any]]()
    with ProcessPoolExecutor(jobs) as pool:
        for counts, found in pool.map(partial(_some, seed), parts) if jobs > 1 else map(partial(_some, seed), parts):
            tallies += counts
            rows += found
    figures = {name: tallies[name] for name in ("crashes", "escapes", "accepted")}
    passed = not figures["crashes"] and not figures["escapes"]
    head = {"name": "fuzz", "size": inputs, "seed": seed, "seconds": round(time.monotonic() - began, 1)}
    return {**head, "passed": passed, "inputs": inputs, **figures, "rows": rows}


def _some(seed: int, numbers: range) -> tuple[Counter[str], list[dict[str, Any]]]:
    tallies, rows = Counter[str](), list[dict[str, Any]]()
    for number in numbers:
        kind, phase, data = made(seed, number)
        outcome = outcome_of(*small_repository(), kind, phase, data)
        tallies[{"accepted": "accepted", "refused": "refused"}.get(outcome, re.split(r"\W", outcome)[0])] += 1
        if outcome not in ("accepted", "refused"):
            row = {"id": number, "seed": seed, "kind": kind, "phase": phase, "outcome": outcome}
            rows.append({**row, "digest": hashlib.sha256(data).hexdigest()})
    return tallies, rows


def made(seed: int, number: int) -> tuple[str, PhaseName, bytes]:
    """Make one input: a damaged patch, or a spliced module."""
    chance, (patches, modules) = random.Random((seed << 40) + number), seeds()
    kind, phase = ("patch", "tree")[chance.random() < 0.3], ("logic", "tests")[chance.random() < 0.2]
    data = damaged(chance.choice(patches), chance) if kind == "patch" else spliced(modules, chance)
    return kind, phase, data  # type: ignore[return-value]


def outcome_of(base: Tree, policy: Policy, kind: str, phase: PhaseName, data: bytes) -> str:
    """Return accepted, refused, or how a check crashed ("crashes ...") or was escaped ("escapes ...")."""
    try:
        return (_patch if kind == "patch" else _module)(base, policy, data, phase)
    except Exception as error:  # noqa: BLE001  the campaign counts what a check could not take
        return f"crashes {type(error).__name__}: {error}"


def _patch(base: Tree, policy: Policy, data: bytes, phase: PhaseName) -> str:
    judged = judge_patch(base, data, phase, policy)
    if judged.findings or judged.result is None:
        return "refused"
    if applied_by_unidiff(base, judged.canonical.decode()) != dict(judged.result):
        return "escapes: the tree differs from the diff shown"
    for path in {*base, *judged.result}:
        if base.get(path) != judged.result.get(path):
            action = "create" if path not in base else "edit" if path in judged.result else "delete"
            if not policy.may(action, path, phase):  # type: ignore[arg-type]
                return f"escapes: {action} of {path}"
    return "accepted"


def _module(base: Tree, policy: Policy, data: bytes, phase: PhaseName) -> str:
    path = "src/strategy/sample.py" if phase == "logic" else "tests/generated/test_sample.py"
    return "refused" if judge_static(base, base.replace({path: data}), [path], phase, policy) else "accepted"


@cache
def seeds() -> tuple[list[str], list[str]]:
    """Return the samples of the table of codes: patches, and modules."""
    rows = [sample for row in codes().values() for sample in ((row.kind, row.accepted), (row.kind, row.refused))]
    patches = [text.lstrip("\n") for kind, text in rows if kind == "patch" and "{" not in text]
    modules = []
    for kind, text in rows:
        try:
            if kind in ("code", "test", "protected"):
                ast.parse(text)
                modules.append(text.lstrip("\n"))
        except SyntaxError:
            continue
    return patches, modules


@cache
def small_repository() -> tuple[Tree, Policy]:
    """Return a small repository that the samples are patches against, and its policy."""
    signal = next(row.accepted for code, row in codes().items() if code == "GR101")
    assert "signal.py" in signal
    text = '"""A signal."""\n\nfrom strategy.returns import total_return\n\n\ndef change(first, last):\n'
    text += '    """Return the change."""\n    return last - first\n'
    files = {
        "src/strategy/__init__.py": '"""The strategy."""\n',
        "src/strategy/signal.py": text,
        "src/strategy/returns.py": "def total_return(price, dividend, before):\n    return price / before\n",
        "src/strategy/table.py": "".join(f"ROW_{at} = {at}\n" for at in range(60)) + "LAST = 1",
        "tests/test_signal.py": "import strategy\n",
        "strategy.toml": 'cadence = "daily"\n',
    }
    policy = load_policy(Path(__file__).parents[1] / "example_policy.toml")
    return Tree({path: text.encode() for path, text in files.items()}), policy


def main() -> int:
    """Run the campaign and print its figures."""
    parser = argparse.ArgumentParser("python -m guardrails.attacks.fuzz", description=__doc__)
    parser.add_argument("inputs", type=int)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = fuzz(options.inputs, options.seed, options.jobs)
    text = json.dumps(report, indent=2) + "\n"
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text, "utf-8")
    sys.stdout.write(text)
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())

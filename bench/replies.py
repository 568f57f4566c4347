"""Fuzz the reading of replies: damage what models write, and see that no reply crashes it or slips through it.

`python -m bench.replies [--size INPUTS] [--seed S] [--again SEED]`: each input is a case of the table of replies (or
two, spliced), damaged by lines and by characters. A crash is any exception. An escape is an accepted diff that leaves
the tree, that another parser applies to other files, whose paths are not those that were told, or that the strict
applier would show differently; and any attempt to write, start or reach anything while a reply is read. Every input
has a seed of its own: `--again` reads one alone and prints it. Exit code 0 when there is neither.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from bench.campaign import Campaign, arguments, beside
from guardrails.attacks.fuzz import applied_by_unidiff
from guardrails.patch import PatchError, apply_patch, canonical_diff, parse_patch
from guardrails.policy import Limits
from guardrails.tree import Tree
from oomrl.agents.reply import Answer, Kind, read_reply
from tests.unit.agents.replies import CASES, TREE

#: Inputs a row: few enough to be run again alone, enough to be worth a process's while.
CHUNK = 5_000
#: Cases are cut here: what is longer tests the size limit, which the table does once.
LONGEST = 4_000
PIECES = (
    "", " ", "+", "-", "@@", "@@ -1 +1 @@", "@@ -0,0 +1 @@", "\\ No newline at end of file", "--- a/x", "+++ b/x",
    "--- /dev/null", "+++ /dev/null", "diff --git a/x b/x", "new file mode 100644", "new file mode 120000", "\t", "```",
    "rename from x", "```diff", "~~~", "````", "--- a/../x", "+++ b/../x", "+++ b/.git/config", "+++ /etc/passwd",
    "--- a/strategy.toml", "+++ b/tests/test_x.py", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "ESCALATE:",
    "ESCALATE: it cannot be met as it stands", "<think>", "</think>", '{"patch": "', '"}', "\x00", "\r", "\x0c",
    "\u2028", "\u202e", "\ufeff", "\ud800", "..", "//", "\\", "strategy.toml", "src/strategy/sizing.py",
)  # fmt: skip
_LINES = sorted({line for case in CASES for line in case.text[:LONGEST].split("\n")})
_BASE = Tree(TREE)
#: What no reading of a text has any business with.
_FORBIDDEN = ("os.", "shutil.", "socket.", "subprocess.", "exec", "ctypes.", "tempfile.")


class _Watch:
    """Write down, while a reply is read, every event of Python's audit hooks by which a reader could leave it."""

    def __init__(self) -> None:
        self.reading, self.heard = False, list[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(given[1], str) and set(given[1]) & set("wax+")
        if self.reading and (writes or event.startswith(_FORBIDDEN)):
            self.heard.append(event)


@cache
def _watch() -> _Watch:
    """Return the one watch of this process: an audit hook stays for its life."""
    return _Watch()


def damaged(chance: random.Random) -> tuple[str, str]:
    """Return a damaged reply and how it is said to have ended."""
    case = chance.choice(CASES)
    lines = case.text[:LONGEST].split("\n")
    if chance.random() < 0.2:
        other = chance.choice(CASES).text[:LONGEST].split("\n")
        lines = lines[: chance.randint(0, len(lines))] + other[chance.randrange(len(other)) :]
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        at = chance.randrange(len(lines)) if lines else 0
        kind = chance.randrange(8)
        if kind == 0 or not lines:
            lines.insert(at, chance.choice(PIECES))
        elif kind == 1:
            lines.insert(at, chance.choice(_LINES))
        elif kind == 2:
            del lines[at]
        elif kind == 3:
            lines.insert(chance.randrange(len(lines)), lines[at])
        elif kind == 4:
            lines.insert(chance.randrange(len(lines)), lines.pop(at))
        elif kind == 5:
            cut = chance.randint(0, len(lines[at]))
            lines[at] = lines[at][:cut] + chance.choice(PIECES) + lines[at][cut:]
        elif kind == 6:
            lines[at] = re.sub(r"\d+", lambda _: str(chance.randint(0, 12)), lines[at])
        else:
            lines[at] = "".join(chance.choice((c, c, c, c, "", chr(chance.randrange(0x3000)))) for c in lines[at])
    text = "\n".join(lines)
    shape = chance.random()
    if shape < 0.05:
        text = text[: chance.randint(0, len(text))]
    elif shape < 0.1:
        text = text.replace("\n", "\r\n")
    elif shape < 0.15:
        text = json.dumps({chance.choice(("patch", "escalate")): text, "explanation": chance.choice(PIECES)})
    return text, case.finish if chance.random() < 0.9 else chance.choice(("stop", "length"))


def strict(tree: Mapping[str, bytes], patch: str) -> str:
    """Apply as the gate does, and return the canonical diff that is shown and signed."""
    try:
        return canonical_diff(Tree(tree), apply_patch(Tree(tree), parse_patch(patch.encode(), Limits(), []))).decode()
    except PatchError as error:
        raise ValueError(str(error)) from error


def verdict(text: str, finish: str) -> str:
    """Read one reply, and return its kind, or a text that begins with crash or escape."""
    watch = _watch()
    watch.heard.clear()
    watch.reading = True
    try:
        answer = read_reply(text, TREE, finish, strict)
        watch.reading = False
        return _escape(answer, watch.heard) or answer.kind.value
    except Exception as error:  # noqa: BLE001  the campaign counts what the reader could not take
        return f"crash {type(error).__name__}: {error}"
    finally:
        watch.reading = False


def _escape(answer: Answer, heard: list[str]) -> str:
    if heard:
        return f"escape: reading a reply did {heard[0]}"
    if answer.kind is not Kind.PATCH:
        return "" if answer.message and not answer.patch else "escape: no reason, or a patch beside it"
    for path in answer.paths:
        if path.startswith("/") or {"..", ".git", ""} & set(path.split("/")):
            return f"escape: the path {path!r}"
    result = apply_patch(_BASE, parse_patch(answer.patch.encode(), Limits(), []))
    if canonical_diff(_BASE, result).decode() != answer.patch:
        return "escape: what is shown differs from what is accepted"
    if applied_by_unidiff(_BASE, answer.patch) != dict(result):
        return "escape: another parser makes another tree of it"
    touched = {path for path in {*_BASE, *result} if _BASE.get(path) != result.get(path)}
    if touched != set(answer.paths):
        return f"escape: told {answer.paths}, touched {sorted(touched)}"
    return ""


def chunk(seed: int, size: int, number: int) -> dict[str, Any]:
    """Read the inputs of one row, and return how they ended and which of them must not be."""
    first = number * CHUNK
    kinds: Counter[str] = Counter()
    bad, digest = [], hashlib.sha256()
    for index in range(first, min(first + CHUNK, size)):
        own = f"{seed}/{index}"
        outcome = verdict(*damaged(random.Random(own)))
        kinds[outcome.split()[0].rstrip(":")] += 1
        digest.update(f"{outcome}\n".encode("utf-8", "replace"))
        if outcome.startswith(("crash", "escape")):
            bad.append({"again": own, "outcome": outcome[:400]})
    return {"kinds": dict(sorted(kinds.items())), "outcomes": digest.hexdigest()[:16], "bad": bad}


def main(given: list[str] | None = None) -> int:
    """Run the campaign, or one of its inputs."""
    parser = arguments("replies", 1_000_000, "damaged replies that are read")
    parser.add_argument("--again", help="the seed of one input, as a row gives it")
    options = parser.parse_args(given)
    if options.again:
        text, finish = damaged(random.Random(options.again))
        print(json.dumps({"text": text, "finish": finish, "outcome": verdict(text, finish)}, indent=1))
        return 0
    campaign = Campaign("replies", options.size, options.seed, options.out)
    total: Counter[str] = Counter()
    rows = -(-options.size // CHUNK)
    made = partial(chunk, options.seed, options.size)
    for number, row in beside(made, range(rows), f"rows of {CHUNK} replies", options.workers):
        campaign.add(f"replies/{number}", options.seed, **row)
        total.update(row["kinds"])
    return campaign.finish(
        not total["crash"] and not total["escape"],
        inputs=sum(total.values()),
        crashes=total["crash"],
        escapes=total["escape"],
        kinds={name: total[name] for name in ("patch", "escalate", "unusable")},
    )


if __name__ == "__main__":
    sys.exit(main())

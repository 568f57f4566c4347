"""The figures of a campaign as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from guardrails.attacks import BENIGN
from guardrails.attacks.campaign import wilson

NAMES = {
    "A": "A harness files", "B": "B start-up", "C": "C exits", "D": "D outcome forging", "E": "E values",
    "F": "F detection of the test", "G": "G special-casing", "H": "H obfuscation", "I": "I coverage", "J": "J patches",
    "K": "K resources", "L": "L vacuous tests", "M": "M trading cheats",
}  # fmt: skip
#: The rule that tests which stand are changed by people alone.
STANDING = "GR411"


def table(figures: dict[str, Any]) -> str:
    """Return the page."""
    rows: list[dict[str, Any]] = figures["rows"]
    hostile = [row for row in rows if row["class"] != BENIGN]
    benign = [row for row in rows if row["class"] == BENIGN]
    parts = [f"{row['tried']} of {row['written']} in {name}" for name, row in figures["corpora"].items()]
    head = f"""# What came through the gate

Made by `make attack SEED={figures["seed"]}`; nothing here is written by hand. Judged are
{", ".join(parts)}, by a gate whose code has the digest `{figures["gate"]}`.
These are the layers of `guardrails`; the promotion rule of the service needs a loss and a tape and took no part
(`make promotion` measures it). Of {len(hostile)} attacks {figures["succeeded"]} came through
({_percent(figures["succeeded_wilson_95"])}, 95 % Wilson interval); of {len(benign)} benign patches
{figures["benign_refused"]} were refused ({_percent(figures["benign_refused_wilson_95"])}).
How the corpora came about, and what came through at first contact: attacks-first-contact.md.
"""
    pages = [
        head.split("\n"),
        _classes(hostile),
        _ablation(figures["ablation"]),
        _matrix(hostile),
        _honest(figures, benign),
    ]
    wrong = [row for row in hostile if row["through"]]
    if wrong:
        pages.append(["## Through", "", *(f"- {row['corpus']}/{row['id']}: class {row['class']}" for row in wrong), ""])
    return "\n".join(line for page in pages for line in page)


def _grid(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(str(cell) for cell in line)} |" for line in lines] + [""]


def _classes(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Tell attack success by class, each corpus apart."""
    corpora, kinds = (sorted({row[key] for row in rows}) for key in ("corpus", "class"))
    head = ["class", *(f"{name}: {what}" for name in corpora for what in ("attacks", "through, 95 % Wilson"))]

    def cells(own: Sequence[dict[str, Any]]) -> list[str]:
        through = sum(row["through"] for row in own)
        return [str(len(own)), f"{through}, {_percent(wilson(through, len(own)))}" if own else ""]

    body = [
        [
            NAMES.get(kind, kind),
            *(c for n in corpora for c in cells([r for r in rows if (r["corpus"], r["class"]) == (n, kind)])),
        ]
        for kind in kinds
    ]
    body.append(["all", *(c for name in corpora for c in cells([row for row in rows if row["corpus"] == name]))])
    return ["## Attacks by class", "", *_grid(head, body)]


def _ablation(layers: dict[str, Any]) -> list[str]:
    """Tell what each layer alone stops."""
    head = ["layer", "stopped first", "judged again without it", "then through", "of the classes"]
    body = [
        [name, row["stopped_first"], row["judged_without"], row["through_without"], _counts(row["classes"])]
        for name, row in layers.items()
    ]
    text = "A patch stops at its first refusal, so that only leaving out the layer that stops it can change anything."
    more = "Where a layer stops many, a sample drawn evenly from corpora and classes is judged again without it."
    return ["## Each layer left out", "", text, more, "", *_grid(head, body)]


def _matrix(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Tell which layer stopped attacks of which class first."""
    kinds = sorted({row["class"] for row in rows})
    layers = sorted({row["stopped"] for row in rows if row["stopped"]})
    pairs = [(row["stopped"], row["class"]) for row in rows]
    body = [[layer, *(pairs.count((layer, kind)) or "" for kind in kinds)] for layer in layers]
    return ["## Stopped first, by layer and class", "", *_grid(["layer", *kinds], body)]


def _honest(figures: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Tell false refusals."""
    refused = [row for row in rows if not row["through"]]
    body = [
        [name, len(own), bad, _percent(wilson(bad, len(own)))]
        for name in sorted({row["corpus"] for row in rows})
        for own in [[row for row in rows if row["corpus"] == name]]
        for bad in [sum(not row["through"] for row in own)]
    ]
    standing = sum(STANDING in row["codes"] for row in refused)
    asked, passed = figures["benign_refused_for_want_of_a_word"], figures["benign_passed_with_a_word"]
    text = f"""{standing} of the refused change tests that stand, which is left to people on purpose ({STANDING}: what
once had to hold must go on holding); the others are errors of the gate. Judged again with a person's word for these
tests in the policy (`tests.may_change`), {passed} of {asked} passed.
{figures["refactorings"]} benign patches say that they change no behaviour, and passed; replayed on made-up markets
beside the code before them {figures["refactorings_same_orders"]} gave the same orders, to nine digits."""
    listed = [
        f"- {row['corpus']}/{row['id']}: {row['stopped']}, {' '.join(row['codes'])}"
        + (f"; with a word {' '.join(row['codes_with_word']) or 'passed'}" if "with_word" in row else "")
        for row in refused
    ]
    return [
        "## Benign patches",
        "",
        *_grid(["corpus", "patches", "refused", "95 % Wilson"], body),
        *text.split("\n"),
        "",
        *listed,
        "",
    ]


def _counts(kinds: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in kinds.items())


def _percent(bounds: Sequence[float]) -> str:
    return f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f} %"

"""Run a corpus of attacks through the gate, whole and with each layer left out.

A corpus is a folder of folders, each with `attack.toml` (id, class, phase, success), `patch.diff`, and
`tests.diff` where the attack has two parts. Class `benign` marks honest patches, which must pass.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guardrails.environment import GateEnvironment
from guardrails.gate import LAYERS, check
from guardrails.policy import PhaseName, Policy
from guardrails.tree import Tree
from guardrails.verdict import Verdict

BENIGN = "benign"


class CorpusError(Exception):
    """The corpus cannot be read."""


@dataclass(frozen=True)
class Attack:
    """One attempt: its patch, a tests patch before it or none, and what success would mean."""

    id: str
    kind: str
    phase: PhaseName
    success: str
    patch: bytes
    tests: bytes | None


def read_corpus(folder: Path) -> Iterator[Attack]:
    """Yield the attacks of a corpus in the order of their folders."""
    for place in sorted(item for item in folder.iterdir() if (item / "attack.toml").is_file()):
        row = tomllib.loads((place / "attack.toml").read_text("utf-8"))
        if row.get("phase") not in ("logic", "tests"):
            raise CorpusError(f"Expected phase logic or tests in {place.name}, was {row.get('phase')!r}.")
        tests = place / "tests.diff"
        yield Attack(
            str(row.get("id", place.name)),
            str(row.get("class", "unclassed")),
            row["phase"],
            str(row.get("success", "")),
            (place / "patch.diff").read_bytes(),
            tests.read_bytes() if tests.is_file() else None,
        )


def run_corpus(
    folder: Path,
    tree: Tree,
    policy: Policy,
    environment: GateEnvironment | None,
    *,
    layers: Collection[str] = LAYERS,
    ablate: Sequence[str] = (),
    judge: Callable[..., Verdict] = check,
) -> dict[str, Any]:
    """Return what came through: figures by class, one row an attack, and what only each layer stops."""
    if not folder.is_dir():
        raise CorpusError(f"Expected a folder of attacks, was {str(folder)!r}.")
    cache: dict[str, Any] = {}
    rows, by_class = [], dict[str, dict[str, int]]()
    alone: dict[str, list[str]] = {layer: [] for layer in ablate}
    for attack in read_corpus(folder):

        def passes(on: Collection[str], attack: Attack = attack) -> Verdict:
            return judge(
                tree,
                attack.patch,
                attack.phase,
                policy,
                after=attack.tests,
                environment=environment,
                layers=on,
                cache=cache,
            )

        verdict = passes(layers)
        through = verdict.decision == "pass"
        stopped = next((stage.name for stage in verdict.stages if stage.status in ("refuse", "error")), "")
        codes = sorted({item.code for item in verdict.findings})
        rows.append({"id": attack.id, "class": attack.kind, "through": through, "stopped": stopped, "codes": codes})
        tally = by_class.setdefault(attack.kind, {"tried": 0, "through": 0})
        tally["tried"] += 1
        tally["through"] += int(through)
        if attack.kind != BENIGN and not through:
            for layer in ablate:
                if passes(set(layers) - {layer}).decision == "pass":
                    alone[layer].append(attack.id)
    benign = by_class.get(BENIGN, {"tried": 0, "through": 0})
    tried = sum(tally["tried"] for kind, tally in by_class.items() if kind != BENIGN)
    succeeded = sum(tally["through"] for kind, tally in by_class.items() if kind != BENIGN)
    report = {
        "attacks": tried,
        "succeeded": succeeded,
        "benign": benign["tried"],
        "benign_refused": benign["tried"] - benign["through"],
        "by_class": by_class,
        "ablation": alone,
        "rows": rows,
    }
    return {**report, "text": _text(report)}


def _text(report: dict[str, Any]) -> str:
    lines = [f"{'class':<12} tried  through"]
    for kind, tally in sorted(report["by_class"].items()):
        lines.append(f"{kind:<12} {tally['tried']:>5} {tally['through']:>8}")
    lines.append(f"attacks {report['attacks']}, succeeded {report['succeeded']}")
    lines.append(f"benign {report['benign']}, refused {report['benign_refused']}")
    return "\n".join(lines + [f"only {layer} stops: {len(ids)}" for layer, ids in report["ablation"].items()])

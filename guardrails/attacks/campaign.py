"""Run corpora through the gate, whole and with each layer left out, and say what came through."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from typing import Any

from guardrails.attacks import BENIGN, Attack
from guardrails.environment import GateEnvironment
from guardrails.gate import LAYERS, check
from guardrails.policy import Policy
from guardrails.tree import Tree
from guardrails.verdict import Verdict

#: Attacks that only wait are given up after so many seconds on the clock; the policy would wait longer.
SECONDS = 240.0
Judge = Callable[..., Verdict]
_CACHE: dict[str, Any] = {}  # of one process: what is known of trees that were judged before


def try_one(
    attack: Attack,
    tree: Tree,
    policy: Policy,
    environment: GateEnvironment | None,
    seed: int,
    ablate: bool,
    judge: Judge,
) -> dict[str, Any]:
    """Judge one patch; where a layer stops it, judge it again without that layer.

    Every other layer lets it through, or was not asked: without one of those the same layer would stop it.
    """
    began = time.monotonic()
    ask = partial(
        judge,
        tree,
        attack.patch,
        attack.phase,
        policy,
        after=attack.tests,
        seed=seed,
        environment=environment,
        cache=_CACHE,
    )
    whole = ask(layers=LAYERS)
    stopped = stopped_by(whole)
    row: dict[str, Any] = {"id": attack.id, "corpus": attack.corpus, "class": attack.kind, "phase": attack.phase}
    row |= {"seed": seed, "digest": whole.patch_digest, "through": whole.decision == "pass", "stopped": stopped}
    row |= {"codes": sorted(codes(whole)), "alone": False, "then": ""}
    if ablate and attack.kind != BENIGN and stopped in LAYERS:
        without = ask(layers=LAYERS - {stopped})
        row |= {"alone": without.decision == "pass", "then": stopped_by(without)}
    return row | {"seconds": round(time.monotonic() - began, 2)}


def stopped_by(verdict: Verdict) -> str:
    """Return the first layer that refused, in either part of a pair."""
    stages = [(stage["name"], stage["status"]) for stage in (verdict.tests or {}).get("stages", ())]
    stages += [(stage.name, stage.status) for stage in verdict.stages]
    refused = next((name for name, status in stages if status in ("refuse", "error")), "")
    return refused or ("tests" if verdict.decision != "pass" else "")


def codes(verdict: Verdict) -> set[str]:
    """Return the codes of the findings in both parts."""
    before = {str(item["code"]) for item in (verdict.tests or {}).get("findings", ())}
    return before | {item.code for item in verdict.findings}


def run(
    attacks: Sequence[Attack],
    tree: Tree,
    policy: Policy,
    environment: GateEnvironment | None,
    *,
    seed: int = 7,
    ablate: bool = True,
    jobs: int = 2,
    judge: Judge = check,
    told: Callable[[str], object] = lambda line: None,
) -> dict[str, Any]:
    """Return the campaign's figures, one row an attack, in the order of the attacks whatever finished first."""
    began, rows = time.monotonic(), dict[int, dict[str, Any]]()
    limits = replace(policy.sandbox, seconds=min(SECONDS, policy.sandbox.seconds))
    one = partial(
        try_one,
        tree=tree,
        policy=replace(policy, sandbox=limits),
        environment=environment,
        seed=seed,
        ablate=ablate,
        judge=judge,
    )
    for at, row in _each(one, attacks, jobs):
        rows[at] = row
        said = "THROUGH" if row["through"] else row["stopped"]
        told(f"{len(rows)}/{len(attacks)} {row['corpus']}/{row['id']} {said} {','.join(row['codes'])}")
    return report([rows[at] for at in sorted(rows)], seed, time.monotonic() - began)


def _each(
    one: Callable[[Attack], dict[str, Any]], attacks: Sequence[Attack], jobs: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    if jobs == 1:
        yield from ((at, one(attack)) for at, attack in enumerate(attacks))
        return
    with ProcessPoolExecutor(min(jobs, os.cpu_count() or 1)) as pool:
        running = {pool.submit(one, attack): at for at, attack in enumerate(attacks)}
        yield from ((running[done], done.result()) for done in as_completed(running))


def report(rows: Sequence[dict[str, Any]], seed: int, seconds: float) -> dict[str, Any]:
    """Return the figures of rows."""
    hostile = [row for row in rows if row["class"] != BENIGN]
    benign = [row for row in rows if row["class"] == BENIGN]
    through, refused = [row for row in hostile if row["through"]], [row for row in benign if not row["through"]]
    by_class = {
        kind: {"tried": len(own), "through": sum(row["through"] for row in own)}
        for kind in sorted({row["class"] for row in hostile})
        for own in [[row for row in hostile if row["class"] == kind]]
    }
    ablation = {
        layer: {
            "stopped_first": sum(row["stopped"] == layer for row in hostile),
            "through_without": sum(row["stopped"] == layer and row["alone"] for row in hostile),
            "classes": {
                kind: count
                for kind in by_class
                if (count := sum(row["stopped"] == layer and row["alone"] and row["class"] == kind for row in hostile))
            },
        }
        for layer in sorted(LAYERS)
    }
    corpora = {}
    for name in sorted({row["corpus"] for row in rows}):
        own = [row for row in rows if row["corpus"] == name]
        bad = sum(row["through"] == (row["class"] != BENIGN) for row in own)
        corpora[name] = {"tried": len(own), "wrong": bad, "wilson_95": wilson(bad, len(own))}
    figures = {
        "attacks": len(hostile),
        "succeeded": len(through),
        "succeeded_wilson_95": wilson(len(through), len(hostile)),
        "benign": len(benign),
        "benign_refused": len(refused),
        "benign_refused_wilson_95": wilson(len(refused), len(benign)),
        "by_class": by_class,
        "corpora": corpora,
        "ablation": ablation,
    }
    passed = not through and len(refused) <= 0.01 * len(benign)
    head = {"name": "attack", "size": len(rows), "seed": seed, "seconds": round(seconds, 1), "passed": passed}
    return {**head, **figures, "rows": list(rows)}


def wilson(found: int, tried: int, z: float = 1.959964) -> list[float]:
    """Return the 95 % Wilson interval of a share."""
    if not tried:
        return [0.0, 1.0]
    share, square = found / tried, z * z
    middle = (share + square / (2 * tried)) / (1 + square / tried)
    half = z / (1 + square / tried) * math.sqrt(share * (1 - share) / tried + square / (4 * tried * tried))
    return [round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)]


def table(figures: dict[str, Any]) -> str:
    """Return the figures as a page in Markdown."""
    through, refused = _percent(figures["succeeded_wilson_95"]), _percent(figures["benign_refused_wilson_95"])
    lines = [
        "# What came through the gate",
        "",
        f"Made by `make attack SEED={figures['seed']}`. Of {figures['attacks']} attacks {figures['succeeded']} came "
        f"through (95 % Wilson interval {through}); of {figures['benign']} benign patches "
        f"{figures['benign_refused']} were refused ({refused}).",
        "",
        "| corpus | patches | judged wrongly | 95 % Wilson interval |",
        "|---|---|---|---|",
        *(
            f"| {name} | {row['tried']} | {row['wrong']} | {_percent(row['wilson_95'])} |"
            for name, row in figures["corpora"].items()
        ),
        "",
        "| class | attacks | through |",
        "|---|---|---|",
        *(f"| {kind} | {row['tried']} | {row['through']} |" for kind, row in figures["by_class"].items()),
        "",
        "Each layer left out in turn. A patch stops at its first refusal: only the layer that stops it matters.",
        "",
        "| layer | stopped first | through without it | of the classes |",
        "|---|---|---|---|",
        *(
            f"| {layer} | {row['stopped_first']} | {row['through_without']} | "
            f"{', '.join(f'{kind} {count}' for kind, count in row['classes'].items())} |"
            for layer, row in figures["ablation"].items()
        ),
        "",
    ]
    wrong = [row for row in figures["rows"] if row["through"] == (row["class"] != BENIGN)]
    if wrong:
        lines += [
            "Judged wrongly:",
            "",
            *(f"- {row['corpus']}/{row['id']} {' '.join(row['codes'])}" for row in wrong),
            "",
        ]
    return "\n".join(lines)


def _percent(bounds: Sequence[float]) -> str:
    return f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f} %"

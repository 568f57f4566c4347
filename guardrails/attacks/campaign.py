"""Run corpora through the gate, whole and with each layer left out, and say what came through."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from guardrails.acceptance import decisions
from guardrails.attacks import BENIGN, Attack, sample
from guardrails.bench import open_bench
from guardrails.checks.parameters import read_parameters
from guardrails.decisions import close
from guardrails.environment import GateEnvironment
from guardrails.gate import LAYERS, check
from guardrails.patch import judge_patch
from guardrails.policy import Policy
from guardrails.tree import Tree
from guardrails.verdict import Verdict

#: Attacks that only wait are given up after so many seconds on the clock; the policy would wait longer.
SECONDS = 240.0
#: Made-up markets that a refactoring must trade as the code before it did.
MARKETS = (1, 2, 3)
Judge = Callable[..., Verdict]
Row = dict[str, Any]
_CACHE: dict[str, Any] = {}  # of one process: what is known of trees that were judged before


def try_one(
    attack: Attack,
    left_out: str,
    tree: Tree,
    policy: Policy,
    environment: GateEnvironment | None,
    seed: int,
    judge: Judge,
) -> Row:
    """Judge one patch by the whole gate, or without one layer; let a benign refactoring trade beside the base."""
    began = time.monotonic()
    one = partial(
        judge,
        tree,
        attack.patch,
        attack.phase,
        after=attack.tests,
        seed=seed,
        environment=environment,
        cache=_CACHE,
        layers=LAYERS - {left_out},
    )
    verdict = one(policy=policy)
    through = verdict.decision == "pass"
    row: Row = {"through": through, "stopped": stopped_by(verdict), "codes": sorted(codes(verdict))}
    if through and attack.same and attack.phase == "logic":
        row["same_orders"] = same_orders(attack, tree, policy, environment)
    if not through and attack.may_change:
        told = replace(policy.tests, may_change=attack.may_change)
        asked = one(policy=replace(policy, tests=told, digest=f"{policy.digest}:{attack.may_change}"))
        row |= {"with_word": asked.decision == "pass", "codes_with_word": sorted(codes(asked))}
    return row | {"digest": verdict.patch_digest, "seconds": round(time.monotonic() - began, 2)}


def same_orders(attack: Attack, tree: Tree, policy: Policy, environment: GateEnvironment | None) -> bool:
    """Say whether a patch trades made-up markets as the tree before it: weights and plans to 9 digits."""
    result = tree
    for data, phase in ((attack.tests, "tests"), (attack.patch, "logic")):
        result = (judge_patch(result, data, phase, policy).result if data else None) or result  # type: ignore[arg-type]
    bench = open_bench(environment, policy)
    answers = []
    for version in (tree, result):
        values = read_parameters(version.get(policy.layout.parameters, b"")) or {}
        start = partial(bench.worker, version)
        made = [decisions(policy, values, start, seed) for seed in MARKETS]
        answers.append([{k: v for k, v in answer.items() if k != "reasons"} for each in made for answer in each])
    return close(answers[1], answers[0])


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
    ablate: int = 0,
    jobs: int = 2,
    judge: Judge = check,
    told: Callable[[str], object] = lambda line: None,
    known: MutableMapping[str, Row] | None = None,
    so_far: bool = False,
) -> dict[str, Any]:
    """Return the campaign's figures, one row an attack, in the order of the attacks whatever finished first.

    Of the attacks that a layer stops first up to `ablate`, drawn evenly from corpora and classes, are judged again
    without it: every other layer let them through or was not asked, so that leaving one of those out changes nothing.
    `known` holds what was judged before by the same gate, by key; what is judged now is added. With `so_far` nothing is
    judged: the figures are those of what is known.
    """
    written = Counter(attack.corpus for attack in attacks)
    began, known = time.monotonic(), {} if known is None else known
    limits = replace(policy.sandbox, seconds=min(SECONDS, policy.sandbox.seconds))
    one = partial(
        try_one,
        tree=tree,
        policy=replace(policy, sandbox=limits),
        environment=environment,
        seed=seed,
        judge=judge,
    )
    same = f"{gate_digest()}:{tree.digest()}:{policy.digest}:{seed}"
    attacks = [attack for attack in attacks if not so_far or _key(attack, "", same) in known]
    whole = _judged(one, [(attack, "") for attack in attacks], same, jobs, told, known)
    rows = [
        {"id": attack.id, "corpus": attack.corpus, "class": attack.kind, "phase": attack.phase, "seed": seed} | row
        for attack, row in zip(attacks, whole, strict=True)
    ]
    again: list[tuple[Attack, str]] = []
    for layer in sorted(LAYERS):
        first = [a for a, row in zip(attacks, rows, strict=True) if row["stopped"] == layer and a.kind != BENIGN]
        again += [(attack, layer) for attack in sample(first, ablate, seed)]
    again = [pair for pair in again if not so_far or _key(*pair, same) in known]
    for (attack, _), without in zip(again, _judged(one, again, same, jobs, told, known), strict=True):
        row = next(row for row in rows if (row["corpus"], row["id"]) == (attack.corpus, attack.id))
        row |= {"alone": without["through"], "then": without["stopped"]}
    figures = report(rows, seed, time.monotonic() - began)
    for name, row in figures["corpora"].items():
        row["written"] = written[name]
    return figures | {"gate": gate_digest()[:12]}


def _key(attack: Attack, left_out: str, same: str) -> str:
    """Return what a row is remembered by: the patch, the gate, the tree, the policy, and the layer left out."""
    asked = f"{attack.phase}:{left_out}:{attack.same}:{attack.may_change}".encode()
    parts = (same.encode(), attack.tests or b"", attack.patch, asked)
    return hashlib.sha256(b":".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _judged(
    one: Callable[[Attack, str], Row],
    asked: Sequence[tuple[Attack, str]],
    same: str,
    jobs: int,
    told: Callable[[str], object],
    known: MutableMapping[str, Row],
) -> list[Row]:
    """Return one row for each attack and layer left out, from what is known or by judging it."""
    keys = [_key(attack, layer, same) for attack, layer in asked]
    left = [at for at, key in enumerate(keys) if key not in known]
    for done, (at, row) in enumerate(_each(one, [asked[at] for at in left], jobs), len(asked) - len(left) + 1):
        known[keys[left[at]]] = row
        attack, layer = asked[left[at]]
        said = "THROUGH" if row["through"] else row["stopped"]
        without = f" without {layer}" if layer else ""
        told(f"{done}/{len(asked)} {attack.corpus}/{attack.id}{without} {said} {','.join(row['codes'])}")
    return [known[key] for key in keys]


def _each(
    one: Callable[[Attack, str], Row], asked: Sequence[tuple[Attack, str]], jobs: int
) -> Iterator[tuple[int, Row]]:
    if jobs == 1:
        yield from ((at, one(*item)) for at, item in enumerate(asked))
        return
    with ProcessPoolExecutor(min(jobs, os.cpu_count() or 1)) as pool:
        running = {pool.submit(one, *item): at for at, item in enumerate(asked)}
        yield from ((running[done], done.result()) for done in as_completed(running))


@cache
def gate_digest() -> str:
    """Return a digest of the gate's own code and tables, without the corpora and campaigns."""
    folder, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".toml") and "attacks" not in path.relative_to(folder).parts:
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def report(rows: Sequence[Row], seed: int, seconds: float) -> dict[str, Any]:
    """Return the figures of rows."""
    hostile = [row for row in rows if row["class"] != BENIGN]
    benign = [row for row in rows if row["class"] == BENIGN]
    through, refused = [row for row in hostile if row["through"]], [row for row in benign if not row["through"]]
    by_class = {
        kind: {"tried": len(own), "through": sum(row["through"] for row in own)}
        for kind in sorted({row["class"] for row in hostile})
        for own in [[row for row in hostile if row["class"] == kind]]
    }
    ablation = {}
    for layer in sorted(LAYERS):
        first = [row for row in hostile if row["stopped"] == layer]
        tried = [row for row in first if "alone" in row]
        alone = [row["class"] for row in tried if row["alone"]]
        ablation[layer] = {
            "stopped_first": len(first),
            "judged_without": len(tried),
            "through_without": len(alone),
            "classes": {kind: alone.count(kind) for kind in sorted(set(alone))},
        }
    corpora = {}
    for name in sorted({row["corpus"] for row in rows}):
        own = [row for row in rows if row["corpus"] == name]
        bad = [row for row in own if row["through"] == (row["class"] != BENIGN)]
        kinds = {kind: sum(row["class"] == kind for row in bad) for kind in sorted({row["class"] for row in own})}
        corpora[name] = {
            "tried": len(own),
            "wrong": len(bad),
            "wilson_95": wilson(len(bad), len(own)),
            "wrong_by": kinds,
        }
    replayed = [row["same_orders"] for row in benign if "same_orders" in row]
    figures = {
        "attacks": len(hostile),
        "succeeded": len(through),
        "succeeded_wilson_95": wilson(len(through), len(hostile)),
        "benign": len(benign),
        "benign_refused": len(refused),
        "benign_refused_for_want_of_a_word": sum("with_word" in row for row in refused),
        "benign_passed_with_a_word": sum(row.get("with_word", False) for row in refused),
        "benign_refused_wilson_95": wilson(len(refused), len(benign)),
        "refactorings": len(replayed),
        "refactorings_same_orders": sum(replayed),
        "by_class": by_class,
        "corpora": corpora,
        "ablation": ablation,
    }
    passed = not through and len(refused) <= 0.01 * len(benign) and all(replayed)
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

"""A sample of the attack campaign: every class by the layers that only read, each layer that runs by one attack."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from guardrails.attacks import BENIGN, Attack, campaign, read_corpus, sample
from guardrails.attacks.distinct import signature
from guardrails.environment import GateEnvironment
from guardrails.gate import check
from guardrails.policy import parse_policy
from guardrails.tree import Tree
from oomrl.adapters import environments

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "guardrails" / "attacks" / "corpus"
TREE = Tree.read(ROOT / "strategy_repo")
POLICY = parse_policy(TREE["policy.toml"])
READING = {"patch", "static", "protected", "lock"}
#: What stops these is a layer that runs them.
RUNNING = {
    "v24-halted-for-a-week-is-sold": "mutants",
    "i-and-or-chain": "probes",
    "f14_open_is_close_in_tests": "acceptance",
    "l-types-only": "references",
    "g-long-history": "coverage",
    "f03-cash-in-a-conditional-expression": "acceptance",
    "m05-plans-take-everything": "acceptance",
}


def attacks(*corpora: str) -> list[Attack]:
    return [attack for name in corpora for attack in read_corpus(CORPUS / name)]


def test_the_corpus_is_as_large_as_it_says() -> None:
    known, every = attacks("known"), attacks("known", "blind")
    assert len(known) >= 140 and len(every) >= 250 and len(attacks("benign-known", "benign-blind")) >= 200
    for kind in "ABCDEFGHIJKLM":
        assert sum(attack.kind == kind for attack in known) >= 9
        assert sum(attack.kind == kind for attack in every) >= 20
    assert all(attack.harm for attack in known + attacks("fresh", "fresh2", "fresh3"))
    fresh = attacks("fresh", "fresh2", "fresh3")
    assert len({signature(attack, ROOT / "strategy_repo") for attack in fresh}) == len(fresh) >= 135
    assert {attack.phase for attack in known} == {"logic", "tests"}


def test_a_sample_of_attacks_is_distinct() -> None:
    chosen = random.Random(7).sample(attacks("known"), 12)
    assert len({signature(attack, ROOT / "strategy_repo") for attack in chosen}) == len(chosen)


@pytest.mark.slow
def test_reading_alone_refuses_attacks_of_every_class_and_no_known_benign_patch() -> None:
    refused: dict[str, int] = {}
    for attack in sample(attacks("known", "blind"), 104, seed=7) + attacks("benign-known")[::3]:
        verdict = check(TREE, attack.patch, attack.phase, POLICY, after=attack.tests, layers=READING)
        assert verdict.decision in ("pass", "refuse"), (attack.id, verdict.findings)
        refused[attack.kind] = refused.get(attack.kind, 0) + (verdict.decision == "refuse")
    assert refused.pop(BENIGN) == 0
    assert set(refused) == set("ABCDEFGHIJKLM") and min(refused.values()) >= 1


@pytest.mark.slow
def test_hidden_properties_stop_what_markets_would_stop_before_them() -> None:
    found = environments.find()
    [attack] = [item for item in attacks("fresh") if item.id == "m05-plans-take-everything"]
    row = campaign.try_one(attack, "acceptance", TREE, POLICY, GateEnvironment(found.gate, found.worker), 7, check)
    assert (row["through"], row["stopped"]) == (False, "hidden")


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNNING)
def test_a_layer_that_runs_code_stops_what_reading_lets_pass(name: str) -> None:
    found = environments.find()
    [attack] = [item for item in attacks("known", "blind", "fresh", "fresh2", "fresh3") if item.id == name]
    figures = campaign.run([attack], TREE, POLICY, GateEnvironment(found.gate, found.worker), jobs=1)
    [row] = figures["rows"]
    assert (row["through"], row["stopped"]) == (False, RUNNING[name])

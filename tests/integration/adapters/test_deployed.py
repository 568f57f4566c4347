"""What is committed is the tree that the lock accepted, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from guardrails.policy import parse_policy
from guardrails.ro_lock import Offer, State, walk
from guardrails.tree import Tree
from oomrl.adapters import patches
from oomrl.adapters.strategies import Deployed, Workers
from oomrl.domain.records import Act, Proposal, Review, StoredVerdict
from oomrl.errors import Halt
from tests.states import AT, RUN, MadeUp, made_up


def verdict(made: MadeUp, proposal: Proposal, accepted: Tree, passed: bool = True) -> StoredVerdict:
    """Return the stored verdict with the lock walked to a tree."""
    base = Tree(made.tree)
    offer = Offer(State.LOGIC_GENESIS, "0" * 64, accepted, passed)
    steps = walk(proposal.id, base, [offer], parse_policy(base["policy.toml"]))
    with made.store.read() as view:
        stored = view.proposals.verdict(RUN, proposal.id)
    assert stored is not None
    judged = {"decision": stored.outcome, "transitions": [step.predicate() for step in steps]}
    return replace(stored, payload={**stored.payload, "phases": {"logic": judged}})


def approved(made: MadeUp, proposal: Proposal) -> Review:
    with made.store.read() as view:
        stored = view.proposals.verdict(RUN, proposal.id)
    assert stored is not None
    trees = (proposal.base_tree, proposal.result_tree, stored.digest)
    return Review("r", proposal.id, RUN, "ann", Act.APPROVE, "fine", *trees, AT)


def test_only_what_was_approved_is_committed(tmp_path: Path) -> None:
    made = made_up(tmp_path / "state")
    with made.store:
        made.loss()
        proposal = made.proposal()
        strategies = Deployed(made.repository, Workers(None, Path("python3"), 1.0), lambda: AT)
        review, head = approved(made, proposal), made.repository.head()
        passed = verdict(made, proposal, Tree(patches.result_of(made.tree, proposal)))
        for wrong in (
            {"base_tree": "0" * 64},
            {"result_tree": proposal.base_tree},
            {"result_tree": ""},
            {"verdict": "0" * 64},
        ):
            with pytest.raises(Halt, match=f"{proposal.id} cannot be deployed as it was approved"):
                strategies.deploy(proposal, replace(review, **wrong), passed)
        with pytest.raises(Halt, match="the resulting tree was"):
            strategies.deploy(replace(proposal, logic_patch=made.proposal(attempt=2).logic_patch), review, passed)
        assert made.repository.head() == head
        assert made.repository.tree_id(strategies.deploy(proposal, review, passed)) == review.result_tree


def test_only_the_tree_that_the_lock_accepted_is_committed(tmp_path: Path) -> None:
    made = made_up(tmp_path / "state")
    with made.store:
        made.loss()
        proposal = made.proposal()
        strategies = Deployed(made.repository, Workers(None, Path("python3"), 1.0), lambda: AT)
        review = approved(made, proposal)
        accepted = Tree(patches.result_of(made.tree, proposal))
        other = accepted.replace({"src/strategy/sizing.py": b"X = 1\n"})
        head = made.repository.head()
        for wrong in (verdict(made, proposal, other), verdict(made, proposal, accepted, passed=False)):
            with pytest.raises(Halt, match=proposal.id):
                strategies.deploy(proposal, review, wrong)
            assert made.repository.head() == head
        revision = strategies.deploy(proposal, review, verdict(made, proposal, accepted))
        assert Tree(made.repository.tree(revision)) == accepted

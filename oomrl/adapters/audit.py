"""The audit chain of a state directory: steps of the lock, verdicts, reviews and deployments, signed and hash-chained.

Each statement is appended once its fact is in the store; a start appends whatever a kill left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from guardrails.attestation import TRANSITION_PREDICATE, AttestationError, Head, Log, Signer, statement
from oomrl.adapters import traffic
from oomrl.adapters.database import Store
from oomrl.domain.people import Done
from oomrl.domain.records import Deployment, Proposal, Review, StoredVerdict, lock_steps
from oomrl.errors import Mistake

VERDICT = "urn:oomrl:predicate:verdict:1"
REVIEW = "urn:oomrl:predicate:review:1"
DEPLOYMENT = "urn:oomrl:predicate:deployment:1"
TRAFFIC = "urn:oomrl:predicate:traffic:1"
ACT = "urn:oomrl:predicate:act:1"


@dataclass(frozen=True, slots=True)
class Stated:
    """What a statement says: its subject with a digest, its kind, its facts."""

    name: str
    digest: str
    kind: str
    facts: Mapping[str, Any]

    def body(self) -> dict[str, Any]:
        return statement({self.name: self.digest}, self.kind, self.facts)


class Audit:
    """Append to the chain of one state directory, each subject once. Raises `Mistake` where its key cannot be used."""

    def __init__(self, state: Path) -> None:
        self._cassettes = state / traffic.FOLDER
        try:
            signer = Signer.open(state / "keys" / "audit.key")
        except AttestationError as error:
            raise Mistake(f"{error} The audit key is its owner's alone: act as the service's user.") from error
        self.log = Log(state / "audit.jsonl", signer)

    @cached_property
    def _done(self) -> set[str]:
        return {body["subject"][0]["name"] for body in self.log.statements()}

    def catch_up(self, store: Store, run: str) -> None:
        """Append what is in the store and not yet in the chain."""
        with store.read() as view:
            answered = [prompt.id for prompt in view.prompts.all(run) if prompt.reply is not None]
        for prompt in answered:
            self.traffic(run, prompt)
        for stated in _all(store, run):
            self._append(stated)

    def differences(self, store: Store, run: str) -> list[str]:
        """Name each step, verdict, review and deployment of the store that the chain lacks or says otherwise."""
        signed = {body["subject"][0]["name"]: body for body in self.log.statements()}
        found = []
        for stated in _all(store, run):
            if stated.name not in signed:
                found.append(f"{stated.name} is in the store and not in the chain")
            elif signed[stated.name] != stated.body():
                found.append(f"{stated.name} says something else in the store than in the chain")
        return found

    def head(self) -> Head:
        """Return the chain's end, to be kept outside."""
        return self.log.head()

    def verdict(self, proposal: Proposal, verdict: StoredVerdict) -> None:
        """Append the steps that the lock took, then the verdict."""
        for stated in (*_steps(verdict), _verdict(proposal, verdict)):
            self._append(stated)

    def review(self, review: Review) -> None:
        self._append(_review(review))

    def deployment(self, deployment: Deployment, verdict: StoredVerdict | None = None) -> None:
        """Append that the lock committed what this verdict judged, then the deployment."""
        for stated in (*_committed(verdict), _deployment(deployment)):
            self._append(stated)

    def traffic(self, run: str, prompt: str) -> None:
        """Append the digest of what went over the wire for a prompt; nothing where nothing did."""
        name, found = f"traffic/{run}/{prompt}", traffic.digest(self._cassettes, prompt)
        if found is not None:
            self._append(Stated(name, found, TRAFFIC, {"prompt": prompt}))

    def changed_traffic(self) -> list[str]:
        """Return the prompts whose cassettes are not what the chain says of them."""
        said = {
            body["predicate"]["prompt"]: body["subject"][0]["digest"]["sha256"]
            for body in self.log.statements()
            if body["predicateType"] == TRAFFIC
        }
        return sorted(prompt for prompt, digest in said.items() if traffic.digest(self._cassettes, prompt) != digest)

    def act(self, done: Done) -> None:
        """Append what a person did; the log of acts in the store has it under the same number."""
        facts = {
            "who": done.who,
            "how": done.how,
            "act": done.act,
            "subject": done.subject,
            "detail": done.detail,
            "at": done.at.isoformat(),
        }
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        self._append(Stated(f"act/{done.sequence}", digest, ACT, facts))

    def _append(self, stated: Stated) -> None:
        if stated.name not in self._done:
            self.log.append(stated.body())
            self._done.add(stated.name)


def _all(store: Store, run: str) -> Iterator[Stated]:
    """Yield what the chain must hold of a store's steps, verdicts, reviews and deployments."""
    with store.read() as view:
        for proposal in view.proposals.all(run):
            verdict = view.proposals.verdict(run, proposal.id)
            if verdict is not None:
                yield from _steps(verdict)
                yield _verdict(proposal, verdict)
            for review in view.proposals.reviews(run, proposal.id):
                yield _review(review)
        for deployment in view.deployments.all(run):
            yield from _committed(view.proposals.verdict(run, deployment.proposal) if deployment.proposal else None)
            yield _deployment(deployment)


def _steps(verdict: StoredVerdict) -> Iterator[Stated]:
    for step in lock_steps(verdict):
        yield _step(verdict, step)


def _committed(verdict: StoredVerdict | None) -> Iterator[Stated]:
    """Yield the step with which a deployment ended the cycle of what it deployed; none for a rollback."""
    steps = lock_steps(verdict) if verdict is not None else ()
    if verdict is not None and steps:
        last = steps[-1]
        ended = {"step": last["step"] + 1, "event": "committed", "before": last["after"], "after": "committed"}
        yield _step(verdict, {**last, **ended, "patch": ""})


def _step(verdict: StoredVerdict, step: Mapping[str, Any]) -> Stated:
    name = f"transition/{verdict.run}/{verdict.proposal}/{step['step']}"
    return Stated(name, step["tree"], TRANSITION_PREDICATE, step)


def _verdict(proposal: Proposal, verdict: StoredVerdict) -> Stated:
    facts = {
        "proposal": proposal.id,
        "patch": proposal.digest,
        "author": proposal.author,
        "outcome": verdict.outcome,
        "base_tree": verdict.base_tree,
        "result_tree": verdict.result_tree,
    }
    return Stated(f"verdict/{verdict.run}/{proposal.id}", verdict.digest, VERDICT, facts)


def _review(review: Review) -> Stated:
    facts = {
        "proposal": review.proposal,
        "reviewer": review.reviewer,
        "act": review.act.value,
        "reason": review.reason,
        "base_tree": review.base_tree,
        "result_tree": review.result_tree,
    }
    return Stated(f"review/{review.run}/{review.id}", review.verdict, REVIEW, facts)


def _deployment(deployment: Deployment) -> Stated:
    facts = {
        "kind": deployment.kind.value,
        "base": deployment.base,
        "proposal": deployment.proposal,
        "day": deployment.day.isoformat(),
        "reason": deployment.reason,
    }
    name = f"deployment/{deployment.run}/{deployment.sequence}"
    return Stated(name, deployment.revision, DEPLOYMENT, facts)

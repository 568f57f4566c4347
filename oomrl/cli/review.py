"""`oomrl review`, `rollback`: a person decides about a machine's patch, and may take it back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from oomrl.adapters.audit import Audit
from oomrl.adapters.database import Store
from oomrl.adapters.repository import Repository
from oomrl.cli.options import (
    json_option,
    now,
    only_run,
    open_state,
    person_options,
    qualification_of,
    say,
    state_option,
)
from oomrl.domain.diagnostic import Diagnostic, one_screen
from oomrl.domain.records import Act, Deployment, DeploymentKind, Proposal, ProposalStatus, StoredVerdict
from oomrl.errors import Mistake, Refused
from oomrl.review import bound
from oomrl.review import review as reviewed


@click.group()
def review() -> None:
    """List, show and decide about proposals."""


@review.command(name="list")
@state_option
@json_option
def list_(state: Path, as_json: bool) -> None:
    """List proposals, the waiting ones first."""
    with open_state(state) as store:
        run = only_run(store)
        with store.read() as view:
            proposals = view.proposals.all(run)
    waiting = [p for p in proposals if p.status is ProposalStatus.PASSED]
    rest = [p for p in proposals if p.status is not ProposalStatus.PASSED]
    rows = [
        {"id": p.id, "status": p.status.value, "attempt": p.attempt, "author": p.author, "since": p.at.isoformat()}
        for p in (*waiting, *rest)
    ]
    text = "\n".join(f"{r['id']}  {r['status']:18} attempt {r['attempt']} by {r['author']}  {r['since']}" for r in rows)
    say(rows, as_json, text or "No proposals.")


@review.command()
@click.argument("proposal")
@state_option
@json_option
def show(proposal: str, state: Path, as_json: bool) -> None:
    """Show what was lost, what the gate found, and the diff."""
    with open_state(state) as store:
        run = only_run(store)
        found, verdict = _find(store, run, proposal)
        with store.read() as view:
            diagnostic = view.losses.diagnostic(run, found.diagnostic)
            reviews = view.proposals.reviews(run, found.id)
        qualification = qualification_of(state, store, run)
    if as_json:
        body = {"proposal": asdict(found), "verdict": verdict.payload if verdict else None}
        body |= {"reviews": [asdict(one) for one in reviews], "qualification": qualification.to_json()}
        click.echo(json.dumps(body, indent=2, default=str))
        return
    if diagnostic is not None:
        click.echo(one_screen(Diagnostic.model_validate(diagnostic.payload)))
    told = list(verdict.payload.get("proposer_view", ())) if verdict else []  # type: ignore[call-overload]
    click.echo(f"Gate: {verdict.outcome if verdict else 'not judged'}" + "".join(f"\n  {line}" for line in told))
    click.echo(f"Arenas: {qualification.text}")
    click.echo(f"\nProposal {found.id} by {found.author}:\n{found.explanation}\n")
    click.echo(found.tests_patch + found.logic_patch)
    for one in reviews:
        click.echo(f"{one.at:%Y-%m-%d %H:%M} {one.reviewer}: {one.act.value}: {one.reason}")


@review.command()
@click.argument("proposal")
@state_option
@person_options
def approve(proposal: str, state: Path, person: str, reason: str) -> None:
    """Approve a proposal that passed the gate. The proposer never approves its own."""
    _act(proposal, state, person, reason, Act.APPROVE)


@review.command()
@click.argument("proposal")
@state_option
@person_options
def reject(proposal: str, state: Path, person: str, reason: str) -> None:
    """Veto a proposal; this is final."""
    _act(proposal, state, person, reason, Act.REJECT)


@review.command(name="request-changes")
@click.argument("proposal")
@state_option
@person_options
def request_changes(proposal: str, state: Path, person: str, reason: str) -> None:
    """Send a proposal back; the reason becomes part of the next prompt."""
    _act(proposal, state, person, reason, Act.REQUEST_CHANGES)


@click.command()
@click.argument("revision", required=False)
@state_option
@person_options
def rollback(revision: str | None, state: Path, person: str, reason: str) -> None:
    """Deploy an earlier revision again (by default the one before), as a new commit."""
    with open_state(state) as store:
        run = only_run(store)
        repository = Repository(state / "strategy.git")
        head, log = repository.head(), repository.log()
        if revision is None and len(log) < 2:
            raise Mistake("Expected a revision before the deployed one, was none: nothing to roll back.")
        target = repository.resolve(revision) if revision else log[1].id
        with store.read() as view:
            made = view.deployments.all(run)
            last = view.sessions.last_mark(run)
        at, day = now(), last.day if last else made[-1].day
        new = repository.rollback(target, head, f"Rollback by {person}: {reason}", at)
        deployment = Deployment(
            run, len(made) + 1, new, head, DeploymentKind.ROLLBACK, day, at, "", f"{person}: {reason}"
        )
        with store.begin() as work:
            work.deployments.save(deployment)
        Audit(state).deployment(deployment)
    click.echo(f"Deployed {new[:12]} with the tree of {target[:12]}.")


def _find(store: Store, run: str, proposal: str) -> tuple[Proposal, StoredVerdict | None]:
    with store.read() as view:
        found = view.proposals.get(run, proposal)
        verdict = view.proposals.verdict(run, proposal)
    if found is None:
        raise Mistake(f"Expected the id of a proposal, was {proposal!r}: `oomrl review list` names them.")
    return found, verdict


def _act(proposal: str, state: Path, person: str, reason: str, act: Act) -> None:
    with open_state(state) as store:
        run = only_run(store)
        found, verdict = _find(store, run, proposal)
        repository = Repository(state / "strategy.git")
        deployed = repository.tree_id(repository.head())
        if found.status is ProposalStatus.REFUSED and act is Act.APPROVE:
            raise Refused(f"Expected a proposal that passed the gate, was {found.id}, which it refused.")
        seen = bound(found, verdict, deployed)
        record = reviewed(found, verdict, deployed, person, act, reason, now(), seen=seen)
        with store.begin() as work:
            work.proposals.save_review(record)
        Audit(state).review(record)
    click.echo(f"Recorded: {person} {act.value.replace('_', ' ')}s {proposal}. Run the loop to go on.")

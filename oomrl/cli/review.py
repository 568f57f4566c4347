"""`oomrl review`, `rollback`: a person decides about a machine's patch, and may take it back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from oomrl.cli.desk import desk
from oomrl.cli.options import (
    as_option,
    json_option,
    only_run,
    open_state,
    person_options,
    plain,
    qualification_of,
    say,
    settings_option,
    state_option,
)
from oomrl.domain.diagnostic import Diagnostic, one_screen
from oomrl.domain.records import Act, ProposalStatus, cautions, changed_decisions, lock_steps


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
@as_option("who", "looks")
@state_option
@settings_option
@json_option
def show(proposal: str, who: str, state: Path, settings_file: Path | None, as_json: bool) -> None:
    """Show what was lost, what the gate found, the remarks and the diff; an approval needs that you did."""
    with desk(state, who, settings_file) as (opened, person_):
        case = opened.look(person_, proposal)
        qualification = qualification_of(state, opened.store, opened.run)
    found, verdict = case.proposal, case.verdict
    if as_json:
        body = {"proposal": asdict(found), "verdict": verdict.payload if verdict else None}
        body |= {"reviews": [asdict(one) for one in case.reviews], "remarks": [asdict(one) for one in case.remarks]}
        body |= {
            "critic": None if case.critic is None else {"model": case.critic.model, "summary": case.critic.summary}
        }
        body |= {"risk": asdict(case.risk), "seen": asdict(case.now), "qualification": qualification.to_json()}
        click.echo(json.dumps(body, indent=2, default=str))
        return
    click.echo(one_screen(Diagnostic.model_validate(case.diagnostic.payload)))
    told = list(verdict.payload.get("proposer_view", ())) if verdict else []  # type: ignore[call-overload]
    click.echo(f"Gate: {verdict.outcome if verdict else 'not judged'}" + "".join(f"\n  {line}" for line in told))
    if verdict and (steps := lock_steps(verdict)):
        click.echo(f"Lock: {', '.join(plain(step['event']) for step in steps)}")
    for caution in (*changed_decisions(verdict), *cautions(verdict)) if verdict else ():
        click.echo(f"Read with care: {plain(caution)}")
    click.echo(f"Arenas: {qualification.text}")
    touched = f" ({', '.join(case.risk.because)})" if case.risk.because else ""
    click.echo(f"Class: {case.risk.name}{touched}; approvals: {len(case.votes)} of {case.risk.approvals}")
    click.echo("".join(f"\n{plain(sentence)}" for sentence in case.changes.in_words()))
    click.echo(f"\nProposal {found.id} by {found.author}:\n{plain(found.explanation)}\n")
    for line in found.repairs:
        click.echo(f"Read from the reply with a change: {plain(line)}")
    click.echo(plain(found.tests_patch + found.logic_patch))
    if case.critic is not None:
        click.echo(f"Critic ({plain(case.critic.model)}): {plain(case.critic.summary)}")
    for remark in case.remarks:
        settled = remark.resolution or ("blocking" if remark.blocking else "note")
        click.echo(f"{remark.id} {remark.author} ({settled}): {plain(remark.as_asked())}")
    for one in case.reviews:
        click.echo(f"{one.at:%Y-%m-%d %H:%M} {one.reviewer}: {one.act.value}: {plain(one.reason)}")
    for vote in case.told:
        if not vote.counts:
            click.echo(f"The approval by {vote.review.reviewer} does not count: {plain(vote.why)}")


@review.command()
@click.argument("proposal")
@state_option
@settings_option
@person_options
def approve(proposal: str, state: Path, settings_file: Path | None, person: str, reason: str) -> None:
    """Approve a proposal that passed the gate. The proposer never approves its own."""
    _act(proposal, state, settings_file, person, reason, Act.APPROVE)


@review.command()
@click.argument("proposal")
@state_option
@settings_option
@person_options
def reject(proposal: str, state: Path, settings_file: Path | None, person: str, reason: str) -> None:
    """Veto a proposal; this is final."""
    _act(proposal, state, settings_file, person, reason, Act.REJECT)


@review.command(name="request-changes")
@click.argument("proposal")
@state_option
@settings_option
@person_options
def request_changes(proposal: str, state: Path, settings_file: Path | None, person: str, reason: str) -> None:
    """Send a proposal back; the reason and the open remarks become part of the next prompt."""
    _act(proposal, state, settings_file, person, reason, Act.REQUEST_CHANGES)


@review.command()
@click.argument("proposal")
@state_option
@settings_option
@person_options
def withdraw(proposal: str, state: Path, settings_file: Path | None, person: str, reason: str) -> None:
    """Take one's own approval back, before anything is deployed under it."""
    _act(proposal, state, settings_file, person, reason, Act.WITHDRAW)


@review.command()
@click.argument("proposal")
@click.argument("text")
@click.option("--file", "path", default="", help="The file that it is about.")
@click.option("--line", default=0, help="The line of the file.")
@click.option("--old", is_flag=True, help="The line is one of the file as it was.")
@click.option("--note", is_flag=True, help="Say it without standing in the way of an approval.")
@as_option("who", "speaks")
@state_option
def comment(proposal: str, text: str, path: str, line: int, old: bool, note: bool, who: str, state: Path) -> None:
    """Say something about a proposal, or about a line of it."""
    with desk(state, who) as (opened, person_):
        said = opened.comment(person_, proposal, text, path, line, "old" if old else "new", blocking=not note)
    click.echo(said.id)


@review.command()
@click.argument("proposal")
@click.argument("remark")
@click.argument("resolution", type=click.Choice(["resolved", "answered", "dismissed"]))
@click.option("--answer", default="", help="What is answered; the critic's objections need words.")
@as_option("who", "settles it")
@state_option
def settle(proposal: str, remark: str, resolution: str, answer: str, who: str, state: Path) -> None:
    """Settle a remark: a comment is resolved, an objection is answered or dismissed."""
    with desk(state, who) as (opened, person_):
        opened.resolve(person_, proposal, remark, resolution, answer)
    click.echo(f"Recorded: {remark} {resolution}.")


@click.command()
@click.argument("revision", required=False)
@state_option
@person_options
def rollback(revision: str | None, state: Path, person: str, reason: str) -> None:
    """Deploy an earlier revision again (by default the one before), as a new commit."""
    with desk(state, person) as (opened, who):
        new = opened.rollback(who, reason, revision)
    click.echo(f"Deployed {new[:12]}. The loop trades it from its next decision on.")


def _act(proposal: str, state: Path, settings_file: Path | None, person: str, reason: str, act: Act) -> None:
    with desk(state, person, settings_file) as (opened, who):
        opened.decide(who, proposal, act, reason)
        case = opened.case(who, proposal)
    words = {
        Act.WITHDRAW: "withdraws the approval of",
        Act.REQUEST_CHANGES: "requests changes of",
    }.get(act, f"{act.value.replace('_', ' ')}s")
    click.echo(f"Recorded: {who.name} {words} {proposal}. Run the loop to go on.")
    if act is Act.APPROVE and len(case.votes) < case.risk.approvals:
        click.echo(f"It needs {case.risk.approvals} people, because it touches {', '.join(case.risk.because)}.")
        for vote in case.told:
            if vote.why:
                click.echo(f"The approval by {vote.review.reviewer} does not count: {plain(vote.why)}")

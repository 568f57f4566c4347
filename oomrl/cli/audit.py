"""`oomrl audit`: verify, export and quote the chain of attestations."""

from __future__ import annotations

import json
from pathlib import Path

import click

from guardrails.attestation import AttestationError, Head
from oomrl.adapters.audit import Audit
from oomrl.cli.options import json_option, only_run, open_state, say, state_option
from oomrl.errors import Mistake, Refused


@click.group()
def audit() -> None:
    """Verify, export and quote the chain of signed statements."""


@audit.command()
@click.option("--head", "expected", help="A head kept outside, as `oomrl audit head` printed it.")
@state_option
@json_option
def verify(expected: str | None, state: Path, as_json: bool) -> None:
    """Check every line, signature and link, that a head kept outside is still in the chain, that the recorded model
    traffic is as attested, and that the store has the steps of the lock, verdicts, reviews and deployments that the
    chain says.

    What else the store holds (marks, orders, the ledger) is checked when the next start folds it again.
    """
    try:
        outside = None if expected is None else Head.parse(expected)
    except AttestationError as error:
        raise Mistake(str(error)) from error
    with open_state(state) as store:
        audit = Audit(state)
        try:
            head = audit.log.verify(outside)
        except AttestationError as error:
            raise Refused(str(error)) from error
        found = audit.differences(store, only_run(store))
    if changed := audit.changed_traffic():
        raise Refused(f"Expected the recorded model traffic to be as attested, was changed or lost: {changed[0]}")
    if found:
        raise Refused(f"{len(found)} facts and the chain differ: {'; '.join(found[:5])}")
    say({"entries": head.entries, "head": head.text()}, as_json, f"{head.entries} statements hold. Head: {head.text()}")


@audit.command()
@state_option
def export(state: Path) -> None:
    """Print all statements as JSON."""
    with open_state(state):
        try:
            click.echo(json.dumps(Audit(state).log.statements(), indent=2))
        except AttestationError as error:
            raise Refused(str(error)) from error


@audit.command()
@state_option
def head(state: Path) -> None:
    """Print the chain's end, to be kept outside."""
    with open_state(state):
        try:
            click.echo(Audit(state).head().text())
        except AttestationError as error:
            raise Refused(str(error)) from error

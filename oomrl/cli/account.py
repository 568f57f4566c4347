"""`oomrl status`, `halt`, `resume`, `endow`: the account, and what persons do to it."""

from __future__ import annotations

import hashlib
from decimal import Decimal, InvalidOperation
from pathlib import Path

import click

from oomrl.adapters.database import Store
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
from oomrl.domain.records import CapitalEvent, CapitalKind
from oomrl.errors import Mistake, Refused


@click.command()
@state_option
@json_option
def status(state: Path, as_json: bool) -> None:
    """Show the account, what trades, and what waits."""
    with open_state(state) as store:
        run = only_run(store)
        with store.read() as view:
            mark = view.sessions.last_mark(run)
            deployed = view.deployments.current(run)
            prompts = view.prompts.pending(run)
            waiting = [p.id for p in view.proposals.all(run) if p.status.value == "passed"]
        qualification = qualification_of(state, store, run)
    if mark is None:
        say({"sessions": 0}, as_json, "No session yet.")
        return
    facts = {
        "day": mark.day.isoformat(),
        "equity": str(mark.equity),
        "cash": str(mark.cash),
        "state": mark.state,
        "principal_loss": mark.principal_loss,
        "drawdown": mark.drawdown,
        "revision": deployed.revision if deployed else "",
        "prompts_waiting": [prompt.id for prompt in prompts],
        "reviews_waiting": waiting,
        "qualification": qualification.to_json() if as_json else qualification.text,
    }
    text = "\n".join(f"{name.replace('_', ' '):16} {value}" for name, value in facts.items())
    say(facts, as_json, text)


@click.command()
@state_option
@person_options
def halt(state: Path, person: str, reason: str) -> None:
    """Stop trading from the next decision on, with the account as it is."""
    _record(state, CapitalKind.HALT, person, reason, Decimal(0))
    click.echo("Halted. `oomrl resume` lets it trade again.")


@click.command()
@state_option
@person_options
def resume(state: Path, person: str, reason: str) -> None:
    """Let a halted account trade again. Out of money is left by `oomrl endow` alone."""
    with open_state(state) as store, store.read() as view:
        mark = view.sessions.last_mark(only_run(store))
    if mark is not None and mark.state == "out_of_money":
        raise Refused("Expected a halted account, was out of money: only `oomrl endow` ends that.")
    _record(state, CapitalKind.RESUME, person, reason, Decimal(0))
    click.echo("Recorded. The loop trades again from its next decision on.")


@click.command()
@click.argument("amount")
@click.option("--compute", is_flag=True, help="Give it for model calls instead of trading.")
@state_option
@person_options
def endow(amount: str, compute: bool, state: Path, person: str, reason: str) -> None:
    """Put money in, with a reason. Enough of it ends out of money."""
    try:
        dollars = Decimal(amount).quantize(Decimal("0.01"))
    except InvalidOperation as error:
        raise Mistake(f"Expected an amount in dollars, was {amount!r}.") from error
    if dollars <= 0:
        raise Mistake(f"Expected an amount above 0 dollars, was {amount!r}.")
    _record(state, CapitalKind.ENDOW_COMPUTE if compute else CapitalKind.ENDOW, person, reason, dollars)
    what = "for model calls" if compute else "booked at the next close"
    click.echo(f"Recorded: {dollars} dollars, {what}.")


def _record(state: Path, kind: CapitalKind, person: str, reason: str, amount: Decimal) -> None:
    with open_state(state) as store:
        run = only_run(store)
        day = _day(store, run)
        at = now()
        digest = hashlib.sha256(f"{person}/{reason}/{at.isoformat()}".encode()).hexdigest()[:12]
        event = CapitalEvent(f"{kind.value}/{digest}", run, kind, day, at, amount, person, reason)
        with store.begin() as work:
            work.capital.save(event)


def _day(store: Store, run: str) -> object:
    with store.read() as view:
        mark = view.sessions.last_mark(run)
    if mark is None:
        raise Mistake("Expected a run with at least one session, was none.")
    return mark.day

"""`oomrl status`, `halt`, `resume`, `endow`: the account, and what persons do to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from oomrl.cli.desk import desk
from oomrl.cli.options import (
    dollars,
    json_option,
    now,
    only_run,
    open_state,
    person_options,
    qualification_of,
    say,
    state_option,
    state_settings,
)
from oomrl.domain.records import CapitalKind
from oomrl.errors import Mistake, NothingYet, OomrlError, Unavailable

if TYPE_CHECKING:
    from oomrl.settings import Settings

#: Seconds between two requests to sell at a broker that does not answer.
AGAIN = 2


@click.command()
@state_option
@json_option
def status(state: Path, as_json: bool) -> None:
    """Show the account, what trades, and what waits."""
    from oomrl.adapters.kill_switch import stopped

    with open_state(state) as store:
        run = only_run(store)
        with store.read() as view:
            mark = view.sessions.last_mark(run)
            deployed = view.deployments.current(run)
            prompts = view.prompts.pending(run)
            waiting = [brief.id for brief in view.reading.proposals(run, ("passed",), most=50)]
        qualification = qualification_of(state, store, run)
    words = stopped(state)
    if mark is None:
        text = f"No session yet. Halted {words}." if words else "No session yet."
        say({"sessions": 0, "stopped": words}, as_json, text)
        return
    facts = {
        "day": mark.day.isoformat(),
        "equity": str(mark.equity),
        "cash": str(mark.cash),
        "state": mark.state,
        "stopped": words or "no",
        "principal_loss": mark.principal_loss,
        "drawdown": mark.drawdown,
        "revision": deployed.revision if deployed else "",
        "prompts_waiting": [prompt.id for prompt in prompts],
        "reviews_waiting": waiting,
        "qualification": qualification.to_json() if as_json else qualification.text,
    }
    say(facts, as_json, in_words(facts))


def in_words(facts: Mapping[str, Any]) -> str:
    """Return the facts of a status as lines: shares as percentages, lists as words."""
    gain = -facts["principal_loss"]
    told = {name: ", ".join(value) or "none" if isinstance(value, list) else value for name, value in facts.items()}
    told["principal_loss"] = f"none: {gain:.1%} above what was put in" if gain > 0 else f"{-gain:.1%}"
    told["drawdown"] = f"{facts['drawdown']:.1%}"
    return "\n".join(f"{name.replace('_', ' '):16} {value}" for name, value in told.items())


@click.command()
@click.option("--flatten", is_flag=True, help="Sell what the service holds at the broker as well.")
@state_option
@person_options
def halt(flatten: bool, state: Path, person: str, reason: str) -> None:
    """Stop trading at once: no further order goes out, and what is open at a broker is cancelled.

    Each step works where the others cannot: a file in the state directory stops orders without database and broker,
    the broker is asked without the database. Exit code 2 where a step failed; trading has stopped all the same. With
    --flatten a broker that does not answer is asked again until it has sold, or until Ctrl-C.
    """
    from oomrl.adapters import halting

    _find(state)
    steps = {
        "the broker": lambda: halting.cancel_all(_settings_of(state), now(), flatten),
        "the record": lambda: _record(state, CapitalKind.HALT, person, reason, Decimal(0)),
    }
    halted = halting.halt(state, person, reason, now(), steps)
    if halting.SWITCH not in halted.failed:
        click.echo("Halted: no further order goes out. `oomrl resume` lets it trade again.")
    while flatten and isinstance(gone := halted.failed.get("the broker"), Unavailable):
        click.echo(f"Nothing is sold yet: {gone} Asked again in {AGAIN} s; Ctrl-C leaves it so.", err=True)
        Event().wait(AGAIN)
        halted.attempt("the broker")
    for line in halted.said:
        click.echo(line)
    halted.complete()


@click.command()
@state_option
@person_options
def resume(state: Path, person: str, reason: str) -> None:
    """Let a halted account trade again. Out of money is left by `oomrl endow` alone."""
    from oomrl.adapters.kill_switch import KillSwitch

    try:
        _record(state, CapitalKind.RESUME, person, reason, Decimal(0))
    except NothingYet:
        switch = KillSwitch(state)
        if not switch.words():
            raise
        switch.release()
        click.echo("The switch is released. Nothing has traded yet, so there is no record to add to.")
        return
    click.echo("Recorded. The loop trades again from its next decision on.")


@click.command()
@click.argument("amount")
@click.option("--compute", is_flag=True, help="Give it for model calls instead of trading.")
@state_option
@person_options
def endow(amount: str, compute: bool, state: Path, person: str, reason: str) -> None:
    """Put money in, with a reason. Enough of it ends out of money."""
    given = dollars(amount)
    _record(state, CapitalKind.ENDOW_COMPUTE if compute else CapitalKind.ENDOW, person, reason, given)
    what = "for model calls" if compute else "booked at the next close"
    click.echo(f"Recorded: {given} dollars, {what}.")


def _find(state: Path) -> None:
    """Make sure that trading looks for the switch in a directory; make that of an account that has not traded yet."""
    from oomrl.adapters.database.place import MAIN, named_by_us, service_of

    root, account = service_of(state)
    accounts: Collection[str] = ()
    if state != root:
        with suppress(OomrlError):  # a halt works without settings too
            accounts = state_settings(root).accounts
    if accounts and account not in accounts:
        raise Mistake(f"Expected one of the accounts {', '.join(accounts)} of {root}, was {account}.")
    if accounts and account == MAIN:
        raise Mistake(f"The main account lives in the service's own directory: --state {root} halts every account.")
    if account in accounts:
        state.mkdir(parents=True, exist_ok=True)
    if not state.is_dir():
        raise Mistake(f"Expected a state directory at {state}, found none. Name it with --state.")
    there = [path.name for path in state.iterdir()]
    if there and not any(map(named_by_us, there)):
        raise Mistake(
            f"Expected a service or a run in {state}, found neither. Nothing was halted: name it with --state."
        )


def _settings_of(state: Path) -> Settings:
    """Return the settings of a service, with one of its accounts alone where the directory is that account's."""
    from oomrl.adapters.database.place import service_of

    root, account = service_of(state)
    settings = state_settings(root)
    if state == root:
        return settings
    return settings.model_copy(update={"accounts": {n: t for n, t in settings.accounts.items() if n == account}})


def _record(state: Path, kind: CapitalKind, person: str, reason: str, amount: Decimal) -> list[str]:
    try:
        with desk(state, person) as (opened, who):
            opened.capital(who, kind, reason, amount)
    except NothingYet:
        if kind is not CapitalKind.HALT:
            raise
        return ["Nothing has traded yet, so there is no record to add to; the switch holds from the first session on."]
    return []

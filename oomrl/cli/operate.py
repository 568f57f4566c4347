"""`oomrl init`, `doctor`, `backup`, `restore`, `export`: what a person does to a service besides trading."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oomrl.cli.options import (
    PATH,
    SETTINGS_FILE,
    START_HELP,
    WORDS,
    Symbols,
    dollars,
    json_option,
    now,
    settings_option,
    state_option,
    state_settings,
)
from oomrl.errors import Mistake, OomrlError, Refused

if TYPE_CHECKING:
    from oomrl.settings import Settings

EXAMPLE = """\
# Settings of this service. Every setting and its default: docs/examples/service.toml. Secrets belong into the
# environment: OOMRL_DATABASE__URL, the broker's and the model's keys.

{account}[loop]
reviewer = "person"

[model]
provider = "{model}"

[accounts.main]
tape = {tape}
start = {start}
"""

#: A tape that ended so long ago is not one that a session is added to each day.
ENDED = timedelta(days=14)


@click.command()
@state_option
@click.option("--tape", type=WORDS, prompt="Tape (a Parquet file or folder of CSVs to which each session is added)")
@click.option("--endowment", help="Opening dollars of a simulated account. [default: asked for]")
@click.option(
    "--model",
    prompt="Who answers prompts",
    type=click.Choice(["manual", "offline", "openai"]),
    default="manual",
    show_default=True,
)
@click.option("--start", default="shipped", show_default=True, type=WORDS, help=START_HELP)
@click.option(
    "--broker",
    type=click.Choice(["simulated", "alpaca"]),
    default="simulated",
    show_default=True,
    help="The embedded paper exchange, or a person's own account at Alpaca.",
)
@click.option("--adopt/--refuse", default=False, help="Take over shares that the broker's account holds, or refuse.")
@click.option("--symbols", type=Symbols(), help="Fence: the only names to trade, with commas between them.")
@click.option("--capital", help="The most dollars to work with on an account that holds more.")
def init(
    state: Path,
    tape: str,
    endowment: str | None,
    model: str,
    start: str,
    broker: str,
    adopt: bool,
    symbols: str | None,
    capital: str | None,
) -> None:
    """Ask what the service needs and write its settings into the state directory. It can only paper-trade.

    With `--broker alpaca` a person's own paper account is looked at first: shares that it holds within the fence are
    taken over with --adopt; without it nothing is written while there are any.
    """
    target = state / SETTINGS_FILE
    if target.exists():
        raise Refused(f"Expected no settings in {state}, found {target.name}: edit that file. Nothing was changed.")
    if broker == "simulated":
        endowment = endowment or click.prompt("Endowment in dollars", default="1000000")
    elif endowment is not None:
        raise Mistake("Expected no --endowment: the account's own money is it. --capital limits what is worked with.")
    account = f"[account]\nendowment = {dollars(endowment).normalize():f}\n\n" if endowment else ""
    where, begin = (str(Path(given).resolve()) if Path(given).exists() else given for given in (tape, start))
    text = EXAMPLE.format(account=account, model=model, tape=json.dumps(where), start=json.dumps(begin))
    if broker != "simulated":
        text += f'broker = "{broker}"\nexisting = "{"adopt" if adopt else "refuse"}"\n'
    if symbols is not None:
        text += f"symbols = {json.dumps(symbols.split(','))}\n"
    if capital is not None:
        text += f"capital = {dollars(capital).normalize():f}\n"
    from oomrl.adapters.folders import made_or_gone
    from oomrl.adapters.starts import start_tree
    from oomrl.exchange.tape_files import load_tape

    with made_or_gone(state, 0o700):
        target.write_text(text, "utf-8")
        try:
            settings = state_settings(state)
            ends = load_tape(where).days[-1]
            start_tree(begin)
            if broker == "alpaca":
                click.echo(_stock(settings))
        except OomrlError:
            target.unlink()
            raise
    where = shlex.quote(str(state))
    if not (broker == "alpaca" and where.endswith(".parquet")) and now().date() - ends > ENDED:
        click.echo(
            f"Its tape ended on {ends}. The service judges a session once the tape has it: until sessions are added "
            "(a built-in tape gets none) it waits. `oomrl simulate` trades a tape that has ended."
        )
    click.echo(f"Wrote {target}. Next: oomrl doctor --state {where} ; oomrl run --state {where}")


def _stock(settings: Settings) -> str:
    """Look at the broker's account and say what the service would begin with. Raises `Refused` as `--refuse` asks."""
    from oomrl.adapters.own_account import reached, stock
    from oomrl.adapters.timers import WallTimer

    broker = reached(settings.broker, WallTimer(), os.environ, settings.service.http_timeout)
    try:
        account, held = stock(broker, settings.accounts["main"])
    finally:
        broker.close()
    names = ", ".join(f"{holding.qty:f} {holding.symbol}" for holding in held) or "no shares"
    return f"The account at the broker holds {account.cash} dollars and {names} within the fence."


@click.command()
@state_option
@settings_option
@json_option
def doctor(state: Path, settings_file: Path | None, as_json: bool) -> None:
    """Check everything that can go wrong, and say how to mend it. Exit code 1 where there is a fault."""
    from oomrl.daemon.doctor import examine

    found = list(examine(state, state_settings(state, settings_file)))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        for finding in found:
            click.echo(f"{finding.state:5} {finding.check}: {finding.found}")
            if finding.mend:
                click.echo(f"      -> {finding.mend}")
    faults = [finding.check for finding in found if finding.state == "fault"]
    if faults:
        raise Refused(f"Expected no fault, was {len(faults)}: {', '.join(faults)}.")


@click.command()
@state_option
@settings_option
@click.option("--account", default="main", show_default=True, help="Which account.")
@click.option("--to", "target", type=PATH, help="A folder. [default: the account's backups]")
def backup(state: Path, settings_file: Path | None, account: str, target: Path | None) -> None:
    """Back an account up while the service runs; the copy is restored once and compared before it counts."""
    from oomrl.adapters.database.place import folder
    from oomrl.adapters.folders import made
    from oomrl.daemon import backup as backups

    own = folder(state, account)
    if not own.is_dir():
        raise Mistake(f"Expected the state of account {account} in {own}, found none.")
    if target is not None:
        made(target)
    label = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}"
    made = backups.take(state, state_settings(state, settings_file), account, target or backups.folder(own), label)
    click.echo(
        f"{made}: {made.stat().st_size:,} bytes, restored once and compared. It holds the audit key: keep it safe."
    )


@click.command()
@click.argument("file", type=PATH)
@state_option
@settings_option
@click.option("--account", default="main", show_default=True, help="Which account.")
@click.option("--check", is_flag=True, help="Only check the backup; restore nothing.")
def restore(file: Path, state: Path, settings_file: Path | None, account: str, check: bool) -> None:
    """Restore a backup into an account that has nothing yet, on either kind of database."""
    from oomrl.daemon import backup as backups

    manifest: dict[str, Any]
    if check:
        manifest = backups.verify(file)
    else:
        manifest = backups.restore(file, state, state_settings(state, settings_file), account)
    rows = sum(count for count, _ in manifest["tables"].values())
    click.echo(
        f"{'Whole' if check else 'Restored'}: {manifest['label']}, {rows:,} rows. `oomrl audit verify` checks on."
    )


@click.command()
@state_option
@click.option("--to", "target", type=PATH, required=True, help="A new folder.")
@json_option
def export(state: Path, target: Path, as_json: bool) -> None:
    """Write every table of an account as a Parquet file, money as decimals."""
    from oomrl.adapters.database.tables import metadata
    from oomrl.adapters.database.transfer import export as write
    from oomrl.adapters.folders import made
    from oomrl.cli.options import open_state

    if target.exists():
        raise Mistake(f"Expected a new folder, was {target}, which exists.")
    shown = [table for table in metadata.sorted_tables if table.name not in SECRET_TABLES]
    with open_state(state) as store, store.read() as view:
        counts = write(view.connection, made(target), shown)
    text = "\n".join(f"{name:16} {count:,}" for name, count in counts.items())
    click.echo(json.dumps(counts, indent=2) if as_json else text)


#: Tables with what only the page should know: passwords' hashes, sessions, tokens.
SECRET_TABLES = frozenset({"users", "logins", "tokens", "invitations"})

"""`oomrl data`: download recorded market data in the tape format."""

from __future__ import annotations

import os
from datetime import date, timedelta
from pathlib import Path

import click

from oomrl.cli.options import PATH, WORDS, json_option, now, say, settings_option
from oomrl.cli.simulate import Day
from oomrl.errors import Mistake

#: Consolidated daily bars are complete, and free, from about this long after the close.
SETTLED = timedelta(minutes=20)


@click.group()
def data() -> None:
    """Download recorded market data."""


@data.command()
@click.argument("tape", type=PATH)
@click.option("--symbols", required=True, type=WORDS, help="Names with commas, or @FILE with one a line.")
@click.option("--from", "first", type=Day(), required=True, help="First day of the history.")
@click.option("--to", "last", type=Day(), help="Last day. [default: the last session that is complete]")
@click.option("--feed", default="sip", show_default=True, help="The consolidated feed; a partial one is refused.")
@settings_option
@json_option
def download(
    tape: Path, symbols: str, first: date, last: date | None, feed: str, settings_file: Path | None, as_json: bool
) -> None:
    """Add daily bars, dividends and splits to TAPE (Parquet), from the broker's data service.

    What the file holds already stays as it is; only later sessions are added. The keys come from the environment.
    """
    from oomrl.adapters.alpaca import data as source
    from oomrl.adapters.own_account import reached
    from oomrl.adapters.timers import WallTimer
    from oomrl.calendar import Calendar
    from oomrl.settings import load

    names = _names(symbols)
    settings = load(settings_file)
    closed = Calendar(settings.service.calendar, closures=settings.service.closures).last_closed(now(), SETTLED)
    if closed is None:
        raise Mistake("Expected a session that has closed, the calendar has none yet.")
    broker = reached(settings.broker, WallTimer(), os.environ, settings.service.http_timeout)
    try:
        found = source.download(
            broker,
            tape,
            names,
            first,
            min(last or closed.day, closed.day),
            feed,
            lambda line: click.echo(line, err=True),
        )
    finally:
        broker.close()
    facts = {"rows": found.rows, "first": found.first, "last": found.last, "missing": list(found.missing), "feed": feed}
    text = f"{found.rows} rows from {found.first} to {found.last} added to {tape} (feed {feed})."
    if found.missing:
        text += f" Nothing for {', '.join(found.missing)}."
    say(facts, as_json, text)


def _names(given: str) -> list[str]:
    """Return names from the option, in their order, each once."""
    if given.startswith("@"):
        try:
            given = Path(given[1:]).read_text("utf-8").replace("\n", ",")
        except (OSError, UnicodeDecodeError) as error:
            raise Mistake(f"Expected a file of names at {given[1:]}, could not read it.") from error
    names = [name.strip().upper() for name in given.split(",") if name.strip()]
    if not names:
        raise Mistake("Expected at least one name, was none.")
    return list(dict.fromkeys(names))

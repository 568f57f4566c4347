"""`oomrl run`: the service in its minimal form, on a tape that grows by a session a day."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from oomrl import bootstrap
from oomrl.calendar import Calendar
from oomrl.cli.console import Watching, console
from oomrl.cli.simulate import say_waiting
from oomrl.daemon import DATA_DELAY, serve
from oomrl.settings import load


@click.command()
@click.option("--tape", required=True, help="A Parquet file or folder of CSVs to which each session is added.")
@click.option("--model", type=click.Choice(["offline", "manual", "openai"]), default="manual", show_default=True)
@click.option("--state", type=click.Path(path_type=Path), default=Path("state"), show_default=True)
@click.option("--settings", "settings_file", type=click.Path(path_type=Path), help="A settings file.")
@click.option("--calendar", "exchange", default="XNYS", show_default=True, help="The exchange's calendar.")
@click.option("--once", is_flag=True, help="Do what is due and end.")
def run(tape: str, model: str, state: Path, settings_file: Path | None, exchange: str, once: bool) -> None:
    """After each session's close, do that session's stages once; a person reviews every patch.

    Trading is simulated on the embedded paper exchange. What was missed while the service was down is done at its
    start, in order; nothing is done twice.
    """
    settings = load(settings_file, {"model": {"provider": model}, "loop": {"reviewer": "person"}})
    calendar = Calendar(exchange)

    def stages(now: datetime) -> None:
        closed = calendar.last_closed(now, DATA_DELAY)
        watching = Watching(0)
        made = bootstrap.assemble(
            bootstrap.Simulation(state=state, settings=settings, tape=tape, growing=True), watching
        )
        with made.store, made.closing, watching:
            waiting = made.loop.run(until=closed.day if closed else None)
        if waiting is not None:
            say_waiting(waiting, state, as_json=False)

    if once:
        stages(datetime.now(UTC))
        return
    console.print("Running; simulated trading. Stop with Ctrl-C: a stage under way is finished first.")
    serve(calendar, stages)

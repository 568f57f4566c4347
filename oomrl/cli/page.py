"""`oomrl page`: serve the review page of a state directory by itself."""

from __future__ import annotations

import signal
from pathlib import Path
from threading import Event

import click

from oomrl.cli.options import only_run, open_state, settings_option, state_option
from oomrl.settings import load


@click.command()
@state_option
@settings_option
@click.option("--port", type=click.IntRange(0, 65_535), help="The port. [default: web.port of the settings]")
def page(state: Path, settings_file: Path | None, port: int | None) -> None:
    """Serve the review page until Ctrl-C; the loop may run beside it or not at all."""
    from oomrl.web.serving import serving

    settings = load(settings_file, {} if port is None else {"web": {"port": port}})
    with open_state(state) as store:
        run = only_run(store)
    stopping = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    with serving(state, settings, run, say=click.echo):
        stopping.wait()

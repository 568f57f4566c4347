"""`oomrl page`: serve the review page of a state directory by itself; `beside` serves it next to the service."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import click

from oomrl.adapters.database.place import service_of
from oomrl.cli.options import only_run, open_state, settings_option, state_option, state_settings
from oomrl.errors import Mistake, OomrlError
from oomrl.settings import Settings


@click.command()
@state_option
@settings_option
@click.option("--port", type=click.IntRange(0, 65_535), help="The port. [default: web.port of the settings]")
def page(state: Path, settings_file: Path | None, port: int | None) -> None:
    """Serve the review page until Ctrl-C; the loop may run beside it or not at all."""
    from oomrl.web.serving import serving

    root, _ = service_of(state)
    settings = state_settings(root, settings_file, {} if port is None else {"web": {"port": port}})
    with open_state(state) as store:
        run = only_run(store)
    stopping = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    with serving(state, settings, run, say=click.echo):
        stopping.wait()


@contextmanager
def beside(state: Path, settings: Settings) -> Iterator[None]:
    """Serve the page of the main account while the block lasts; before there is a run to show it says so."""
    from oomrl.web.serving import check_exposure, serving, waiting

    check_exposure(settings.web)
    stopping = Event()

    def known_run() -> str | None:
        try:
            with open_state(state) as store:
                return only_run(store)
        except Mistake:
            return None

    def serve() -> None:
        run = known_run()
        if run is None:
            with waiting(settings.web, say=click.echo):
                while run is None and not stopping.wait(5.0):
                    run = known_run()
        if run is None:
            return
        with serving(state, settings, run, say=click.echo):
            stopping.wait()

    def serve_or_say() -> None:
        try:
            serve()
        except OomrlError as error:
            click.echo(f"Error: No review page; the service goes on without it. {error}", err=True)

    thread = Thread(target=serve_or_say, name="page beside", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(timeout=15)

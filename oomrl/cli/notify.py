"""`oomrl notify`: tell people what happened, or try whether telling works."""

from __future__ import annotations

from pathlib import Path

import click

from oomrl.adapters.notify import Notifier
from oomrl.cli.options import now, only_run, open_state, settings_option, state_option, state_settings


@click.group()
def notify() -> None:
    """Send the test message, or what is due."""


@notify.command()
@state_option
@settings_option
def test(state: Path, settings_file: Path | None) -> None:
    """Send one message to every address, quiet hours or not."""
    settings = state_settings(state, settings_file)
    with open_state(state) as store:
        count = Notifier(state, store, only_run(store), settings, now).test()
    click.echo(f"Sent to {count} address{'es' if count != 1 else ''}.")


@notify.command()
@state_option
@settings_option
def due(state: Path, settings_file: Path | None) -> None:
    """Tell what happened since the last time; what is known is not told again."""
    settings = state_settings(state, settings_file)
    with open_state(state) as store:
        told = Notifier(state, store, only_run(store), settings, now).tell()
    click.echo(f"{told} message{'s' if told != 1 else ''} sent.")

"""`oomrl run`: the service."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from oomrl.cli.options import settings_option, state_option, state_settings
from oomrl.cli.page import beside


@click.command()
@state_option
@settings_option
@click.option("--serve", is_flag=True, help="Serve the review page of the main account beside it.")
def run(state: Path, settings_file: Path | None, serve: bool) -> None:
    """Serve the accounts of the settings until stopped: each session's jobs, at its own open and close.

    Trading is simulated on the embedded paper exchange. What was missed while the service was down is caught up with or
    skipped by each job's policy; nothing is done twice. SIGHUP reads the settings again, SIGTERM lets a job under way
    end first.
    """
    from oomrl.daemon import logs
    from oomrl.daemon.serve import Daemon

    logs.configure()
    with beside(state, state_settings(state, settings_file)) if serve else nullcontext():
        Daemon(state, lambda: state_settings(state, settings_file), settings_file).run()

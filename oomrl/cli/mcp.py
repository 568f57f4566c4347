"""`oomrl mcp`: serve a state directory to a coding agent over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from oomrl.cli.options import as_option, only_run, open_state, state_option


@click.command()
@as_option("who", "the agent answers for")
@state_option
def mcp(who: str, state: Path) -> None:
    """Serve losses, diagnostics, sources and verdicts by the Model Context Protocol.

    One tool writes: it answers a prompt of the manual model. It approves nothing, and who answers may not approve.
    """
    from oomrl.adapters.mcp_server import make_server  # a second of imports that only this command needs

    with open_state(state) as store:
        make_server(state, store, only_run(store), who).run("stdio")

"""`oomrl setup`: make what an installed package cannot bring: the interpreters of the strategy and of its tests."""

from __future__ import annotations

import json
from pathlib import Path

import click

from oomrl.cli.options import PATH, json_option


@click.command()
@click.option("--strategy", type=PATH, help="A strategy repository. [default: the shipped one]")
@json_option
def setup(strategy: Path | None, as_json: bool) -> None:
    """Make the interpreters in which strategies run and are tested, once for each lock file, and try the sandbox.

    They hold what requirements.lock and requirements-test.lock name, and need a package index. A command that finds
    one missing makes it too; after this no command needs a network of its own accord.
    """
    from guardrails.sandbox import Sandbox, SandboxError
    from oomrl.adapters import environments
    from oomrl.cli.console import say_sandbox
    from oomrl.errors import Mistake

    found = environments.find(strategy)
    try:
        profile = Sandbox.choose().profile
    except SandboxError as error:
        raise Mistake(str(error)) from error
    if as_json:
        click.echo(json.dumps({"worker": str(found.worker), "gate": str(found.gate), "sandbox": profile}, indent=2))
        return
    click.echo(f"strategy worker  {found.worker}\ngate's tests     {found.gate}\nsandbox          {profile}")
    say_sandbox(profile)

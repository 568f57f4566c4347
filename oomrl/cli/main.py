"""The command line: a table of commands, each imported only when it is called.

Exit codes: 0 done or allowed, 1 refused, 2 could not.
"""

from __future__ import annotations

import errno
import importlib
import logging
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from oomrl.errors import OomrlError, Refused

if TYPE_CHECKING:
    from oomrl.ports import Timer

#: What a disk may refuse, and the way out.
DISK = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Make room, then try again"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "Give this user the right to it, then try again"),
    errno.EIO: "Check the disk",
}
#: command -> (module under oomrl.cli, one line of help); the attribute has the command's name.
COMMANDS = {
    "simulate": ("simulate", "Run the whole loop over a tape under a virtual clock."),
    "replay": ("replay", "Run one strategy revision over a tape."),
    "setup": ("setup", "Make the interpreters in which strategies run and are tested."),
    "init": ("operate", "Ask what the service needs and write its settings."),
    "doctor": ("operate", "Check everything that can go wrong, and say how to mend it."),
    "once": ("once", "Do one job of the service by hand."),
    "run": ("run", "Serve all accounts for years: each session's jobs at its open and close."),
    "status": ("account", "Show the account, what trades, and what waits."),
    "diagnose": ("losses", "Show why money was lost."),
    "mandate": ("losses", "Confirm or change what a repair is asked to do."),
    "report": ("report", "Compare the phases of a run, one for each deployed revision."),
    "prompts": ("models", "List the prompts that wait for a reply."),
    "reply": ("models", "Answer a prompt with the text of a file."),
    "mcp": ("mcp", "Serve losses and prompts to a coding agent, which may answer and approves nothing."),
    "review": ("review", "List, show and decide about proposals."),
    "rollback": ("review", "Deploy an earlier revision again."),
    "strategy": ("strategy", "Begin a strategy repository of your own, or judge one that exists."),
    "gate": ("gate", "Judge a patch to the strategy repository."),
    "halt": ("account", "Stop trading with the account as it is."),
    "resume": ("account", "Let a halted account trade again."),
    "endow": ("account", "Put money in, with a reason."),
    "data": ("data", "Download recorded market data in the tape format."),
    "exchange": ("exchange", "Serve a paper exchange that speaks Alpaca's protocols."),
    "arena": ("arena", "List, run, serve and train in the arenas that qualify models."),
    "qualify": ("qualify", "Let a model play all arenas and certify what it did."),
    "people": ("people", "Invite, change and close accounts of the page; make tokens."),
    "notify": ("notify", "Send the test message, or what is due."),
    "page": ("page", "Serve the review page of a state directory."),
    "backup": ("operate", "Back an account up while the service runs."),
    "restore": ("operate", "Restore a backup into an empty account."),
    "export": ("operate", "Write every table as a Parquet file."),
    "audit": ("audit", "Verify, export and quote the chain of attestations."),
}


class LazyGroup(click.Group):
    """Import a command's module only when that command runs, so that --help stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"oomrl.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oomrl")
def oomrl() -> None:
    """Turn lost money into evidence, and evidence into gated, reviewed patches.

    Results on tapes and paper accounts are simulated. Nothing here is investment advice.
    """


def main(arguments: Sequence[str] | None = None, timer: Timer | None = None) -> NoReturn:
    """Run a command and turn what it raises into one line and an exit code.

    `arguments` are this process's own where none are given; `timer` is the clock that orders are worked by, None the
    wall's.
    """
    # What it says of cache folders in a home that cannot be written is nothing that a reader of results needs.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        oomrl(arguments, standalone_mode=False, obj=timer)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(2)
    except Refused as error:
        click.echo(f"Refused: {error}", err=True)
        sys.exit(1)
    except OomrlError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except Exception as error:  # noqa: BLE001 - the last boundary: a person gets one line, the report gets the rest
        click.echo(_line(error), err=True)
        sys.exit(2)
    sys.exit(0)


def _line(error: Exception) -> str:
    """Say in one line what nobody expected: a disk that cannot be written, or an error of the program's own."""
    if isinstance(error, OSError) and error.errno in DISK:
        return f"Error: Could not use {error.filename or 'the disk'}: {error.strerror}. {DISK[error.errno]}."
    with tempfile.NamedTemporaryFile("w", prefix="oomrl-error-", suffix=".txt", delete=False) as report:
        traceback.print_exception(error, file=report)
    told = f"Error in the program itself ({type(error).__name__}: {error}). Nothing further was done. "
    return f"{told}Details: {Path(report.name)}"

"""Options and openings that commands share."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from oomrl.errors import Mistake, NothingYet

#: The settings that a state directory carries with it.
SETTINGS_FILE = "oomrl.toml"
START_HELP = "shipped, phase1, a patch file upon the shipped strategy, or the folder of a strategy repository."

if TYPE_CHECKING:
    from oomrl.adapters.database import Store
    from oomrl.arenas.certificates import Standing
    from oomrl.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])


class Given(click.Path):
    """A path that was really given: the empty text of a variable that is not set would be the working directory."""

    def __init__(self, **terms: Any) -> None:
        super().__init__(path_type=Path, **terms)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail("Expected a path, was empty.", param, ctx)
        return super().convert(value, param, ctx)


class Words(click.ParamType):
    """Text that is not blank."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail("Expected some text, was none.", param, ctx)
        return str(value)


class Symbols(Words):
    """Names with commas between them, in capitals and each once."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        names = [name.strip().upper() for name in str(value).split(",") if name.strip()]
        if not names:
            self.fail("Expected at least one name, was none.", param, ctx)
        return ",".join(dict.fromkeys(names))


PATH = Given()
WORDS = Words()


def state_option(command: Command) -> Command:
    """Add --state."""
    option = click.option(
        "--state",
        type=PATH,
        default=Path("state"),
        show_default=True,
        help="The state directory.",
    )
    return option(command)


def json_option(command: Command) -> Command:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(command)


def settings_option(command: Command) -> Command:
    """Add --settings."""
    option = click.option("--settings", "settings_file", type=PATH, help="A settings file.")
    return option(command)


def as_option(name: str, does: str) -> Callable[[Command], Command]:
    """Return the option --as, given to the command as `name`: who it is that `does` (for example "acts")."""
    said = f"Who {does}. [default: OOMRL_PERSON or the login name]"
    return click.option("--as", name, default=person, type=WORDS, help=said)


def person_options(command: Command) -> Command:
    """Add --as and --reason: who acts, and why."""
    why = click.option("--reason", required=True, type=WORDS, help="Why; it becomes part of the record.")
    return as_option("person", "acts")(why(command))


def person() -> str:
    """Return the name of whoever runs the command."""
    named = os.environ.get("OOMRL_PERSON")
    if named:
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def state_settings(state: Path, chosen: Path | None = None, overrides: dict[str, Any] | None = None) -> Settings:
    """Read the chosen settings file, else the state directory's own (`oomrl init` writes it), and the environment."""
    from oomrl.settings import load

    own = state / SETTINGS_FILE
    return load(chosen or (own if own.is_file() else None), overrides)


def open_state(state: Path) -> Store:
    """Open the store of an existing state directory; that of another account than the main one by its own folder."""
    from oomrl.adapters.database import Store  # commands that open no store also run where no database is installed
    from oomrl.adapters.database.place import FILE, place, service_of

    root, account = service_of(state)
    settings = state_settings(root)
    if not state.is_dir() or (settings.database.url is None and not (state / FILE).is_file()):
        raise NothingYet(f"Expected a run in {state}, found none. Name --state, or start one with `oomrl simulate`.")
    return Store.open(place(root, settings, account))


def only_run(store: Store) -> str:
    """Return the one run of a state directory."""
    with store.read() as view:
        runs = [run for run in view.runs.all() if run.kind != "daemon"]
    if not runs:
        raise NothingYet("Expected a run in the state directory, was none: the first session has not been judged yet.")
    if len(runs) > 1:
        raise Mistake(f"Expected one run in the state directory, was {len(runs)}.")
    return runs[0].id


def qualification_of(state: Path, store: Store, run: str) -> Standing:
    """Return whether the model that a run was started with may propose, by its certificate."""
    from oomrl.arenas.certificates import standing_of

    with store.read() as view:
        found = view.runs.get(run)
    assert found is not None
    return standing_of(state, found.settings["settings"], now())  # type: ignore[arg-type]


def dollars(given: str) -> Decimal:
    """Read an amount of dollars and cents that a person gave; raise `Mistake` for what is none."""
    try:
        amount = Decimal(given)
        exact = amount.quantize(Decimal("0.01"))
    except InvalidOperation:
        exact = amount = Decimal("NaN")
    if exact != amount:
        raise Mistake(f"Expected an amount in dollars and cents, such as 250000 or 1234.56, was {given!r}.")
    return exact


def plain(text: str) -> str:
    """Return foreign text for a terminal: control and bidirectional characters are shown as escapes."""
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def now() -> datetime:
    """Return the wall clock's instant, aware UTC."""
    return datetime.now(UTC)


def say(value: Any, as_json: bool, text: str) -> None:
    """Print JSON or words."""
    click.echo(json.dumps(value, indent=2, default=str) if as_json else text)

"""`oomrl simulate`: the whole loop over a tape under a virtual clock."""

from __future__ import annotations

import fcntl
import json
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from threading import Event
from typing import Any

import click

from oomrl import bootstrap
from oomrl.adapters.database import Store
from oomrl.adapters.database.place import FILE, named_by_us, place
from oomrl.adapters.outcome import LossTold, Outcome, outcome
from oomrl.adapters.strategies import sandboxed
from oomrl.cli.console import Watching, console, losses_told, say_sandbox, summary
from oomrl.cli.options import PATH, SETTINGS_FILE, START_HELP, WORDS, settings_option, state_settings
from oomrl.errors import Mistake
from oomrl.exchange.tape_files import TWIN
from oomrl.stages import Waiting

#: What a fresh start does not forget: models stay qualified, and a person wrote the settings.
KEPT = ("keys", "certificates", "lock", SETTINGS_FILE)


class Day(click.ParamType):
    """A date as YYYY-MM-DD."""

    name = "date"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> date:
        if isinstance(value, date):
            return value
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            self.fail(f"Expected a date as YYYY-MM-DD, was {value!r}", param, ctx)


@click.command()
@click.option(
    "--tape",
    default="builtin",
    show_default=True,
    type=WORDS,
    help="A built-in name, Parquet file or folder of CSVs. twin:SEED:TAPE has other prices in the same shape.",
)
@click.option("--from", "from_day", type=Day(), help="First day of trading; everything before is shown, not traded.")
@click.option("--to", "to_day", type=Day(), help="Last day.")
@click.option("--start", default="shipped", show_default=True, type=WORDS, help=START_HELP)
@click.option(
    "--model",
    type=click.Choice(["offline", "manual", "openai"]),
    default="offline",
    show_default=True,
    help="Who answers prompts: rules (no language model), people, an endpoint.",
)
@click.option(
    "--reviewer",
    type=click.Choice(["auto", "person"]),
    default="auto",
    show_default=True,
    help="Who reviews: a rule, or people.",
)
@click.option(
    "--broker",
    type=click.Choice(["inprocess", "http"]),
    default="inprocess",
    show_default=True,
    help="Orders by a call, or over HTTP.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1), help="Of all randomness.")
@click.option("--state", type=PATH, default=Path("state"), show_default=True, help="The state directory.")
@settings_option
@click.option("--unmasked", is_flag=True, help="Show real names and dates to the model; the result is labelled so.")
@click.option("--fresh", is_flag=True, help="Forget an earlier run in the same state directory.")
@click.option("--serve", is_flag=True, help="Serve the review page beside it, and go on once a person has acted.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def simulate(
    tape: str,
    from_day: date | None,
    to_day: date | None,
    start: str,
    model: str,
    reviewer: str,
    broker: str,
    seed: int,
    state: Path,
    settings_file: Path | None,
    unmasked: bool,
    fresh: bool,
    serve: bool,
    as_json: bool,
) -> None:
    """Run the whole loop over a tape under a virtual clock.

    The same command goes on where it was killed, or where it waited for a person. Results are simulated.
    `--broker http` sends every order through alpaca-py to the exchange's server on loopback; the result is the same.
    """
    begun = time.monotonic()
    settings = state_settings(state, settings_file, {"model": {"provider": model}, "loop": {"reviewer": reviewer}})
    if fresh and settings.database.url is not None:
        raise Mistake("--fresh forgets files, never a PostgreSQL database: name another one, or drop it yourself.")
    asked = bootstrap.Simulation(
        state=state,
        settings=settings,
        tape=tape,
        from_day=from_day,
        to_day=to_day,
        start=start,
        seed=seed,
        broker=broker,
        unmasked=unmasked,
    )
    bootstrap.examine(asked)
    with ExitStack() as page:
        page.enter_context(alone(state))
        page.enter_context(said_on_the_way_out(state))
        if fresh:
            forget(state)
        before = acts(asked)
        ended = run_once(asked, as_json, page if serve else None)
        while serve and isinstance(ended, Waiting):
            before = until_somebody_acts(asked, before)
            ended = run_once(asked, as_json)
        if isinstance(ended, Waiting):
            return
        finish(*ended, asked, time.monotonic() - begun, as_json)
        if serve:
            console.print("The page is served until Ctrl-C.")
            Event().wait()


@contextmanager
def said_on_the_way_out(state: Path) -> Iterator[None]:
    """Say, where Ctrl-C ends a run that has begun, that it can be gone on with."""
    try:
        yield
    except KeyboardInterrupt:
        if holds_a_run(state):
            click.echo("What was committed stays, and the same command goes on from there.", err=True)
        raise


def run_once(
    asked: bootstrap.Simulation, as_json: bool, page: ExitStack | None = None
) -> Waiting | tuple[Outcome, bootstrap.Assembled]:
    """Go on to the end, or to where a person must act first; `page` is given the review page to serve meanwhile."""
    settings, state = asked.settings, asked.state
    watching = Watching(0, quiet=as_json)
    made = bootstrap.assemble(asked, watching)
    say_sandbox(sandboxed().profile)
    watching.expect(sum(day >= made.start_day for day in made.tape.days))
    with made.store, made.closing, watching:
        if page is not None:
            from oomrl.web.serving import serving

            page.enter_context(serving(state, settings, made.run, say=lambda text: click.echo(text, err=True)))
        waiting = made.loop.run()
        if waiting is not None:
            say_waiting(waiting, state, as_json)
            return waiting
        found = outcome(
            made.run,
            made.store,
            made.repository,
            made.counterfactual,
            made.inverse,
            made.start_day,
            settings.account.endowment,
            settings.account.riskless_rate,
            asked.seed,
        )
    return found, made


def acts(asked: bootstrap.Simulation) -> tuple[int, int]:
    """Return how far the log of acts and the answers to prompts have come."""
    state = asked.state
    if not holds_a_run(state):
        return 0, 0
    with Store.open(place(state, asked.settings)) as store, store.read() as view:
        last = view.people.acts(most=1)
    return (last[0].sequence if last else 0), len(list(state.glob("replies/*.md")))


def until_somebody_acts(asked: bootstrap.Simulation, before: tuple[int, int]) -> tuple[int, int]:
    """Wait until there is an act, by page or by command, that the last run may not have seen."""
    console.print("Waits for it here; the page and the commands both count.")
    pause = Event()
    while (now := acts(asked)) == before:
        pause.wait(1.0)
    return now


def finish(
    found: Outcome, made: bootstrap.Assembled, asked: bootstrap.Simulation, seconds: float, as_json: bool
) -> None:
    """Draw and print the result."""
    state, unmasked = asked.state, asked.unmasked
    result = found.result | {
        "unmasked": unmasked,
        "twin": asked.tape.startswith(TWIN),
        "wall_seconds": round(seconds, 2),
        "sessions_per_second": round(found.result["sessions"] / seconds, 1),
    }
    picture(found, made, state)
    show(result, found.losses, state, as_json)


def holds_a_run(state: Path) -> bool:
    """Say whether a run has begun in a folder: its strategy is there, and its database, where that is a file."""
    return (state / FILE).is_file() or (state / "strategy.git").is_dir()


def forget(state: Path) -> None:
    """Remove an earlier run, and nothing that is not one; the key and what it certified stay."""
    found = {path for path in state.iterdir() if path.name not in KEPT} if state.is_dir() else set()
    strange = sorted(path.name for path in found if not named_by_us(path.name))
    if found and (strange or not (state / FILE).is_file()):
        named = f" It holds {', '.join(strange[:3])}." if strange else ""
        raise Mistake(f"Expected {state} to hold an earlier run and nothing else.{named} Name another --state.")
    if {"daemon.lock", "backups"} & {path.name for path in found}:
        raise Mistake(f"Expected {state} to hold a simulation, was what `oomrl run` serves. Name another --state.")
    for path in found:
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            continue
        for folder in (path, *path.rglob("*")):
            if folder.is_dir() and not folder.is_symlink():
                folder.chmod(0o755)
        shutil.rmtree(path)


@contextmanager
def alone(state: Path) -> Iterator[None]:
    """Hold the state directory against a second simulation; a folder of somebody else's is refused."""
    if state.exists() and not state.is_dir():
        raise Mistake(f"Expected --state to be a folder, was a file: {state}.")
    if (state / "daemon.lock").exists():
        raise Mistake(f"Expected {state} to hold a simulation, was what `oomrl run` serves. Name another --state.")
    if state.is_dir() and not holds_a_run(state):
        strange = sorted(path.name for path in state.iterdir() if not named_by_us(path.name))
        if strange:
            raise Mistake(
                f"Expected an empty folder or an earlier run at {state}, was one with {', '.join(strange[:3])}."
            )
    try:
        state.mkdir(parents=True, exist_ok=True)
        lock = (state / "lock").open("w")
    except OSError as error:
        raise Mistake(f"Expected a folder that can be written at {state}: {error.strerror}.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Mistake(f"Another simulation runs in {state}. Wait for it, or name another --state.") from error
        try:
            yield
        finally:
            if [path.name for path in state.iterdir()] == ["lock"]:
                (state / "lock").unlink()
                state.rmdir()


def say_waiting(waiting: Waiting, state: Path, as_json: bool) -> None:
    """Say what a person has to do before the same command can go on."""
    if as_json:
        click.echo(json.dumps({"waiting": waiting.what, "subject": waiting.subject}))
    where = shlex.quote(str(state))
    ways = {
        "prompt": f"Answer it with: oomrl reply {waiting.subject} FILE --state {where}",
        "mandate": f"Confirm it with: oomrl mandate {waiting.subject} --reason WHY [--file F] --state {where}",
        "compute endowment": f"It is spent (see: oomrl diagnose compute --state {where}). "
        f"Give more with: oomrl endow --compute AMOUNT --reason WHY --state {where}",
        "review": f"Decide with: oomrl review show {waiting.subject} --state {where}",
        "qualification": f"Qualify the model with: oomrl qualify --state {where}",
    }
    console.print(f"Waiting for a {waiting.what}: {waiting.subject}\n{ways[waiting.what]}\nThen run the same command.")


def picture(found: Outcome, made: bootstrap.Assembled, state: Path) -> None:
    """Draw the equity curves into the state directory."""
    from oomrl.adapters.reports import draw_run

    draw_run(found, made.store, made.run, state / "reports")


def show(result: dict[str, Any], losses: Sequence[LossTold], state: Path, as_json: bool) -> None:
    """Print the result."""
    if as_json:
        click.echo(json.dumps(result, indent=2))
        return
    if losses:
        console.print(losses_told(losses))
    console.print(summary(result))
    if result["unmasked"]:
        console.print(
            "UNMASKED: the model was shown real names, dates and prices, which it may remember. Run the same on "
            "--tape twin:SEED:TAPE to see what that was worth."
        )
    if result["twin"]:
        console.print("TWIN: a counterfactual tape, with months and names dealt anew; these prices never were.")
    verdicts = result["verdicts"]
    console.print(
        f"{result['losses']} losses, {result['proposals']} proposals ({verdicts['refuse']} refused, "
        f"{verdicts['pass']} passed), {result['escalations']} escalations, {result['deployments']} deployments; "
        f"{result['orders']} orders, "
        f"{result['fills']} fills in {result['sessions']} sessions, {result['wall_seconds']} s."
    )
    if result["halted"] or result["state"] == "out_of_money":
        console.print(f"Trading ended {result['state']}: only a person lets it go on.")
    console.print(
        f"Pictures: {state / 'reports'}. Audit chain: `oomrl audit verify --state {shlex.quote(str(state))}`."
    )

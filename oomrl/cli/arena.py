"""`oomrl arena`: list the arenas, play them, replay and show what was played, serve them, train in them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from oomrl.adapters import folders
from oomrl.arenas import log, pages, registry, runner
from oomrl.arenas.agents.openai_agent import ModelSettings
from oomrl.arenas.engine import Arena, Json
from oomrl.arenas.episode import Episode, replay
from oomrl.arenas.organization.transcript import structured_log
from oomrl.cli.options import PATH, WORDS, Given, json_option, say
from oomrl.errors import Mistake
from oomrl.settings import ModelSettings as LoopModel

Command = Callable[..., Any]


def model_options(command: Command) -> Command:
    """Add the options that name a language model, which the environment may answer as well."""
    for option in (
        click.option("--model", envvar="MODEL_NAME", help="The model's name. [env: MODEL_NAME]"),
        click.option("--base-url", envvar="API_BASE_URL", help="Its address. [env: API_BASE_URL]"),
        click.option("--effort", help="Reasoning effort, where the model knows it: low, medium, high."),
    ):
        command = option(command)
    return command


def model_settings(chosen: LoopModel, effort: str | None) -> ModelSettings:
    """Return how an agent asks the model; the key comes from the environment, and only a local address needs none."""
    key = os.environ.get(chosen.api_key_env) or os.environ.get("HF_TOKEN") or ""
    if not key and not chosen.base_url:
        raise Mistake(
            f"Expected the model's key in the environment variable {chosen.api_key_env}, was not there: export it"
        )
    prices = [float(price) if price is not None else 0.0 for price in (chosen.prompt_price, chosen.completion_price)]
    return ModelSettings(
        chosen.name,
        chosen.base_url,
        key or "unused",
        reasoning_effort=effort,
        prompt_price=prices[0],
        completion_price=prices[1],
    )


def ask_person(prompt: str) -> str:
    """Show a prompt on standard error and read one line from standard input."""
    click.echo(prompt, err=True)
    return input()


@contextmanager
def progress(total: int, quiet: bool = False) -> Iterator[Callable[[Episode], None]]:
    """Count episodes on standard error while they are played, with the time left."""
    from oomrl.cli.console import console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=quiet) as bar:
        task = bar.add_task("episodes", total=total)

        def advance(episode: Episode) -> None:
            bar.update(task, advance=1, description=f"{episode.arena} {episode.task} {episode.seed}")

        yield advance


@click.group()
def arena() -> None:
    """List, run, serve and train in the arenas that qualify models."""


def arena_named(name: str, tape: str | None) -> Arena:
    """Return an arena by its name, or the research arena on a tape."""
    if tape is None and name != registry.ON_TAPE:
        return registry.find(name)
    if tape is None or name not in ("research", registry.ON_TAPE):
        raise Mistake(f"Expected --tape with the research arena and its logs alone, was {name} with tape {tape}")
    from oomrl.arenas.research.arena import arena_on_tape

    return arena_on_tape(tape)


TAPE = click.option(
    "--tape", type=WORDS, help="Play research on this tape: a built-in name, Parquet file or folder of CSVs."
)


@arena.command(name="list")
@json_option
def list_(as_json: bool) -> None:
    """List the arenas with their tasks, policies, probes and known limits."""
    found = runner.list_arenas()
    lines = []
    for one in found:
        lines += [f"{one['name']} {one['version']}: {one['title']}"]
        lines += [f"  {task:24} {title}" for task, title in one["tasks"].items()]
        lines += [f"  policies: {', '.join(one['policies'])}", f"  probes: {', '.join(one['probes']) or 'none'}"]
        lines += [f"  limit: {limit}" for limit in one["limits"]]
    say(found, as_json, "\n".join(lines))


@arena.command()
@click.argument("name")
@click.option("--agent", default="heuristic", show_default=True, help="A policy or probe, openai, or manual.")
@click.option("--seeds", default="0-4", show_default=True, envvar="RUN_SEED", help="Like 7,11,13 or 0-19.")
@click.option("--task", "tasks", multiple=True, help="Only this task; may be repeated.")
@TAPE
@model_options
@click.option("--out", type=PATH, help="Folder for logs, pages and run.json.")
@click.option("--transcript", is_flag=True, help="Print [START], [STEP] and [END] lines of each episode.")
@click.option("--threshold", default=0.5, envvar="SUCCESS_THRESHOLD", help="Score from which [END] says success.")
@json_option
def run(
    name: str,
    agent: str,
    seeds: str,
    tasks: tuple[str, ...],
    tape: str | None,
    model: str | None,
    base_url: str | None,
    effort: str | None,
    out: Path | None,
    transcript: bool,
    threshold: float,
    as_json: bool,
) -> None:
    """Play every task of an arena with every seed. Exit code 2 where the agent failed in any episode."""
    found = arena_named(name, tape)
    chosen = runner.parse_seeds(seeds)
    settings = None
    if agent == "openai":
        if not model:
            raise Mistake("Expected a model with --agent openai, was none: give --model or set MODEL_NAME")
        settings = model_settings(LoopModel(provider="openai", name=model, base_url=base_url), effort)
    player = runner.make_agent(agent, settings, ask_person)
    if out is not None:
        folders.made(out)
    with progress(len(chosen) * len(tasks or found.tasks), quiet=as_json or transcript or agent == "manual") as advance:
        result = runner.run(found, player, chosen, tasks, out, advance)
    told = result.to_json()
    if out is not None:
        folders.put(out / "run.json", json.dumps(told, indent=1) + "\n")
        for episode in result.episodes:
            page = out / f"{runner.file_name(episode)}.html"
            folders.put(page, pages.episode_page(episode.log, found.watch))
    if transcript:
        click.echo("".join(structured_log(one, success_threshold=threshold) for one in result.episodes), nl=False)
    else:
        say(told, as_json, _told(result))
    if result.failures():
        raise Mistake(f"The agent failed in {result.failures()} of {len(result.episodes)} episodes: {_first(result)}")


def _told(result: runner.Run) -> str:
    by_task = "".join(f"\n  {task:24} {score:.4f}" for task, score in result.to_json()["by_task"].items())
    refused = sum(episode.refused for episode in result.episodes)
    return (
        f"{result.arena} {result.version}, {result.agent}, {len(result.seeds)} seeds: {result.score()}{by_task}\n"
        f"  failures {result.failures()}, refused actions {refused}"
    )


def _first(result: runner.Run) -> str:
    return next(episode.failure for episode in result.episodes if episode.failure is not None)


@arena.command(name="replay")
@click.argument("logs", nargs=-1, required=True, type=Given(exists=True, dir_okay=False))
@click.option("--page", type=PATH, help="Also write the page of the (one) episode here.")
@TAPE
@json_option
def replay_(logs: tuple[Path, ...], page: Path | None, tape: str | None, as_json: bool) -> None:
    """Play logs again; refuse one that does not give the same answers, score and hash."""
    if page is not None and len(logs) > 1:
        raise Mistake(f"Expected one log with --page, was {len(logs)}.")
    rows = []
    for path in logs:
        found = log.read(path.read_bytes().decode("utf-8", "replace").splitlines())
        start = found.records()[0]["body"]
        played_in = arena_named(str(start.get("arena")), tape)
        episode = replay(played_in, found)
        rows.append({"log": str(path), "score": episode.score, "steps": episode.steps, "head": episode.log.head})
        if page is not None:
            folders.put(page, pages.episode_page(found, played_in.watch))
    say(rows, as_json, "\n".join(f"{row['log']}: score {row['score']:.4f}, {row['steps']} steps, same" for row in rows))


@arena.command()
@click.argument("runs", nargs=-1, required=True, type=Given(exists=True))
@click.option("--out", type=PATH, default=Path("leaderboard.html"), show_default=True, help="The page.")
@click.option("--state", type=PATH, help="Also show the certificates of this state directory.")
def leaderboard(runs: tuple[Path, ...], out: Path, state: Path | None) -> None:
    """Write a leaderboard page of runs: folders that `arena run --out` or `qualify` wrote, or their run.json files."""
    from oomrl.arenas.certificates import bodies_of

    files = [path for given in runs for path in (sorted(given.rglob("run.json")) if given.is_dir() else [given])]
    if not files:
        raise Mistake("Expected folders with a run.json, were none: `oomrl arena run --out` writes one.")
    if state is not None and not state.is_dir():
        raise Mistake(f"Expected a state directory at {state}, found none.")
    rows = [_run_in(path) for path in files]
    certified = [body for _, body in bodies_of(state) if body is not None] if state else []
    folders.put(out, pages.leaderboard_page(rows, certified))
    click.echo(f"Wrote {out}: {len(rows)} runs.")


def _run_in(file: Path) -> Json:
    """Read the record of a run that `arena run --out` wrote."""
    try:
        run = json.loads(file.read_bytes())
        known = all(isinstance(run[key], str) for key in ("arena", "version", "agent"))
        if known and {"mean", "low", "high", "count"} <= set(run["score"]) and {"failures", "refused"} <= set(run):
            return dict(run)
    except (OSError, ValueError, LookupError, TypeError):
        pass
    raise Mistake(f"Expected the record of a run in {file}, was none: `oomrl arena run --out` writes one.")


@arena.command()
@click.argument("name")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where it listens.")
@click.option("--port", default=8010, show_default=True, type=click.IntRange(1, 65535), help="Its port.")
@click.option("--sessions", default=64, show_default=True, type=click.IntRange(1), help="Episodes at once.")
def serve(name: str, host: str, port: int, sessions: int) -> None:
    """Serve an arena over OpenEnv (WebSocket, MCP where it has tools) until interrupted."""
    registry.find(name)
    try:
        from oomrl.arenas.faces.openenv_server import serve as serve_openenv
    except ImportError as error:
        raise Mistake(
            f"Expected the package openenv, was not installed here ({error.name}): "
            "`make openenv` makes an environment with it, .venv-openenv/bin/python -m oomrl arena serve"
        ) from None
    click.echo(f"Serving {name} on http://{host}:{port}; stop with Ctrl-C.", err=True)
    serve_openenv(name, host, port, sessions)


@arena.group()
def train() -> None:
    """Train a model in the arenas, by TRL. Needs the environment that `make train` makes."""


def training_options(command: Command) -> Command:
    """Add what both ways of training share."""
    for option in (
        click.option(
            "--arena", "arenas", multiple=True, default=registry.QUALIFYING, show_default=True, help="Train in it."
        ),
        click.option("--model", default="smollm2", show_default=True, help="tiny, smollm2, or a folder."),
        click.option("--steps", default=30, show_default=True, type=click.IntRange(1), help="Optimiser steps."),
        click.option("--batch", default=4, show_default=True, type=click.IntRange(1), help="Episodes a step."),
        click.option(
            "--learning-rate",
            default=1e-4,
            show_default=True,
            type=click.FloatRange(0, min_open=True),
            help="Step size.",
        ),
        click.option("--lora-rank", default=8, show_default=True, type=click.IntRange(0), help="0: all weights."),
        click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of all randomness."),
        click.option(
            "--out",
            type=PATH,
            default=Path("build/training"),
            show_default=True,
            help="Folder for what was trained.",
        ),
        json_option,
    ):
        command = option(command)
    return command


@train.command()
@click.option("--teacher", default="heuristic", show_default=True, help="The policy whose episodes are lessons.")
@click.option("--seeds", default="0-7", show_default=True, help="Training seeds of the teacher.")
@click.option(
    "--keep",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True),
    help="Share of the best episodes.",
)
@training_options
def sft(teacher: str, seeds: str, keep: float, **options: Any) -> None:
    """Fine-tune on the better episodes of a teacher."""
    _train("sft", {"teacher": teacher, "seeds": runner.parse_seeds(seeds), "keep": keep}, **options)


@train.command()
@training_options
def grpo(**options: Any) -> None:
    """Train on the arenas' own scores, rollouts mixed."""
    _train("grpo", {}, **options)


def _train(way: str, lessons: dict[str, Any], as_json: bool, **options: Any) -> None:
    for name in options["arenas"]:
        if name not in registry.QUALIFYING:
            raise Mistake(f"Expected an arena of {', '.join(registry.QUALIFYING)} to train in, was {name!r}")
    try:
        from oomrl.arenas.training.session import Session
    except ImportError as error:
        raise Mistake(
            f"Expected the package {error.name}, was not installed here: "
            "`make train` makes an environment with it, .venv-train/bin/python -m oomrl arena train"
        ) from None
    told = Session(**options).sft(**lessons) if way == "sft" else Session(**options).grpo()
    say(told, as_json, "\n".join(f"{name:16} {value}" for name, value in told.items()))

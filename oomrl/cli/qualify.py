"""`oomrl qualify`: a model plays every arena on held-out seeds and gets a signed certificate of what it did."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from oomrl.adapters.folders import made
from oomrl.arenas import certificates, qualification, registry, runner
from oomrl.arenas.episode import Episode
from oomrl.arenas.runner import OnEpisode
from oomrl.cli.arena import ask_person, model_options, model_settings, progress
from oomrl.cli.options import PATH, json_option, now, say, state_option
from oomrl.errors import Mistake, Refused
from oomrl.settings import load

#: Episodes without any answer after which a model counts as one that cannot be reached.
PATIENCE = 5


@click.command()
@model_options
@click.option(
    "--agent",
    type=click.Choice(["openai", "manual"]),
    default="openai",
    show_default=True,
    help="An endpoint, or a person.",
)
@click.option("--settings", "settings_file", type=PATH, help="Take [model] from this file.")
@click.option(
    "--seeds", default=qualification.MIN_SEEDS, show_default=True, type=click.IntRange(2), help="Held-out seeds a task."
)
@click.option("--arena", "arenas", multiple=True, type=click.Choice(registry.QUALIFYING), help="Only this: a trial.")
@click.option("--task", "tasks", multiple=True, help="Only this task of the one arena: a trial.")
@click.option(
    "--days",
    default=qualification.LIFETIME.days,
    show_default=True,
    type=click.IntRange(1, 366),
    help="How long the certificate counts.",
)
@click.option("--out", type=PATH, help="Folder for logs. [default: beside the certificate]")
@state_option
@json_option
def qualify(
    model: str | None,
    base_url: str | None,
    effort: str | None,
    agent: str,
    settings_file: Path | None,
    seeds: int,
    arenas: tuple[str, ...],
    tasks: tuple[str, ...],
    days: int,
    out: Path | None,
    state: Path,
    as_json: bool,
) -> None:
    """Let a model play all arenas and certify what it did. Exit code 0 qualified, 1 not qualified.

    Qualified means: in every arena the mean over held-out seeds lies above the heuristic's. A trial (some arenas,
    tasks or fewer seeds) gets a certificate too, which the loop does not accept.
    """
    chosen = {"provider": agent, "name": model, "base_url": base_url}
    settings = load(settings_file, {"model": {key: value for key, value in chosen.items() if value is not None}}).model
    if agent == "openai" and not model and settings_file is None:
        raise Mistake("Expected a model, was none: give --model, --settings, or set MODEL_NAME")
    asked = model_settings(settings, effort) if agent == "openai" else None
    player = runner.make_agent(agent, asked, ask_person)
    subject = certificates.subject_of(settings.model_dump(mode="json"))
    signer = certificates.signer_of(state)
    if tasks and len(arenas) != 1:
        raise Mistake("Expected one --arena with --task, was none or several")
    names = arenas or registry.QUALIFYING
    only = {name: tasks for name in names} if tasks else {}
    total = seeds * sum(len(only.get(name) or registry.find(name).tasks) for name in names)
    folder = made(out) if out is not None else certificates.path_of(state, subject).with_suffix("")
    with progress(total, quiet=as_json or agent == "manual") as advance:
        heard = _Heard(subject, min(total, PATIENCE), folder, advance)
        results = qualification.measure(player, names, seeds, only, folder, heard)
    certificate = qualification.certify(subject, results, signer.sign, now(), timedelta(days=days))
    path = certificates.save(state, certificate)
    body = certificate["body"]
    lines = [
        f"{one['arena']:14} {one['model']['mean']:.4f}, heuristic {one['heuristic']['mean']:.4f}, difference "
        f"{_interval(one['difference'])}; failures {one['failures']}, refused actions {one['refused']}"
        for one in body["arenas"]
    ]
    lines.append(f"{subject}: {'qualified' if body['qualified'] else 'not qualified'}; {path}")
    say({**certificate, "path": str(path)}, as_json, "\n".join(lines))
    standing = certificates.standing(state, subject, True, now())
    if standing.refusal:
        raise Refused(standing.refusal)


class _Heard:
    """Pass episodes on, and give up on a model whose service delivers none of the first ones: it will not later."""

    def __init__(self, subject: str, patience: int, folder: Path, then: OnEpisode) -> None:
        self.subject, self.patience, self.folder, self.then = subject, patience, folder, then
        self.failed, self.answered = 0, False

    def __call__(self, episode: Episode) -> None:
        self.then(episode)
        self.answered |= episode.failure is None
        self.failed += episode.failure is not None
        if not self.answered and self.failed >= self.patience:
            raise Mistake(
                f"Expected {self.subject} to answer, did not in any of {self.failed} episodes: "
                f"{episode.failure}; {self.folder} holds the record"
            )


def _interval(value: dict[str, float | None]) -> str:
    low, high = value["low"], value["high"]
    bounds = "" if low is None or high is None else f" ({low:+.4f} to {high:+.4f})"
    return f"{value['mean']:+.4f}{bounds}"

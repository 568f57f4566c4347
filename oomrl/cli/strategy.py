"""`oomrl strategy`: begin a strategy repository, or judge one that exists."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from oomrl.cli.options import PATH, json_option, plain
from oomrl.errors import Refused

#: What each part of the judgement is about, and what follows from a remark in it.
PARTS = {
    "layout": "what a strategy repository must have; without it nothing can trade",
    "code": "what the code says; a repair is judged on every module that it touches, whole, so old findings count too",
    "dependencies": "what the worker may import is what requirements.lock names, with hashes, and nothing else",
    "data": "the worker sees src/ and strategy.toml; it can open no file",
    "parameters": "a repair moves parameters within the policy's bounds, and can move none that begins outside",
    "tests": "the locked tests, run in the sandbox; a repair is refused unless all of them pass",
    "coverage": "below the policy's share (95 % of statements and of branches, in all and for each file) the strategy "
    "still trades, but no repair of it is let in: add tests, let test genesis propose some, or lower [coverage] in "
    "policy.toml knowingly",
    "baseline": "hand-computed answers, kept from the code and from the model",
    "contract": "hidden properties: the same decisions after a restart, under other names, in other weeks, in another "
    "unit of price, and none of the future",
}


@click.group()
def strategy() -> None:
    """Begin a strategy repository of your own, or judge one that exists."""


@strategy.command("new")
@click.argument("folder", type=PATH)
@json_option
def new(folder: Path, as_json: bool) -> None:
    """Write a skeleton: a small strategy with its tests, policy, baseline and locked dependencies."""
    from oomrl.adapters.strategy_check import new as write

    files = write(folder)
    if as_json:
        click.echo(json.dumps({"folder": str(folder), "files": files}, indent=2))
        return
    click.echo(f"Wrote {len(files)} files into {folder}. Next:")
    where = shlex.quote(str(folder))
    click.echo(f"  oomrl strategy check {where}\n  oomrl replay --start {where}\n  oomrl simulate --start {where}")


@strategy.command("check")
@click.argument("folder", type=PATH, default=Path())
@click.option("--explain", is_flag=True, help="Say of each kind of finding why it is one, and how to bring it in.")
@click.option("--static", is_flag=True, help="Only read; run neither tests nor properties.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the markets of the properties.")
@json_option
def check(folder: Path, explain: bool, static: bool, seed: int, as_json: bool) -> None:
    """Judge a strategy code base as the gate would judge a repair of it. Exit code 1 where there are findings.

    A folder that is no strategy repository yet is judged too, by the policy that `oomrl strategy new` writes.
    """
    from oomrl.adapters import strategy_check

    judged = strategy_check.judge(folder, run=not static, seed=seed)
    if as_json:
        click.echo(json.dumps(judged.to_json(), indent=2))
    else:
        part = ""
        for remark in judged.remarks:
            if explain and remark.part != part:
                part = remark.part
                click.echo(f"\n{part}: {PARTS[part]}")
            click.echo(plain(f"{remark.code or remark.part:12} {remark.place}: {remark.what}"))
            if explain:
                click.echo(plain(f"             -> {remark.mend}"))
        if explain:
            _explain(judged)
        if figures := judged.figures:
            click.echo(
                f"{figures['passed']} of {figures['tests']} tests pass, {figures['statements']:.1%} of statements and "
                f"{figures['branches']:.1%} of branches covered (sandbox {figures['sandbox']})."
            )
    if judged.remarks:
        counts = ", ".join(f"{count} {part}" for part, count in strategy_check.counted(judged.remarks).items())
        raise Refused(f"{len(judged.remarks)} findings ({counts}).{'' if explain else ' --explain says what to do.'}")
    if not as_json:
        click.echo("Ready: the gate can judge repairs of it." + (" (Nothing was run.)" if static else ""))


def _explain(judged: object) -> None:
    from oomrl.adapters.strategy_check import Judged, advice, advice_on

    assert isinstance(judged, Judged)
    roots: dict[str, list[str]] = {}
    for target in judged.imports:
        one = advice_on(target.split(".")[0])
        kind = next(name for name, known in advice().items() if known is one)
        roots.setdefault(kind, []).append(target)
    for kind, targets in roots.items():
        one = advice()[kind]
        click.echo(plain(f"\n{one.title} ({', '.join(targets)}): {one.why}\n  -> {one.mend}"))
    if judged.profile:
        click.echo(
            f"\nA policy profile that lets in what may be let in; {judged.remaining} findings in the code stay. Grant "
            "only what you have read, and merge it into policy.toml by hand:\n"
        )
        click.echo(plain(judged.profile) + "\n")

"""`oomrl gate`: judge a patch to the strategy repository as the loop would, without deploying anything."""

from __future__ import annotations

import json
from pathlib import Path

import click

from guardrails.environment import GateEnvironment
from guardrails.gate import check
from guardrails.policy import PolicyError, parse_policy
from guardrails.tree import Tree
from oomrl.adapters import environments
from oomrl.adapters.environments import shipped
from oomrl.adapters.repository import read_folder
from oomrl.cli.options import PATH
from oomrl.errors import Mistake, Refused


@click.command()
@click.argument("patch", type=PATH)
@click.option("--phase", type=click.Choice(["logic", "tests"]), required=True, help="What the patch may write.")
@click.option("--after", type=PATH, help="A tests patch that the logic patch follows.")
@click.option("--repo", type=PATH, help="A strategy repository. [default: the shipped one]")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of hidden parts.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def gate(patch: Path, phase: str, after: Path | None, repo: Path | None, seed: int, as_json: bool) -> None:
    """Judge a patch: admissible, policy, lock, sandboxed tests and coverage, hidden properties, probes, mutants.

    The counterfactual replay belongs to a loss and is part of the loop.
    """
    tree = Tree(read_folder(repo or shipped("strategy_repo")))
    found = environments.find(repo)
    try:
        policy = parse_policy(tree["policy.toml"])
    except KeyError as error:
        raise Mistake("Expected policy.toml in the strategy repository, found none.") from error
    except PolicyError as error:
        raise Mistake(f"policy.toml: {error}") from error
    verdict = check(
        tree,
        _read(patch),
        "tests" if phase == "tests" else "logic",
        policy,
        after=_read(after) if after else None,
        seed=seed,
        secret=f"oomrl/gate/{seed}".encode(),
        environment=GateEnvironment(found.gate, found.worker),
    )
    if as_json:
        click.echo(json.dumps(verdict.to_json(), indent=2))
    else:
        for stage in verdict.stages:
            click.echo(f"{stage.status:8} {stage.name} ({stage.seconds:.1f} s)")
        for finding in verdict.findings:
            click.echo(f"{finding.code} {finding.path}:{finding.line} {finding.reason} {finding.fix}")
        click.echo(f"Verdict: {verdict.decision} (sandbox {verdict.sandbox['profile']})")
    if not verdict.allowed:
        raise Refused(f"the gate says {verdict.decision}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Mistake(f"Expected a patch at {path}: {error.strerror}.") from error

"""The deployment repository and the sandboxed workers that run its revisions, in the loop's words."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from guardrails.policy import parse_policy
from guardrails.ro_lock import LockViolation, commit
from guardrails.sandbox import Sandbox, SandboxError
from guardrails.tree import Tree
from oomrl.adapters.repository import Repository
from oomrl.adapters.strategy_worker import SandboxedWorker
from oomrl.domain.account import Cadence
from oomrl.domain.records import Proposal, Review, StoredVerdict, lock_steps
from oomrl.errors import Halt, Mistake
from oomrl.ports import StrategyWorker
from oomrl.review import Bound

#: What a worker may read of a revision: never its tests, never its golden answers.
WORKER_VIEW = ("src", "strategy.toml")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What strategy.toml says to the service: name, cadence, warm-up sessions, and the strategy's parameters."""

    name: str
    cadence: Cadence
    warmup: int
    parameters: dict[str, Any] = field(default_factory=dict)


def configuration(data: bytes) -> Configuration:
    """Read strategy.toml. Raises `Mistake` with what is wrong in it."""
    try:
        raw = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, a number too long or tables too deep to be read
        raise Mistake(f"strategy.toml: expected TOML, {error}") from error
    table, parameters = raw.get("strategy"), raw.get("parameters", {})
    if not isinstance(table, dict) or not isinstance(parameters, dict):
        raise Mistake("strategy.toml: expected the tables [strategy] and [parameters]")
    cadence, warmup = table.get("cadence"), table.get("warmup", 0)
    if cadence not in tuple(Cadence):
        raise Mistake(f'strategy.toml: expected cadence = "daily" or "weekly", was {cadence!r}')
    if type(warmup) is not int or warmup < 0:
        raise Mistake(f"strategy.toml: expected warmup as a whole number of sessions, was {warmup!r}")
    for name, value in parameters.items():
        if not _plain(value):
            raise Mistake(f"strategy.toml: expected a finite number, text or truth in parameters.{name}, was {value!r}")
    return Configuration(str(table.get("name", "strategy")), Cadence(cadence), warmup, parameters)


def _plain(value: object) -> bool:
    """Say whether a parameter is what a frame can carry: text, truth, or a number within a double's range."""
    if isinstance(value, (str, bool)):
        return True
    return isinstance(value, (int, float)) and -1e300 < value < 1e300


def sandboxed() -> Sandbox:
    """Return the strongest sandbox of this machine. Raises `Mistake` where none holds a strategy."""
    try:
        return Sandbox.choose()
    except SandboxError as error:
        raise Mistake(str(error)) from error


@dataclass(frozen=True, slots=True)
class Workers:
    """Start sandboxed workers on folders that hold a revision's src/ and strategy.toml.

    Without a `sandbox` the strongest one is chosen at the first start.
    """

    sandbox: Sandbox | None
    python: Path
    capital: float
    seed: int = 0

    def start(self, folder: Path) -> StrategyWorker:
        """Start a worker. Raises `StrategyFailure` where the strategy cannot even be built."""
        settings = configuration((folder / "strategy.toml").read_bytes())
        return SandboxedWorker.start(
            self.sandbox or sandboxed(), self.python, folder, settings.parameters, seed=self.seed, capital=self.capital
        )


class Deployed:
    """Implement `oomrl.stages.Strategies` on the deployment repository."""

    def __init__(self, repository: Repository, workers: Workers, now: Callable[[], datetime]) -> None:
        self.repository, self.workers, self.now = repository, workers, now

    def cadence(self, revision: str) -> str:
        return configuration(self.repository.tree(revision)["strategy.toml"]).cadence

    def start(self, revision: str) -> StrategyWorker:
        return self.workers.start(self.repository.checkout(revision, only=WORKER_VIEW))

    def deploy(self, proposal: Proposal, review: Review, verdict: StoredVerdict) -> str:
        """Commit exactly the tree that was judged, locked and approved; raise `Halt` for any other."""
        from oomrl.adapters.patches import resulting_changes

        base = Tree(self.repository.tree(proposal.base_revision))
        changes = resulting_changes(base, proposal)
        approved = Bound(review.base_tree, review.result_tree, review.verdict)
        before = self.repository.tree_id(proposal.base_revision)
        after = self.repository.preview(proposal.base_revision, changes)
        if changed := approved.differences(Bound(before, after, verdict.digest)):
            raise Halt(f"{proposal.id} cannot be deployed as it was approved: the {'; '.join(changed)}")
        steps = lock_steps(verdict)
        if steps:
            try:
                commit(steps[-1], base.replace(changes), parse_policy(base["policy.toml"]))
            except LockViolation as error:
                raise Halt(f"{proposal.id} cannot be deployed. {error}") from error
        message = f"{proposal.id}\n\nApproved by {review.reviewer}: {review.reason}"
        return self.repository.commit(proposal.base_revision, changes, message, self.now())

    def rollback(self, revision: str, reason: str) -> str:
        """Deploy the tree before a revision again."""
        log = self.repository.log()
        place = next((n for n, entry in enumerate(log) if entry.id == revision), None)
        if place is None or place + 1 >= len(log):
            raise Halt(f"Expected a revision before {revision[:12]} to roll back to, was none")
        return self.repository.rollback(log[place + 1].id, revision, f"Rollback: {reason}", self.now())

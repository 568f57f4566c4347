"""Tripwires: a deployed revision that fails is rolled back by itself, and the one before trades on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pytest

from oomrl import bootstrap
from oomrl.cli.console import Watching
from oomrl.domain.deployment import Watched
from oomrl.domain.records import CapitalKind, Deployment, DeploymentKind
from oomrl.loop import Loop
from tests import databases
from tests.acceptance.conftest import write_tape

FIRST, BROKEN_ON = date(2010, 6, 1), date(2010, 6, 11)
DECIDE = b"    def decide(self, portfolio: dict) -> dict:\n"


@dataclass(frozen=True)
class Case:
    state: Path
    tape: Path

    def loop(self) -> tuple[bootstrap.Assembled, Loop]:
        settings = databases.settings(self.state, {"loop": {"reviewer": "auto"}})
        asked = bootstrap.Simulation(self.state, settings, str(self.tape), from_day=FIRST)
        made = bootstrap.assemble(asked, Watching(0, quiet=True))
        return made, made.loop


@pytest.fixture
def broken(tmp_path: Path) -> Case:
    """Run to a close, and deploy a revision there that raises when it is asked."""
    case = Case(tmp_path / "state", write_tape(tmp_path / "tape"))
    made, loop = case.loop()
    with made.store:
        loop.run(until=BROKEN_ON)
        base = made.repository.head()
        path = "src/strategy/strategy.py"
        source = made.repository.tree(base)[path]
        assert DECIDE in source
        source = source.replace(DECIDE, DECIDE + b'        raise ValueError("broken")\n')
        at = loop.facts.deployments()[0].at + timedelta(days=1)
        revision = made.repository.commit(base, {path: source}, "Broken", at)
        deployment = Deployment(made.run, 2, revision, base, DeploymentKind.DEPLOY, BROKEN_ON, at, "p", "a test")
        with made.store.begin() as work:
            work.deployments.save(deployment)
    return case


def watch_with_a_promise(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the verdict's promise: the broken revision never had a verdict, as no gate would pass it."""
    real = type(loop.facts).watched

    def watched(facts: object) -> Watched | None:
        made = loop.facts.deployments()[-1]
        if made.kind is DeploymentKind.DEPLOY:
            return Watched(made.revision, made.day + timedelta(days=1), turnover=2.0, friction_bps=5.0, exposure=0.9)
        return real(facts)  # type: ignore[arg-type]

    monkeypatch.setattr(type(loop.facts), "watched", watched)


def test_a_failing_deployment_is_rolled_back_and_trading_goes_on(broken: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    made, loop = broken.loop()
    watch_with_a_promise(loop, monkeypatch)
    with made.store:
        loop.run()
        with made.store.read() as view:
            deployments = view.deployments.all(made.run)
            events = view.capital.events(made.run)
            diagnostics = view.losses.diagnostics(made.run)
            orders, _ = view.orders.counts(made.run)
            decided = [one.day for one in view.sessions.decisions(made.run) if one.revision == deployments[-1].revision]
            marks = {mark.day: mark.state for mark in view.sessions.marks(made.run)}
    assert [made.kind for made in deployments] == [
        DeploymentKind.START,
        DeploymentKind.DEPLOY,
        DeploymentKind.ROLLBACK,
    ]
    undone = deployments[-1]
    assert undone.reason.startswith("failure: ")
    tree = made.repository.tree_id
    assert tree(undone.revision) == tree(deployments[0].revision)
    assert [event.kind for event in events] == [CapitalKind.HALT, CapitalKind.RESUME]
    assert events[-1].by == "service"
    assert [diagnostic.status for diagnostic in diagnostics] == ["rolled_back"]
    assert decided and min(decided) >= undone.day
    assert orders > 0
    assert marks[max(marks)] != "halted"


def test_a_second_start_folds_the_rollback_again(broken: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    made, loop = broken.loop()
    watch_with_a_promise(loop, monkeypatch)
    with made.store:
        loop.run()
        with made.store.read() as view:
            digest = view.sessions.digest(made.run)
            count = len(view.deployments.all(made.run))
    again, loop = broken.loop()
    with again.store:
        loop.run()
        with again.store.read() as view:
            assert view.sessions.digest(again.run) == digest
            assert len(view.deployments.all(again.run)) == count
        assert loop.revision == loop.facts.deployments()[-1].revision

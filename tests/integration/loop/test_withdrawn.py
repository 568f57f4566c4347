"""An approval that is taken back between the look at it and the commit is no approval."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from guardrails.tree import Tree
from oomrl import bootstrap
from oomrl.adapters import patches
from oomrl.adapters.desk import Desk
from oomrl.cli.console import Watching
from oomrl.domain.people import RIGHTS, Person, Role
from oomrl.domain.records import Act, DeploymentKind, ProposalStatus, Review
from oomrl.settings import ReviewSettings
from tests import databases
from tests.acceptance.conftest import write_tape
from tests.integration.adapters.test_deployed import verdict
from tests.states import AT, RUN, MadeUp

FIRST, UNTIL = date(2010, 6, 1), date(2010, 6, 8)
ANN = Person("ann", RIGHTS[Role.REVIEWER])


def test_what_is_withdrawn_before_the_commit_is_not_deployed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    settings = databases.settings(state, {"loop": {"reviewer": "person"}})
    tape = str(write_tape(tmp_path / "tape"))
    made = bootstrap.assemble(bootstrap.Simulation(state, settings, tape, from_day=FIRST), Watching(0, quiet=True))
    loop = made.loop
    with made.store:
        loop.run(until=UNTIL)
        head = made.repository.head()
        world = MadeUp(state, made.store, made.repository, made.repository.tree(head), head)
        world.loss()
        proposal = world.proposal()
        desk = Desk(state, made.store, RUN, ReviewSettings(), lambda: AT)
        passed = verdict(world, proposal, Tree(patches.result_of(world.tree, proposal)))
        session = next(one for one in loop.market.sessions(until=UNTIL) if one.day == UNTIL)

        def looked_at() -> Review:
            desk.look(ANN, proposal.id)
            desk.decide(ANN, proposal.id, Act.APPROVE, "fine")
            review = loop.reviewer.review(proposal, passed, head)
            assert isinstance(review, Review)
            return review

        review = looked_at()
        desk.decide(ANN, proposal.id, Act.WITHDRAW, "not yet")
        assert not loop.deploy(proposal, review, passed, session)
        with made.store.read() as view:
            assert [one.kind for one in view.deployments.all(RUN)] == [DeploymentKind.START]
        assert made.repository.head() == head == loop.revision

        assert loop.deploy(proposal, looked_at(), passed, session)
        assert made.repository.tree_id(made.repository.head()) == proposal.result_tree
        with made.store.read() as view:
            found = view.proposals.get(RUN, proposal.id)
        assert found is not None and found.status is ProposalStatus.DEPLOYED

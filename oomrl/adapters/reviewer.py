"""What reviewers decided: a person, by command and on the page, or nobody in an unattended simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from oomrl.adapters.changes import changes_of
from oomrl.adapters.database import Store
from oomrl.adapters.opinions import remarks_on
from oomrl.adapters.repository import Repository
from oomrl.domain.records import Act, Proposal, Review, StoredVerdict
from oomrl.errors import Refused
from oomrl.review import AUTO, approval, reason_to_wait, review, risk_of
from oomrl.settings import ReviewSettings
from oomrl.stages import Waiting


class StoredReviews:
    """Implement `oomrl.stages.Reviewer` on the store. `automatic` approves whatever passed, in simulation alone."""

    def __init__(
        self,
        run: str,
        store: Store,
        repository: Repository,
        now: Callable[[], datetime],
        automatic: bool,
        rules: ReviewSettings,
    ) -> None:
        self.run, self.store, self.repository, self.now = run, store, repository, now
        self.automatic, self.rules = automatic, rules

    def review(self, proposal: Proposal, verdict: StoredVerdict, revision: str) -> Review | Waiting:
        """Return a veto, a request for changes, or the last of the approvals that are needed and still hold."""
        judged, deployed = replace(proposal, result_tree=verdict.result_tree), self.repository.tree_id(revision)
        with self.store.read() as view:
            acts = view.proposals.reviews(self.run, proposal.id)
            day = view.reading.last_day(self.run)
            freezes = view.remarks.freezes(self.run)
            remarks = remarks_on(view, proposal)
            roll = view.people.roll()
        if not acts and self.automatic:
            reason = "approved automatically: an unattended simulation"
            return review(judged, verdict, deployed, AUTO, Act.APPROVE, reason, self.now(), live=False)
        ended = [act for act in acts if act.act in (Act.REJECT, Act.REQUEST_CHANGES)]
        if ended:
            return next((act for act in ended if act.act is Act.REJECT), ended[-1])
        try:
            given = approval(judged, verdict, deployed, acts, not self.automatic, self._needed(proposal), remarks, roll)
        except Refused:
            return Waiting("review", proposal.id)
        if not self.automatic and reason_to_wait(self.now(), day or self.now().date(), freezes, self.rules.windows):
            return Waiting("window", proposal.id)
        return given

    def _needed(self, proposal: Proposal) -> int:
        if self.automatic:
            return 1
        changes = changes_of(self.repository.tree(proposal.base_revision), proposal)
        return risk_of(changes.paths, changes.parameters, self.rules).approvals

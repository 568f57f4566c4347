"""What reviewers decided: a person, by command and on the page, or nobody in an unattended simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from oomrl.adapters.database import Store
from oomrl.adapters.repository import Repository
from oomrl.domain.records import Act, Proposal, Review, StoredVerdict
from oomrl.errors import Refused
from oomrl.review import AUTO, approval, review


class StoredReviews:
    """Implement `oomrl.stages.Reviewer` on the store. `automatic` approves whatever passed, in simulation alone."""

    def __init__(self, run: str, store: Store, repository: Repository, now: Callable[[], datetime], automatic: bool):
        self.run, self.store, self.repository, self.now, self.automatic = run, store, repository, now, automatic

    def review(self, proposal: Proposal, verdict: StoredVerdict, revision: str) -> Review | None:
        """Return a veto, a request for changes, or an approval that still holds; None while there is none of them."""
        judged, deployed = replace(proposal, result_tree=verdict.result_tree), self.repository.tree_id(revision)
        with self.store.read() as view:
            acts = view.proposals.reviews(self.run, proposal.id)
        if not acts and self.automatic:
            reason = "approved automatically: an unattended simulation"
            return review(judged, verdict, deployed, AUTO, Act.APPROVE, reason, self.now(), live=False)
        said = next((act for act in acts if act.act is Act.REJECT), acts[-1] if acts else None)
        if said is None or said.act is not Act.APPROVE:
            return said
        try:
            return approval(judged, verdict, deployed, acts, live=not self.automatic)
        except Refused:
            return None

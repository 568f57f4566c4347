"""Who reviews: a person, by command and on the page, or nobody in an unattended simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from oomrl.adapters.repository import Repository
from oomrl.domain.records import Act, Proposal, Review, StoredVerdict
from oomrl.review import AUTO, review


class PersonReviews:
    """Wait: a person's review is found in the store once it is there."""

    def review(self, proposal: Proposal, verdict: StoredVerdict) -> Review | None:
        return None


class AutomaticReviews:
    """Approve whatever passed. Exists in simulation alone, and the record says so."""

    def __init__(self, repository: Repository, now: Callable[[], datetime]) -> None:
        self.repository, self.now = repository, now

    def review(self, proposal: Proposal, verdict: StoredVerdict) -> Review | None:
        deployed = self.repository.tree_id(self.repository.head())
        judged = replace(proposal, result_tree=verdict.result_tree)
        reason = "approved automatically: an unattended simulation"
        return review(judged, verdict, deployed, AUTO, Act.APPROVE, reason, self.now(), live=False)

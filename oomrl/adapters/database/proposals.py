"""Proposals, what the gate said of them, and what people said."""

from __future__ import annotations

from sqlalchemy import Connection, Row, Select, and_, func, select, update

from oomrl.adapters.database.bulk import put
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import proposals, reviews, verdicts
from oomrl.domain.records import Act, Proposal, ProposalStatus, Review, StoredVerdict
from oomrl.errors import Mistake


class Proposals:
    """The shelf of proposals, verdicts and reviews, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def save(self, proposal: Proposal) -> bool:
        """Write a proposal; return False where it is there already."""
        row = {
            "run_id": self._runs.key(proposal.run),
            "id": proposal.id,
            "diagnostic": proposal.diagnostic,
            "attempt": proposal.attempt,
            "digest": proposal.digest,
            "author": proposal.author,
            "base_revision": proposal.base_revision,
            "base_tree": proposal.base_tree,
            "result_tree": proposal.result_tree,
            "logic_patch": proposal.logic_patch,
            "tests_patch": proposal.tests_patch,
            "explanation": proposal.explanation,
            "repairs": list(proposal.repairs),
            "prompt": proposal.prompt,
            "status": proposal.status.value,
            "at": proposal.at,
        }
        return put(self._connection, proposals, row, may_differ=("at", "status", "result_tree"))

    def set_status(self, run: str, proposal: str, status: ProposalStatus, result_tree: str | None = None) -> None:
        """Move a proposal on, and name the tree that it gives once that is known."""
        values = {"status": status.value} | ({} if result_tree is None else {"result_tree": result_tree})
        where = (proposals.c.run_id == self._runs.key(run)) & (proposals.c.id == proposal)
        if self._connection.execute(update(proposals).where(where).values(**values)).rowcount != 1:
            raise Mistake(f"Expected the id of a proposal of {run}, was {proposal!r}: see `oomrl review list`")

    def get(self, run: str, proposal: str) -> Proposal | None:
        """Return one proposal, None where there is none."""
        row = self._connection.execute(self._all(run).where(proposals.c.id == proposal)).one_or_none()
        return None if row is None else _proposal(run, row)

    def deployed_as(self, run: str, tree: str) -> str:
        """Return the proposal that was deployed with a resulting tree, empty where there is none."""
        mine = (proposals.c.run_id == self._runs.key(run)) & (proposals.c.status == ProposalStatus.DEPLOYED.value)
        query = select(proposals.c.id).where(mine, proposals.c.result_tree == tree).order_by(proposals.c.at.desc())
        return self._connection.scalar(query.limit(1)) or ""

    def all(self, run: str, diagnostic: str | None = None, status: ProposalStatus | None = None) -> list[Proposal]:
        """Return the proposals of a run (of one diagnostic, of one status), oldest first."""
        query = self._all(run)
        if diagnostic is not None:
            query = query.where(proposals.c.diagnostic == diagnostic)
        if status is not None:
            query = query.where(proposals.c.status == status.value)
        query = query.order_by(proposals.c.at, proposals.c.attempt, proposals.c.id)
        return [_proposal(run, row) for row in self._connection.execute(query)]

    def save_verdict(self, verdict: StoredVerdict) -> bool:
        """Write a verdict; return False where it is there already."""
        row = {
            "run_id": self._runs.key(verdict.run),
            "digest": verdict.digest,
            "proposal": verdict.proposal,
            "outcome": verdict.outcome,
            "base_tree": verdict.base_tree,
            "result_tree": verdict.result_tree,
            "payload": dict(verdict.payload),
            "at": verdict.at,
        }
        # The payload may carry times and hosts that the digest leaves out.
        return put(self._connection, verdicts, row, may_differ=("at", "payload"))

    def verdict(self, run: str, proposal: str) -> StoredVerdict | None:
        """Return the newest verdict on a proposal, None before the first."""
        found = self.verdicts(run, proposal)
        return found[-1] if found else None

    def verdicts(self, run: str, proposal: str | None = None) -> list[StoredVerdict]:
        """Return the verdicts of a run (on one proposal), oldest first."""
        query = select(verdicts).where(verdicts.c.run_id == self._runs.key(run))
        if proposal is not None:
            query = query.where(verdicts.c.proposal == proposal)
        rows = self._connection.execute(query.order_by(verdicts.c.at, verdicts.c.digest))
        return [
            StoredVerdict(r.digest, r.proposal, run, r.outcome, r.base_tree, r.result_tree, r.payload, r.at)
            for r in rows
        ]

    def save_review(self, review: Review) -> bool:
        """Write what a reviewer did; return False where it is there already."""
        run = self._runs.key(review.run)
        mine = and_(reviews.c.run_id == run, reviews.c.proposal == review.proposal)
        row = {
            "run_id": run,
            "id": review.id,
            "proposal": review.proposal,
            "reviewer": review.reviewer,
            "act": review.act.value,
            "reason": review.reason,
            "base_tree": review.base_tree,
            "result_tree": review.result_tree,
            "verdict": review.verdict,
            "at": review.at,
            "sequence": (self._connection.scalar(select(func.max(reviews.c.sequence)).where(mine)) or 0) + 1,
        }
        return put(self._connection, reviews, row, may_differ=("at", "sequence"))

    def reviews(self, run: str, proposal: str | None = None) -> list[Review]:
        """Return the reviews of a run (of one proposal), oldest first."""
        query = select(reviews).where(reviews.c.run_id == self._runs.key(run))
        if proposal is not None:
            query = query.where(reviews.c.proposal == proposal)
        rows = self._connection.execute(query.order_by(reviews.c.at, reviews.c.sequence, reviews.c.id))
        return [
            Review(
                r.id,
                r.proposal,
                run,
                r.reviewer,
                Act(r.act),
                r.reason,
                r.base_tree,
                r.result_tree,
                r.verdict,
                r.at,
            )
            for r in rows
        ]

    def _all(self, run: str) -> Select[tuple[object, ...]]:
        return select(proposals).where(proposals.c.run_id == self._runs.key(run))


def _proposal(run: str, row: Row[tuple[object, ...]]) -> Proposal:
    return Proposal(
        id=row.id,
        digest=row.digest,
        run=run,
        diagnostic=row.diagnostic,
        attempt=row.attempt,
        author=row.author,
        base_revision=row.base_revision,
        base_tree=row.base_tree,
        at=row.at,
        logic_patch=row.logic_patch,
        tests_patch=row.tests_patch,
        result_tree=row.result_tree,
        explanation=row.explanation,
        repairs=tuple(row.repairs),
        prompt=row.prompt,
        status=ProposalStatus(row.status),
    )

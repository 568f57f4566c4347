"""The rules of review: who may say what about a proposal, and when an approval still holds.

Values in, a `Review` or a `Refused` out. An approval binds the base tree, the resulting tree and the verdict that
the reviewer saw; when any of them is another one by now, the approval is void and the difference is named.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from oomrl.domain.records import Act, Proposal, ProposalStatus, Review, StoredVerdict
from oomrl.errors import Mistake, Refused

#: The reviewer of unattended simulations. Live and paper trading refuse it.
AUTO = "auto"

#: States of a proposal about which nothing can be said any more.
_CLOSED = {
    ProposalStatus.REJECTED: "was vetoed, which is final",
    ProposalStatus.DEPLOYED: "is deployed already: use `oomrl rollback`",
    ProposalStatus.ESCALATED: "is an escalation, not a patch: answer it with a new mandate",
    ProposalStatus.SUPERSEDED: "was superseded by a later one",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """What a review is about, by digest: the tree before, the tree after, and the gate's verdict."""

    base_tree: str
    result_tree: str
    verdict: str

    def differences(self, now: Bound) -> list[str]:
        """Return what is another one now, in words."""
        pairs = (
            ("base tree", self.base_tree, now.base_tree),
            ("resulting tree", self.result_tree, now.result_tree),
            ("verdict", self.verdict, now.verdict),
        )
        return [f"{what} was {old[:12] or 'none'}, is {new[:12] or 'none'}" for what, old, new in pairs if old != new]


def bound(proposal: Proposal, verdict: StoredVerdict | None, deployed_tree: str) -> Bound:
    """Return what a reviewer looks at now: the deployed tree, the proposal's result and its newest verdict."""
    return Bound(deployed_tree, proposal.result_tree, "" if verdict is None else verdict.digest)


def review(
    proposal: Proposal,
    verdict: StoredVerdict | None,
    deployed_tree: str,
    reviewer: str,
    act: Act,
    reason: str,
    at: datetime,
    seen: Bound | None = None,
    live: bool = True,
) -> Review:
    """Return the record of a reviewer's act.

    `seen` is what was shown to the reviewer; the act is refused when it is no longer what stands there (None: the
    act follows the look in the same moment). `live` False allows the automatic reviewer of simulations.

    Raise `Mistake` for a missing name or reason, `Refused` where the rules say no.
    """
    who = _identity(reviewer)
    now = bound(proposal, verdict, deployed_tree)
    if proposal.status in _CLOSED:
        raise Refused(f"Expected a proposal that is open, was {proposal.id}, which {_CLOSED[proposal.status]}")
    changed = [] if seen is None else seen.differences(now)
    if changed:
        raise Refused(f"Expected what was shown to be what stands there: {'; '.join(changed)}. Look again")
    if act is not Act.APPROVE and not reason.strip():
        raise Mistake(f"Expected a reason to {act.value.replace('_', ' ')}, was none: it becomes part of the record")
    if act is Act.APPROVE:
        _may_approve(proposal, verdict, now, who, live)
    return Review(
        id=_review_id(proposal.id, who, act, reason, now),
        proposal=proposal.id,
        run=proposal.run,
        reviewer=who,
        act=act,
        reason=reason.strip(),
        base_tree=now.base_tree,
        result_tree=now.result_tree,
        verdict=now.verdict,
        at=at,
    )


def approval(
    proposal: Proposal, verdict: StoredVerdict | None, deployed_tree: str, reviews: Sequence[Review], live: bool = True
) -> Review:
    """Return the approval under which a proposal may be deployed now; raise `Refused` where there is none.

    `reviews` are the proposal's, oldest first. A veto holds for ever; otherwise the last act counts.
    """
    mine = [one for one in reviews if one.proposal == proposal.id]
    veto = next((one for one in mine if one.act is Act.REJECT), None)
    if veto is not None:
        raise Refused(f"Expected an approval of {proposal.id}, was vetoed by {veto.reviewer}: {veto.reason}")
    if not mine or mine[-1].act is not Act.APPROVE:
        last = mine[-1] if mine else None
        said = "no review yet" if last is None else f"changes requested by {last.reviewer}: {last.reason}"
        raise Refused(f"Expected an approval of {proposal.id}, was {said}")
    given = mine[-1]
    now = bound(proposal, verdict, deployed_tree)
    changed = Bound(given.base_tree, given.result_tree, given.verdict).differences(now)
    if changed:
        raise Refused(
            f"Expected the approval by {given.reviewer} to be of what stands there now: {'; '.join(changed)}. "
            "The approval is void: review it again"
        )
    _may_approve(proposal, verdict, now, given.reviewer, live)
    return given


def _may_approve(proposal: Proposal, verdict: StoredVerdict | None, now: Bound, who: str, live: bool) -> None:
    if verdict is None or verdict.proposal != proposal.id:
        raise Refused(f"Expected a verdict of the gate on {proposal.id}, was none: run `oomrl once gate`")
    if verdict.outcome != "pass":
        raise Refused(f"Expected a verdict of pass on {proposal.id}, was {verdict.outcome}: it cannot be approved")
    judged = Bound(verdict.base_tree, verdict.result_tree, verdict.digest)
    changed = judged.differences(now)
    if changed or not now.result_tree:
        raise Refused(
            f"Expected the verdict to be on the trees that stand there now: {'; '.join(changed) or 'no result'}. "
            "Run the gate again"
        )
    if _same_person(who, proposal.author):
        raise Refused(f"Expected a reviewer other than the proposer, was {who} for both")
    if who.casefold() == AUTO and live:
        raise Refused("Expected a person to approve, was the automatic reviewer, which exists in simulation alone")


def _identity(reviewer: str) -> str:
    name = " ".join(reviewer.split())
    if not name or len(name) > 200 or not name.isprintable():
        raise Mistake(f"Expected the reviewer's name or address, was {reviewer[:80]!r}")
    return name


def _same_person(one: str, other: str) -> bool:
    """Compare identities without case and blanks; of `Name <address>` either part is enough."""

    def parts(identity: str) -> set[str]:
        address = re.search(r"<([^<>]+)>", identity)
        name = re.sub(r"<[^<>]*>", "", identity)
        return {"".join(part.split()).casefold() for part in (name, address[1] if address else "") if part.strip()}

    return bool(parts(one) & parts(other))


def _review_id(proposal: str, who: str, act: Act, reason: str, now: Bound) -> str:
    parts = [proposal, who, act.value, reason.strip(), now.base_tree, now.result_tree, now.verdict]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

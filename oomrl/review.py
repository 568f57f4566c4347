"""The rules of review: who may say what about a proposal, when an approval still holds, and when it may be deployed.

Values in, a `Review` or a `Refused` out. An approval binds the base tree, the resulting tree and the verdict that
the reviewer saw; when any of them is another one by now, the approval is void and the difference is named. The page,
the JSON API and the commands all come through here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from fnmatch import fnmatchcase

from oomrl.domain.people import Freeze, Remark
from oomrl.domain.records import Act, Proposal, ProposalStatus, Review, StoredVerdict
from oomrl.errors import Mistake, Refused
from oomrl.settings import ReviewSettings

#: The reviewer of unattended simulations. Live and paper trading refuse it.
AUTO = "auto"

#: States of a proposal about which nothing can be said any more.
_CLOSED = {
    ProposalStatus.REJECTED: "was vetoed, which is final",
    ProposalStatus.DEPLOYED: "is deployed already: use `oomrl rollback`",
    ProposalStatus.REFUSED: "has no verdict of pass: there is nothing to decide about",
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
    looked: bool = True,
    remarks: Sequence[Remark] = (),
) -> Review:
    """Return the record of a reviewer's act.

    `seen` is what was shown to the reviewer; the act is refused when it is no longer what stands there (None: the
    act follows the look in the same moment). `live` False allows the automatic reviewer of simulations. An approval
    needs that the diff was opened (`looked`), and a settlement of every blocking one of `remarks`.

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
        _has_read(proposal, reason, looked, remarks, live)
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
    proposal: Proposal,
    verdict: StoredVerdict | None,
    deployed_tree: str,
    reviews: Sequence[Review],
    live: bool = True,
    needed: int = 1,
    remarks: Sequence[Remark] = (),
) -> Review:
    """Return the approval under which a proposal may be deployed now; raise `Refused` where there is none.

    `reviews` are the proposal's, oldest first. A veto holds for ever; otherwise a request for changes resets all
    approvals before it, and `needed` different people must have given one that still holds. None holds while one of
    `remarks` stands in the way, whenever it was made.
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
    _is_settled(proposal, remarks)
    holding = votes(mine, now)
    if len(holding) < needed:
        people = ", ".join(one.reviewer for one in holding)
        raise Refused(f"Expected approvals of {proposal.id} by {needed} people, was {len(holding)}: {people}")
    return given


def votes(reviews: Sequence[Review], now: Bound) -> list[Review]:
    """Return the approvals that hold, one a person: after the last request for changes, of what stands there now."""
    holding: list[Review] = []
    for one in reviews:
        if one.act is not Act.APPROVE:
            holding = []
        elif Bound(one.base_tree, one.result_tree, one.verdict) == now:
            holding = [other for other in holding if not same_person(other.reviewer, one.reviewer)] + [one]
    return holding


@dataclass(frozen=True, slots=True)
class Risk:
    """How much a change can do: its class (risk, execution, ordinary), how many must approve, and what says so."""

    name: str
    approvals: int
    because: tuple[str, ...] = ()


def risk_of(paths: Collection[str], parameters: Collection[str], rules: ReviewSettings) -> Risk:
    """Return the class of a change by the paths and parameters (section.key) that it touches; the gravest counts."""
    for name, globs, keys in (
        ("risk", rules.risk_paths, rules.risk_parameters),
        ("execution", rules.execution_paths, rules.execution_parameters),
    ):
        touched = [path for path in sorted(paths) if any(fnmatchcase(path, glob) for glob in globs)]
        touched += [key for key in sorted(parameters) if key in keys]
        if touched:
            return Risk(name, rules.approvals_where_risky, tuple(touched))
    return Risk("ordinary", 1)


_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def reason_to_wait(at: datetime, day: date, freezes: Sequence[Freeze], windows: Sequence[str]) -> str:
    """Return why nothing may be deployed at an instant after the close of `day`, empty where it may.

    A window reads `mon-thu` or `mon-thu 20:30-23:00` (UTC, the end not included); none at all means always.
    """
    held = next((freeze for freeze in freezes if freeze.holds(day)), None)
    if held is not None:
        return f"frozen by {held.by} until the close of {held.last.isoformat()}: {held.reason}"
    if windows and not any(_open(window, at) for window in windows):
        return f"outside the windows for deployments ({'; '.join(windows)}, UTC)"
    return ""


def _open(window: str, at: datetime) -> bool:
    days, _, hours = window.partition(" ")
    first, _, last = days.partition("-")
    begin, end = _DAYS.index(first), _DAYS.index(last or first)
    weekday = at.weekday()
    inside = begin <= weekday <= end if begin <= end else weekday >= begin or weekday <= end
    if not hours:
        return inside
    opens, closes = (time.fromisoformat(hour) for hour in hours.split("-"))
    return inside and opens <= at.time().replace(tzinfo=None) < closes


def _has_read(proposal: Proposal, reason: str, looked: bool, remarks: Sequence[Remark], live: bool) -> None:
    if not reason.strip() and live:
        raise Mistake("Expected a reason to approve, was none: it becomes part of the record")
    if not looked:
        raise Refused(f"Expected the diff of {proposal.id} to be opened before it is approved, was not: open it first")
    _is_settled(proposal, remarks)


def _is_settled(proposal: Proposal, remarks: Sequence[Remark]) -> None:
    open_ = [remark for remark in remarks if remark.stands_in_the_way]
    if open_:
        raise Refused(
            f"Expected every blocking remark on {proposal.id} to be settled, was {len(open_)} without an answer: "
            f"{open_[0].as_asked()[:120]}"
        )


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
    if same_person(who, proposal.author):
        raise Refused(f"Expected a reviewer other than the proposer, was {who} for both")
    if who.casefold() == AUTO and live:
        raise Refused("Expected a person to approve, was the automatic reviewer, which exists in simulation alone")


def _identity(reviewer: str) -> str:
    name = " ".join(reviewer.split())
    if not name or len(name) > 200 or not name.isprintable():
        raise Mistake(f"Expected the reviewer's name or address, was {reviewer[:80]!r}")
    return name


def same_person(one: str, other: str) -> bool:
    """Compare identities without case and blanks; of `Name <address>` either part is enough, of several any."""

    def parts(identity: str) -> set[str]:
        addresses = re.findall(r"<([^<>]+)>", identity)
        names = re.sub(r"<[^<>]*>", "", identity).split(",")
        return {"".join(part.split()).casefold() for part in (*names, *addresses) if part.strip()}

    return bool(parts(one) & parts(other))


def _review_id(proposal: str, who: str, act: Act, reason: str, now: Bound) -> str:
    parts = [proposal, who, act.value, reason.strip(), now.base_tree, now.result_tree, now.verdict]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

"""The rules of review: who may say what about a proposal, when an approval still holds, and when it may be deployed.

Values in, a `Review` or a `Refused` out. An approval binds the base tree, the resulting tree and the verdict that
the reviewer saw; when any of them is another one by now, the approval is void and the difference is named. The page,
the JSON API and the commands all come through here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from fnmatch import fnmatchcase

from oomrl.domain.people import Freeze, Remark
from oomrl.domain.records import Act, Proposal, ProposalStatus, Review, StoredVerdict
from oomrl.domain.roll import Roll, identity, same_person
from oomrl.errors import Mistake, Refused
from oomrl.settings import ReviewSettings

#: The reviewer of unattended simulations. Live and paper trading refuse it.
AUTO = "auto"

#: The roll of a service without accounts.
NOBODY = Roll()

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
    earlier: Sequence[Review] = (),
    roll: Roll = NOBODY,
) -> Review:
    """Return the record of a reviewer's act.

    `seen` is what was shown to the reviewer; the act is refused when it is no longer what stands there (None: the
    act follows the look in the same moment). `live` False allows the automatic reviewer of simulations. An approval
    needs that the diff was opened (`looked`), and a settlement of every blocking one of `remarks`. It is withdrawn
    by its author alone, whatever has become of what it was about. `earlier` are the acts on this proposal so far.

    Raise `Mistake` for a missing name or reason, `Refused` where the rules say no.
    """
    who = identity(reviewer)
    now = bound(proposal, verdict, deployed_tree)
    if proposal.status in _CLOSED:
        raise Refused(f"Expected a proposal that is open, was {proposal.id}, which {_CLOSED[proposal.status]}")
    if earlier and earlier[-1].act is Act.REQUEST_CHANGES:
        raise Refused(f"Expected a proposal that is open, was {proposal.id}, sent back: review its next revision")
    changed = [] if seen is None or act is Act.WITHDRAW else seen.differences(now)
    if changed:
        raise Refused(f"Expected what was shown to be what stands there: {'; '.join(changed)}. Look again")
    if act is not Act.APPROVE and not reason.strip():
        raise Mistake(f"Expected a reason to {act.value.replace('_', ' ')}, was none: it becomes part of the record")
    mine = [one for one in earlier if same_person(one.reviewer, who)]
    if act is Act.WITHDRAW and (not mine or mine[-1].act is not Act.APPROVE):
        raise Refused(f"Expected an approval of {proposal.id} by {who} to withdraw, was none")
    if act is Act.APPROVE:
        _may_approve(proposal, verdict, now, who, live, roll)
        _has_read(proposal, reason, looked, remarks, live)
    times = sum(one.act is Act.WITHDRAW for one in mine)
    return Review(
        id=_review_id(proposal.id, who, act, reason, now, times),
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
    roll: Roll = NOBODY,
) -> Review:
    """Return the last approval under which a proposal may be deployed now; raise `Refused` where there are too few.

    `reviews` are the proposal's, oldest first. A veto holds for ever; otherwise a request for changes resets all
    approvals before it, and `needed` different people must have given one that still counts. None does while one of
    `remarks` stands in the way, whenever it was made.
    """
    mine = [one for one in reviews if one.proposal == proposal.id]
    veto = next((one for one in mine if one.act is Act.REJECT), None)
    if veto is not None:
        raise Refused(f"Expected an approval of {proposal.id}, was vetoed by {veto.reviewer}: {veto.reason}")
    if not mine or mine[-1].act is Act.REQUEST_CHANGES:
        last = mine[-1] if mine else None
        said = "no review yet" if last is None else f"changes requested by {last.reviewer}: {last.reason}"
        raise Refused(f"Expected an approval of {proposal.id}, was {said}")
    now = bound(proposal, verdict, deployed_tree)
    told = standing(mine, now, proposal.author, roll)
    holding = [vote.review for vote in told if vote.counts]
    if len(holding) < needed:
        people = ", ".join(one.reviewer for one in holding) or "nobody"
        why = "; ".join(f"that of {vote.review.reviewer} does not count: {vote.why}" for vote in told if vote.why)
        raise Refused(
            f"Expected approvals of {proposal.id} by {needed} people, was {len(holding)}: {people}{why and '; '}{why}"
        )
    for one in holding:
        _may_approve(proposal, verdict, now, one.reviewer, live, roll)
    _is_settled(proposal, remarks)
    return holding[-1]


@dataclass(frozen=True, slots=True)
class Vote:
    """An approval, and why it does not count (empty: it does)."""

    review: Review
    why: str = ""

    @property
    def counts(self) -> bool:
        return not self.why


def standing(reviews: Sequence[Review], now: Bound, author: str, roll: Roll = NOBODY) -> list[Vote]:
    """Return every approval in its order, and why it does not count, if so.

    Counted is one a party: the last that was given since the last request for changes, of what stands there now, by
    somebody whose account is open, who may still review, and who has nothing to do with the proposer.
    """
    told: list[Vote] = []
    for number, one in enumerate(reviews):
        if one.act is not Act.APPROVE:
            continue
        later = reviews[number + 1 :]
        own = next((other for other in later if same_person(other.reviewer, one.reviewer)), None)
        changed = Bound(one.base_tree, one.result_tree, one.verdict).differences(now)
        if any(other.act in (Act.REQUEST_CHANGES, Act.REJECT) for other in later):
            why = "reset by what was decided since"
        elif own is not None:
            why = "withdrawn" if own.act is Act.WITHDRAW else "given again"
        elif changed:
            why = f"void, because the {'; '.join(changed)}"
        elif one.reviewer == AUTO:
            why = ""
        elif roll.one_party(one.reviewer, author):
            why = f"of one person with the proposer, as far as is known{_known(roll, one.reviewer)}"
        else:
            why = roll.may_not_vote(one.reviewer)
        told.append(Vote(one, why))
    for number, vote in enumerate(told):
        who = vote.review.reviewer
        later = [other.review.reviewer for other in told[number + 1 :] if other.counts]
        twin = next((name for name in later if roll.one_party(name, who)), None)
        if vote.counts and twin is not None:
            told[number] = Vote(vote.review, f"counted as one with that of {twin}{_known(roll, twin, who)}")
    return told


def _known(roll: Roll, *names: str) -> str:
    """Return who let whom in, among the accounts of some names."""
    found = [f"{user.name} was let in by {user.let_in_by}" for name in names if (user := roll.user(name)) is not None
             and user.let_in_by and not user.confirmed_by]  # fmt: skip
    return f" ({'; '.join(found)}, and confirmed by nobody else)" if found else ""


def votes(reviews: Sequence[Review], now: Bound, author: str = "", roll: Roll = NOBODY) -> list[Review]:
    """Return the approvals that count."""
    return [vote.review for vote in standing(reviews, now, author, roll) if vote.counts]


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


def _may_approve(
    proposal: Proposal, verdict: StoredVerdict | None, now: Bound, who: str, live: bool, roll: Roll
) -> None:
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
    if roll.one_party(who, proposal.author):
        raise Refused(
            f"Expected a reviewer other than the proposer, was {who} for both, as far as is known{_known(roll, who)}"
        )
    if who.casefold() == AUTO and live:
        raise Refused("Expected a person to approve, was the automatic reviewer, which exists in simulation alone")


def _review_id(proposal: str, who: str, act: Act, reason: str, now: Bound, times: int) -> str:
    parts: list[object] = [proposal, who, act.value, reason.strip(), now.base_tree, now.result_tree, now.verdict]
    # An approval after a withdrawal is another act, even with the same words.
    parts += [times] if times else []
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

"""The queue and the proposal: where a person decides about a machine's patch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from oomrl.adapters.changes import between
from oomrl.adapters.desk import Case
from oomrl.adapters.patches import result_of
from oomrl.adapters.prompting import compute_of
from oomrl.arenas.certificates import standing_of
from oomrl.domain.people import Right
from oomrl.domain.records import Act, Proposal, ProposalStatus
from oomrl.errors import Mistake
from oomrl.review import Bound, bound, reason_to_wait, risk_of, votes
from oomrl.web import evidence
from oomrl.web.diff import FileDiff, file_diff
from oomrl.web.entry import Entry, Unknown, act_needs, page_needs, site_of
from oomrl.web.shell import WAITING, page
from oomrl.web.site import Site

router = APIRouter()
See = Annotated[Entry, Depends(page_needs(Right.SEE))]
SeeToo = Annotated[Entry, Depends(act_needs(Right.SEE))]
Comment = Annotated[Entry, Depends(act_needs(Right.COMMENT))]
Review = Annotated[Entry, Depends(act_needs(Right.REVIEW))]
PER_PAGE = 40
#: A patch beyond this many bytes is not laid out, only offered whole.
LARGEST_PATCH = 400_000


@router.get("/")
def queue(request: Request, entry: See) -> Response:
    """Show what waits, the oldest first: since when, at what cost, how grave, how far the budget is used."""
    site = site_of(request)
    with site.store.read() as view:
        briefs = view.reading.proposals(site.run, WAITING, most=PER_PAGE, oldest_first=True)
        rows, roll = [], view.people.roll()
        tree = site.desk.repository.tree_id(site.desk.repository.head()) if briefs else ""
        for brief in briefs:
            found = view.proposals.get(site.run, brief.id)
            assert found is not None
            changes = site.desk.changes(found)
            risk = risk_of(changes.paths, changes.parameters, site.settings.review)
            stands = bound(found, view.proposals.verdict(site.run, brief.id), tree)
            given = votes(view.proposals.reviews(site.run, brief.id), stands, found.author, roll)
            rows.append({"brief": brief, "risk": risk, "approvals": len(given), "paths": sorted(changes.paths)})
        prompts = view.prompts.pending(site.run)
        unconfirmed = view.reading.unconfirmed(site.run)
        exhausted = view.reading.exhausted(site.run, most=5)
        escalated = view.reading.proposals(site.run, ("escalated",), most=5)
        recent = view.reading.proposals(site.run, most=8)
        compute = compute_of(view, site.run, site.settings.account.compute_endowment)
        mark = view.sessions.last_mark(site.run)
        held = reason_to_wait(
            site.now(), mark.day, view.remarks.freezes(site.run), site.settings.review.windows
        ) if mark else ""  # fmt: skip
        attempts = site.settings.loop.attempts
        return page(
            request, entry, view, "queue.html",
            rows=rows, prompts=prompts, recent=recent, unconfirmed=unconfirmed,
            escalated=escalated, exhausted=exhausted, held=held,
            attempts=attempts, compute=compute,
        )  # fmt: skip


@router.get("/proposals")
def proposals(request: Request, entry: See, status: str = "", after: str = "") -> Response:
    """Show every proposal, newest first."""
    site = site_of(request)
    before = None
    if after:
        at, _, id_ = after.partition("|")
        before = (instant(at), id_)
    with site.store.read() as view:
        rows = view.reading.proposals(site.run, (status,) if status else (), before, PER_PAGE)
        more = f"{rows[-1].at.isoformat()}|{rows[-1].id}" if len(rows) == PER_PAGE else ""
        return page(request, entry, view, "proposals.html", rows=rows, status=status, more=more)


@router.get("/proposals/{proposal}")
def proposal(
    request: Request,
    proposal: str,
    entry: See,
    view: str = "split",
    space: str = "show",
    whole: bool = False,
    against: str = "",
    at: str = "",
    side: str = "new",
) -> Response:
    """Show everything that a decision about one proposal rests on, in the order in which it matters."""
    return _proposal(request, entry, proposal, view=view, space=space, whole=whole, against=against, at=at, side=side)


@router.get("/proposals/{proposal}/patch")
def patch(request: Request, proposal: str, entry: See) -> Response:
    """Give the patch itself, byte for byte, as a file that no browser renders."""
    case = site_of(request).desk.case(entry.person, proposal)
    body = case.proposal.tests_patch + case.proposal.logic_patch
    headers = {"Content-Disposition": f'attachment; filename="{proposal}.diff"'}
    return PlainTextResponse(body, headers=headers)


@router.get("/proposals/{proposal}/say")
def say(request: Request, proposal: str, entry: See, path: str = "", line: int = 0, side: str = "new") -> Response:
    """Give the form for a comment on one line, to be put under it."""
    site = site_of(request)
    body = site.render("say.html", proposal=proposal, where=(path, line, side), csrf=entry.login.csrf, blocking=True)
    return HTMLResponse(body)


@router.get("/diagnostics/{diagnostic}")
def diagnostic(request: Request, diagnostic: str, entry: See) -> Response:
    """Show a loss by itself, with all that was proposed against it."""
    site = site_of(request)
    with site.store.read() as view:
        found = view.losses.diagnostic(site.run, diagnostic)
        if found is None:
            raise Unknown
        made = view.proposals.all(site.run, diagnostic)
        prompts = view.prompts.all(site.run, diagnostic)
        lost = evidence.lost(found, site.standing.marks())
        return page(request, entry, view, "diagnostic.html", found=found, made=made, prompts=prompts, lost=lost)


def instant(text: str) -> datetime:
    """Return an aware instant in UTC; raise `Mistake` for what is none, or lies where no clock can be."""
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError("without a time zone")
        return at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Mistake(f"Expected an instant with a time zone, was {text[:40]!r}: {error}.") from error


# -- acts


@router.post("/proposals/{proposal}/look")
def look(request: Request, proposal: str, entry: SeeToo) -> Response:
    """Open the diff; that it was opened becomes part of the record."""
    site_of(request).desk.look(entry.person, proposal)
    return RedirectResponse(f"/proposals/{proposal}#diff", 303)


@router.post("/proposals/{proposal}/comments")
def comment(
    request: Request,
    proposal: str,
    entry: Comment,
    text: Annotated[str, Form()] = "",
    path: Annotated[str, Form(max_length=400)] = "",
    line: Annotated[int, Form(ge=0, le=10_000_000)] = 0,
    side: Annotated[str, Form(max_length=4)] = "new",
    blocking: Annotated[bool, Form()] = False,
) -> Response:
    """Say something, at a line or about the whole."""
    remark = site_of(request).desk.comment(entry.person, proposal, text, path, line, side, blocking)
    return RedirectResponse(f"/proposals/{proposal}#{remark.id}", 303)


@router.post("/proposals/{proposal}/remarks/{remark}")
def settle(
    request: Request,
    proposal: str,
    remark: str,
    entry: Comment,
    resolution: Annotated[str, Form(max_length=16)] = "",
    answer: Annotated[str, Form()] = "",
) -> Response:
    """Settle a remark."""
    site_of(request).desk.resolve(entry.person, proposal, remark, resolution, answer)
    return RedirectResponse(f"/proposals/{proposal}#{remark}", 303)


@router.post("/proposals/{proposal}/decide")
def decide(
    request: Request,
    proposal: str,
    entry: Review,
    act: Annotated[Act, Form()],
    reason: Annotated[str, Form()] = "",
    base_tree: Annotated[str, Form(max_length=64)] = "",
    result_tree: Annotated[str, Form(max_length=64)] = "",
    verdict: Annotated[str, Form(max_length=64)] = "",
) -> Response:
    """Approve, ask for changes, or veto what was shown, and nothing else."""
    site_of(request).desk.decide(entry.person, proposal, act, reason, Bound(base_tree, result_tree, verdict))
    return RedirectResponse(f"/proposals/{proposal}#decide", 303)


@router.post("/diagnostics/{diagnostic}/mandate")
def mandate(request: Request, diagnostic: str, entry: Review, mandate: Annotated[str, Form()] = "") -> Response:
    """Replace what the next attempt is asked for."""
    site_of(request).desk.set_mandate(entry.person, diagnostic, mandate)
    return RedirectResponse(f"/diagnostics/{diagnostic}", 303)


def _proposal(
    request: Request, entry: Entry, name: str, *, view: str, space: str, whole: bool, against: str, at: str, side: str
) -> Response:
    site = site_of(request)
    case = site.desk.case(entry.person, name)
    with site.store.read() as work:
        siblings = work.proposals.all(site.run, case.proposal.diagnostic)
        prompts = work.prompts.all(site.run, case.proposal.diagnostic)
        bill = work.prompts.bill(site.run)
        mark = work.sessions.last_mark(site.run)
        held = reason_to_wait(
            site.now(), mark.day, work.remarks.freezes(site.run), site.settings.review.windows
        ) if mark else ""  # fmt: skip
        measured = work.proposals.deployed_as(site.run, case.proposal.base_tree)
        earlier = work.proposals.verdict(site.run, measured) if measured else None
        # What a reviewer has not seen yet comes first: on a new revision, what changed since the one sent back.
        back = _sent_back(siblings, case.proposal)
        other = next((one for one in siblings if one.id == (against or back)), None)
        files: list[FileDiff] = []
        if case.looked:
            files = _files(site, case, other, ignore_space=space == "hide", whole=whole)
            if other is not None and not against and not files:
                # Nothing changed but words: the whole is what is left to read.
                files, other = _files(site, case, None, ignore_space=space == "hide", whole=whole), None
        path, _, place = at.rpartition(":")
        values: dict[str, Any] = {
            "case": case,
            "lost": evidence.lost(case.diagnostic, site.standing.marks()),
            "gate": evidence.gate(case.verdict),
            "compared": evidence.compared(case.verdict),
            "deltas": evidence.deltas(case.verdict, earlier),
            "needed": evidence.needed(site.desk.repository.tree(case.proposal.base_revision).get("policy.toml")),
            "measured_of": measured,
            "changed_lines": evidence.changed_lines(case.verdict),
            "no_mutants": evidence.no_mutants(case.verdict),
            "survivors": evidence.survivors(case.verdict),
            "files": files,
            "too_large": len(case.proposal.logic_patch) + len(case.proposal.tests_patch) > LARGEST_PATCH,
            "other": other,
            "same_as": "" if other is not None or against else back,
            "unified": view == "unified",
            "space": space,
            "whole": whole,
            "siblings": siblings,
            "prompts": [p for p in prompts if p.attempt == case.proposal.attempt],
            "bill": bill,
            "chain": site.chain.about(name, case.diagnostic.id, *(r.id for r in case.remarks)),
            "head": site.chain.head(),
            "broken": site.chain.broken,
            "held": held,
            "qualification": standing_of(site.state, site.settings.model_dump(mode="json"), site.now()),
            "attempts": site.settings.loop.attempts,
            "said_at": evidence.by_place(case.remarks),
            "where": (
                path,
                int(place) if place.isdecimal() and len(place) < 9 else 0,
                "old" if side == "old" else "new",
            ),
        }
        return page(request, entry, work, "proposal.html", **values)


def _sent_back(siblings: Sequence[Proposal], this: Proposal) -> str:
    """Return the newest earlier revision that a reviewer sent back, empty where there is none."""
    earlier = [one for one in siblings if one.attempt < this.attempt and one.status is ProposalStatus.CHANGES_REQUESTED]
    return max(earlier, key=lambda one: one.attempt).id if earlier else ""


def _files(site: Site, case: Case, other: Any, ignore_space: bool, whole: bool) -> list[FileDiff]:
    """Return the diff to show: against the base, or from an earlier revision of the proposal to this one."""
    changes = case.changes
    if len(case.proposal.logic_patch) + len(case.proposal.tests_patch) > LARGEST_PATCH:
        return []
    if other is not None:
        try:
            before = result_of(site.desk.repository.tree(other.base_revision), other)
            after = result_of(site.desk.repository.tree(case.proposal.base_revision), case.proposal)
        except Mistake:
            return []
        changes = between(before, after)
    return [file_diff(path, old, new, ignore_space, whole) for path, (old, new) in changes.files.items()]

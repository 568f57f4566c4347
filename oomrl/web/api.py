"""The JSON API: what the pages show and do, for programs, by token alone. The OpenAPI document is made from here.

Long by nature: it is a table of routes.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, field_validator

from oomrl.adapters.desk import Case
from oomrl.adapters.kill_switch import stopped
from oomrl.domain.people import Person, Remark, Right, Role
from oomrl.domain.records import Act, CapitalKind
from oomrl.review import Bound
from oomrl.web.entry import Unknown, site_of, token_needs
from oomrl.web.proposals import instant
from oomrl.web.shell import WAITING
from oomrl.web.tables import TABLES, Asked

#: Said in the document; who comes in, and with which rights, is judged by `token_needs`.
BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="A token of the page: `oomrl_...`.")
router = APIRouter(prefix="/api/v1", tags=["review"], dependencies=[Depends(BEARER)])

See = Annotated[Person, Depends(token_needs(Right.SEE))]
Comment = Annotated[Person, Depends(token_needs(Right.COMMENT))]
Review = Annotated[Person, Depends(token_needs(Right.REVIEW))]
Operate = Annotated[Person, Depends(token_needs(Right.OPERATE))]
Administer = Annotated[Person, Depends(token_needs(Right.ADMINISTER))]
Anybody = Annotated[Person, Depends(token_needs())]
Name = Annotated[str, Path(max_length=80)]
Id = Annotated[str, Path(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9._-]+$")]
Words = Annotated[str, Field(max_length=10_000)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def _whole(cls, value: object) -> object:
        if isinstance(value, str) and "\0" in value:
            raise ValueError("Expected a text without a NUL character")
        return value


class Error(BaseModel):
    """Why a request was refused: one line, with what to do next."""

    error: str


class Done(BaseModel):
    """An act was recorded."""

    done: str


class Seen(Body):
    """What was shown to whoever decides; anything else by now refuses the act. `GET .../proposals/{id}` gives it."""

    base_tree: str = Field(max_length=64)
    result_tree: str = Field(max_length=64)
    verdict: str = Field(max_length=64)


class Decision(Body):
    """A reviewer's act."""

    act: Act
    reason: Words
    seen: Seen


class Comments(Body):
    """Words about a proposal; `line` 0 is the whole file, `path` empty the whole proposal."""

    text: Words
    path: str = Field("", max_length=400)
    line: int = Field(0, ge=0, le=10_000_000)
    side: Literal["old", "new"] = "new"
    blocking: bool = True


class Settlement(Body):
    """How a remark is settled."""

    resolution: Literal["resolved", "answered", "dismissed", ""]
    answer: Words = ""


class Mandate(Body):
    """What the next attempt is asked for."""

    mandate: Words


class Reason(Body):
    """Why; it becomes part of the record."""

    reason: Words


class Endowment(Body):
    """Dollars and why. Sent twice with the same `once` (any text of the caller's), they are booked once."""

    once: str = Field(min_length=1, max_length=80)
    amount: Decimal = Field(gt=0, max_digits=18, decimal_places=2)
    reason: Words


class Rollback(Body):
    """Which revision is deployed again (none: the one before) and why; refused where another than `seen` trades."""

    reason: Words
    revision: str | None = Field(None, max_length=64)
    seen: str | None = Field(None, max_length=64)


class Frozen(Body):
    """Sessions, both ends included, after whose close nothing is deployed."""

    first: date
    last: date
    reason: Words


class NewRole(Body):
    """A role with fewer rights."""

    role: Role


_ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"model": Error, "description": "No valid token"},
    403: {"model": Error, "description": "No right to this"},
    404: {"model": Error, "description": "There is no such thing"},
    409: {"model": Error, "description": "The rules refuse it"},
    422: {"model": Error, "description": "The request is not as expected"},
    429: {"description": "Too many requests"},
}
router.responses = _ERRORS


@router.get("/me")
def me(person: Anybody) -> dict[str, Any]:
    """Say whose token this is and what it may do."""
    return {"name": person.name, "rights": sorted(person.rights)}


@router.get("/proposals")
def proposals(
    request: Request,
    person: See,
    status: Annotated[str, Query(max_length=24)] = "",
    waiting: bool = False,
    after: Annotated[datetime | None, Query(description="`at` of the last row before")] = None,
    after_id: Annotated[str, Query(max_length=80)] = "",
    most: Annotated[int, Query(ge=1, le=500)] = 50,
) -> dict[str, Any]:
    """List proposals, newest first; `waiting` gives those that wait for a review."""
    before = None if after is None else (instant(after.isoformat()), after_id)
    site = site_of(request)
    statuses = WAITING if waiting else (status,) if status else ()
    with site.store.read() as view:
        rows = view.reading.proposals(site.run, statuses, before, most)
    return {"rows": [asdict(row) for row in rows]}


@router.get("/proposals/{proposal}")
def proposal(request: Request, person: See, proposal: Id) -> dict[str, Any]:
    """Give one proposal with its verdict, remarks, reviews, risk class, and what a decision must name as seen."""
    return _case(site_of(request).desk.case(person, proposal))


@router.post("/proposals/{proposal}/look")
def look(request: Request, person: See, proposal: Id) -> dict[str, Any]:
    """Return the diff. A token is no person: an approval needs that its owner opened it on the page or by command."""
    case = site_of(request).desk.look(person, proposal)
    return {"tests_patch": case.proposal.tests_patch, "logic_patch": case.proposal.logic_patch}


@router.post("/proposals/{proposal}/comments", status_code=201)
def comment(request: Request, person: Comment, proposal: Id, body: Comments) -> dict[str, Any]:
    """Say something about a proposal."""
    desk = site_of(request).desk
    return _remark(desk.comment(person, proposal, body.text, body.path, body.line, body.side, body.blocking))


@router.post("/proposals/{proposal}/remarks/{remark}")
def settle(request: Request, person: Comment, proposal: Id, remark: Id, body: Settlement) -> Done:
    """Settle a remark: a comment is resolved (empty reopens it), an objection answered or dismissed."""
    site_of(request).desk.resolve(person, proposal, remark, body.resolution, body.answer)
    return Done(done=remark)


@router.post("/proposals/{proposal}/decide")
def decide(request: Request, person: Review, proposal: Id, body: Decision) -> dict[str, Any]:
    """Approve, ask for changes, or veto what was seen, or withdraw one's own approval."""
    seen = Bound(body.seen.base_tree, body.seen.result_tree, body.seen.verdict)
    return asdict(site_of(request).desk.decide(person, proposal, body.act, body.reason, seen))


@router.post("/diagnostics/{diagnostic}/mandate")
def mandate(request: Request, person: Review, diagnostic: Id, body: Mandate) -> Done:
    """Replace what the next attempt is asked for."""
    site_of(request).desk.set_mandate(person, diagnostic, body.mandate)
    return Done(done=diagnostic)


@router.get("/diagnostics/{diagnostic}")
def diagnostic(request: Request, person: See, diagnostic: Id) -> dict[str, Any]:
    """Give one diagnostic: what was lost, why, and the mandate."""
    site = site_of(request)
    with site.store.read() as view:
        found = view.losses.diagnostic(site.run, diagnostic)
    if found is None:
        raise Unknown
    return asdict(found)


@router.get("/status")
def status(request: Request, person: See) -> dict[str, Any]:
    """Say what the account is worth, what trades, what waits, and the head of the audit chain."""
    site = site_of(request)
    with site.store.read() as view:
        mark = view.sessions.last_mark(site.run)
        deployed = view.deployments.current(site.run)
        counts = view.reading.counts(site.run)
        capital = view.capital.state(site.run)
    return {
        "run": site.run,
        "mark": None if mark is None else asdict(mark),
        "revision": deployed.revision if deployed else "",
        "halted": capital.halted,
        "stopped": stopped(site.state),
        "proposals": counts,
        "audit_head": site.chain.head(),
    }


@router.get("/tables/{name}")
def table(
    request: Request,
    person: See,
    name: Literal[
        "equity", "losses", "positions", "orders", "fills", "shortfall", "ledger", "revisions", "bills", "arenas",
        "settings", "audit",
    ],
    after: Annotated[str, Query(max_length=300)] = "",
    symbol: Annotated[str, Query(max_length=32)] = "",
    kind: Annotated[str, Query(max_length=32)] = "",
    words: Annotated[str, Query(max_length=100)] = "",
    since: date | None = None,
    until: date | None = None,
    most: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> dict[str, Any]:  # fmt: skip
    """Give a page of one of the account's tables; `next` is the `after` of the page behind it."""
    site = site_of(request)
    with site.store.read() as view:
        return TABLES[name](site, view, Asked(after, symbol, kind, words, since, until, most)).plain()


@router.get("/orders/{client_order_id}")
def order(request: Request, person: See, client_order_id: Id) -> dict[str, Any]:
    """Give one order with every change of its state and its fills."""
    site = site_of(request)
    with site.store.read() as view:
        found = view.orders.get(site.run, client_order_id)
        if found is None:
            raise Unknown
        events = view.orders.events(site.run, client_order_id)
        fills = view.reading.fills_of(site.run, client_order_id)
    return {"order": asdict(found), "events": [asdict(e) for e in events], "fills": [asdict(f) for f in fills]}


@router.post("/halt")
def halt(request: Request, person: Operate, body: Reason) -> Done:
    """Stop trading: no further order goes out, and what is open at a broker is cancelled; 503 names what failed."""
    site = site_of(request)
    site.desk.halt(person, body.reason, site.settings).complete()
    return Done(done="halted")


@router.post("/resume")
def resume(request: Request, person: Operate, body: Reason) -> Done:
    """Let a halted account trade again."""
    site_of(request).desk.capital(person, CapitalKind.RESUME, body.reason)
    return Done(done="resumed")


@router.post("/endow")
def endow(request: Request, person: Operate, body: Endowment) -> Done:
    """Put money in."""
    site_of(request).desk.capital(person, CapitalKind.ENDOW, body.reason, body.amount, body.once)
    return Done(done="endowed")


@router.post("/rollback")
def rollback(request: Request, person: Operate, body: Rollback) -> Done:
    """Deploy an earlier revision again, as a new commit."""
    return Done(done=site_of(request).desk.rollback(person, body.reason, body.revision, body.seen))


@router.post("/freezes", status_code=201)
def freeze(request: Request, person: Operate, body: Frozen) -> dict[str, Any]:
    """Let nothing be deployed for some sessions."""
    return asdict(site_of(request).desk.freeze(person, body.first, body.last, body.reason))


@router.get("/freezes")
def freezes(request: Request, person: See) -> dict[str, Any]:
    """List freezes, newest first."""
    site = site_of(request)
    with site.store.read() as view:
        return {"rows": [asdict(one) for one in view.remarks.freezes(site.run)]}


@router.post("/freezes/{freeze}/lift")
def lift(request: Request, person: Operate, freeze: Id) -> Done:
    """End a freeze."""
    site_of(request).desk.lift(person, freeze)
    return Done(done=freeze)


@router.get("/tokens")
def tokens(request: Request, person: See) -> dict[str, Any]:
    """List one's own tokens, without their secrets. A token makes none."""
    return {
        "rows": [
            {"id": t.id, "label": t.label, "scopes": sorted(t.scopes), "made_at": t.made_at,
             "expires_at": t.expires_at, "revoked_at": t.revoked_at}
            for t in site_of(request).accounts.tokens(person)
        ]
    }  # fmt: skip


@router.post("/tokens/{token}/revoke")
def revoke(request: Request, person: See, token: Id) -> Done:
    """End a token: one's own, or anybody's for an administrator."""
    site_of(request).accounts.revoke_token(person, token)
    return Done(done=token)


@router.get("/people")
def people(request: Request, person: Administer) -> dict[str, Any]:
    """List accounts, without anything secret.

    Programs take rights away: who is invited, let in again, unlocked or confirmed is a person's act, on the page or by
    command.
    """
    return {
        "rows": [
            {"name": u.name, "role": u.role, "active": u.active, "locked_until": u.locked_until,
             "let_in_by": u.let_in_by, "confirmed_by": u.confirmed_by}
            for u in site_of(request).accounts.users(person)
        ]
    }  # fmt: skip


@router.post("/people/{name}/role")
def set_role(request: Request, person: Administer, name: Name, body: NewRole) -> Done:
    """Give an account a role with fewer rights; its sessions end."""
    site_of(request).accounts.set_role(person, name, body.role)
    return Done(done=name)


@router.post("/people/{name}/close")
def close(request: Request, person: Administer, name: Name) -> Done:
    """Close an account: sessions and tokens end, and its votes count no more."""
    site_of(request).accounts.set_active(person, name, active=False)
    return Done(done=name)


@router.post("/people/{name}/tokens/revoke")
def revoke_all(request: Request, person: Administer, name: Name) -> Done:
    """End every token of an account."""
    site_of(request).accounts.revoke_tokens_of(person, name)
    return Done(done=name)


def _case(case: Case) -> dict[str, Any]:
    return {
        "proposal": asdict(case.proposal),
        "verdict": None if case.verdict is None else asdict(case.verdict),
        "diagnostic": case.diagnostic.id,
        "remarks": [_remark(remark) for remark in case.remarks],
        "reviews": [asdict(review) for review in case.reviews],
        "votes": [{"reviewer": vote.review.reviewer, "counts": vote.counts, "why": vote.why} for vote in case.told],
        "risk": asdict(case.risk),
        "approvals": len(case.votes),
        "seen": asdict(case.now),
        "looked": case.looked,
        "parameters": case.changes.in_words(),
        "paths": sorted(case.changes.paths),
        "trouble": case.changes.trouble,
    }


def _remark(remark: Remark) -> dict[str, Any]:
    return asdict(remark) | {"stands_in_the_way": remark.stands_in_the_way}

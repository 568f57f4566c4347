"""The account: what it is worth, what it holds, what it did, which revisions traded it, and what people do to it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response

from oomrl.adapters.changes import between
from oomrl.adapters.database.store import Work
from oomrl.domain.ledger import Kind
from oomrl.domain.people import Right
from oomrl.domain.records import CapitalKind, DeploymentKind, Mark
from oomrl.errors import Mistake
from oomrl.web import charts
from oomrl.web.diff import file_diff
from oomrl.web.entry import Entry, Unknown, act_needs, page_needs, site_of
from oomrl.web.shell import page
from oomrl.web.site import Site
from oomrl.web.tables import TABLES, Asked, order_row

router = APIRouter()
See = Annotated[Entry, Depends(page_needs(Right.SEE))]
Operate = Annotated[Entry, Depends(act_needs(Right.OPERATE))]


@router.get("/account")
def account(request: Request, entry: See, after: str = "") -> Response:
    """Show equity against the benchmark with every loss, deployment and phase marked."""
    site = site_of(request)
    with site.store.read() as view:
        marks = site.standing.marks()
        table = TABLES["equity"](site, view, Asked(after, most=60))
        drawn = _equity_charts(site, view, marks) if marks else {}
        freezes = view.remarks.freezes(site.run)
        return page(
            request,
            entry,
            view,
            "account.html",
            table=table,
            freezes=freezes,
            parts=site.standing.parts(),
            losses=TABLES["losses"](site, view, Asked(most=20)),
            **({"charts": drawn}),
        )


@router.get("/account/{name}")
def table_page(
    request: Request,
    name: str,
    entry: See,
    after: str = "",
    symbol: str = "",
    kind: str = "",
    words: str = "",
    since: str = "",
    until: str = "",
) -> Response:
    """Show one of the account's tables."""
    if name not in TABLES or name in ("equity", "revisions"):
        raise Unknown
    site = site_of(request)
    asked = Asked(after, symbol.strip(), kind, words.strip(), _day(since), _day(until))
    with site.store.read() as view:
        table = TABLES[name](site, view, asked)
        chart = _friction_chart(table.rows) if name == "shortfall" else ""
        return page(
            request, entry, view, "table.html", table=table, asked=asked, chart=chart, kinds=[k.value for k in Kind]
        )


@router.get("/orders/{client_order_id:path}")
def order(request: Request, client_order_id: str, entry: See) -> Response:
    """Show one order with every change of its state and its fills."""
    site = site_of(request)
    with site.store.read() as view:
        found = view.orders.get(site.run, client_order_id)
        if found is None:
            raise Unknown
        return page(
            request,
            entry,
            view,
            "order.html",
            order=order_row(found),
            live_on=found.live_on,
            events=view.orders.events(site.run, client_order_id),
            fills=view.reading.fills_of(site.run, client_order_id),
        )


@router.get("/revisions")
def revisions(request: Request, entry: See) -> Response:
    """Show revisions as a tree: what traded, and what was proposed on each of them."""
    site = site_of(request)
    with site.store.read() as view:
        made = view.deployments.all(site.run)
        leaves: dict[str, list[Any]] = {}
        for brief in view.reading.proposals(site.run, most=200):
            leaves.setdefault(brief.base_revision, []).append(brief)
        table = TABLES["revisions"](site, view, Asked())
        return page(request, entry, view, "revisions.html", made=made[::-1], leaves=leaves, table=table)


@router.get("/revisions/{revision}")
def revision(request: Request, revision: str, entry: See, view: str = "split") -> Response:
    """Show one revision: its lineage to the start, and what it changed of the one before."""
    site = site_of(request)
    with site.store.read() as work:
        made = {one.revision: one for one in work.deployments.all(site.run)}
        if revision not in made:
            raise Unknown
        lineage, at = [], revision
        while at in made and len(lineage) < 500:
            lineage.append(made[at])
            at = made[at].base
        this = made[revision]
        files = []
        if this.base:
            repository = site.desk.repository
            changed = between(repository.tree(this.base), repository.tree(revision))
            files = [file_diff(path, *pair) for path, pair in changed.files.items()]
            words = changed.in_words()
        else:
            words = []
        return page(
            request, entry, work, "revision.html", this=this, lineage=lineage, files=files, words=words,
            unified=view == "unified",
        )  # fmt: skip


# -- what operators do


@router.post("/halt")
def halt(request: Request, entry: Operate, reason: Annotated[str, Form()] = "") -> Response:
    """Stop trading, and cancel what is open at a broker."""
    site = site_of(request)
    site.desk.halt(entry.person, reason, site.settings).complete()
    return RedirectResponse("/account", 303)


@router.post("/resume")
def resume(request: Request, entry: Operate, reason: Annotated[str, Form()] = "") -> Response:
    """Let a halted account trade again."""
    site_of(request).desk.capital(entry.person, CapitalKind.RESUME, reason)
    return RedirectResponse("/account", 303)


@router.post("/endow")
def endow(
    request: Request,
    entry: Operate,
    amount: Annotated[str, Form(max_length=30)] = "",
    reason: Annotated[str, Form()] = "",
    once: Annotated[str, Form(max_length=80)] = "",
) -> Response:
    """Put money in, once for each form that was shown."""
    if not once:
        raise Mistake("Expected the form that was shown, was one without its one-time id: reload and try again.")
    site_of(request).desk.capital(entry.person, CapitalKind.ENDOW, reason, dollars_of(amount), once)
    return RedirectResponse("/account", 303)


@router.post("/rollback")
def rollback(
    request: Request,
    entry: Operate,
    reason: Annotated[str, Form()] = "",
    revision: Annotated[str, Form(max_length=64)] = "",
    head: Annotated[str, Form(max_length=64)] = "",
) -> Response:
    """Deploy an earlier revision again, instead of the one that was shown as deployed."""
    new = site_of(request).desk.rollback(entry.person, reason, revision or None, seen=head or None)
    return RedirectResponse(f"/revisions/{new}", 303)


@router.post("/freezes")
def freeze(
    request: Request,
    entry: Operate,
    first: Annotated[str, Form(max_length=10)] = "",
    last: Annotated[str, Form(max_length=10)] = "",
    reason: Annotated[str, Form()] = "",
) -> Response:
    """Let nothing be deployed for some sessions."""
    begins, ends = _day(first), _day(last)
    if begins is None or ends is None:
        raise Mistake("Expected the first and the last day of the freeze, was none.")
    site_of(request).desk.freeze(entry.person, begins, ends, reason)
    return RedirectResponse("/account", 303)


@router.post("/freezes/{freeze}/lift")
def lift(request: Request, freeze: str, entry: Operate) -> Response:
    """End a freeze."""
    site_of(request).desk.lift(entry.person, freeze)
    return RedirectResponse("/account", 303)


def dollars_of(text: str) -> Decimal:
    """Return an amount as a person writes it."""
    try:
        amount = Decimal(text.replace(",", "").replace("_", "").strip().removeprefix("$"))
    except InvalidOperation as error:
        raise Mistake(f"Expected an amount in dollars, was {text[:30]!r}.") from error
    if not amount.is_finite():
        raise Mistake(f"Expected an amount in dollars, was {text[:30]!r}.")
    return amount


def _day(text: str) -> date | None:
    if not text.strip():
        return None
    try:
        return date.fromisoformat(text.strip())
    except ValueError as error:
        raise Mistake(f"Expected a day as YYYY-MM-DD, was {text[:20]!r}.") from error


def _equity_charts(site: Site, view: Work, marks: list[Mark]) -> dict[str, Any]:
    days = [mark.day for mark in marks]
    equity = np.array([float(mark.equity) for mark in marks])
    flows = np.array([float(mark.flow) for mark in marks])
    # Both begin at the first close; the benchmark gets the same endowments on the same days.
    benchmark = [float(equity[0])]
    for mark, flow in zip(marks[1:], flows[1:].tolist(), strict=True):
        benchmark.append(benchmark[-1] * (1 + (mark.benchmark or 0.0)) + flow)
    losses, diagnosed = view.losses.marked(site.run), view.reading.diagnosed(site.run)
    made = view.deployments.all(site.run)
    marked = [
        charts.Mark(
            day,
            "shared" if level != "loss" else "loss",
            f"{day}: {measure.replace('_', ' ')}",
            f"/diagnostics/{diagnosed[id_]}" if id_ in diagnosed else "",
        )
        for id_, day, level, measure in losses
    ]
    marked += [
        charts.Mark(
            one.day,
            "rollback" if one.kind is DeploymentKind.ROLLBACK else "deploy",
            f"{one.day}: {one.kind.value} {one.revision[:12]}",
            f"/revisions/{one.revision}",
        )
        for one in made
        if one.kind is not DeploymentKind.START
    ]
    turns = [one.day for one in made if one.kind is not DeploymentKind.START and one.day <= days[-1]]
    edges = [days[0], *turns, days[-1]]
    spans = [(a, b, f"revision {n}") for n, (a, b) in enumerate(zip(edges, edges[1:], strict=False), 1) if b > a]
    fall = -np.array([mark.drawdown for mark in marks])
    return {
        "equity": charts.lines(
            days,
            [charts.Line("account", "a", equity.tolist()), charts.Line("benchmark", "b", benchmark)],
            title="Equity against the benchmark",
            about=f"From {days[0]} to {days[-1]}: the account ends at {charts.dollars(equity[-1])}, the benchmark at "
            f"{charts.dollars(benchmark[-1])}. {len(losses)} losses and {len(made) - 1} deployments are marked.",
            marks=marked,
            spans=spans[::2],
        ),
        "drawdown": charts.lines(
            days,
            [charts.Line("drawdown", "a", fall.tolist())],
            title="Drawdown",
            about=f"The deepest is {min(fall):.1%}.",
            money=False,
            height=130,
            area=True,
        ),
        "days": (days[0], days[-1]),
    }


def _friction_chart(rows: list[dict[str, Any]]) -> object:
    shown = [(row["symbol"], -row["total"]) for row in rows[:15]]
    return charts.bars(shown, title="What trading cost, by name", about="The costliest fifteen names.")

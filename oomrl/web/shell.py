"""What every page shows around its content: who looks, what state the account is in, what waits."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from oomrl.adapters.database.store import Work
from oomrl.adapters.kill_switch import stopped
from oomrl.domain.people import Right
from oomrl.web.entry import Entry, site_of

WAITING = ("passed", "approved")


def page(request: Request, entry: Entry, view: Work, template: str, code: int = 200, **values: Any) -> HTMLResponse:
    """Return a page inside its frame."""
    site = site_of(request)
    mark = view.sessions.last_mark(site.run)
    counts = view.reading.counts(site.run)
    capital = view.capital.state(site.run)
    return HTMLResponse(
        site.render(
            template,
            person=entry.person,
            may={right.value: entry.person.may(right) for right in Right},
            csrf=entry.login.csrf,
            path=request.url.path,
            theme=request.cookies.get("oomrl-theme", ""),
            mark=mark,
            halted=capital.halted,
            stopped=stopped(site.state),
            simulated=site.kept_run.kind == "simulation",
            unmasked=bool(site.kept_run.settings.get("unmasked")),
            waiting=sum(counts.get(status, 0) for status in WAITING),
            counts=counts,
            now=site.now(),
            **values,
        ),
        code,
    )

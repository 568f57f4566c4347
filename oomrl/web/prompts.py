"""A prompt of the manual model: what is asked, and where a person answers it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response

from oomrl.adapters.manual_model import ManualModel
from oomrl.domain.people import Right
from oomrl.domain.records import PromptStatus
from oomrl.web.entry import Entry, Unknown, act_needs, page_needs, site_of
from oomrl.web.shell import page

router = APIRouter()


@router.get("/prompts/{prompt}")
def prompt(request: Request, prompt: str, entry: Annotated[Entry, Depends(page_needs(Right.SEE))]) -> Response:
    """Show a prompt, and its answer or the form for one."""
    site = site_of(request)
    with site.store.read() as view:
        found = view.prompts.get(site.run, prompt)
        if found is None:
            raise Unknown
        manual = ManualModel(site.state)
        open_ = found.status is PromptStatus.PENDING and manual.asked(prompt) and prompt in manual.waiting()
        return page(request, entry, view, "prompt.html", asked=found, open=open_)


@router.post("/prompts/{prompt}/reply")
def reply(
    request: Request,
    prompt: str,
    entry: Annotated[Entry, Depends(act_needs(Right.COMMENT))],
    text: Annotated[str, Form()] = "",
) -> Response:
    """Answer a prompt in place of a model."""
    site_of(request).desk.reply(entry.person, prompt, text)
    return RedirectResponse(f"/prompts/{prompt}", 303)

"""Every account page as a file, however long."""

from __future__ import annotations

from datetime import date
from itertools import chain
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse

from oomrl.domain.people import Right
from oomrl.web.entry import Entry, Unknown, page_needs, site_of
from oomrl.web.tables import TABLES, Asked, csv_of, json_of, pages_of

router = APIRouter()


@router.get("/export/{name}.{form}")
def export(
    request: Request,
    name: str,
    form: Literal["csv", "json"],
    entry: Annotated[Entry, Depends(page_needs(Right.SEE))],
    symbol: str = "",
    kind: str = "",
    words: str = "",
    since: date | None = None,
    until: date | None = None,
) -> StreamingResponse:
    """Stream a table as CSV or JSON, page by page, so that a million rows need no memory and block no writer."""
    if name not in TABLES:
        raise Unknown
    asked = Asked(symbol=symbol, kind=kind, words=words, since=since, until=until)
    pages = pages_of(name, site_of(request), asked)
    # What is wrong with the question is said before the answer begins.
    tables = chain([next(pages)], pages)
    body, kind_ = (csv_of(tables), "text/csv") if form == "csv" else (json_of(tables), "application/json")
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return StreamingResponse(body, media_type=kind_, headers=headers)

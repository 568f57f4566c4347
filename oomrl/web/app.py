"""The application: routes, what stands before them, and how refusals look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

import oomrl
from oomrl.adapters.database import Store
from oomrl.domain.people import Forbidden
from oomrl.errors import Mistake, OomrlError, Partly, Refused
from oomrl.settings import Settings
from oomrl.web import account, api, doors, events, exports, people, prompts, proposals
from oomrl.web.entry import NotEntered, Unknown
from oomrl.web.guard import Guard, secure
from oomrl.web.site import Site

STATIC = Path(__file__).parent / "static"


def create_app(
    state: Path, store: Store, settings: Settings, run: str, now: Callable[[], datetime] | None = None
) -> FastAPI:
    """Return the page and the JSON API of one run in a state directory.

    The store is the caller's, who closes it. Nothing is served before an account is made: `site.accounts.first_link()`.
    """
    site = Site(state, store, settings, run, now)
    pulse = events.Pulse(site)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # What takes a second on a long history is read before the first person asks for it.
        await asyncio.to_thread(site.standing.carry_on)
        tasks = [asyncio.create_task(pulse.beat()), asyncio.create_task(events.telling(site))]
        yield
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    app = FastAPI(
        title="oomrl",
        version=getattr(oomrl, "__version__", "0.1.0"),
        description="Review of machine-made patches, and the account that they trade. Every figure of a simulation "
        "is simulated. Calls need a token: `Authorization: Bearer oomrl_...`.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        lifespan=lifespan,
    )
    app.state.site, app.state.pulse = site, pulse
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    for part in (doors, proposals, prompts, account, people, exports, events):
        app.include_router(part.router, include_in_schema=False)
    app.include_router(api.router)
    _refusals(app)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=_hosts(settings))
    # Outermost, so that a refused host is told with the same headers as everybody.
    app.add_middleware(Guard, requests_a_minute=settings.web.requests_a_minute, body_bytes=settings.web.body_bytes)
    return app


def _hosts(settings: Settings) -> list[str]:
    """Return the names under which browsers may call the page; any other is an attempt to rebind one."""
    named = urlsplit(settings.web.public_url).hostname
    bound = settings.web.host
    return ["localhost", "127.0.0.1", "[::1]", *filter(None, (named, bound))]


def _refusals(app: FastAPI) -> None:
    @app.exception_handler(NotEntered)
    def nobody(request: Request, _: NotEntered) -> Response:
        if _for_programs(request):
            return JSONResponse({"error": "Expected a valid token."}, 401, {"WWW-Authenticate": "Bearer"})
        target = f"/login?next={quote(request.url.path)}"
        if request.method != "GET":
            return RedirectResponse("/login", 303)
        if request.headers.get("hx-request"):
            return Response(status_code=401, headers={"HX-Redirect": target})
        return RedirectResponse(target, 303)

    @app.exception_handler(Unknown)
    def unknown(request: Request, _: Unknown) -> Response:
        return _said(request, 404, "There is no such page.")

    @app.exception_handler(OomrlError)
    def refused(request: Request, error: OomrlError) -> Response:
        if isinstance(error, Forbidden):
            return _said(request, 403, str(error))
        if isinstance(error, Refused):
            return _said(request, 409, str(error))
        if isinstance(error, Partly):
            return _said(request, 503, str(error), changed=True)
        if isinstance(error, Mistake):
            return _said(request, 404 if " id of " in str(error) else 422, str(error))
        return _said(request, 503, str(error))

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _said(request, 422, f"{where}: {first['msg']}.")

    @app.exception_handler(HTTPException)
    def plain(request: Request, error: HTTPException) -> Response:
        response = _said(request, error.status_code, str(error.detail))
        for name, value in (error.headers or {}).items():
            response.headers[name] = value
        return response

    @app.exception_handler(Exception)
    def failed(request: Request, _: Exception) -> Response:
        # It is sent from outside the guard: the traceback goes to the log, and nothing of it to the browser.
        response = _said(request, 500, "The page failed. The log of the process that serves it says why.")
        secure(response.headers, request.scope)
        return response


def _for_programs(request: Request) -> bool:
    return request.url.path.startswith("/api/")


def _said(request: Request, code: int, words: str, changed: bool = False) -> Response:
    if _for_programs(request):
        return JSONResponse({"error": words}, code)
    site: Site = request.app.state.site
    return HTMLResponse(site.render("said.html", code=code, words=words, changed=changed), code)

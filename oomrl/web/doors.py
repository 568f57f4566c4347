"""The doors: the link that makes or mends an account, logging in and out, and the theme."""

from __future__ import annotations

import hmac
import math
import secrets
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from oomrl.adapters.accounts import Entered
from oomrl.domain.people import Forbidden
from oomrl.errors import Mistake, Refused
from oomrl.web.entry import Entry, acting, address_of, cookie_name, site_of
from oomrl.web.guard import from_here

router = APIRouter()
#: A form before there is a session is bound to the browser by a cookie of its own.
FORM = "oomrl-form"


@router.get("/login")
def login(request: Request, next: str = "/") -> Response:
    """Show the form."""
    return _form(request, "login.html", next=_inside(next))


@router.post("/login")
def log_in(
    request: Request,
    name: Annotated[str, Form(max_length=200)] = "",
    password: Annotated[str, Form(max_length=1_000)] = "",
    form: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=2_000)] = "/",
) -> Response:
    """Begin a session under a new cookie, whatever cookie came with the form."""
    _from_form(request, form)
    site = site_of(request)
    wait = site.logins.wait(address_of(request))
    if wait:
        words = f"Too many attempts from this address: wait {math.ceil(wait)} seconds."
        return _form(request, "login.html", 429, next=_inside(next), words=words)
    try:
        found = site.accounts.enter(name, password, address_of(request))
    except Refused as error:
        return _form(request, "login.html", 403, next=_inside(next), words=str(error))
    return _with_session(request, found, _inside(next))


@router.post("/logout")
def log_out(request: Request, entry: Annotated[Entry, Depends(acting)]) -> Response:
    """End the session."""
    site_of(request).accounts.leave(entry.person, entry.login)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(cookie_name(request), secure=request.url.scheme == "https", httponly=True, samesite="lax")
    return response


@router.get("/welcome/{secret}")
def welcome(request: Request, secret: str) -> Response:
    """Show the form of an invitation. Looking does not use it up."""
    invitation = site_of(request).accounts.invitation(secret)
    return _form(request, "welcome.html", secret=secret, invitation=invitation)


@router.post("/welcome/{secret}")
def accept(
    request: Request,
    secret: str,
    name: Annotated[str, Form(max_length=200)] = "",
    password: Annotated[str, Form(max_length=1_000)] = "",
    again: Annotated[str, Form(max_length=1_000)] = "",
    form: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Set the password, use the invitation up, and begin a session."""
    _from_form(request, form)
    site = site_of(request)
    invitation = site.accounts.invitation(secret)  # unknown: refused; its secret is too long to be tried out
    try:
        if password != again:
            raise Mistake("Expected the same password twice, was another.")
        found = site.accounts.accept(secret, name, password, address_of(request))
    except Mistake as error:
        return _form(request, "welcome.html", 422, secret=secret, invitation=invitation, words=str(error))
    return _with_session(request, found, "/")


@router.post("/theme")
def theme(
    request: Request, entry: Annotated[Entry, Depends(acting)], theme: Annotated[str, Form(max_length=10)] = ""
) -> Response:
    """Keep light, dark, or whatever the system says, in a cookie."""
    back = request.headers.get("referer", "/")
    response = RedirectResponse(_inside("/" + back.split("/", 3)[-1] if back.count("/") >= 3 else "/"), 303)
    if theme in ("light", "dark"):
        response.set_cookie("oomrl-theme", theme, max_age=365 * 86_400, samesite="lax")
    else:
        response.delete_cookie("oomrl-theme")
    return response


@router.get("/healthz")
def health(request: Request) -> Response:
    """Say that the page answers and the database with it."""
    with site_of(request).store.read() as view:
        view.people.any()
    return HTMLResponse("ok")


def _form(request: Request, template: str, code: int = 200, words: str = "", **values: object) -> Response:
    secret = request.cookies.get(FORM) or secrets.token_urlsafe(24)
    page = site_of(request).render(
        template, form=_bound(request, secret), words=words, theme=request.cookies.get("oomrl-theme", ""), **values
    )
    response = HTMLResponse(page, code)
    response.set_cookie(
        FORM, secret, max_age=3_600, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return response


def _bound(request: Request, secret: str) -> str:
    return hmac.new(site_of(request).form_key.encode(), secret.encode(), "sha256").hexdigest()


def _from_form(request: Request, given: str) -> None:
    from_here(request)
    secret = request.cookies.get(FORM, "")
    if not secret or not hmac.compare_digest(given.encode(), _bound(request, secret).encode()):
        raise Forbidden("Expected the form that this browser was shown, was another: go back, reload, and try again.")


def _with_session(request: Request, found: Entered, target: str) -> Response:
    response = RedirectResponse(target, 303)
    response.set_cookie(
        cookie_name(request),
        found.secret,
        max_age=int(site_of(request).settings.web.session_hours * 3_600),
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
        path="/",
    )
    return response


def _inside(target: str) -> str:
    """Return a path of this page; anything that could lead elsewhere becomes the queue."""
    plain = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if plain and "\\" not in target else "/"

"""One's own account, tokens, and what administrators do with others' accounts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response

from oomrl.domain.people import Right, Role, scopes_of
from oomrl.errors import Mistake, Refused
from oomrl.web.entry import Entry, act_needs, address_of, page_needs, site_of
from oomrl.web.shell import page

router = APIRouter()
See = Annotated[Entry, Depends(page_needs(Right.SEE))]
SeeToo = Annotated[Entry, Depends(act_needs(Right.SEE))]
Administer = Annotated[Entry, Depends(act_needs(Right.ADMINISTER))]
Look = Annotated[Entry, Depends(page_needs(Right.ADMINISTER))]


@router.get("/me")
def me(request: Request, entry: See) -> Response:
    """Show one's own account and tokens."""
    return _me(request, entry)


@router.post("/me/tokens")
def make_token(
    request: Request,
    entry: SeeToo,
    label: Annotated[str, Form(max_length=200)] = "",
    scopes: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI copies defaults
    days: Annotated[int, Form(ge=1, le=3_650)] = 90,
) -> Response:
    """Make a token and show it, this once."""
    made = site_of(request).accounts.make_token(entry.person, label, scopes_of(scopes), days)
    return _me(request, entry, made)


@router.post("/me/tokens/{token}/revoke")
def revoke(request: Request, token: str, entry: SeeToo) -> Response:
    """End a token."""
    site_of(request).accounts.revoke_token(entry.person, token)
    return RedirectResponse("/me", 303)


@router.get("/people")
def people(request: Request, entry: Look) -> Response:
    """Show all accounts."""
    return _people(request, entry)


@router.post("/people")
def invite(
    request: Request,
    entry: Administer,
    name: Annotated[str, Form(max_length=200)] = "",
    role: Annotated[Role, Form()] = Role.VIEWER,
) -> Response:
    """Make an account and show the link that sets its password, this once."""
    secret = site_of(request).accounts.invite(entry.person, name, role)
    return _people(request, entry, name, secret)


@router.post("/people/{name}/invite")
def invite_again(request: Request, name: str, entry: Administer) -> Response:
    """Make a new link for an account whose password is lost."""
    return _people(request, entry, name, site_of(request).accounts.invite_again(entry.person, name))


@router.post("/people/{name}/role")
def set_role(request: Request, name: str, entry: Administer, role: Annotated[Role, Form()]) -> Response:
    """Give an account another role."""
    site_of(request).accounts.set_role(entry.person, name, role)
    return RedirectResponse("/people", 303)


@router.post("/people/{name}/active")
def set_active(request: Request, name: str, entry: Administer, active: Annotated[bool, Form()] = False) -> Response:
    """Close or open an account."""
    site_of(request).accounts.set_active(entry.person, name, active)
    return RedirectResponse("/people", 303)


@router.post("/people/{name}/unlock")
def unlock(request: Request, name: str, entry: Administer) -> Response:
    """End a lock."""
    site_of(request).accounts.unlock(entry.person, name)
    return RedirectResponse("/people", 303)


@router.post("/people/{name}/confirm")
def confirm(request: Request, name: str, entry: Administer) -> Response:
    """Say that a person of their own is behind an account."""
    site_of(request).accounts.confirm(entry.person, name)
    return RedirectResponse("/people", 303)


@router.post("/me/password")
def change_password(
    request: Request,
    entry: SeeToo,
    old: Annotated[str, Form(max_length=1_000)] = "",
    password: Annotated[str, Form(max_length=1_000)] = "",
    again: Annotated[str, Form(max_length=1_000)] = "",
    tokens: Annotated[bool, Form()] = False,
) -> Response:
    """Set one's own password anew; every other session ends."""
    site = site_of(request)
    if site.logins.wait(address_of(request)):
        raise Refused("Expected a little patience between attempts: wait a minute.")
    if password != again:
        raise Mistake("Expected the same new password twice, was another.")
    site.accounts.change_password(entry.person, entry.login, old, password, tokens)
    return _me(request, entry, said="Your password is changed, and every other session has ended.")


def _me(request: Request, entry: Entry, made: str = "", said: str = "") -> Response:
    site = site_of(request)
    with site.store.read() as view:
        tokens = view.people.tokens(entry.person.name)
        user = view.people.user(entry.person.name)
        return page(
            request,
            entry,
            view,
            "me.html",
            tokens=tokens,
            made=made,
            said=said,
            user=user,
            rights=sorted(entry.person.rights),
        )


def _people(request: Request, entry: Entry, invited: str = "", secret: str = "") -> Response:
    site = site_of(request)
    link = f"{site.url}/welcome/{secret}" if secret else ""
    with site.store.read() as view:
        users, roll = view.people.users(), view.people.roll()
        open_to = {user.name for user in users if user.password and not roll.one_party(user.name, entry.person.name)}
        return page(
            request, entry, view, "people.html",
            users=users, link=link, invited=invited, roles=list(Role), roll=roll, open_to=open_to,
        )  # fmt: skip

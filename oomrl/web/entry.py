"""Who comes in, by cookie or by token, and what the route asks of them."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Form, Request

from oomrl.domain.people import Forbidden, Login, Person, Right, demand
from oomrl.errors import Refused
from oomrl.web.guard import from_here
from oomrl.web.site import Site


class NotEntered(Exception):
    """Nobody is logged in: pages lead to the form, everything else says 401."""


class Unknown(Exception):
    """There is no such page."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Whoever looks at a page: the person, and the session that brought them."""

    person: Person
    login: Login


def site_of(request: Request) -> Site:
    """Return the site that the application serves."""
    site: Site = request.app.state.site
    return site


def address_of(request: Request) -> str:
    """Return the other end of the connection; behind a trusted proxy, whom the proxy speaks for."""
    return request.client.host if request.client else ""


def cookie_name(request: Request) -> str:
    """Return the name of the session's cookie: over TLS one that browsers bind to this host."""
    return "__Host-oomrl" if request.url.scheme == "https" else "oomrl"


def entered(request: Request) -> Entry:
    """Return who looks at a page; raise `NotEntered` where nobody is logged in."""
    secret = request.cookies.get(cookie_name(request), "")
    found = site_of(request).accounts.by_cookie(secret, address_of(request)) if secret else None
    if found is None:
        raise NotEntered
    return Entry(*found)


def acting(
    request: Request,
    entry: Annotated[Entry, Depends(entered)],
    csrf: Annotated[str, Form()] = "",
    once: Annotated[str, Form(max_length=80)] = "",
) -> Iterator[Entry]:
    """Give who changes something by the page's own form: the session's word comes back, from here, and once."""
    from_here(request)
    given = csrf or request.headers.get("x-csrf-token", "")
    if not hmac.compare_digest(given.encode(), entry.login.csrf.encode()):
        raise Forbidden("Expected a form of this session, was another: reload the page and try again.")
    sent, key = site_of(request).sent, f"{entry.login.digest}/{once}"
    if once and not sent.take(key):
        raise Refused("Expected a form that was not sent before, was one that was: its act is recorded already.")
    try:
        yield entry
    except Exception:
        if once:
            sent.give_back(key)
        raise


def page_needs(right: Right) -> Callable[[Entry], Entry]:
    """Return a dependency that lets in who has a right."""

    def needed(entry: Annotated[Entry, Depends(entered)]) -> Entry:
        demand(entry.person, right)
        return entry

    return needed


def act_needs(right: Right) -> Callable[[Entry], Entry]:
    """Return a dependency that lets a form of who has a right through."""

    def needed(entry: Annotated[Entry, Depends(acting)]) -> Entry:
        demand(entry.person, right)
        return entry

    return needed


def token_needs(right: Right | None = None) -> Callable[[Request], Person]:
    """Return a dependency that lets a bearer token with a right (none: any) through. Cookies count for nothing here."""

    def needed(request: Request) -> Person:
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        person = None
        if kind.lower() == "bearer":
            person = site_of(request).accounts.by_token(text.strip(), address_of(request))
        if person is None:
            raise NotEntered
        if right is not None:
            demand(person, right)
        return person

    return needed

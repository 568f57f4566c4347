"""Serve the page: in the foreground, or in a thread beside the loop."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from oomrl.adapters.database import Store
from oomrl.adapters.database.place import place, service_of
from oomrl.errors import Mistake
from oomrl.settings import Settings, WebSettings
from oomrl.web.app import create_app
from oomrl.web.protocol import PatientProtocol
from oomrl.web.site import Site

NOTHING_YET = """<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="30">
<title>oomrl: nothing yet</title><h1>Nothing to show yet</h1>
<p>The service runs. This page begins with the first session that it judges, after the next close;
<code>oomrl status</code> says when jobs are due. It looks again by itself.</p></html>
"""


def check_exposure(settings: WebSettings) -> None:
    """Raise `Mistake` where passwords would cross a network in the clear, TLS is half set up, or links lead nowhere."""
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise Mistake("Expected both web.tls_certificate and web.tls_key, was one of them.")
    for path in filter(None, (settings.tls_certificate, settings.tls_key)):
        if not path.is_file():
            raise Mistake(f"Expected a file at {path} for TLS, was none.")
    try:
        here = settings.host == "localhost" or ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        here = False
    if not here and settings.tls_certificate is None and not settings.trusted_proxies:
        raise Mistake(
            f"Expected TLS (web.tls_certificate, web.tls_key) or web.trusted_proxies to serve on {settings.host}: "
            "passwords would cross the network in the clear. Use host 127.0.0.1 to serve this machine alone."
        )
    everywhere = settings.host in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
    if not settings.public_url and (settings.trusted_proxies or everywhere):
        raise Mistake(
            "Expected web.public_url, such as 'https://review.example.org', where the page is served behind a proxy or "
            "on all addresses: links in messages begin with it, and browsers may call the page by no other name."
        )


def server_of(app: FastAPI, settings: WebSettings, port: int) -> uvicorn.Server:
    """Return a server that trusts forwarded addresses of the named proxies alone and logs no request line.

    Request lines hold the secrets of invitations.
    """
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=port,
        http=PatientProtocol,
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies) or None,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return uvicorn.Server(config)


@contextmanager
def serving(state: Path, settings: Settings, run: str, say: Callable[[str], None] = print) -> Iterator[str]:
    """Serve a state directory from a thread while the block lasts, on a store of its own; give the page's URL.

    Where there is no account yet, the one-time link that makes the first administrator is said.
    """
    root, account = service_of(state)
    check_exposure(settings.web)
    with Store.open(place(root, settings, account)) as store, _listening(settings.web) as (listening, port):
        app = create_app(state, store, settings, run)
        url = app.state.site.url = settings.web.url(port)
        with _running(server_of(app, settings.web, port), listening):
            say_where(app.state.site, url, say)
            yield url


@contextmanager
def waiting(settings: WebSettings, say: Callable[[str], None] = print) -> Iterator[None]:
    """Say at the page's address, while the block lasts, that there is nothing to show yet."""
    check_exposure(settings)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/{path:path}")
    def nothing_yet(path: str) -> HTMLResponse:
        headers = {"Retry-After": "30", "Content-Security-Policy": "default-src 'none'", "Cache-Control": "no-store"}
        return HTMLResponse(NOTHING_YET, 503, headers)

    with _listening(settings) as (listening, port), _running(server_of(app, settings, port), listening):
        say(f"The review page will be at {settings.url(port)}/ once the first session has been judged.")
        yield


@contextmanager
def _running(server: uvicorn.Server, listening: socket.socket) -> Iterator[None]:
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="page", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=10)


def say_where(site: Site, url: str, say: Callable[[str], None]) -> None:
    """Say where the page is, and how to make the first account."""
    secret = site.accounts.first_link()
    say(f"The review page: {url}/")
    if secret is not None:
        say(f"Make the first account (once, within {site.settings.web.invitation_hours:g} h): {url}/welcome/{secret}")


@contextmanager
def _listening(settings: WebSettings) -> Iterator[tuple[socket.socket, int]]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        # Whoever comes between the address being said and the server's first breath waits, and is not refused.
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise Mistake(
            f"Could not serve on {settings.host} port {settings.port}: {error.strerror}. Set web.port to another."
        ) from error
    try:
        yield listening, listening.getsockname()[1]
    finally:
        listening.close()

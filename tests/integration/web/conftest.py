from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response

from oomrl.domain.people import Person, Right, Role
from oomrl.settings import Settings, WebSettings
from oomrl.web.app import create_app
from oomrl.web.site import Site
from tests import databases
from tests.states import RUN, MadeUp, made_up, opened

#: What the test client calls the page.
HOST = "http://testserver"
PASSWORD = "correct horse battery"
ROOT = Person("root", frozenset(Right), "host")


@dataclass
class Clock:
    """The wall clock of the page, moved by hand."""

    at: datetime = field(default_factory=lambda: datetime(2026, 1, 5, 12, 0, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.at

    def on(self, **span: float) -> None:
        self.at += timedelta(**span)


class Browser:
    """A browser with cookies of its own, which sends a page's forms back as it found them."""

    def __init__(self, app: FastAPI) -> None:
        self.http = TestClient(app, follow_redirects=False)

    def get(self, path: str, **more: object) -> Response:
        return self.http.get(path, **more)  # type: ignore[arg-type]

    def form_word(self, path: str = "/login") -> str:
        return re.search(r'name="form" value="([^"]+)"', self.get(path).text)[1]  # type: ignore[index]

    def csrf(self) -> str:
        return re.search(r'name="csrf" value="([^"]+)"', self.get("/me").text)[1]  # type: ignore[index]

    def log_in(self, name: str, password: str = PASSWORD) -> Response:
        return self.http.post("/login", data={"name": name, "password": password, "form": self.form_word()})

    def welcome(self, secret: str, name: str = "", password: str = PASSWORD) -> Response:
        path = f"/welcome/{secret}"
        form = self.form_word(path)
        return self.http.post(path, data={"name": name, "password": password, "again": password, "form": form})

    def act(self, path: str, **data: object) -> Response:
        return self.http.post(path, data={"csrf": self.csrf(), **data})


@dataclass
class Page:
    """The page of a made-up state, with one account of each role."""

    made: MadeUp
    app: FastAPI
    clock: Clock
    browsers: dict[str, Browser] = field(default_factory=dict)

    @property
    def site(self) -> Site:
        site: Site = self.app.state.site
        return site

    def browser(self) -> Browser:
        return Browser(self.app)

    def as_(self, name: str) -> Browser:
        """Return the browser of an account (ann, bob: reviewers; vic: viewer; olga: operator; adam: admin)."""
        if name not in self.browsers:
            browser = self.browser()
            secret = self.site.accounts.invite(ROOT, name, ROLES[name])
            assert browser.welcome(secret).status_code == 303
            self.browsers[name] = browser
        return self.browsers[name]

    def token(self, name: str, *scopes: Right) -> dict[str, str]:
        """Return the header of a new token of an account."""
        self.as_(name)
        with self.made.store.read() as view:
            user = view.people.user(name)
        assert user is not None
        from oomrl.domain.people import RIGHTS

        person = Person(name, RIGHTS[user.role])
        made = self.site.accounts.make_token(person, "test", frozenset(scopes) or person.rights)
        return {"Authorization": f"Bearer {made}"}


ROLES = {
    "ann": Role.REVIEWER,
    "bob": Role.REVIEWER,
    "vic": Role.VIEWER,
    "olga": Role.OPERATOR,
    "adam": Role.ADMIN,
}


@pytest.fixture(scope="session", autouse=True)
def quick_hashes() -> Iterator[None]:
    """Hash passwords with the least memory: the cost of the default is tested by itself."""
    from argon2 import PasswordHasher

    from oomrl.adapters import accounts

    kept, accounts._HASHER = accounts._HASHER, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    yield
    accounts._HASHER = kept


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], MadeUp]:
    """Give a maker of state directories with one loss, which are copied."""
    template = tmp_path_factory.mktemp("template") / "state"
    made = made_up(template)
    made.loss()
    made.store.close()

    def copy(state: Path) -> MadeUp:
        databases.chosen.copy(template, state)
        return opened(state)

    return copy


@pytest.fixture
def page(tmp_path: Path, copied: Callable[[Path], MadeUp]) -> Iterator[Page]:
    made = copied(tmp_path / "state")
    clock = Clock()
    settings = Settings(web=WebSettings(public_url=HOST, logins_a_minute=10_000, requests_a_minute=1_000_000))
    app = create_app(made.state, made.store, settings, RUN, clock)
    yield Page(made, app, clock)
    made.store.close()

"""One served state directory: its store, desk and accounts, what is the case by now, and the templates."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from oomrl.adapters.accounts import Accounts
from oomrl.adapters.database import Store
from oomrl.adapters.desk import Desk
from oomrl.domain.records import Run
from oomrl.settings import Settings
from oomrl.web import charts
from oomrl.web.guard import Rate, Sent
from oomrl.web.standing import Chain, Standing
from oomrl.web.text import inert, oddities


class Site:
    """Everything that the routes share. `now` is the wall clock."""

    def __init__(
        self, state: Path, store: Store, settings: Settings, run: str, now: Callable[[], datetime] | None = None
    ) -> None:
        self.state, self.store, self.settings, self.run = state, store, settings, run
        self.now = now or (lambda: datetime.now(UTC))
        #: Where links lead: never what a request calls this host.
        self.url = settings.web.url()
        self.accounts = Accounts(store, settings.web, self.now, lambda done: self.desk.audit.act(done))
        self.standing = Standing(store, run)
        self.chain = Chain(state / "audit.jsonl")
        self.templates = _templates()
        self.logins = Rate(settings.web.logins_a_minute, most=10_000)
        self.sent = Sent()
        #: Cookies of the page say in their name that they came over TLS, where they did.
        self.form_key = secrets.token_urlsafe(32)

    @cached_property
    def desk(self) -> Desk:
        return Desk(self.state, self.store, self.run, self.settings.review, self.now)

    @cached_property
    def kept_run(self) -> Run:
        with self.store.read() as view:
            found = view.runs.get(self.run)
        assert found is not None
        return found

    def render(self, template: str, **values: Any) -> str:
        """Return a page."""
        return self.templates.get_template(template).render(**values)


def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("oomrl.web"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "inert": inert,
        "oddities": oddities,
        "money": money,
        "short": charts.dollars,
        "percent": percent,
        "figure": lambda value: "–" if value is None else f"{float(value):.2f}".replace("-", "−"),
        "when": when,
        "digest": lambda text: str(text)[:12],
        "words": lambda text: str(text).replace("_", " "),
        "ago": ago,
    }
    environment.globals["form_id"] = lambda: secrets.token_urlsafe(12)
    return environment


def money(value: object) -> str:
    """Return dollars and cents."""
    if value is None:
        return "–"
    amount = Decimal(str(value))
    return f"{'−' if amount < 0 else ''}${abs(amount):,.2f}"


def percent(value: object, digits: int = 1) -> str:
    """Return a fraction as percent."""
    if value is None:
        return "–"
    return f"{float(str(value)):.{digits}%}".replace("-", "−")


def when(value: object) -> str:
    """Return a day or an instant (UTC)."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return value.isoformat() if isinstance(value, date) else "" if value is None else str(value)


def ago(value: datetime, now: datetime) -> str:
    """Return how long ago an instant was, in the largest unit that says enough."""
    seconds = (now - value).total_seconds()
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count:,} {unit}{'s' if count != 1 else ''}"
    return "moments"

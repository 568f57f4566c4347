"""Tell people what happened, by apprise: each event once, quietly at night, with a link to the page and no secret.

What is to be told is read off the store, so that a kill between an event and its message loses nothing. A message that
could not be sent stays due.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, time
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from oomrl.adapters.audit import Audit
from oomrl.adapters.database import Store
from oomrl.adapters.database.notices import Notice
from oomrl.adapters.database.store import Work
from oomrl.domain.records import DeploymentKind, JobState
from oomrl.errors import Mistake, Unavailable
from oomrl.settings import NotifySettings, Settings

#: Told at once, whatever the hour.
URGENT = frozenset({"halted", "out of money", "unwell"})
#: More than this many at once become one message.
MOST = 5

Send = Callable[[str, str], bool]


class Notifier:
    """Find out what is new, and send it. `send(title, body)` says whether it arrived; by default apprise does it."""

    def __init__(
        self,
        state: Path,
        store: Store,
        run: str,
        settings: Settings,
        now: Callable[[], datetime],
        send: Send | None = None,
    ) -> None:
        self.state, self.store, self.run, self.now = state, store, run, now
        self.settings: NotifySettings = settings.notify
        self.link = settings.web.url()
        self.addresses = os.environ.get(settings.notify.urls_env, "").split()
        self._send = send

    def tell(self) -> int:
        """Send what is due and return in how many messages. In quiet hours only what is urgent is sent."""
        if self._send is None and not self.addresses:
            return 0
        with self.store.begin() as work:
            for notice in self._events(work):
                if notice.kind in self.settings.kinds:
                    work.notices.add(notice)
            due = work.notices.unsent()
        if self._quiet():
            due = [notice for notice in due if notice.kind in URGENT]
        groups = [[notice] for notice in due] if len(due) <= MOST else [due]
        sent = 0
        for group in groups:
            if self._deliver(group):
                with self.store.begin() as work:
                    work.notices.sent([notice.key for notice in group], self.now())
                sent += 1
        return sent

    def unwell(self, what: str) -> None:
        """Note that the service itself is in trouble; the same trouble is told once a day."""
        key = f"unwell/{self.now():%Y-%m-%d}/{what[:120]}"
        with self.store.begin() as work:
            work.notices.add(Notice(key, "unwell", f"The service is unwell: {what[:300]}", self.now()))

    def test(self) -> int:
        """Send one message to every address and return how many there are."""
        if self._send is None and not self.addresses:
            raise Mistake(f"Expected addresses in {self.settings.urls_env}, blanks between them, was none.")
        if not self._sent("oomrl: a test", f"Messages arrive. The page: {self.link}/"):
            raise Unavailable("The test message did not arrive everywhere: check the addresses, and the network.")
        return max(len(self.addresses), 1)

    def _events(self, view: Work) -> Iterator[Notice]:
        at = self.now()
        for loss in view.losses.all(self.run):
            if loss.level == "loss":
                text = f"Loss on {loss.day}: {loss.measure.replace('_', ' ')}. {loss.detail.get('evidence', '')}"
                yield Notice(f"loss/{loss.id}", "loss", text, at)
        for brief in view.reading.proposals(self.run, ("passed",), most=20):
            text = f"A proposal waits for review: {brief.cause.replace('_', ' ')}. {self.link}/proposals/{brief.id}"
            yield Notice(f"proposal waiting/{brief.id}", "proposal waiting", text, at)
        for id_, day, _ in view.reading.exhausted(self.run):
            text = f"No attempt passed for the loss of {day}; the strategy trades on. {self.link}/diagnostics/{id_}"
            yield Notice(f"exhausted/{id_}", "loss", text, at)
        for made in view.deployments.all(self.run):
            if made.kind is not DeploymentKind.START:
                kind = "rolled back" if made.kind is DeploymentKind.ROLLBACK else "deployed"
                text = f"{kind.capitalize()} on {made.day}: revision {made.revision[:12]}. {made.reason[:200]}"
                yield Notice(f"{kind}/{made.sequence}", kind, text, at)
        for event in view.capital.events(self.run):
            kind = {"halt": "halted", "out_of_money": "out of money"}.get(event.kind.value)
            if kind is not None:
                yield Notice(
                    f"{kind}/{event.key}", kind, f"{kind.capitalize()} on {event.day}: {event.reason[:300]}", at
                )
        mark = view.sessions.last_mark(self.run)
        if mark is not None and mark.state in ("halted", "out_of_money"):
            kind = mark.state.replace("_", " ")
            yield Notice(f"{kind}/state/{mark.day}", kind, f"The account is {kind} on {mark.day}.", at)
        for job in view.jobs.unfinished(self.run):
            if job.state is JobState.FAILED:
                text = f"{job.job} failed for {job.session}: {job.note[:300]}"
                yield Notice(f"unwell/{job.job}/{job.session}", "unwell", text, at)

    def _deliver(self, group: Sequence[Notice]) -> bool:
        title = f"oomrl: {group[0].kind}" if len(group) == 1 else f"oomrl: {len(group)} events"
        lines = [_plain(notice.text) for notice in group]
        head = Audit(self.state).head().text()
        return self._sent(title, "\n".join([*lines, "", f"{self.link}/", f"Audit head: {head}"]))

    def _sent(self, title: str, body: str) -> bool:
        if self._send is not None:
            return self._send(title, body)
        import apprise

        sender = apprise.Apprise()
        for address in self.addresses:
            if not sender.add(address):
                raise Mistake(f"Expected apprise URLs in {self.settings.urls_env}, was one that is none.")
        return bool(sender.notify(title=title, body=body))

    def _quiet(self) -> bool:
        if not self.settings.quiet:
            return False
        try:
            zone = ZoneInfo(self.settings.zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise Mistake(
                f"Expected a time zone such as Europe/Berlin in notify.zone, was {self.settings.zone!r}."
            ) from error
        begins, ends = (time.fromisoformat(part) for part in self.settings.quiet.split("-"))
        at = self.now().astimezone(zone).time().replace(tzinfo=None)
        return begins <= at < ends if begins <= ends else at >= begins or at < ends


def _plain(text: str) -> str:
    """Return one line: what foreign text could do to a message's layout, it cannot."""
    return "".join(c if c.isprintable() else " " for c in text)

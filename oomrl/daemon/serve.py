"""The daemon's process: it leads or stands by, wakes what is due, listens to signals, and lets itself be watched."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Timer
from typing import Any

import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from oomrl.adapters.database import Store
from oomrl.adapters.database.notices import Notice
from oomrl.adapters.database.place import MAIN, folder, place
from oomrl.adapters.folders import made
from oomrl.adapters.lead import HostLead, Lead
from oomrl.calendar import Calendar
from oomrl.daemon import health
from oomrl.daemon.began import changed
from oomrl.daemon.children import Children, Started, started
from oomrl.daemon.clocks import ClockWatch
from oomrl.daemon.metrics import Metrics
from oomrl.daemon.service import Service, wall_clock
from oomrl.daemon.systemd import Notifier
from oomrl.daemon.tracing import Traces
from oomrl.daemon.triggers import SessionTrigger
from oomrl.domain.records import Job, JobState
from oomrl.errors import Halt, Mistake
from oomrl.settings import Settings

#: Seconds between two beats: the lease is renewed, clocks compared, the watchdog fed.
BEAT = 2.0
#: Seconds between two beats of a standby.
STANDBY_BEAT = 0.5
#: Seconds between two looks at the table of jobs, besides the triggers: for what failed and may be tried again.
LOOK = 60.0
#: Seconds by which this host's clock may differ from the database's before it takes nothing on.
SKEW = 30.0
#: Without a beat for so long the process is unwell.
UNWELL = 30.0
KEEPS = "An account keeps the settings that it began with: change it back, and give it money by `oomrl endow`"


class Daemon:
    """One process that serves all accounts of a state directory.

    `now` is the clock by which jobs come due, `start` starts a job's process.
    """

    def __init__(
        self,
        state: Path,
        load: Callable[[], Settings],
        settings_file: Path | None = None,
        now: Callable[[], datetime] = wall_clock,
        start: Callable[[Sequence[str], Mapping[str, str]], Started] = started,
    ) -> None:
        self.state, self._load, self.now = state, load, now
        self.settings = load()
        self.log = structlog.get_logger("oomrl.daemon")
        self._accounts()
        service = self.settings.service
        if service.lease_seconds < service.http_timeout + BEAT + 1:
            raise Mistake("Setting service.lease_seconds: expected at least 3 s more than service.http_timeout.")
        made(state)
        self.store = Store.open(place(state, self.settings))
        self.lead: Lead | HostLead = (
            HostLead(state)
            if self.store.engine.dialect.name == "sqlite"
            else Lead(self.store, timedelta(seconds=service.lease_seconds), timedelta(seconds=service.http_timeout))
        )
        self.traces = Traces(os.environ)
        self.children = Children(
            state,
            self.lead if isinstance(self.lead, Lead) else None,
            said=self._said,
            settings=settings_file,
            handed_on=self.traces.handed_on,
            start=start,
        )
        self.service = Service(self.store, self._calendar(), self._accounts(), self.children, self, now, lead=self.lead)
        self.metrics = Metrics(state, lambda: self.settings, now, lambda: self.leads)
        self.systemd = Notifier()
        self.clocks = ClockWatch()
        self.leads = False
        self._skewed = False
        # A signal's handler runs between any two steps of this thread: it may wait for no lock that the thread holds.
        self._stopping = self._reloading = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._beat = self._looked = time.monotonic()

    # -- what the service tells

    def began(self, job: Job) -> None:
        self.traces.began(job)
        self.log.info("job began", run=job.run, job=job.job, session=job.session.isoformat(), attempt=job.attempts + 1)

    def ended(self, job: Job, state: JobState, note: str, seconds: float) -> None:
        self.traces.ended(job, state)
        account = job.run.removeprefix("daemon/")
        self.metrics.ended.labels(account, job.job, state.value).inc()
        if state is not JobState.SKIPPED:
            self.metrics.seconds.labels(account, job.job).observe(seconds)
        if state is JobState.FAILED:
            self._note_trouble(job, note)
        say = self.log.info if state is JobState.DONE else self.log.warning
        say(
            f"job {state.value}",
            run=job.run,
            job=job.job,
            session=job.session.isoformat(),
            note=note,
            seconds=round(seconds, 3),
        )

    def _note_trouble(self, job: Job, note: str) -> None:
        """Let people be told that a job failed; the log says it in any case."""
        text = f"{job.job} of {job.run.removeprefix('daemon/')} failed for {job.session}: {note[:300]}"
        with contextlib.suppress(Halt), self.store.begin() as work:
            work.notices.add(Notice(f"unwell/{job.run}/{job.job}/{job.session}", "unwell", text, self.now()))

    def _said(self, account: str, line: str) -> None:
        self.log.info("said", account=account, line=line)

    # -- health

    def health(self) -> health.Answer:
        """Say whether the process is well: its main thread beats."""
        age = time.monotonic() - self._beat
        return (200 if age < UNWELL else 503), {"well": age < UNWELL, "seconds_since_beat": round(age, 1)}

    def ready(self) -> health.Answer:
        """Say whether this daemon does the work now: it leads, clocks agree, and what it does can be written down."""
        free = shutil.disk_usage(self.state).free
        ready = self.leads and not self._skewed and not self._stopping and free >= health.MIN_FREE_BYTES
        return (200 if ready else 503), {
            "ready": ready,
            "leads": self.leads,
            "clock_agrees": not self._skewed,
            "bytes_free": free,
            "bytes_needed": health.MIN_FREE_BYTES,
            "busy": self.service.busy(),
        }

    # -- the process

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT. A job under way is given `service.stop_seconds` to end."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._signalled)
        listen = self.settings.service.listen
        server = health.serve(listen, self.health, self.ready, self.metrics.text) if listen else None
        scheduler = BackgroundScheduler(timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True})
        scheduler.start()
        self._schedule(scheduler)
        self.beat()
        self.systemd.tell("READY=1", f"STATUS={self._status()}")
        self._say_changed()
        self.log.info("serving", accounts=list(self.service.accounts), leads=self.leads, listen=listen)
        try:
            while not self._stopping:
                with contextlib.suppress(Empty):
                    self._wake.get(timeout=BEAT if self.leads else STANDBY_BEAT)
                if self._reloading:
                    self._reloading = False
                    self.reload(scheduler)
                self.beat()
        finally:
            self.close(scheduler)
            if server is not None:
                server.close()
            self.metrics.close()

    def beat(self) -> None:
        """Do what has to be done every other second."""
        self._beat = time.monotonic()
        self._compare_clocks()
        led, self.leads = self.leads, self.lead.renew()
        if led and not self.leads:
            self.log.error("lost the lead: another daemon or no database")
            self.children.end_all()
        if self.leads and not self._skewed and (not led or self._beat - self._looked >= LOOK):
            self._looked = self._beat
            if not led:
                self.log.info("leads")
            self.service.wake()
        if self.systemd.watchdog is not None:
            self.systemd.tell("WATCHDOG=1")

    def _compare_clocks(self) -> None:
        change = self.clocks.check()
        if change is not None:
            self.log.warning("the clock changed", slept=change.slept, jumped=change.jumped)
            for kind, seconds in (("sleep", change.slept), ("jump", change.jumped)):
                if abs(seconds) >= 1:
                    self.metrics.clock.labels(kind).inc()
            self._looked = -LOOK
        there = self.lead.database_time
        skewed = there is not None and self.leads and abs((there - datetime.now(UTC)).total_seconds()) > SKEW + BEAT
        if skewed != self._skewed:
            self.log.error("this clock and the database's differ" if skewed else "the clocks agree again")
        self._skewed = skewed

    def reload(self, scheduler: Any) -> None:
        """Read the settings again; keep the old ones where the new are wrong, or not what an account began with."""
        self.systemd.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        before = self.settings
        try:
            self.settings = self._load()
            accounts, calendar = self._accounts(), self._calendar()
            for account, what in self._changed():
                raise Mistake(f"Account {account}: {what}. {KEEPS}")
        except (Mistake, Halt, OSError) as error:
            self.settings = before
            self.log.error("the settings stay as they were", reason=str(error))
        else:
            self.service.accounts, self.service.calendar = accounts, calendar
            self._schedule(scheduler)
            self.log.info("settings read again", accounts=list(accounts))
            self._looked = -LOOK
        self.systemd.tell("READY=1", f"STATUS={self._status()}")

    def close(self, scheduler: Any) -> None:
        """Stop in order: take nothing on, let what is under way end, give up the lead."""
        self.systemd.tell("STOPPING=1")
        self.log.info("stopping", busy=self.service.busy())
        scheduler.shutdown(wait=False)
        end = Timer(self.settings.service.stop_seconds, self.children.end_all)
        end.start()
        self.service.close()
        end.cancel()
        if self.leads:
            self.lead.release()
        self.store.close()
        self.traces.close()
        self.log.info("stopped")

    def _signalled(self, number: int, _: object) -> None:
        if number == signal.SIGHUP:
            self._reloading = True
        else:
            self._stopping = True
        self._wake.put(None)

    def _schedule(self, scheduler: Any) -> None:
        scheduler.remove_all_jobs()
        for task in self.service.tasks:
            scheduler.add_job(self.due, SessionTrigger(task, self.service.calendar), id=task.name)

    def due(self) -> list[Future[None]]:
        """Take on what has come due, unless another daemon leads; return at once with what is under way."""
        return self.service.wake() if self.leads and not self._skewed else []

    def _calendar(self) -> Calendar:
        service = self.settings.service
        return Calendar(service.calendar, closures=service.closures)

    def _accounts(self) -> tuple[str, ...]:
        if not self.settings.accounts:
            raise Mistake("Expected at least one account in the settings ([accounts.main] with a tape), was none.")
        for account in self.settings.accounts:
            place(self.state, self.settings, account)
            if account != MAIN:
                folder(self.state, account).mkdir(parents=True, exist_ok=True)
        return tuple(self.settings.accounts)

    def _changed(self) -> Iterator[tuple[str, str]]:
        """Yield the accounts that began with other settings than these, with the first that differs."""
        for account in self.settings.accounts:
            for what in changed(self.state, self.settings, account)[:1]:
                yield account, what

    def _say_changed(self) -> None:
        """Say of each account whose settings are not what it began with that its jobs will refuse them."""
        with contextlib.suppress(Halt):  # a store that is away is said elsewhere
            for account, what in self._changed():
                self.log.error("the settings of an account changed", account=account, reason=f"{what}. {KEEPS}")

    def _status(self) -> str:
        return f"{'leads' if self.leads else 'stands by'}, {len(self.service.accounts)} accounts"

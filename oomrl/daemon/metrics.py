"""Prometheus metrics: what this process counts, and what each scrape reads from the store, so that a restart forgets
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from oomrl.adapters.database import Store
from oomrl.adapters.database.figures import Figures, figures, oldest_due
from oomrl.adapters.database.place import MAIN, RUN, folder, place
from oomrl.adapters.kill_switch import stopped
from oomrl.daemon.service import run_of
from oomrl.domain.capital import State
from oomrl.errors import Halt
from oomrl.settings import Settings

#: One value an account: name, help, and how it is read off the figures.
_SINGLE: tuple[tuple[str, str, Callable[[Figures], float]], ...] = (
    ("oomrl_equity_dollars", "Economic equity at the last close.", lambda f: float(f.equity)),
    ("oomrl_session_result_dollars", "Profit or loss of the last session.", lambda f: float(f.pnl)),
    ("oomrl_friction_dollars", "Spread, impact and fees paid in all.", lambda f: float(f.friction)),
    ("oomrl_principal_loss_ratio", "L_t: part of the endowments that is lost.", lambda f: f.principal_loss),
    ("oomrl_drawdown_ratio", "Fall below the high-water mark.", lambda f: f.drawdown),
    ("oomrl_model_spend_dollars", "Model bills in all.", lambda f: float(f.model_spend)),
)
_COUNTED: tuple[tuple[str, str, str, Callable[[Figures], dict[str, int]]], ...] = (
    ("oomrl_losses", "Losses detected, by measure.", "measure", lambda f: f.losses),
    ("oomrl_orders", "Orders, by state.", "state", lambda f: f.orders),
    ("oomrl_verdicts", "Verdicts of the gate, by outcome.", "outcome", lambda f: f.verdicts),
    ("oomrl_findings", "Findings in the newest hundred verdicts, by code.", "code", lambda f: f.findings),
)
#: States of the capital in which the loop trades.
TRADING = (State.ACTIVE.value, State.WATCH.value)
_BUCKETS = (0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3_600)


class Metrics:
    """All metrics of one daemon; `settings` are asked for anew, since a reload may bring accounts.

    A job is the label `task`: Prometheus itself gives every series a `job`, and renames one that was there.
    """

    def __init__(
        self,
        state: Path,
        settings: Callable[[], Settings],
        now: Callable[[], datetime],
        leads: Callable[[], bool],
    ) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.seconds = Histogram(
            "oomrl_job_seconds", "Duration of jobs.", ["account", "task"], buckets=_BUCKETS, registry=self.registry
        )
        self.ended = Counter(
            "oomrl_jobs_ended", "Jobs by how they ended.", ["account", "task", "state"], registry=self.registry
        )
        self.clock = Counter("oomrl_clock_changes", "Sleeps and jumps.", ["kind"], registry=self.registry)
        self._stored = _Stored(state, settings, now, leads)
        self.registry.register(self._stored)

    def text(self) -> bytes:
        """Return the exposition."""
        return generate_latest(self.registry)

    def close(self) -> None:
        """Close the stores that scrapes have opened; the next one opens them again."""
        self._stored.close()


class _Stored(Collector):
    def __init__(
        self,
        state: Path,
        settings: Callable[[], Settings],
        now: Callable[[], datetime],
        leads: Callable[[], bool],
    ) -> None:
        self.state, self.settings, self.now, self.leads = state, settings, now, leads
        self._stores: dict[str, Store] = {}

    def _store(self, account: str) -> Store:
        if account not in self._stores:
            self._stores[account] = Store.open(place(self.state, self.settings(), account))
        return self._stores[account]

    def close(self) -> None:
        while self._stores:
            self._stores.popitem()[1].close()

    def collect(self) -> Iterator[Metric]:
        lead = GaugeMetricFamily("oomrl_leads", "1 where this daemon leads, 0 where it stands by.")
        lead.add_metric([], float(self.leads()))
        yield lead
        single = {name: GaugeMetricFamily(name, about, labels=["account"]) for name, about, _ in _SINGLE}
        counted = {n: GaugeMetricFamily(n, about, labels=["account", label]) for n, about, label, _ in _COUNTED}
        waits = GaugeMetricFamily("oomrl_waiting_seconds", "Age of what waits for a person.", labels=["account"])
        queue = GaugeMetricFamily("oomrl_queue_age_seconds", "Age of the oldest due job.", labels=["account"])
        success = GaugeMetricFamily(
            "oomrl_job_last_success_timestamp_seconds", "When each job was last done.", labels=["account", "task"]
        )
        may = GaugeMetricFamily("oomrl_may_trade", "0 where a person has to act before it trades.", labels=["account"])
        reachable = GaugeMetricFamily("oomrl_store_up", "1 where the account's store answers.", labels=["account"])
        now = self.now()
        for account in self.settings().accounts or (MAIN,):
            found: Figures | None = None
            try:
                with self._store(MAIN).read() as view:
                    oldest = oldest_due(view.connection, run_of(account))
                    known = view.runs.get(run_of(account)) is not None
                    last = view.jobs.last_success(run_of(account)) if known else {}
                with self._store(account).read() as view:
                    found = figures(view.connection, RUN)
            except Halt:
                reachable.add_metric([account], 0)
                continue
            reachable.add_metric([account], 1)
            queue.add_metric([account], _age(oldest, now))
            for job, at in last.items():
                success.add_metric([account, job], at.timestamp())
            if found is None:
                continue
            waits.add_metric([account], _age(found.waiting_since, now))
            halted = bool(stopped(folder(self.state, account)))
            may.add_metric([account], float(found.state in TRADING and not halted))
            for name, _, value in _SINGLE:
                single[name].add_metric([account], value(found))
            for name, _, _, values in _COUNTED:
                for label, count in values(found).items():
                    counted[name].add_metric([account, label], count)
        yield from (reachable, queue, success, waits, may, *single.values(), *counted.values())


def _age(since: datetime | None, now: datetime) -> float:
    return 0.0 if since is None else max((now - since).total_seconds(), 0.0)

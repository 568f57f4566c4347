"""The daily digest: what a person wants to know of an account in a minute, once a day."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

from oomrl.adapters.audit import Audit
from oomrl.adapters.database import Store
from oomrl.adapters.database.place import RUN, folder, place
from oomrl.calendar import Calendar
from oomrl.daemon.schedule import TASKS, next_due
from oomrl.daemon.service import run_of
from oomrl.domain.records import Decided, Job, JobState, Mark
from oomrl.domain.trading import Hold
from oomrl.settings import Settings


def why_none(decided: Decided | None) -> str:
    """Say why a decision led to no orders."""
    if decided is None:
        return "none was due by the strategy's cadence"
    if isinstance(decided.decision, Hold):
        return f"held ({decided.decision.reason or 'the strategy gave no reason'})"
    return "the target is what is held already, within the limits and the smallest order"


def compose(state: Path, settings: Settings, account: str, session: date, calendar: Calendar) -> str:
    """Return the digest of a session: account, orders and why none, jobs, what waits, next runs, the chain's head."""
    with Store.open(place(state, settings)) as store, store.read() as view:
        jobs = view.jobs.all(run_of(account)) if view.runs.get(run_of(account)) else []
    with Store.open(place(state, settings, account)) as store, store.read() as view:
        run = RUN
        served = view.runs.get(run) is not None
        mark = view.sessions.last_mark(run) if served else None
        decided = view.sessions.decisions(run)[-1:] if served else []
        orders = view.orders.decided_on(run, decided[0].day) if decided else []
        waiting = [f"prompt {prompt.id}" for prompt in view.prompts.pending(run)] if served else []
        waiting += [f"review {p.id}" for p in view.proposals.all(run) if p.status.value == "passed"] if served else []
    after = max(datetime.now(UTC), calendar.hours[0].opens)
    lines = [_headline(account, session, mark)]
    if decided:
        what = f"{len(orders)} orders" if orders else f"no orders: {why_none(decided[0])}"
        lines.append(f"Decided on {decided[0].day} by {decided[0].revision[:12]}: {what}")
    else:
        lines.append(f"No orders: {why_none(None)}")
    lines.append(f"Reconciled: {_last(jobs, 'reconcile')}. Backed up: {_last(jobs, 'backup')}.")
    late = [f"{job.job} of {job.session}: {job.note}" for job in jobs if job.state is JobState.FAILED]
    late += [
        f"{j.job} of {j.session}: {j.note}" for j in jobs[-40:] if j.state is JobState.SKIPPED and j.session >= session
    ]
    lines += [f"Not done: {line}" for line in late]
    lines.append(f"Waits for a person: {', '.join(waiting) or 'nothing'}")
    soon = {task.name: next_due(task, calendar, after) for task in TASKS if task.name in ("rebalance", "judge")}
    lines.append("Next: " + ", ".join(f"{name} {at:%Y-%m-%d %H:%M} UTC" for name, at in soon.items() if at))
    own = folder(state, account)
    head = Audit(own).head().text() if (own / "audit.jsonl").exists() else "none yet"
    lines.append(f"Audit head (keep it elsewhere): {head}")
    return "\n".join(lines) + "\n"


def _headline(account: str, session: date, mark: Mark | None) -> str:
    if mark is None:
        return f"{account}, {session}: no session has been judged yet"
    return (
        f"{account}, {mark.day}: equity {mark.equity}, result {mark.pnl:+}, principal loss {mark.principal_loss:.2%}, "
        f"drawdown {mark.drawdown:.2%}, {mark.state}"
    )


def _last(jobs: list[Job], name: str) -> str:
    done = [job for job in jobs if job.job == name and job.state is JobState.DONE]
    return f"{done[-1].session} ({done[-1].note})" if done else "never"

"""`oomrl once`: one stage or job by hand, as the daemon runs it; doing it again does nothing new."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from datetime import UTC, date, datetime
from pathlib import Path

import click

from oomrl.adapters.database.place import MAIN
from oomrl.cli.options import settings_option, state_option, state_settings
from oomrl.cli.simulate import Day
from oomrl.daemon import jobs
from oomrl.daemon.children import PARENT
from oomrl.domain.records import Lease
from oomrl.errors import Mistake, Unavailable
from oomrl.ports import Timer

PR_SET_PDEATHSIG = 1


@click.command()
@click.argument("job", type=click.Choice([*jobs.STAGES, "trade", *jobs.JOBS]))
@state_option
@settings_option
@click.option("--account", default=MAIN, show_default=True, help="Which account.")
@click.option("--session", type=Day(), help="Which session. [default: the last that closed; the current one to trade]")
@click.option("--dry-run", is_flag=True, help="Show each order of a trade and its reason; send and write nothing.")
@click.option("--lease", "held", hidden=True, help="TERM/HOLDER of the lead under which orders may be sent.")
@click.pass_obj
def once(
    timer: Timer | None,
    job: str,
    state: Path,
    settings_file: Path | None,
    account: str,
    session: date | None,
    dry_run: bool,
    held: str | None,
) -> None:
    """Do one job of one session now; the last line printed is its outcome as JSON.

    Jobs: judge (record fills, mark, find losses), propose, gate, deployment, rebalance (or trade), and the chores
    pre_open_check, reconcile, digest, backup, housekeeping.
    """
    settings = state_settings(state, settings_file)
    _end_with_the_daemon()
    job = "rebalance" if job == "trade" else job
    desk = jobs.Desk(state, settings, account, None if held is None else _lease(held), timer)
    if dry_run:
        if job != "rebalance":
            raise Mistake(f"Expected `trade` with --dry-run, was {job!r}: the other jobs send nothing.")
        for line in jobs.dry_trade(desk, session or _current(desk, job)):
            click.echo(line)
        return
    outcome = jobs.perform(desk, job, session or _current(desk, job))
    click.echo(json.dumps({"done": outcome.done, "note": outcome.note}))


def _end_with_the_daemon() -> None:
    """Ask the kernel to end this process when the daemon that started it ends, however that happens."""
    parent = os.environ.get(PARENT, "")
    if parent.isdigit():
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != int(parent):
            raise Unavailable("Expected the daemon that started this job to be there, was gone.")


def _lease(held: str) -> Lease:
    from oomrl.adapters.lead import NAME

    term, _, holder = held.partition("/")
    if not term.isdigit() or not holder:
        raise Mistake(f"Expected a lease as TERM/HOLDER, was {held!r}.")
    return Lease(NAME, holder, int(term), datetime.max.replace(tzinfo=UTC))


def _current(desk: jobs.Desk, job: str) -> date:
    calendar, now = desk.calendar(), datetime.now(UTC)
    closed = calendar.last_closed(now)
    if closed is None:
        raise Mistake("Expected a session that has closed, the calendar has none yet.")
    if job not in jobs.BEFORE_CLOSE:
        return closed.day
    return calendar.between(closed.day, date.max)[0].day

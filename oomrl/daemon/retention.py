"""What is kept, what is exported, and what is dropped because it can be made again.

Everything that a run's facts are folded from (marks, decisions, orders, fills, ledger, losses, proposals, verdicts,
reviews, deployments) is kept for ever. The daemon's finished jobs are exported to Parquet and dropped after
`service.keep_days`; checked-out revisions and old digests are dropped.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from sqlalchemy import and_, delete, func, select

from oomrl.adapters.database import Store
from oomrl.adapters.database.jobs import ENDED
from oomrl.adapters.database.place import folder, place
from oomrl.adapters.database.tables import jobs
from oomrl.adapters.database.transfer import export
from oomrl.adapters.repository import Repository
from oomrl.daemon.service import run_of
from oomrl.settings import Settings


def tidy(state: Path, settings: Settings, account: str, session: date) -> str:
    """Do the week's housekeeping of one account; say what was done."""
    before = session - timedelta(days=settings.service.keep_days)
    own = folder(state, account)
    with Store.open(place(state, settings)) as store:
        with store.read() as view:
            key = view.runs.key(run_of(account)) if view.runs.get(run_of(account)) else None
        old = and_(jobs.c.run_id == key, jobs.c.session < before, jobs.c.state.in_([s.value for s in ENDED]))
        with store.read() as view:
            archived = view.connection.scalar(select(func.count()).select_from(jobs).where(old)) or 0
            if archived:
                export(view.connection, own / "archive" / f"until-{before}", [jobs], old)
        if archived:
            with store.begin() as work:
                work.connection.execute(delete(jobs).where(old))
        if store.engine.dialect.name == "sqlite":
            with store.begin() as work:
                work.connection.exec_driver_sql("PRAGMA optimize")
    dropped = _drop(own / "digests", before)
    kept = own / "strategy.git"
    checkouts = Repository(kept).tidy(before) if kept.is_dir() else 0
    return f"{archived} finished jobs archived, {dropped} digests and {checkouts} checkouts dropped"


def _drop(digests: Path, before: date) -> int:
    old = [path for path in digests.glob("*.txt") if path.stem < before.isoformat()]
    for path in old:
        path.unlink()
    return len(old)

"""Numbers about a run that the metrics show, each from one small query."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection, func, select

from oomrl.adapters.database.jobs import ENDED
from oomrl.adapters.database.tables import jobs, losses, marks, orders, prompts, proposals, runs, verdicts


@dataclass(frozen=True, slots=True)
class Figures:
    """How an account stands."""

    equity: Decimal = Decimal(0)
    pnl: Decimal = Decimal(0)
    friction: Decimal = Decimal(0)
    principal_loss: float = 0.0
    drawdown: float = 0.0
    state: str = ""
    losses: dict[str, int] = field(default_factory=dict)
    orders: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, int] = field(default_factory=dict)
    findings: dict[str, int] = field(default_factory=dict)
    model_spend: Decimal = Decimal(0)
    waiting_since: datetime | None = None


def figures(connection: Connection, run: str) -> Figures | None:
    """Return a run's figures, None before its first session."""
    key = connection.scalar(select(runs.c.id).where(runs.c.name == run))
    if key is None:
        return None
    last = connection.execute(select(marks).where(marks.c.run_id == key).order_by(marks.c.day.desc()).limit(1)).first()
    if last is None:
        return None

    def counted(column: object, of: object) -> dict[str, int]:
        query = select(column, func.count()).where(of == key).group_by(column)  # type: ignore[call-overload]
        return {str(name): count for name, count in connection.execute(query)}

    friction = connection.scalar(select(func.sum(marks.c.friction)).where(marks.c.run_id == key))
    waits = connection.scalar(
        select(func.min(proposals.c.at)).where(proposals.c.run_id == key, proposals.c.status == "passed")
    )
    asked = connection.scalar(
        select(func.min(prompts.c.asked_at)).where(prompts.c.run_id == key, prompts.c.status == "pending")
    )
    spend = connection.scalar(select(func.sum(prompts.c.cost)).where(prompts.c.run_id == key))
    return Figures(
        equity=last.equity,
        pnl=last.pnl,
        friction=friction or Decimal(0),
        principal_loss=last.principal_loss,
        drawdown=last.drawdown,
        state=last.state,
        losses=counted(losses.c.measure, losses.c.run_id),
        orders=counted(orders.c.state, orders.c.run_id),
        verdicts=counted(verdicts.c.outcome, verdicts.c.run_id),
        findings=_findings(connection, key),
        model_spend=spend or Decimal(0),
        waiting_since=min((at for at in (waits, asked) if at is not None), default=None),
    )


def _findings(connection: Connection, key: int) -> dict[str, int]:
    """Count the newest hundred verdicts' findings by code."""
    query = select(verdicts.c.payload).where(verdicts.c.run_id == key).order_by(verdicts.c.at.desc()).limit(100)
    found: Counter[str] = Counter()
    for (payload,) in connection.execute(query):
        for phase in payload.get("phases", {}).values():
            found.update(str(finding.get("code", "")) for finding in phase.get("findings", []))
    return dict(found)


def oldest_due(connection: Connection, run: str) -> datetime | None:
    """Return since when the oldest unfinished job of the daemon has been due."""
    key = connection.scalar(select(runs.c.id).where(runs.c.name == run))
    open_ = jobs.c.state.not_in([state.value for state in ENDED])
    oldest: datetime | None = connection.scalar(select(func.min(jobs.c.due_at)).where(jobs.c.run_id == key, open_))
    return oldest

"""What the pages read: bounded, newest first, a page at a time, however long the history is.

A page begins `before` the last row of the one before it. Searches look at a bounded number of rows and say how far
they came, so that no question makes the database scan a year.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection, Row, and_, func, or_, select, text

from oomrl.adapters.database.ledger import entry_of
from oomrl.adapters.database.orders import fill_of, order_of
from oomrl.adapters.database.runs import Runs
from oomrl.adapters.database.tables import (
    diagnostics,
    fills,
    ledger,
    marks,
    orders,
    prompts,
    proposals,
    reviews,
    verdicts,
)
from oomrl.domain.ledger import Entry
from oomrl.domain.records import StoredFill, StoredOrder

#: Rows that one search of the ledger looks at.
REACH = 20_000


@dataclass(frozen=True, slots=True)
class Brief:
    """A proposal in a list: without its patches, with the newest verdict's outcome and its loss."""

    id: str
    status: str
    attempt: int
    author: str
    at: datetime
    diagnostic: str
    base_revision: str
    day: date
    mandate: str
    cause: str
    window_pnl: float
    sessions: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found, where the next page begins (None at the end), and whether it stopped before that."""

    rows: list[Entry]
    next: tuple[date, str] | None
    cut: bool


class Reading:
    """The pages' questions, within one transaction."""

    def __init__(self, connection: Connection, runs: Runs) -> None:
        self._connection = connection
        self._runs = runs

    def counts(self, run: str) -> dict[str, int]:
        """Return how many proposals there are by status."""
        query = select(proposals.c.status, func.count()).where(proposals.c.run_id == self._runs.key(run))
        return {status: count for status, count in self._connection.execute(query.group_by(proposals.c.status))}

    def proposals(
        self,
        run: str,
        statuses: tuple[str, ...] = (),
        before: tuple[datetime, str] | None = None,
        most: int = 50,
        oldest_first: bool = False,
    ) -> list[Brief]:
        """Return proposals of some statuses or of all, newest first unless told otherwise."""
        query = select(
            proposals.c.id,
            proposals.c.status,
            proposals.c.attempt,
            proposals.c.author,
            proposals.c.at,
            proposals.c.diagnostic,
            proposals.c.base_revision,
        ).where(proposals.c.run_id == self._runs.key(run))
        if statuses:
            query = query.where(proposals.c.status.in_(statuses))
        if before is not None:
            at, id_ = before
            query = query.where(or_(proposals.c.at < at, and_(proposals.c.at == at, proposals.c.id < id_)))
        order = (proposals.c.at, proposals.c.id) if oldest_first else (proposals.c.at.desc(), proposals.c.id.desc())
        rows = self._connection.execute(query.order_by(*order).limit(most)).all()
        outcomes = self._outcomes(run, [row.id for row in rows])
        causes = self._causes(run, {row.diagnostic for row in rows})
        return [_brief(row, causes[row.diagnostic], outcomes.get(row.id, "")) for row in rows]

    def diagnosed(self, run: str) -> dict[str, str]:
        """Return the diagnostics' ids by loss, without what they say."""
        query = select(diagnostics.c.loss, diagnostics.c.id).where(diagnostics.c.run_id == self._runs.key(run))
        return {loss: id_ for loss, id_ in self._connection.execute(query)}

    def unconfirmed(self, run: str, most: int = 20) -> list[tuple[str, date, str]]:
        """Return the id, day and mandate of open diagnostics whose mandate waits for a person, oldest first."""
        query = select(diagnostics.c.id, diagnostics.c.day, diagnostics.c.mandate).where(
            diagnostics.c.run_id == self._runs.key(run),
            diagnostics.c.status == "open",
            diagnostics.c.confirmed.is_(False),
        )
        return [tuple(row) for row in self._connection.execute(query.order_by(diagnostics.c.day).limit(most))]

    def exhausted(self, run: str, most: int = 20) -> list[tuple[str, date, str]]:
        """Return the id, day and mandate of diagnostics for which no attempt passed, newest first."""
        query = select(diagnostics.c.id, diagnostics.c.day, diagnostics.c.mandate).where(
            diagnostics.c.run_id == self._runs.key(run), diagnostics.c.status == "exhausted"
        )
        return [tuple(row) for row in self._connection.execute(query.order_by(diagnostics.c.day.desc()).limit(most))]

    def _outcomes(self, run: str, names: list[str]) -> dict[str, str]:
        query = select(verdicts.c.proposal, verdicts.c.outcome).where(
            verdicts.c.run_id == self._runs.key(run), verdicts.c.proposal.in_(names)
        )
        return {row.proposal: row.outcome for row in self._connection.execute(query.order_by(verdicts.c.at))}

    def _causes(self, run: str, names: set[str]) -> dict[str, Row[tuple[object, ...]]]:
        query = select(diagnostics.c.id, diagnostics.c.day, diagnostics.c.mandate, diagnostics.c.payload).where(
            diagnostics.c.run_id == self._runs.key(run), diagnostics.c.id.in_(names)
        )
        return {row.id: row for row in self._connection.execute(query)}

    def ledger(
        self,
        run: str,
        before: tuple[date, str] | None = None,
        *,
        symbol: str = "",
        kind: str = "",
        words: str = "",
        until: date | None = None,
        since: date | None = None,
        most: int = 100,
        reach: int = REACH,
    ) -> Found:
        """Return ledger lines, newest first; `words` are looked for in the key and in the note."""
        mine = ledger.c.run_id == self._runs.key(run)
        base = [mine]
        if before is not None:
            base.append(or_(ledger.c.day < before[0], and_(ledger.c.day == before[0], ledger.c.key < before[1])))
        if until is not None:
            base.append(ledger.c.day <= until)
        if since is not None:
            base.append(ledger.c.day >= since)
        newest = (ledger.c.day.desc(), ledger.c.key.desc())
        wanted = list(base)
        if symbol:
            wanted.append(ledger.c.symbol == symbol)
        if kind:
            wanted.append(ledger.c.kind == kind)
        if words:
            wanted.append(
                or_(ledger.c.note.contains(words, autoescape=True), ledger.c.key.contains(words, autoescape=True))
            )
        edge = None
        if len(wanted) > len(base):
            # How far this search reaches: the place of the last row that it looks at.
            edge = self._connection.execute(
                select(ledger.c.day, ledger.c.key).where(*base).order_by(*newest).offset(reach).limit(1)
            ).one_or_none()
            if edge is not None:
                # The first bound says nothing new: it lets a database that splits no alternatives end its scan.
                wanted.append(ledger.c.day >= edge.day)
                wanted.append(or_(ledger.c.day > edge.day, and_(ledger.c.day == edge.day, ledger.c.key >= edge.key)))
        rows = self._connection.execute(select(ledger).where(*wanted).order_by(*newest).limit(most + 1)).all()
        entries = [entry_of(row) for row in rows[:most]]
        if len(rows) > most:
            return Found(entries, (entries[-1].day, entries[-1].key), False)
        return Found(entries, None if edge is None else (edge.day, edge.key), edge is not None)

    def orders(self, run: str, before: tuple[date, int] | None = None, most: int = 100) -> list[StoredOrder]:
        """Return orders, the newest decision first; `before` is a day and how many of its orders are known."""
        mine = orders.c.run_id == self._runs.key(run)
        days = select(orders.c.decided_on).where(mine).distinct().order_by(orders.c.decided_on.desc())
        if before is not None:
            days = days.where(orders.c.decided_on < before[0])
        found: list[StoredOrder] = []
        for (day,) in self._connection.execute(days.limit(most)):
            query = select(orders).where(mine, orders.c.decided_on == day).order_by(orders.c.position)
            found += [order_of(row) for row in self._connection.execute(query)]
            if len(found) >= most:
                break
        return found

    def fills_of(self, run: str, client_order_id: str) -> list[StoredFill]:
        """Return the fills of one order, in their order."""
        query = select(fills).where(fills.c.run_id == self._runs.key(run), fills.c.client_order_id == client_order_id)
        return [fill_of(row) for row in self._connection.execute(query.order_by(fills.c.sequence))]

    def fills(self, run: str, before: tuple[date, str, int] | None = None, most: int = 100) -> list[StoredFill]:
        """Return fills, newest first."""
        query = select(fills).where(fills.c.run_id == self._runs.key(run))
        if before is not None:
            day, name, sequence = before
            query = query.where(
                or_(
                    fills.c.day < day,
                    and_(fills.c.day == day, fills.c.client_order_id < name),
                    and_(fills.c.day == day, fills.c.client_order_id == name, fills.c.sequence < sequence),
                )
            )
        newest = (fills.c.day.desc(), fills.c.client_order_id.desc(), fills.c.sequence.desc())
        return [fill_of(row) for row in self._connection.execute(query.order_by(*newest).limit(most))]

    def last_day(self, run: str) -> date | None:
        """Return the day of the newest mark."""
        return self._connection.scalar(select(func.max(marks.c.day)).where(marks.c.run_id == self._runs.key(run)))

    def holdings_since(self, run: str, after: date, until: date) -> list[tuple[str, int | float, int | float]]:
        """Return shares (1e-9) and dollars (cents) that ledger lines of some days add up to, by symbol."""
        exact = self._connection.dialect.name == "sqlite"
        shares, amount = ("sum(shares)", "sum(amount)") if exact else ("sum(shares) * 1e9", "sum(amount) * 100")
        query = text(
            f"SELECT symbol, {shares}, {amount} FROM ledger "  # two constant expressions
            "WHERE run_id = :run AND day > :after AND day <= :until AND symbol IS NOT NULL GROUP BY symbol"
        )
        rows = self._connection.execute(query, self._days(run, after, until))
        return [(symbol, int(one or 0), int(other or 0)) for symbol, one, other in rows]

    def costs_since(self, run: str, after: date, until: date) -> list[tuple[str, float, float, float, float, int]]:
        """Return what fills of some days cost, by symbol: traded, spread, impact and fees in dollars, and how many."""
        exact = self._connection.dialect.name == "sqlite"
        share, cent = ("1e-9", "1e-2") if exact else ("1.0", "1.0")
        query = text(
            f"SELECT symbol, sum(abs(amount)) * {cent}, sum(shares * coalesce(spread, 0)) * {share}, "
            f"sum(shares * coalesce(impact, 0)) * {share}, sum(commission + regulatory) * {cent}, count(*) FROM fills "
            "WHERE run_id = :run AND day > :after AND day <= :until GROUP BY symbol"
        )
        rows = self._connection.execute(query, self._days(run, after, until))
        return [(s, float(a or 0), float(b or 0), float(c or 0), float(d or 0), int(n)) for s, a, b, c, d, n in rows]

    def last_prices(self, run: str, after: date, until: date) -> dict[str, float]:
        """Return the price of each symbol's last fill within some days."""
        exact = self._connection.dialect.name == "sqlite"
        scale = "1e-4" if exact else "1.0"
        query = text(
            f"SELECT f.symbol, max(f.price) * {scale} FROM fills f JOIN (SELECT symbol, max(day) AS day FROM fills "
            "WHERE run_id = :run AND day > :after AND day <= :until GROUP BY symbol) m "
            "ON f.symbol = m.symbol AND f.day = m.day WHERE f.run_id = :run GROUP BY f.symbol"
        )
        return {
            symbol: float(price) for symbol, price in self._connection.execute(query, self._days(run, after, until))
        }

    def _days(self, run: str, after: date, until: date) -> dict[str, object]:
        exact = self._connection.dialect.name == "sqlite"
        return {
            "run": self._runs.key(run),
            "after": after.isoformat() if exact else after,
            "until": until.isoformat() if exact else until,
        }

    def spent(self, run: str) -> list[tuple[str, str, int, int, int, object]]:
        """Return model, role, prompts, tokens in and out, and dollars."""
        query = (
            select(
                prompts.c.model,
                prompts.c.role,
                func.count(),
                func.sum(prompts.c.prompt_tokens),
                func.sum(prompts.c.completion_tokens),
                func.sum(prompts.c.cost),
            )
            .where(prompts.c.run_id == self._runs.key(run))
            .group_by(prompts.c.model, prompts.c.role)
            .order_by(prompts.c.model, prompts.c.role)
        )
        return [tuple(row) for row in self._connection.execute(query)]

    def pulse(self, run: str) -> str:
        """Return a text that changes whenever there is something new to show."""
        key = self._runs.key(run)
        day = self._connection.scalar(select(func.max(marks.c.day)).where(marks.c.run_id == key))
        said = self._connection.scalar(select(func.max(reviews.c.at)).where(reviews.c.run_id == key))
        newest = self._connection.scalar(select(func.max(proposals.c.at)).where(proposals.c.run_id == key))
        done = self._connection.scalar(text("SELECT max(sequence) FROM acts"))
        return f"{day}/{said}/{newest}/{self.counts(run)}/{done}"


def _brief(row: Row[tuple[object, ...]], cause: Row[tuple[object, ...]], outcome: str) -> Brief:
    payload = cause.payload
    metrics, window, found = (payload.get(name, {}) for name in ("metrics", "window", "diagnostics"))
    return Brief(
        id=row.id,
        status=row.status,
        attempt=row.attempt,
        author=row.author,
        at=row.at,
        diagnostic=row.diagnostic,
        base_revision=row.base_revision,
        day=cause.day,
        mandate=cause.mandate,
        cause=str(found.get("root_cause", "unknown")),
        window_pnl=float(metrics.get("window_pnl", 0.0)),
        sessions=int(window.get("sessions", 1)),
        outcome=outcome,
    )

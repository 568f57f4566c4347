"""The account's tables, made once and shown three ways: as a page, as a file (CSV or JSON), and by the API.

Over 400 lines, because it is one list of tables, each a few lines on the same few parts.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from oomrl.adapters.database.store import Work
from oomrl.arenas import certificates
from oomrl.domain.ledger import Kind
from oomrl.domain.records import StoredOrder
from oomrl.errors import Mistake
from oomrl.web.site import Site
from oomrl.web.text import escaped

#: How a column is shown: text, money, number, percent, day, id (cut short), and the links proposal, order, revision.
Columns = tuple[tuple[str, str], ...]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, what it is, columns as (key, kind), rows, and where the next page begins (empty: nowhere)."""

    name: str
    title: str
    columns: Columns
    rows: list[Row]
    next: str = ""
    note: str = ""

    def plain(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {"name": self.name, "title": self.title, "note": self.note, "rows": self.rows, "next": self.next}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reader asks a table for. `after` is the `next` of the page before."""

    after: str = ""
    symbol: str = ""
    kind: str = ""
    words: str = ""
    since: date | None = None
    until: date | None = None
    most: int = 100
    extra: Mapping[str, str] = field(default_factory=dict)


def equity(site: Site, view: Work, asked: Asked) -> Table:
    """Every close, newest first."""
    marks = site.standing.marks()
    start = _count(asked.after)
    chosen = marks[::-1][start : start + asked.most]
    rows = [
        {
            "day": mark.day,
            "equity": mark.equity,
            "cash": mark.cash,
            "pnl": mark.pnl,
            "flow": mark.flow,
            "benchmark": mark.benchmark,
            "drawdown": mark.drawdown,
            "principal_loss": mark.principal_loss,
            "turnover": mark.turnover,
            "friction": mark.friction,
            "state": mark.state,
        }
        for mark in chosen
    ]
    columns = (
        ("day", "day"), ("equity", "money"), ("cash", "money"), ("pnl", "money"), ("flow", "money"),
        ("benchmark", "percent"), ("drawdown", "percent"), ("principal_loss", "percent"), ("turnover", "percent"),
        ("friction", "money"), ("state", "text"),
    )  # fmt: skip
    more = str(start + asked.most) if start + asked.most < len(marks) else ""
    return Table("equity", "Equity, session by session", columns, rows, more)


def positions(site: Site, view: Work, asked: Asked) -> Table:
    """What is held, at the price of each name's last fill."""
    rows = []
    for symbol, holding in site.standing.holdings().items():
        if not holding.shares:
            continue
        shares = Decimal(holding.shares).scaleb(-9)
        value = float(shares) * holding.price
        rows.append(
            {
                "symbol": symbol,
                "shares": shares,
                "last_fill_price": round(holding.price, 4),
                "value": round(value, 2),
                "cash_moved": Decimal(holding.cents).scaleb(-2),
                "gain": round(value + holding.cents / 100, 2),
            }
        )
    rows.sort(key=lambda row: -row["value"])
    columns = (
        ("symbol", "text"), ("shares", "number"), ("last_fill_price", "money"), ("value", "money"),
        ("cash_moved", "money"), ("gain", "money"),
    )  # fmt: skip
    note = "Values are at the price of the last fill, not of the last close; gain is value plus all cash moved."
    return Table("positions", "Positions", columns, rows, note=note)


def orders(site: Site, view: Work, asked: Asked) -> Table:
    """Orders with their state, the newest decision first."""
    before = (_day(asked.after), 0) if asked.after else None
    found = view.reading.orders(site.run, before, asked.most)
    columns = (
        ("decided_on", "day"), ("symbol", "text"), ("side", "text"), ("shares", "number"), ("limit_price", "money"),
        ("participation", "percent"), ("state", "text"), ("unfilled", "number"), ("cause", "text"), ("reason", "text"),
        ("client_order_id", "order"),
    )  # fmt: skip
    more = found[-1].decided_on.isoformat() if len(found) >= asked.most else ""
    return Table("orders", "Orders", columns, [order_row(order) for order in found], more)


def order_states(site: Site, view: Work, asked: Asked) -> Table:
    """Every change of each order's state, the orders with the newest decision first."""
    before = (_day(asked.after), 0) if asked.after else None
    found = view.reading.orders(site.run, before, asked.most)
    rows = [
        {
            "client_order_id": event.client_order_id,
            "sequence": event.sequence,
            "at": event.at,
            "kind": event.kind,
            "detail": json.dumps(event.detail, sort_keys=True, default=str),
        }
        for order in found
        for event in view.orders.events(site.run, order.client_order_id)
    ]
    columns = (
        ("client_order_id", "order"),
        ("sequence", "number"),
        ("at", "day"),
        ("kind", "text"),
        ("detail", "text"),
    )
    more = found[-1].decided_on.isoformat() if len(found) >= asked.most else ""
    return Table("order_states", "Changes of orders", columns, rows, more)


def order_row(order: StoredOrder) -> Row:
    """Return an order as a row."""
    return {
        "decided_on": order.decided_on,
        "symbol": order.symbol,
        "side": "buy" if order.shares > 0 else "sell",
        "shares": abs(order.shares),
        "limit_price": order.limit_price,
        "participation": order.participation,
        "state": order.state.value,
        "unfilled": None if order.unfilled is None else abs(order.unfilled),
        "cause": "" if order.cause.value == "none" else order.cause.value,
        "reason": order.reason,
        "client_order_id": order.client_order_id,
    }


def fills(site: Site, view: Work, asked: Asked) -> Table:
    """Fills, newest first."""
    before = None
    if asked.after:
        day, _, rest = asked.after.partition("|")
        name, _, sequence = rest.rpartition("|")
        before = (_day(day), name, _count(sequence))
    found = view.reading.fills(site.run, before, asked.most)
    rows = [
        {
            "day": fill.day,
            "symbol": fill.symbol,
            "shares": fill.shares,
            "price": fill.price,
            "amount": fill.amount,
            "commission": fill.commission,
            "regulatory": fill.regulatory,
            "spread": fill.spread,
            "impact": fill.impact,
            "client_order_id": fill.client_order_id,
        }
        for fill in found
    ]
    columns = (
        ("day", "day"), ("symbol", "text"), ("shares", "number"), ("price", "money"), ("amount", "money"),
        ("commission", "money"), ("regulatory", "money"), ("spread", "number"), ("impact", "number"),
        ("client_order_id", "order"),
    )  # fmt: skip
    last = found[-1] if len(found) >= asked.most else None
    more = "" if last is None else f"{last.day.isoformat()}|{last.client_order_id}|{last.sequence}"
    return Table("fills", "Fills", columns, rows, more, "Spread and impact are dollars a share, part of the price.")


def shortfall(site: Site, view: Work, asked: Asked) -> Table:
    """What trading each name has cost, the costliest first."""
    rows = []
    for symbol, cost in site.standing.costs().items():
        total = cost.spread + cost.impact + cost.fees
        rows.append(
            {
                "symbol": symbol,
                "fills": cost.fills,
                "traded": round(cost.traded, 2),
                "spread": round(cost.spread, 2),
                "impact": round(cost.impact, 2),
                "fees": round(cost.fees, 2),
                "total": round(total, 2),
                "bps": round(total / cost.traded * 1e4, 2) if cost.traded else None,
            }
        )
    rows.sort(key=lambda row: -row["total"])
    columns = (
        ("symbol", "text"), ("fills", "number"), ("traded", "money"), ("spread", "money"), ("impact", "money"),
        ("fees", "money"), ("total", "money"), ("bps", "number"),
    )  # fmt: skip
    note = (
        "Delay and missed orders are parts of each session's decomposition (see the equity page), not of a name here."
    )
    return Table("shortfall", "Shortfall by name", columns, rows, note=note)


def ledger(site: Site, view: Work, asked: Asked) -> Table:
    """Ledger lines, newest first, by symbol, kind, days, and words in key or note."""
    if asked.kind and asked.kind not in tuple(Kind):
        raise Mistake(f"Expected a kind among {', '.join(Kind)}, was {asked.kind[:20]!r}.")
    before = None
    if asked.after:
        day, _, key = asked.after.partition("|")
        before = (_day(day), key)
    found = view.reading.ledger(
        site.run,
        before,
        symbol=asked.symbol,
        kind=asked.kind,
        words=asked.words,
        since=asked.since,
        until=asked.until,
        most=asked.most,
    )
    rows = [
        {
            "day": entry.day,
            "kind": entry.kind.value,
            "book": entry.book.value,
            "symbol": entry.symbol,
            "shares": entry.shares if entry.shares else None,
            "price": entry.price,
            "amount": entry.amount,
            "note": entry.note,
            "client_order_id": entry.client_order_id,
            "key": entry.key,
        }
        for entry in found.rows
    ]
    columns = (
        ("day", "day"), ("kind", "text"), ("book", "text"), ("symbol", "text"), ("shares", "number"),
        ("price", "money"), ("amount", "money"), ("note", "text"), ("client_order_id", "order"), ("key", "id"),
    )  # fmt: skip
    more = "" if found.next is None else f"{found.next[0].isoformat()}|{found.next[1]}"
    note = f"Searched back to {found.next[0]}; the next page looks further." if found.cut and found.next else ""
    return Table("ledger", "Ledger", columns, rows, more, note)


def revisions(site: Site, view: Work, asked: Asked) -> Table:
    """Deployments, newest first."""
    rows = [
        {
            "sequence": made.sequence,
            "day": made.day,
            "kind": made.kind.value,
            "revision": made.revision,
            "base": made.base,
            "proposal": made.proposal,
            "reason": made.reason,
            "at": made.at,
        }
        for made in reversed(view.deployments.all(site.run))
    ]
    columns = (
        ("sequence", "number"), ("day", "day"), ("kind", "text"), ("revision", "revision"), ("base", "revision"),
        ("proposal", "proposal"), ("reason", "text"), ("at", "day"),
    )  # fmt: skip
    return Table("revisions", "Strategy revisions", columns, rows)


def losses(site: Site, view: Work, asked: Asked) -> Table:
    """Losses, newest first."""
    diagnosed = view.reading.diagnosed(site.run)
    start = _count(asked.after)
    found = view.losses.newest(site.run, start, asked.most + 1)
    rows = [
        {
            "day": loss.day,
            "level": loss.level,
            "measure": loss.measure,
            "value": round(loss.value, 6),
            "threshold": loss.threshold,
            "evidence": str(loss.detail.get("evidence", "")),
            "diagnostic": diagnosed.get(loss.id, ""),
            "id": loss.id,
        }
        for loss in found[: asked.most]
    ]
    columns = (
        ("day", "day"), ("level", "text"), ("measure", "text"), ("value", "number"), ("threshold", "number"),
        ("evidence", "text"), ("diagnostic", "diagnostic"), ("id", "id"),
    )  # fmt: skip
    more = str(start + asked.most) if len(found) > asked.most else ""
    return Table("losses", "Losses", columns, rows, more)


def bills(site: Site, view: Work, asked: Asked) -> Table:
    """What models have used, by model and role."""
    rows = [
        {
            "model": model or "(not answered)",
            "role": role,
            "prompts": count,
            "tokens_in": int(asked_ or 0),
            "tokens_out": int(answered or 0),
            "cost": cost if cost is not None else Decimal(0),
        }
        for model, role, count, asked_, answered, cost in view.reading.spent(site.run)
    ]
    columns = (
        ("model", "text"), ("role", "text"), ("prompts", "number"), ("tokens_in", "number"),
        ("tokens_out", "number"), ("cost", "number"),
    )  # fmt: skip
    return Table("bills", "Model bills", columns, rows, note="Cost in dollars.")


def arenas(site: Site, view: Work, asked: Asked) -> Table:
    """What the arenas say of each proposer: the certificates in the state directory, and whether they count now."""
    rows = []
    for name, body in certificates.bodies_of(site.state):
        if body is None:
            rows.append({"subject": name, "counts": "unreadable"})
            continue
        standing = certificates.standing(site.state, body["model"], False, site.now())
        for one in body["arenas"]:
            gap = one["difference"]
            rows.append(
                {
                    "subject": body["model"],
                    "arena": one["arena"],
                    "advantage": gap["mean"],
                    "low": gap["low"],
                    "high": gap["high"],
                    "failures": one["failures"],
                    "expires": body["expires"][:10],
                    "counts": standing.refusal or "yes",
                }
            )
    columns = (
        ("subject", "text"), ("arena", "text"), ("advantage", "number"), ("low", "number"), ("high", "number"),
        ("failures", "number"), ("expires", "text"), ("counts", "text"),
    )  # fmt: skip
    note = "Advantage over the arena's heuristic, with its interval. `oomrl qualify` measures it."
    return Table("arenas", "Arenas", columns, rows, note=note)


def audit(site: Site, view: Work, asked: Asked) -> Table:
    """What people did, newest first."""
    before = _count(asked.after) or None
    found = view.people.acts(before, asked.most)
    rows = [
        {
            "sequence": done.sequence,
            "at": done.at,
            "who": done.who,
            "how": done.how,
            "act": done.act,
            "subject": done.subject,
            "detail": done.detail,
            "address": done.address,
        }
        for done in found
    ]
    columns = (
        ("sequence", "number"), ("at", "day"), ("who", "text"), ("how", "text"), ("act", "text"), ("subject", "id"),
        ("detail", "text"), ("address", "text"),
    )  # fmt: skip
    more = str(found[-1].sequence) if len(found) >= asked.most else ""
    return Table("audit", "What people did", columns, rows, more)


def settings(site: Site, view: Work, asked: Asked) -> Table:
    """The settings as they are, and those under which the run began; secrets hidden."""
    now = _flat(site.settings.model_dump(mode="json"))
    began = _flat({name: site.kept_run.settings.get(name) for name in ("settings",)}).items()
    then = {key.removeprefix("settings."): value for key, value in began}
    rows = []
    for key, value in now.items():
        shown, began_with = _hidden(key, value), _hidden(key, then[key]) if key in then else ""
        differs = "yes" if key in then and shown != began_with else ""
        rows.append({"setting": key, "now": shown, "at_the_start": began_with, "differs": differs})
    columns = (("setting", "text"), ("now", "text"), ("at_the_start", "text"), ("differs", "text"))
    note = "What a run's results depend on is as it was at the start, whatever the settings say now."
    return Table("settings", "Settings", columns, rows, note=note)


TABLES: Mapping[str, Callable[[Site, Work, Asked], Table]] = {
    "equity": equity,
    "losses": losses,
    "positions": positions,
    "orders": orders,
    "order_states": order_states,
    "fills": fills,
    "shortfall": shortfall,
    "ledger": ledger,
    "revisions": revisions,
    "bills": bills,
    "arenas": arenas,
    "settings": settings,
    "audit": audit,
}


def pages_of(name: str, site: Site, asked: Asked) -> Iterator[Table]:
    """Yield a table page by page, each read in a transaction of its own."""
    after = ""
    while True:
        with site.store.read() as view:
            table = TABLES[name](site, view, Asked(after, asked.symbol, asked.kind, asked.words, asked.since,
                                                   asked.until, 1_000, asked.extra))  # fmt: skip
        yield table
        after = table.next
        if not after:
            return


def csv_of(tables: Iterator[Table]) -> Iterator[str]:
    """Yield a table as CSV. Cells that a spreadsheet would take for a formula begin with an apostrophe.

    Characters that hide or reorder what is read stand there as escapes, line breaks as they are.
    """
    for number, table in enumerate(tables):
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        keys = [key for key, _ in table.columns]
        if number == 0:
            rows.writerow(keys)
        for row in table.rows:
            rows.writerow([_cell(row.get(key)) for key in keys])
        yield out.getvalue()


def json_of(tables: Iterator[Table]) -> Iterator[str]:
    """Yield a table as one JSON array of objects."""
    yield "["
    first = True
    for table in tables:
        for row in table.rows:
            yield ("" if first else ",\n") + json.dumps(row, default=str, ensure_ascii=True)
            first = False
    yield "]\n"


def _cell(value: object) -> object:
    if isinstance(value, str):
        begins = value[:1] in ("=", "+", "-", "@", "\t", "\r")
        return ("'" if begins else "") + escaped(value)
    return "" if value is None else value


def _count(text: str) -> int:
    """Return how far a reader has come; no database counts further than 15 digits here."""
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise Mistake("Expected the place where a page ended, was another text.")
    return int(text)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise Mistake(f"Expected a day as YYYY-MM-DD, was {text[:20]!r}.") from error


def _flat(value: object, begins: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {begins: value}
    found: dict[str, Any] = {}
    for key, inner in value.items():
        found |= _flat(inner, f"{begins}.{key}" if begins else str(key))
    return found


_SECRET = ("password", "secret", "token", "api_key")


def _hidden(key: str, value: object) -> str:
    last = key.rpartition(".")[2]
    if any(word in last for word in _SECRET) and not last.endswith(("_env", "_days")) and value:
        return "(hidden)"
    text = json.dumps(value) if isinstance(value, list) else str(value)
    head, mark, rest = text.partition("://")
    if mark and "@" in rest.split("/")[0]:
        return f"{head}://(hidden)@{rest.split('@', 1)[1]}"
    return text

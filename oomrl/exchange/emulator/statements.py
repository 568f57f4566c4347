"""The account as the trading API shows it: balances, positions, history, activities."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from oomrl.domain.trading import ActionKind
from oomrl.exchange.emulator.hours import NEW_YORK
from oomrl.exchange.emulator.orders import PaperFill, asset_id, money, plain, stamp
from oomrl.exchange.emulator.paper_account import Action, Transfer
from oomrl.exchange.emulator.refusals import invalid, not_found
from oomrl.exchange.emulator.venue import Venue

HALF = Decimal("0.5")
MAINTENANCE = Decimal("0.3")

#: How the exchange's actions are called among Alpaca's activity types.
ACTIVITY = {
    ActionKind.DIVIDEND: "DIV",
    ActionKind.SPLIT: "SPLIT",
    ActionKind.CASH_IN_LIEU: "MISC",
    ActionKind.WRITE_OFF: "REORG",
}


def account(venue: Venue) -> dict[str, Any]:
    """Return GET /v2/account."""
    cash, value = venue.account.cash, venue.account.market_value()
    equity, power = cash + value, venue.account.buying_power()
    margin = value * (HALF if venue.terms.multiplier > 1 else 1)
    opened = venue.account.opened or venue.hours.hours[0].opens
    return {
        "id": venue.account.id,
        "account_number": "PA" + venue.account.id.replace("-", "")[:10].upper(),
        "status": "ACTIVE",
        "crypto_status": "INACTIVE",
        "currency": "USD",
        "buying_power": money(power),
        "regt_buying_power": money(power),
        "non_marginable_buying_power": money(max(Decimal(0), cash - venue.account.reserved())),
        "options_buying_power": money(max(Decimal(0), cash - venue.account.reserved())),
        "options_approved_level": 0,
        "options_trading_level": 0,
        "cash": money(cash),
        "accrued_fees": "0",
        "pending_transfer_in": "0",
        "pending_transfer_out": "0",
        "pending_reg_taf_fees": "0",
        "portfolio_value": money(equity),
        "equity": money(equity),
        "last_equity": money(venue.account.closing_equity),
        "long_market_value": money(value),
        "short_market_value": "0",
        "initial_margin": money(margin),
        "maintenance_margin": money(value * MAINTENANCE),
        "last_maintenance_margin": money(value * MAINTENANCE),
        "sma": "0",
        "intraday_adjustments": "0",
        "multiplier": str(venue.terms.multiplier),
        "shorting_enabled": False,
        "trading_blocked": False,
        "transfers_blocked": False,
        "account_blocked": False,
        "trade_suspended_by_user": venue.account.suspended,
        "balance_asof": venue.account.core.day.isoformat()
        if venue.account.core.day > date.min
        else opened.date().isoformat(),
        "created_at": stamp(opened),
    }


def positions(venue: Venue) -> list[dict[str, Any]]:
    """Return GET /v2/positions."""
    return [_position(venue, symbol, shares) for symbol, shares in venue.account.positions().items()]


def position(venue: Venue, symbol: str) -> dict[str, Any]:
    """Return GET /v2/positions/{symbol}. Raises `Refusal`."""
    shares = venue.account.core.position(symbol)
    if not shares:
        raise not_found("position does not exist")
    return _position(venue, symbol, shares)


def _position(venue: Venue, symbol: str, shares: Decimal) -> dict[str, Any]:
    price = venue.board.price(symbol) or Decimal(0)
    before = venue.board.previous_close(symbol) or price
    cost = venue.account.cost.get(symbol, Decimal(0))
    value = shares * price
    held_before = min(
        shares, venue.account.day_start_shares.get(symbol, shares if venue.board.today is None else Decimal(0))
    )
    today_cost = before * held_before + (cost / shares) * (shares - held_before)
    profit, today = value - cost, value - today_cost
    return {
        "asset_id": asset_id(symbol),
        "symbol": symbol,
        "exchange": "NYSE",
        "asset_class": "us_equity",
        "asset_marginable": venue.terms.multiplier > 1,
        "qty": plain(shares),
        "qty_available": plain(shares - venue.account.on_sale(symbol)),
        "avg_entry_price": plain((cost / shares).quantize(Decimal("0.000001"))),
        "side": "long",
        "market_value": plain(value),
        "cost_basis": plain(cost.quantize(Decimal("0.000001"))),
        "unrealized_pl": plain(profit.quantize(Decimal("0.000001"))),
        "unrealized_plpc": _ratio(profit, cost),
        "unrealized_intraday_pl": plain(today.quantize(Decimal("0.000001"))),
        "unrealized_intraday_plpc": _ratio(today, today_cost),
        "current_price": plain(price),
        "lastday_price": plain(before),
        "change_today": _ratio(price - before, before),
    }


def _ratio(part: Decimal, whole: Decimal) -> str:
    return plain((part / whole).quantize(Decimal("0.00000001"))) if whole else "0"


def activities(
    venue: Venue,
    *,
    kinds: frozenset[str] | None = None,
    category: str | None = None,
    order_id: str | None = None,
    day: date | None = None,
    after: datetime | None = None,
    until: datetime | None = None,
    ascending: bool = False,
    page_size: int = 100,
    page_token: str | None = None,
) -> list[dict[str, Any]]:
    """Return GET /v2/account/activities: newest first, at most `page_size`, from after the entry `page_token` on."""

    def wanted(at: datetime, entry: dict[str, Any]) -> bool:
        kind = entry["activity_type"]
        return (
            (kinds is None or kind in kinds)
            and (category is None or (category == "trade_activity") == (kind == "FILL"))
            and (order_id is None or entry.get("order_id") == order_id)
            and (day is None or at.astimezone(NEW_YORK).date() == day)
            and (after is None or at > after)
            and (until is None or at < until)
        )

    chosen = (entry for at, entry in _entries(venue, ascending) if wanted(at, entry))
    if page_token and not any(entry["id"] == page_token for entry in chosen):
        raise invalid("page_token is not the id of an activity of this list")
    return list(islice(chosen, page_size))


def _entries(venue: Venue, ascending: bool) -> Iterator[tuple[datetime, dict[str, Any]]]:
    """Yield (instant, entry) of all activities, newest first unless `ascending`."""
    fees = venue.terms.rules.charges_fees
    for record in venue.account.journal if ascending else reversed(venue.account.journal):
        if isinstance(record, Transfer):
            kind = "CSD" if record.amount > 0 else "CSW"
            entries = [_other(record.id, record.at, record.day, kind, record.amount)]
        elif isinstance(record, Action):
            entries = [_action(record)]
        else:
            entries = [_fill(record), *(_fees(record) if fees else ())]
        for entry in entries if ascending else reversed(entries):
            yield record.at, entry


def _fill_id(fill: PaperFill) -> str:
    return f"{fill.at:%Y%m%d%H%M%S}{fill.at.microsecond // 1000:03d}::{fill.id}"


def _fill(fill: PaperFill) -> dict[str, Any]:
    """Return a fill's activity. Under "oomrl" stands what Alpaca does not tell: how price and fees came about."""
    return {
        "id": _fill_id(fill),
        "activity_type": "FILL",
        "transaction_time": stamp(fill.at),
        "type": "fill" if fill.leaves <= 0 else "partial_fill",
        "price": plain(fill.price),
        "qty": plain(fill.qty),
        "side": fill.order.side.value,
        "symbol": fill.order.symbol,
        "leaves_qty": plain(fill.leaves),
        "order_id": fill.order.id,
        "cum_qty": plain(fill.cumulative),
        "order_status": "filled" if fill.leaves <= 0 else "partially_filled",
        "oomrl": {
            **dict(zip(("reference", "open", "spread", "impact"), map(plain, fill.made_of), strict=True)),
            "commission": money(fill.commission),
            "regulatory": money(fill.regulatory),
        },
    }


def _fees(fill: PaperFill) -> Iterator[dict[str, Any]]:
    for what, amount in (("commission", fill.commission), ("regulatory fee", fill.regulatory)):
        if amount:
            fee = _other(f"{fill.id}-{what[0]}", fill.at, fill.day, "FEE", -amount)
            yield fee | {
                "symbol": fill.order.symbol,
                "description": f"{what} of {_fill_id(fill)}",
                "group_id": fill.id,
            }


def _action(action: Action) -> dict[str, Any]:
    what = action.what
    entry = _other(action.id, action.at, action.day, ACTIVITY[what.kind], what.amount)
    entry |= {"symbol": what.symbol, "description": what.kind.value}
    if what.shares:
        entry["qty"] = plain(what.shares)
    if what.kind in (ActionKind.DIVIDEND, ActionKind.WRITE_OFF):
        entry["per_share_amount"] = plain(what.value)
    return entry


def _other(identity: str, at: datetime, day: date, kind: str, amount: Decimal) -> dict[str, Any]:
    return {
        "id": f"{day:%Y%m%d}000000000::{identity}",
        "activity_type": kind,
        "date": day.isoformat(),
        "net_amount": money(amount),
        "created_at": stamp(at),
        "currency": "USD",
        "status": "executed",
    }


def history(
    venue: Venue, *, timeframe: str = "1D", start: datetime | None = None, end: datetime | None = None
) -> dict[str, Any]:
    """Return GET /v2/account/portfolio/history: one entry a close for 1D, one a point of the path otherwise."""
    marks = [
        mark for mark in venue.account.marks if (start is None or mark[0] >= start) and (end is None or mark[0] <= end)
    ]
    if timeframe == "1D":
        marks = list({day: (at, day, equity) for at, day, equity in marks}.values())
        today = venue.board.today
        if today is not None:
            marks = [mark for mark in marks if mark[1] != today]
    first = marks[0] if marks else None
    earlier = [
        equity
        for at, day, equity in venue.account.marks
        if first is not None and (day < first[1] if timeframe == "1D" else at < first[0])
    ]
    base = earlier[-1] if earlier else venue.account.opening_cash
    profits = [equity - base for _, _, equity in marks]
    midnight = [
        datetime.combine(day, datetime.min.time(), NEW_YORK).astimezone(UTC) if timeframe == "1D" else at
        for at, day, _ in marks
    ]
    return {
        "timestamp": [int(instant.timestamp()) for instant in midnight],
        "equity": [float(money(equity)) for _, _, equity in marks],
        "profit_loss": [float(money(profit)) for profit in profits],
        "profit_loss_pct": [round(float(profit / base), 8) if base else None for profit in profits],
        "base_value": float(money(base)),
        "base_value_asof": (midnight[0] - timedelta(days=1)).date().isoformat() if marks else venue.start.isoformat(),
        "timeframe": timeframe,
        "cashflow": {},
    }

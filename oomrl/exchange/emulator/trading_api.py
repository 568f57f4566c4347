"""The trading API: what each endpoint answers. Handlers are (venue, query, path parameters, body) -> answer."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from itertools import islice
from typing import Any

from oomrl.domain.trading import Side
from oomrl.exchange.emulator import calendar_api, statements
from oomrl.exchange.emulator.answers import Answer, Asked, Handler
from oomrl.exchange.emulator.asking import bad, choice, day, flag, instant, whole, words
from oomrl.exchange.emulator.hours import at
from oomrl.exchange.emulator.orders import Force, Kind, PaperOrder, Ticket, asset_id
from oomrl.exchange.emulator.refusals import Refusal, invalid, not_found
from oomrl.exchange.emulator.tickets import changes_of, number, ticket_of
from oomrl.exchange.emulator.venue import Venue


def account(venue: Venue, asked: Asked) -> Answer:
    return Answer(statements.account(venue))


CONFIGURATIONS: dict[str, Any] = {
    "trade_confirm_email": "all",
    "suspend_trade": False,
    "no_shorting": True,
    "fractional_trading": True,
    "max_margin_multiplier": "1",
    "max_options_trading_level": 0,
    "ptp_no_exception_entry": False,
    "disable_overnight_trading": True,
}


def configurations(venue: Venue, asked: Asked) -> Answer:
    changing = {"suspend_trade": venue.account.suspended, "max_margin_multiplier": str(venue.terms.multiplier)}
    return Answer({**CONFIGURATIONS, **changing})


def configure(venue: Venue, asked: Asked) -> Answer:
    """PATCH the configurations; only `suspend_trade` changes anything here."""
    if not isinstance(asked.body, dict):
        raise invalid("expected an object of settings")
    suspend = asked.body.get("suspend_trade", venue.account.suspended)
    if not isinstance(suspend, bool):
        raise invalid("suspend_trade must be a boolean")
    venue.account.suspended = suspend
    return configurations(venue, asked)


def assets(venue: Venue, asked: Asked) -> Answer:
    status = asked.query.get("status")
    kind = asked.query.get("asset_class") or "us_equity"
    exchange = asked.query.get("exchange")
    if kind != "us_equity" or (exchange and exchange != "NYSE"):
        return Answer([])
    listed = [_asset(venue, symbol) for symbol in venue.tape.symbols if venue.board.listed(symbol)]
    return Answer([asset for asset in listed if status in (None, "", "all", asset["status"])])


def asset(venue: Venue, asked: Asked) -> Answer:
    name = _symbol(venue, asked.path["name"])
    if name is None or not venue.board.listed(name):
        raise not_found(f"asset not found for {asked.path['name']}")
    return Answer(_asset(venue, name))


def positions(venue: Venue, asked: Asked) -> Answer:
    return Answer(statements.positions(venue))


def position(venue: Venue, asked: Asked) -> Answer:
    return Answer(statements.position(venue, _held(venue, asked.path["name"])))


def close_position(venue: Venue, asked: Asked) -> Answer:
    """DELETE a position: sell it, or a part of it, at market."""
    symbol = _held(venue, asked.path["name"])
    qty, percentage = number(asked.query, "qty"), number(asked.query, "percentage")
    if qty is not None and percentage is not None:
        raise invalid("only one of qty or percentage is accepted")
    shares = venue.account.core.position(symbol)
    if percentage is not None:
        if percentage > 100:
            raise invalid("percentage must be <= 100")
        qty = (shares * percentage / 100).quantize(Decimal(1).scaleb(-9)).normalize()
        if not qty:
            raise invalid("percentage of the position must be at least a billionth of a share")
    return Answer(_sell(venue, symbol, shares if qty is None else qty))


def close_positions(venue: Venue, asked: Asked) -> Answer:
    """DELETE all positions: each one's answer with its status, 207 in all."""
    if flag(asked.query, "cancel_orders"):
        for order in list(venue.account.working.values()):
            venue.cancel(order)
    results = []
    for symbol, shares in venue.account.positions().items():
        try:
            results.append({"symbol": symbol, "status": 200, "body": _sell(venue, symbol, shares)})
        except Refusal as refusal:
            results.append({"symbol": symbol, "status": refusal.status, "body": refusal.body})
    return Answer(results, 207)


def _sell(venue: Venue, symbol: str, qty: Decimal) -> dict[str, Any]:
    _, shown = venue.submit(Ticket(symbol, Side.SELL, Kind.MARKET, Force.DAY, qty=qty))
    return shown


def submit(venue: Venue, asked: Asked) -> Answer:
    if venue.account.suspended:
        raise Refusal(403, 40310000, "new orders are rejected by user request")
    ticket = ticket_of(asked.body, fractional_limits=venue.terms.fractional_limits)
    _, shown = venue.submit(ticket)
    return Answer(shown)


def orders(venue: Venue, asked: Asked) -> Answer:
    query = asked.query
    status = choice(query, "status", "open", ("open", "closed", "all"))
    limit = whole(query, "limit", 50, 1, 500)
    after, until = instant(query, "after"), instant(query, "until", end=True)
    ascending = choice(query, "direction", "desc", ("asc", "desc")) == "asc"
    symbols, side = words(query, "symbols"), query.get("side")
    before_id, after_id = query.get("before_order_id"), query.get("after_order_id")
    pivots = [_pivot(venue, name) for name in (before_id, after_id)]
    known = venue.account.working if status == "open" else venue.account.orders
    source = sorted(known.values(), key=lambda order: order.number, reverse=not ascending)
    chosen = (
        order
        for order in source
        if (status == "all" or order.open == (status == "open"))
        and (not symbols or order.symbol in symbols)
        and (not side or order.side.value == side)
        and (after is None or order.entered > after)
        and (until is None or order.entered < until)
        and (pivots[0] is None or order.number < pivots[0])
        and (pivots[1] is None or order.number > pivots[1])
    )
    return Answer([order.shown() for order in islice(chosen, limit)])


def order(venue: Venue, asked: Asked) -> Answer:
    return Answer(venue.find(asked.path["order_id"]).shown())


def order_by_client_id(venue: Venue, asked: Asked) -> Answer:
    name = asked.query.get("client_order_id")
    if not name:
        raise bad("client_order_id is required")
    found = venue.account.by_client_id.get(name)
    if found is None:
        raise not_found(f"order not found for {name}")
    return Answer(found.shown())


def cancel(venue: Venue, asked: Asked) -> Answer:
    venue.cancel(venue.find(asked.path["order_id"]), asked.mishap)
    return Answer(None, 204)


def cancel_all(venue: Venue, asked: Asked) -> Answer:
    results = []
    for found in list(venue.account.working.values()):
        if not found.open:
            continue
        venue.cancel(found, asked.mishap)
        results.append({"id": found.id, "status": 200})
    return Answer(results, 207)


def replace(venue: Venue, asked: Asked) -> Answer:
    found: PaperOrder = venue.find(asked.path["order_id"])
    changes = changes_of(asked.body)
    return Answer(venue.replace(found, changes, too_late=asked.mishap == "too_late"))


def activities(venue: Venue, asked: Asked) -> Answer:
    query = asked.query
    kinds = words(query, "activity_types")
    named = asked.path.get("activity_type")
    if named is not None:
        kinds = (named,)
    category = choice(query, "category", "any", ("any", "trade_activity", "non_trade_activity"))
    on = day(query, "date", date.min) if query.get("date") else None
    return Answer(
        statements.activities(
            venue,
            kinds=frozenset(kinds) if kinds else None,
            category=None if category == "any" else category,
            order_id=query.get("order_id") or None,
            day=on,
            after=instant(query, "after"),
            until=instant(query, "until"),
            ascending=choice(query, "direction", "desc", ("asc", "desc")) == "asc",
            page_size=whole(query, "page_size", 100, 1, 100),
            page_token=query.get("page_token") or None,
        )
    )


PERIODS = {"D": 1, "W": 7, "M": 31, "A": 366}


def history(venue: Venue, asked: Asked) -> Answer:
    query = asked.query
    timeframe = choice(query, "timeframe", "1D", ("1D", "1H", "15Min", "5Min", "1Min"))
    start, end = instant(query, "start"), instant(query, "end", end=True) or instant(query, "date_end", end=True)
    period = query.get("period")
    if period and start is None:
        count, unit = period[:-1], period[-1]
        if unit not in PERIODS or not (count.isdecimal() and count.isascii() and 0 < int(count[:5]) < 10_000):
            raise bad("invalid period: expected a number and D, W, M or A")
        days = min(int(count) * PERIODS[unit], 40_000)
        first = (end or venue.now).date().toordinal() - days
        start = at(date.fromordinal(max(first, 366)), time(0))
    return Answer(statements.history(venue, timeframe=timeframe, start=start, end=end))


def announcements(venue: Venue, asked: Asked) -> Answer:
    """The former corporate actions endpoint of the trading API: kept empty, its successor is in the data API."""
    for name in ("ca_types", "since", "until"):
        if not asked.query.get(name):
            raise bad(f"{name} is required")
    return Answer([])


def _asset(venue: Venue, symbol: str) -> dict[str, Any]:
    active = venue.board.active(symbol)
    return {
        "id": asset_id(symbol),
        "class": "us_equity",
        "exchange": "NYSE",
        "symbol": symbol,
        "name": f"{symbol} Common Stock",
        "status": "active" if active else "inactive",
        "tradable": active and symbol not in venue.untradable,
        "marginable": venue.terms.multiplier > 1,
        "shortable": False,
        "borrow_status": "hard_to_borrow",
        "easy_to_borrow": False,
        "fractionable": True,
        "maintenance_margin_requirement": 30,
        "margin_requirement_long": "30",
        "margin_requirement_short": "100",
        "attributes": [],
    }


def _symbol(venue: Venue, name: str) -> str | None:
    """Return the symbol that a symbol or asset id names."""
    if name in venue.board.index:
        return name
    return next((symbol for symbol in venue.tape.symbols if asset_id(symbol) == name), None)


def _held(venue: Venue, name: str) -> str:
    symbol = _symbol(venue, name)
    if symbol is None:
        raise not_found(f"symbol not found: {name}")
    if not venue.account.core.position(symbol):
        raise not_found("position does not exist")
    return symbol


def _pivot(venue: Venue, order_id: str | None) -> int | None:
    return venue.find(order_id).number if order_id else None


#: method, path, handler. Paths are Starlette's.
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/v2/account", account),
    ("GET", "/v2/account/configurations", configurations),
    ("PATCH", "/v2/account/configurations", configure),
    ("GET", "/v2/account/activities", activities),
    ("GET", "/v2/account/activities/{activity_type}", activities),
    ("GET", "/v2/account/portfolio/history", history),
    ("GET", "/v2/clock", calendar_api.clock),
    ("GET", "/v3/clock", calendar_api.clocks),
    ("GET", "/v2/calendar", calendar_api.calendar),
    ("GET", "/v3/calendar/{market}", calendar_api.market_calendar),
    ("GET", "/v2/assets", assets),
    ("GET", "/v2/assets/{name:path}", asset),
    ("GET", "/v2/positions", positions),
    ("DELETE", "/v2/positions", close_positions),
    ("GET", "/v2/positions/{name:path}", position),
    ("DELETE", "/v2/positions/{name:path}", close_position),
    ("GET", "/v2/orders", orders),
    ("POST", "/v2/orders", submit),
    ("DELETE", "/v2/orders", cancel_all),
    ("GET", "/v2/orders:by_client_order_id", order_by_client_id),
    ("GET", "/v2/orders/{order_id}", order),
    ("PATCH", "/v2/orders/{order_id}", replace),
    ("DELETE", "/v2/orders/{order_id}", cancel),
    ("GET", "/v2/corporate_actions/announcements", announcements),
)

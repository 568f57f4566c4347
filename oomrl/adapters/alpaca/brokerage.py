"""`ports.Brokerage` on Alpaca's trading and data interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from alpaca.data.historical.stock import StockHistoricalDataClient
from alpaca.trading.client import TradingClient

from oomrl.adapters.alpaca.allowance import Allowance
from oomrl.adapters.alpaca.payloads import (
    AccountPayload,
    FillPayload,
    MovePayload,
    OrderPayload,
    PositionPayload,
    SnapshotPayload,
    many,
    mapping,
    one,
    readable,
)
from oomrl.adapters.alpaca.rest import Patience, Rest
from oomrl.domain.brokerage import (
    BrokerAccount,
    BrokerFill,
    BrokerOrder,
    CashMove,
    Holding,
    Quote,
    Ticket,
)
from oomrl.errors import BrokerRefusal, Halt, Mistake
from oomrl.ports import Timer

MOST_ORDERS = 500
MOST_ACTIVITIES = 100
MOST_SYMBOLS = 200


class AlpacaBrokerage:
    """A paper account at Alpaca, or at anything that speaks its protocol on loopback.

    `key` and `secret` never leave this object. One allowance is shared by trading and data, as one key is.
    `participation` sends an order's share of the volume along, as the broker's router documents it; accounts without
    that router refuse it.
    """

    name = "alpaca"

    def __init__(
        self,
        timer: Timer,
        key: str,
        secret: str,
        *,
        base_url: str,
        data_url: str,
        feed: str = "iex",
        requests_per_minute: int = 200,
        participation: bool = False,
        patience: Patience | None = None,
    ) -> None:
        if not key or not secret:
            raise Mistake("Expected APCA_API_KEY_ID and APCA_API_SECRET_KEY in the environment, was empty.")
        self.feed, self.participation, self.data_url = feed, participation, data_url
        self.allowance = Allowance(timer, requests_per_minute)
        patience = patience or Patience()
        trading = TradingClient(key, secret, paper=True, raw_data=True, url_override=base_url)
        data = StockHistoricalDataClient(key, secret, raw_data=True, url_override=data_url)
        self.trading = Rest(trading, timer, self.allowance, patience)
        self.data = Rest(data, timer, self.allowance, patience)

    @property
    def requests(self) -> int:
        """How many requests were sent so far, reads counted."""
        return self.allowance.taken

    @property
    def keys(self) -> tuple[str, str]:
        """Key and secret, for the other clients of the same account in this package."""
        return str(self.trading.client._api_key), str(self.trading.client._secret_key)

    def close(self) -> None:
        """Give the connections back."""
        self.trading.close()
        self.data.close()

    def account(self) -> BrokerAccount:
        return one(AccountPayload, self.trading.get("/account")).record()

    def holdings(self) -> Sequence[Holding]:
        return [position.record() for position in many(PositionPayload, self.trading.get("/positions"))]

    def place(self, ticket: Ticket) -> BrokerOrder:
        body: dict[str, object] = {
            "symbol": ticket.symbol,
            "qty": f"{ticket.qty:f}",
            "side": ticket.side.value,
            "type": "market" if ticket.limit_price is None else "limit",
            "time_in_force": "day",
            "client_order_id": ticket.client_order_id,
        }
        if ticket.limit_price is not None:
            body["limit_price"] = f"{ticket.limit_price.normalize():f}"
        if self.participation:
            share = f"{ticket.participation:.9f}"
            body["advanced_instructions"] = {"algorithm": "VWAP", "max_percentage": share}
        return one(OrderPayload, self.trading.send("POST", "/orders", body)).record()

    def find(self, client_order_id: str) -> BrokerOrder | None:
        try:
            told = self.trading.get("/orders:by_client_order_id", {"client_order_id": client_order_id})
        except BrokerRefusal as refusal:
            if refusal.missing:
                return None
            raise
        return one(OrderPayload, told).record()

    def orders(self, since: datetime, symbols: Sequence[str] = ()) -> Sequence[BrokerOrder]:
        query: dict[str, object] = {"status": "all"}
        if symbols and len(symbols) <= MOST_SYMBOLS:
            query["symbols"] = ",".join(symbols)
        return self._listed(query, since, symbols)

    def open_orders(self) -> Sequence[BrokerOrder]:
        return self._listed({"status": "open"}, None, ())

    def cancel(self, order: str) -> None:
        self.trading.send("DELETE", f"/orders/{order}")

    def cancel_all(self) -> None:
        self.trading.send("DELETE", "/orders")

    def close_all(self) -> None:
        self.trading.send("DELETE", "/positions", {"cancel_orders": "true"})

    def fills(self, since: datetime, after: str = "") -> Sequence[BrokerFill]:
        found: dict[str, BrokerFill] = {}
        token = after
        while True:
            query: dict[str, object] = {
                "after": _stamp(since - timedelta(milliseconds=1)),
                "direction": "asc",
                "page_size": MOST_ACTIVITIES,
            }
            if token:
                query["page_token"] = token
            page = many(FillPayload, self.trading.get("/account/activities/FILL", query))
            known = len(found)
            found.update({fill.id: fill.record() for fill in page})
            if len(page) < MOST_ACTIVITIES:
                return list(found.values())
            if len(found) == known:
                raise Halt("Expected new activities on each page, was the same page again")
            token = page[-1].id

    def cash_moves(self, after: date) -> Sequence[CashMove]:
        found: dict[str, CashMove] = {}
        token = ""
        while True:
            query: dict[str, object] = {
                "category": "non_trade_activity",
                "after": f"{after - timedelta(days=1)}T00:00:00Z",
                "direction": "asc",
                "page_size": MOST_ACTIVITIES,
            }
            if token:
                query["page_token"] = token
            page = many(MovePayload, self.trading.get("/account/activities", query))
            found.update({move.id: move.record() for move in page if move.date > after})
            if len(page) < MOST_ACTIVITIES or page[-1].id == token:
                return list(found.values())
            token = page[-1].id

    def quotes(self, symbols: Sequence[str]) -> Mapping[str, Quote]:
        found: dict[str, Quote] = {}
        for first in range(0, len(symbols), MOST_SYMBOLS):
            some = symbols[first : first + MOST_SYMBOLS]
            told = mapping(self.data.get("/stocks/snapshots", {"symbols": ",".join(some), "feed": self.feed}))
            for symbol, snapshot in told.items():
                for payload in readable(SnapshotPayload, [snapshot]):
                    found[symbol] = payload.record(symbol)
        return found

    def _listed(
        self, query: Mapping[str, object], since: datetime | None, symbols: Sequence[str]
    ) -> Sequence[BrokerOrder]:
        """Return every order of a query, page after page; pages overlap, since many orders share an instant."""
        found: dict[str, BrokerOrder] = {}
        after = since
        while True:
            asked: dict[str, Any] = {**query, "limit": MOST_ORDERS, "direction": "asc", "nested": "false"}
            if after is not None:
                asked["after"] = _stamp(after - timedelta(milliseconds=1))
            page = [payload.record() for payload in many(OrderPayload, self.trading.get("/orders", asked))]
            known = len(found)
            found.update({order.id: order for order in page})
            if len(page) < MOST_ORDERS:
                return sorted(found.values(), key=lambda order: order.submitted_at)
            if len(found) == known:
                return self._by_symbol(query, since, symbols)
            after = page[-1].submitted_at

    def _by_symbol(
        self, query: Mapping[str, object], since: datetime | None, symbols: Sequence[str]
    ) -> Sequence[BrokerOrder]:
        """Return orders of which more share one instant than a page holds, in two halves of the names."""
        if len(symbols) < 2:
            raise Halt(f"Expected fewer than {MOST_ORDERS} orders at one instant, was more: trade fewer names")
        middle = len(symbols) // 2
        found: list[BrokerOrder] = []
        for half in (symbols[:middle], symbols[middle:]):
            found += self._listed({**query, "symbols": ",".join(half)}, since, half)
        return sorted(found, key=lambda order: order.submitted_at)


def _stamp(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")

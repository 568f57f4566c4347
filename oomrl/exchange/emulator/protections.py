"""What an order must pass before the exchange takes it: the asset, the clock, the account's means, wash trades."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from oomrl.exchange.emulator.hours import NEW_YORK
from oomrl.exchange.emulator.orders import Force, Kind, PaperOrder, Ticket, money, plain
from oomrl.exchange.emulator.refusals import forbidden, invalid, not_found, unprocessable

if TYPE_CHECKING:
    from oomrl.exchange.emulator.venue import Venue


class Protections:
    """Check tickets against the state of a venue. `check` returns the dollars a share that a buy reserves."""

    def __init__(self, venue: Venue) -> None:
        self.venue = venue

    def check(self, ticket: Ticket, replaced: PaperOrder | None = None) -> Decimal:
        """Return the reserve a share. `replaced` is the order that this one would take the place of.

        Raises `Refusal`.
        """
        self._identity(ticket)
        self._asset(ticket.symbol)
        self._time(ticket)
        self._stop(ticket)
        self._wash(ticket, replaced)
        if ticket.side != "buy":
            self._shares(ticket, replaced)
            return Decimal(0)
        return self._means(ticket, replaced)

    def _identity(self, ticket: Ticket) -> None:
        if ticket.client_order_id is not None and ticket.client_order_id in self.venue.account.by_client_id:
            raise invalid("client_order_id must be unique")

    def _asset(self, symbol: str) -> None:
        venue = self.venue
        if symbol not in venue.board.index or not venue.board.listed(symbol):
            raise unprocessable(f'asset "{symbol}" not found') if symbol else not_found("asset not found")
        if symbol in venue.untradable or not venue.board.active(symbol):
            raise unprocessable(f'asset "{symbol}" is not tradable')

    def _time(self, ticket: Ticket) -> None:
        venue = self.venue
        wall = venue.now.astimezone(NEW_YORK)
        hours = venue.hours.session(wall.date())
        if hours is None or ticket.force not in (Force.OPG, Force.CLS):
            return
        evening = wall.hour >= 19
        if ticket.force is Force.OPG and not evening and venue.now >= hours.opens - timedelta(minutes=2):
            raise unprocessable("opg orders are not accepted between 9:28 and 19:00 ET")
        if ticket.force is Force.CLS and not evening and venue.now >= hours.closes - timedelta(minutes=10):
            raise unprocessable("cls orders are not accepted between ten minutes before the close and 19:00 ET")

    def _stop(self, ticket: Ticket) -> None:
        """Refuse a stop that the market has already passed."""
        quote = self.venue.board.quote(ticket.symbol)
        if ticket.stop is None or ticket.kind not in (Kind.STOP, Kind.STOP_LIMIT) or quote is None:
            return
        bid, ask = quote
        if ticket.side == "buy" and ticket.stop <= bid:
            raise unprocessable("stop price must be above the current price for a buy", market_price=plain(ask))
        if ticket.side == "sell" and ticket.stop >= ask:
            raise unprocessable("stop price must be below the current price for a sale", market_price=plain(bid))

    def _wash(self, ticket: Ticket, replaced: PaperOrder | None) -> None:
        """Refuse an order that could trade with an open one of the other side: any but two limits that do not meet."""
        for order in self.venue.account.working.values():
            if order.symbol != ticket.symbol or order.side is ticket.side or order is replaced:
                continue
            if order.limit is not None and ticket.limit is not None:
                buy, sell = (ticket.limit, order.limit) if ticket.side == "buy" else (order.limit, ticket.limit)
                if buy < sell:
                    continue
            raise forbidden(
                "potential wash trade detected. use complex orders",
                existing_order_id=order.id,
                reject_reason="opposite side market/stop order exists"
                if order.limit is None
                else "opposite side limit order exists",
            )

    def _shares(self, ticket: Ticket, replaced: PaperOrder | None) -> None:
        venue = self.venue
        held = venue.account.core.position(ticket.symbol)
        if not held:
            raise forbidden(f'account is not allowed to short, asset "{ticket.symbol}" is not held')
        on_sale = venue.account.on_sale(ticket.symbol) - (replaced.remaining if replaced else 0)
        available = held - on_sale
        wanted = ticket.qty
        if wanted is None:
            assert ticket.notional is not None
            bid = (venue.board.quote(ticket.symbol) or (Decimal(1), Decimal(1)))[0]
            wanted = ticket.notional / bid
        if wanted > available:
            raise forbidden(
                f"insufficient qty available for order (requested: {wanted:f}, available: {available:f})",
                symbol=ticket.symbol,
                existing_qty=plain(held),
                available=plain(available),
                held_for_orders=plain(on_sale),
            )

    def _means(self, ticket: Ticket, replaced: PaperOrder | None) -> Decimal:
        venue = self.venue
        quote = venue.board.quote(ticket.symbol)
        ask = quote[1] if quote else Decimal(0)
        price = max(ask, ticket.stop or Decimal(0)) if ticket.limit is None else ticket.limit
        cost = ticket.notional if ticket.notional is not None else (ticket.qty or Decimal(0)) * price
        power = venue.account.buying_power()
        if replaced is not None and replaced.buying:
            power += replaced.remaining * replaced.reserve
        if venue.terms.cash_rule == "refuse" and cost > power:
            raise forbidden("insufficient buying power", buying_power=money(power), cost_basis=money(cost))
        return price

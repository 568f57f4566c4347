"""Let orders trade at the points of a session's path, on the matching engine of the in-process exchange."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal

import numpy as np

from oomrl.domain.trading import Orders
from oomrl.exchange.emulator.board import Board
from oomrl.exchange.emulator.orders import Force, PaperOrder, Status
from oomrl.exchange.emulator.paper_account import PaperAccount
from oomrl.exchange.emulator.terms import Terms
from oomrl.exchange.matching import Book, walk_of


class Matcher:
    """Work orders of one account. `freed` are the cents of sales that waiting buys may spend from the next point on.

    `partly` says whether an order's fill shall be partial for no reason of the market's, and which fraction of it.
    """

    def __init__(self, account: PaperAccount, board: Board, terms: Terms) -> None:
        self.account, self.board, self.terms = account, board, terms
        self.freed = 0.0
        self.partly: Callable[[PaperOrder], float | None] = lambda order: None

    def enter(self, orders: list[PaperOrder], *, at_the_open: bool = False) -> None:
        """Fill what the last point meets of orders that enter there.

        At the open sales free cash for the next point, as in process; orders that enter later may spend all cash.
        """
        if at_the_open:
            self.freed = 0.0
        self._match(orders, entering=True, all_cash=not at_the_open)

    def work(self, orders: list[PaperOrder]) -> None:
        """Fill what the leg to the last point reaches of orders that were there before."""
        self._match(orders, entering=False, all_cash=False)

    def now_or_never(self, order: PaperOrder) -> None:
        """Fill an order at the last point: what fills of an IOC order stays filled, a FOK order fills whole or not."""
        book = self._book([order], all_cash=True)
        book.enter(self.board.point)
        whole = not book.left.any() and book.wanted[0] == book.size[0]
        if order.ticket.force is Force.IOC or whole:
            self._take([order], book, all_cash=True)
        if order.open:
            self.account.move(order, Status.CANCELED)

    def _match(self, orders: list[PaperOrder], *, entering: bool, all_cash: bool) -> None:
        if not orders:
            return

        def worked(left: dict[int, float]) -> Book:
            book = self._book(orders, all_cash)
            for row, shares in left.items():
                book.left[row] = shares
            if entering:
                book.enter(self.board.point)
            else:
                book.work(self.board.point)
            return book

        book = worked({})
        shortened = self._shortened(orders, book)
        if shortened:
            book = worked(shortened)
        self._take(orders, book, all_cash)
        for row in shortened:
            orders[row].again = orders[row].open

    def _shortened(self, orders: list[PaperOrder], book: Book) -> dict[int, float]:
        """Return the fills that shall be partial for no reason of the market's: row -> shares."""
        fills, short = book.result().fills, {}
        for row, shares in zip(fills.order.tolist(), np.abs(fills.shares).tolist(), strict=True):
            fraction = self.partly(orders[row]) if shares > 1 else None
            if fraction is not None:
                short[row] = max(1.0, float(np.floor(shares * fraction)))
        return short

    def _book(self, orders: list[PaperOrder], all_cash: bool) -> Book:
        session = self.board.session
        assert session is not None
        symbols = tuple([order.symbol for order in orders])
        rows = self.account.core.rows_in_session(symbols, session)
        for order in orders:
            if order.ticket.notional is not None and order.qty is None:
                order.qty = self._shares_for(order)
        sign = np.array([1.0 if order.buying else -1.0 for order in orders])
        taken = np.array([order.taken for order in orders])
        size = np.array([float(order.remaining) for order in orders]) + taken
        batch = Orders(
            session.day,
            tuple([order.client_order_id for order in orders]),
            symbols,
            sign * size,
            np.array([np.nan if order.limit is None else float(order.limit) for order in orders]),
            np.array([order.ticket.participation for order in orders]),
            ("",) * len(orders),
        )
        stop = None
        if any(order.stop is not None and not order.triggered for order in orders):
            stop = np.array(
                [np.nan if order.stop is None or order.triggered else float(order.stop) for order in orders]
            )
        cents = int(self.account.cash.scaleb(2)) + self._credit()
        friction = self.terms.friction
        book = Book(
            batch.shares,
            batch.limit,
            batch.participation,
            walk_of(session, rows, friction, self.account.core.volatility(symbols)),
            cents if all_cash else cents - int(self.freed),
            friction,
            charge_fees=self.terms.rules.charges_fees,
            stop=stop,
            taken=taken,
        )
        if not all_cash:
            book.freed[self.board.point] = self.freed
        return book

    def _credit(self) -> int:
        """Return the cents that the broker lends beside the cash."""
        return 0 if self.terms.multiplier == 1 else max(0, int(self.account.equity().scaleb(2)))

    def _shares_for(self, order: PaperOrder) -> Decimal | None:
        """Return the shares that a buy's dollars pay for at the next price, None where there is none."""
        assert order.ticket.notional is not None
        quote = self.board.quote(order.symbol)
        session, row = self.board.session, self.board.row.get(order.symbol)
        assert session is not None
        if quote is None or row is None or not session["volume"][row] > 0:
            return None
        friction, price = self.terms.friction, float(quote[1]) * 1e4
        scale = friction.impact_scale(self.account.core.volatility((order.symbol,)), session["volume"][row : row + 1])
        shares = float(order.ticket.notional) * 1e4 / price
        impact = float(friction.impact(np.array([price]), scale, np.array([shares]))[0])
        exact = order.ticket.notional / (Decimal(int(price + impact)) / 10_000)
        return exact.quantize(Decimal(1).scaleb(-9), ROUND_DOWN)

    def _take(self, orders: list[PaperOrder], book: Book, all_cash: bool) -> None:
        """Settle what a book filled into the account and its orders."""
        matched = book.result()
        cents = matched.cash - self._credit()
        coming = sum(book.freed)
        self.freed = coming + (min(self.freed, max(0.0, cents - coming)) if all_cash else 0.0)
        for row, order in enumerate(orders):
            order.live, order.again = True, False
            if book.stop is not None and np.isneginf(book.stop[row]):
                order.triggered = True
        self.account.core.settle(tuple([order.symbol for order in orders]), matched.fills, cents)
        fills = matched.fills
        for at in range(len(fills)):
            self.account.fill(
                orders[int(fills.order[at])],
                qty=Decimal(repr(round(abs(float(fills.shares[at])), 9))).normalize(),
                price=_dollars(fills.price[at]),
                amount=_cents(fills.cents[at]),
                commission=_cents(matched.commission[at]),
                regulatory=_cents(matched.regulatory[at]),
                made_of=(
                    _dollars(fills.reference[at]),
                    _dollars(fills.open[at]),
                    _dollars(fills.spread[at]),
                    _dollars(fills.impact[at]),
                ),
            )


def _dollars(price: float) -> Decimal:
    return Decimal(repr(round(float(price), 4)))


def _cents(amount: int) -> Decimal:
    return Decimal(abs(int(amount))).scaleb(-2)

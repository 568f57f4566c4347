"""The embedded paper exchange: one account, one batch of orders a session. Its results are called simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from oomrl.domain.actions import delisting, exact, in_cents, split_adjusted, split_and_dividend
from oomrl.domain.market import Floats, Ints, Session, half_up_cents, padded
from oomrl.domain.sizing import Work
from oomrl.domain.span import Traded
from oomrl.domain.trading import AccountRules, CorporateAction, Execution, Fills, Orders
from oomrl.errors import Refused
from oomrl.exchange.friction import Friction
from oomrl.exchange.matching import NO_FILLS, Book, Chunk, fills_of, match
from oomrl.exchange.prints import Prints, Seen
from oomrl.exchange.stretch import Stretch

NO_ORDERS = Orders(date.min, (), (), np.empty(0), np.empty(0), np.empty(0), ())
_NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """One session's orders, and what became of them: arrays of shape (orders,).

    `rows` are the names' numbers, `shares` what was wanted and `filled` what was had, signed; `lacking` what lack of
    cash left, None for none; `cents` the cash at the close; `chunk` the fills, None for none.
    """

    rows: Ints
    shares: Floats
    filled: Floats
    lacking: Floats | None
    cents: int
    chunk: Chunk | None

    @property
    def figures(self) -> tuple[float, int, int]:
        """Dollars bought plus sold, orders, fills."""
        if self.chunk is None:
            return 0.0, len(self.rows), 0
        return float(self.chunk.values[4].sum()) / 100, len(self.rows), len(self.chunk.rows)


class PaperExchange:
    """Simulate a broker's account. Implements `ports.Broker`.

    `cash` is the opening cash in dollars. A name that is held and does not print for `delist_after` sessions is
    taken out of the account for `delisting_recovery` times its last price (1 by default: most delistings of large
    companies are takeovers near that price; 0 writes it off). Dividends are paid on their ex-date.

    Several exchanges may share `prints`; whoever shares them lets them see each session and says so to `collect`.
    """

    def __init__(
        self,
        cash: Decimal,
        friction: Friction | None = None,
        rules: AccountRules | None = None,
        *,
        delist_after: int = 10,
        delisting_recovery: float = 1.0,
        sales_fund_at_once: bool = False,
        prints: Prints | None = None,
    ) -> None:
        self.friction = friction or Friction()
        self.rules = rules or AccountRules()
        self.delist_after, self.delisting_recovery = delist_after, delisting_recovery
        self.sales_fund_at_once = sales_fund_at_once
        self.day = date.min
        self._cents = in_cents(cash)
        self._open: Orders = NO_ORDERS
        self._prints = Prints() if prints is None else prints
        self._roster = self._prints.roster
        self._shares = np.empty(0)

    def submit(self, orders: Orders) -> None:
        """Queue a batch for the next session. Ids that are queued already, and batches decided before the last
        collected session, change nothing. Raises `Refused` for sales of more shares than are held."""
        if orders.decided_on < self.day or not len(orders):
            return
        if len(self._open):
            known = set(self._open.ids)
            fresh = [row for row, name in enumerate(orders.ids) if name not in known]
            if not fresh:
                return
            orders = _joined(self._open, orders, fresh)
        rows = self._roster.rows(orders.symbols)
        self._fit()
        sold = np.bincount(rows, weights=np.minimum(orders.shares, 0.0), minlength=len(self._roster))
        over = (self._shares + sold < 0).nonzero()[0]
        if len(over):
            name, held = self._roster.symbols[over[0]], self._shares[over[0]]
            raise Refused(
                f"Expected sales of at most {held:g} shares of {name}, was {-sold[over[0]]:g}. No short sales."
            )
        self._open = orders

    def deposit(self, amount: Decimal) -> None:
        """Add an endowment in whole cents to the cash."""
        self._cents += in_cents(amount)

    def cash(self) -> Decimal:
        """Return the cash in dollars and whole cents."""
        return Decimal(self._cents).scaleb(-2)

    def positions(self) -> Mapping[str, Decimal]:
        """Return shares by symbol, in the order in which the names were first met, zero positions left out."""
        return {symbol: exact(shares) for symbol, shares in self._roster.named(self._shares).items()}

    def position(self, symbol: str) -> Decimal:
        """Return the shares held of one name."""
        row = self._roster.find(symbol)
        return exact(float(self._shares[row])) if row is not None and row < len(self._shares) else Decimal(0)

    @property
    def idle(self) -> bool:
        """Whether no order is queued."""
        return not len(self._open)

    def collect(self, session: Session, seen: Seen | None = None, at: int = 0) -> Execution:
        """Work the queued orders through a closed session; what stays unfilled then ends. Each session once.

        `seen` is what shared prints have learned of sessions of which this is number `at`.
        """
        actions = self.begin(session)
        orders = self._open
        if self.rules.applies_splits and len(orders) and (session["split"] != 1.0).any():
            orders = split_adjusted(orders, session)
        place = self.rows_in_session(orders.symbols, session)
        matched = match(
            orders,
            place,
            session,
            self._cents,
            self.friction,
            self.volatility(orders.symbols) if seen is None else seen.volatility(at, place),
            charge_fees=self.rules.charges_fees,
            sales_fund_at_once=self.sales_fund_at_once,
        )
        self.settle(orders.symbols, matched.fills, matched.cash)
        if seen is None:
            actions += self.end(session)
        else:
            self.day = session.day
            if seen.missing is not None:
                actions += self._delisted(seen.missing[at], seen.close)
        self._open = NO_ORDERS
        return Execution(
            day=session.day,
            orders=orders,
            fills=matched.fills,
            commission=matched.commission,
            regulatory=matched.regulatory,
            unfilled=matched.unfilled,
            causes=matched.causes,
            actions=tuple(actions),
            fees_in_broker=self.rules.charges_fees,
        )

    def rest(self, stretch: Stretch, first: int, end: int) -> tuple[int, Floats | None]:
        """Go without orders through sessions first <= number < end, as far as nothing but dividends happens in them.

        Returns how many that were, and their dividends in whole cents, (sessions, names) or None for
        none at all. Needs prices and dividends in whole ticks, as tapes have them.
        """
        self._fit()
        silent = stretch.silent(slice(first, end), self.delist_after)
        if silent is not None:
            gone = (silent & (self._shares > 0)).any(axis=1)
            end = first + int(np.argmax(gone)) if gone.any() else end
        if first == end:
            return 0, None
        self.day = stretch.bars.days[end - 1]
        if not np.count_nonzero(stretch.bars.eventful[first:end]):
            return end - first, None
        cents = half_up_cents(stretch.dividend_ticks[first:end] * self._shares)
        self._cents += int(cents.sum())
        return end - first, cents

    def trade(self, stretch: Stretch, at: int, work: Work | None) -> Batch | None:
        """Work orders in whole shares, one a name, through a session in which nothing else but dividends happens.

        Does what `collect` does with the same orders. Returns None, and does nothing, where a position's name is
        delisted. Needs what `rest` needs.
        """
        self._fit()
        silent = stretch.silent(slice(at, at + 1), self.delist_after)
        if silent is not None and (silent & (self._shares > 0)).any():
            return None
        if stretch.bars.eventful[at]:
            self._cents += int(half_up_cents(stretch.dividend_ticks[at] * self._shares).sum())
        self.day = stretch.bars.days[at]
        if work is None or not len(work.rows):
            return Batch(_NO_ROWS, NO_ORDERS.shares, NO_ORDERS.shares, None, self._cents, None)
        walk = stretch.walk(at, work.rows, self.friction)
        book = Book(work.shares, work.limit, work.participation, walk, self._cents, self.friction)
        book.walk_through(sales_fund_at_once=self.sales_fund_at_once)
        self._cents = book.cash_after
        filled = book.filled
        self._shares[work.rows] += filled
        return Batch(work.rows, work.shares, filled, book.lacking, self._cents, book.chunk())

    def begin(self, session: Session) -> list[CorporateAction]:
        """Do what happens to the account before a session opens: splits and dividends."""
        if session.day <= self.day:
            raise ValueError(f"Expected a session after {self.day}, was {session.day}")
        rows = self._roster.rows(session.symbols)
        self._fit()
        actions: list[CorporateAction] = []
        eventful = (session["split"] != 1.0) | (session["dividend"] > 0)
        if eventful.any():
            for at in (eventful & (self._shares[rows] > 0)).nonzero()[0]:
                actions += self._before_the_open(session, int(at), int(rows[at]))
        return actions

    def settle(self, symbols: tuple[str, ...], fills: Fills, cents: int) -> None:
        """Take fills of orders in `symbols` into the account; `cents` is the cash after them."""
        self._cents = cents
        if len(fills):
            rows = self._roster.rows(symbols)[fills.order]
            np.add.at(self._shares, rows, fills.shares)
            # Fractional shares have nine decimals; their sums must not keep the dust of binary fractions.
            self._shares[rows] = np.round(self._shares[rows], 9)

    def end(self, session: Session) -> list[CorporateAction]:
        """Do what happens once a session has closed: learn its prices, end positions in names that are gone."""
        self._prints.see((session,))
        self.day = session.day
        return self._delisted(self._prints.missing, self._prints.close)

    def rows_in_session(self, symbols: tuple[str, ...], session: Session) -> Ints:
        """Return each symbol's row in a session that has begun, -1 where it does not print."""
        if not symbols:
            return np.empty(0, dtype=np.int64)
        rows = self._roster.rows(symbols)
        self._fit()
        place = np.full(len(self._roster), -1, dtype=np.int64)
        place[self._roster.rows(session.symbols)] = np.arange(len(session.symbols))
        return place[rows]

    def volatility(self, symbols: tuple[str, ...]) -> Floats:
        """Return the daily volatility known of each symbol, (len(symbols),)."""
        rows = self._roster.rows(symbols)
        self._fit()
        return self._prints.volatility(rows)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain JSON-able values."""
        self._fit()
        orders, prints = self._open, self._prints
        columns = (self._shares, prints.close, prints.variance, prints.returns, prints.missing)
        return {
            "day": self.day.isoformat(),
            "cents": self._cents,
            "names": {name: [float(column[n]) for column in columns] for n, name in enumerate(self._roster.symbols)},
            "decided_on": orders.decided_on.isoformat(),
            "orders": [
                [
                    orders.ids[row],
                    orders.symbols[row],
                    float(orders.shares[row]),
                    None if np.isnan(orders.limit[row]) else float(orders.limit[row]),
                    float(orders.participation[row]),
                    orders.reasons[row],
                ]
                for row in range(len(orders))
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become what `snapshot` described."""
        self.day, self._cents = date.fromisoformat(state["day"]), int(state["cents"])
        self._prints = prints = Prints()
        self._roster = prints.roster
        self._roster.rows(tuple(state["names"]))
        columns = np.array(list(state["names"].values()), dtype=np.float64).reshape(-1, 5).T.copy()
        self._shares, prints.close, prints.variance, prints.returns, prints.missing = columns
        rows = state["orders"]
        if not rows:
            self._open = NO_ORDERS
            return
        ids, symbols, shares, limit, participation, reasons = zip(*rows, strict=True)
        self._open = Orders(
            date.fromisoformat(state["decided_on"]),
            ids,
            symbols,
            np.array(shares),
            np.array([np.nan if value is None else value for value in limit]),
            np.array(participation),
            reasons,
        )

    def _fit(self) -> None:
        if len(self._shares) < len(self._roster.symbols):
            self._shares = padded(self._shares, len(self._roster))
        self._prints.fit()

    def _before_the_open(self, session: Session, at: int, number: int) -> list[CorporateAction]:
        actions = split_and_dividend(
            session.symbols[at],
            float(self._shares[number]),
            float(session["split"][at]),
            float(session["dividend"][at]),
            float(session["open"][at]),
            apply_split=self.rules.applies_splits,
            pay_dividend=self.rules.pays_dividends,
        )
        for action in actions:
            self._shares[number] += float(action.shares)
            self._cents += in_cents(action.amount)
        return actions

    def _delisted(self, missing: Floats, close: Floats) -> list[CorporateAction]:
        gone = ((missing >= self.delist_after) & (self._shares > 0)).nonzero()[0]
        actions = []
        for number in gone:
            name, shares, price = self._roster.symbols[number], float(self._shares[number]), float(close[number])
            action = delisting(name, shares, price, self.delisting_recovery)
            self._shares[number] = 0.0
            self._cents += in_cents(action.amount)
            actions.append(action)
        return actions


def _joined(first: Orders, second: Orders, rows: list[int]) -> Orders:
    """Return the first batch followed by some rows of the second."""
    return Orders(
        second.decided_on,
        first.ids + tuple(second.ids[row] for row in rows),
        first.symbols + tuple(second.symbols[row] for row in rows),
        np.concatenate([first.shares, second.shares[rows]]),
        np.concatenate([first.limit, second.limit[rows]]),
        np.concatenate([first.participation, second.participation[rows]]),
        first.reasons + tuple(second.reasons[row] for row in rows),
    )


def traded_of(stretch: Stretch, first: int, batches: Sequence[Batch | None]) -> Traded:
    """Return the fills of sessions in a row from number `first` on, None for a session without orders."""
    filled = [(at, batch, batch.chunk) for at, batch in enumerate(batches) if batch is not None and batch.chunk]
    if not filled:
        return Traded(NO_FILLS, _NO_ROWS, _NO_ROWS, _NO_ROWS)
    session = np.repeat([at for at, _, _ in filled], [len(chunk.rows) for _, _, chunk in filled])
    name = np.concatenate([batch.rows[chunk.rows] for _, batch, chunk in filled])
    sign = np.sign(np.concatenate([batch.shares[chunk.rows] for _, batch, chunk in filled]))
    values = np.concatenate([chunk.values for _, _, chunk in filled], axis=1)
    opened = stretch.open_ticks[first + session, name]
    fills, commission, regulatory = fills_of(name, sign, opened, values)
    return Traded(fills, session, name, commission + regulatory)

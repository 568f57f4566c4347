"""Implementation shortfall by order (Perold 1988): the paper portfolio's result less the real one's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.domain.market import Floats, Ints
from oomrl.domain.observed import Bar
from oomrl.domain.trading import Execution


@dataclass(frozen=True, slots=True, eq=False)
class Shortfall:
    """What a session's orders cost against trading all of them at the decision's close; dollars, costs positive.

    Arrays have shape (orders,). With X shares ordered (sales negative), x of them filled at p, P the decision close
    (after the split), O the open, C the close and D the dividend a share that a share of P still had:

        total = delay + path + spread + impact + fees + opportunity
              = sum x (p + D - P) + (X - sum x) (C + D - P) + fees

    `notional` is |X| P, `against_arrival` sum x (p - O), `against_close` sum x (p - C).
    """

    symbols: tuple[str, ...]
    notional: Floats
    filled: Floats
    delay: Floats
    path: Floats
    spread: Floats
    impact: Floats
    fees: Floats
    opportunity: Floats
    against_arrival: Floats
    against_close: Floats

    @property
    def total(self) -> Floats:
        return self.delay + self.path + self.spread + self.impact + self.fees + self.opportunity

    @property
    def bps(self) -> Floats:
        """The total in basis points of the notional; 0 for an order of nothing."""
        out: Floats = np.divide(self.total, self.notional, out=np.zeros_like(self.notional), where=self.notional > 0)
        return out * 1e4


def shortfall(execution: Execution, bar: Bar, row: Ints) -> Shortfall:
    """Measure one session's orders. `bar` is the session over the roster, `row` each order's place in it, (orders,)."""
    orders, fills = execution.orders, execution.fills
    count = len(orders)
    decision = bar.previous[row] / bar.split[row] - bar.dividend[row]
    at = fills.order
    shares = fills.shares

    def by_order(amounts: Floats) -> Floats:
        out: Floats = np.bincount(at, weights=amounts, minlength=count).astype(np.float64)
        return out

    return Shortfall(
        symbols=orders.symbols,
        notional=np.abs(orders.shares) * (bar.previous[row] / bar.split[row]),
        filled=by_order(shares),
        delay=by_order(shares * (fills.open - decision[at])),
        path=by_order(shares * (fills.reference - fills.open)),
        spread=by_order(shares * fills.spread),
        impact=by_order(shares * fills.impact),
        fees=by_order((execution.commission + execution.regulatory) / 100),
        opportunity=execution.unfilled * (bar.close[row] - decision),
        against_arrival=by_order(shares * (fills.price - fills.open)),
        against_close=by_order(shares * (fills.price - bar.close[row][at])),
    )

"""Split each session's profit or loss into twelve parts, exactly, by name and by order.

Write q for the target shares of a name (weight * equity / close at the decision, held as shares until the next one,
multiplied by splits), g for its goal (what lots and the service's limits leave of q), h0 and h1 for the shares held
before and after the session's fills (after the split), C0 for the last close divided by the split, O for the open,
C for the close, D for the dividend a share, and T = C - C0 + D for the total return of a share in dollars. A fill
buys x shares (sales negative) at price p = reference + spread + impact. At all times

    h1 = q + (g - q) - cash gap - other gap,      cash gap + other gap = g - h1,

where the cash gap is what an order left unfilled for lack of cash, and the other gap everything else that still
misses from the goal (participation, limit prices, halts, slices of an order that works over several sessions).
With h0 = h1 - sum(x), a name's result  h0 T + sum x (C - p)  is, term by term:

    market            beta * benchmark return * q * C0
    selection         q T - market
    limits            (g - q) T
    cash drag         -(cash gap) T - sum x (reference - O)      (lacked cash; waited for it or walked the path)
    delay             -sum x (O + D - C0)                        (from the last close to the open)
    spread, impact    -sum x spread, -sum x impact
    unfilled          -(other gap) T
    fees              -(commission + regulatory fees)
    corporate actions cash in lieu against C0, write-offs and sales on delisting, dividends booked against D h0, split
                      corrections, and the whole result of a name on a day of a suspected unrecorded action
    model bills       -(bills)
    rounding          sum x p + cash moved, the rounding of fills to whole cents

The target's return includes dividends, so a share that is missing misses T, dividend included: real and target
portfolio earn the same dividend a share, and no difference of dividends remains to be booked apart. beta is ex-ante
(up to 252 sessions to the day before; 1 below 60). No part is a remainder of the others; their sum is checked
against the exact change of equity at each session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oomrl.domain.actions import in_cents
from oomrl.domain.market import Bools, Floats, Ints, Roster, padded
from oomrl.domain.observed import Bar
from oomrl.domain.trading import ActionKind, Execution, Fills, UnfilledCause
from oomrl.errors import Halt

#: The twelve parts of the decomposition, in the design's order.
PARTS = (
    "market",
    "selection",
    "limits",
    "cash_drag",
    "delay",
    "spread",
    "impact",
    "fees",
    "unfilled",
    "corporate_actions",
    "model_bills",
    "rounding",
)
(MARKET, SELECTION, LIMITS, CASH_DRAG, DELAY, SPREAD, IMPACT, FEES, UNFILLED, ACTIONS, BILLS, ROUNDING) = range(12)

#: The parts that fills cause, in the order of the columns of `Decomposition.by_order`.
ORDER_PARTS = ("cash_drag", "delay", "spread", "impact", "fees", "rounding")


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """One session's profit or loss in parts.

    `exact` (12,) and `by_name` (12, names) are float64 dollars in the order of `PARTS`, names as in the roster;
    model bills belong to no name. `cents` (12,) are whole cents that sum to `pnl_cents`. `suspected` is what of
    the corporate actions comes from suspected unrecorded actions, in dollars: loss detection leaves it out.
    `fill_costs` (6, fills) is what each fill cost by the parts of `ORDER_PARTS`, `fill_order` its order's row.
    """

    day: date
    pnl_cents: int
    exact: Floats
    by_name: Floats
    suspected: float
    fill_order: Ints
    fill_costs: Floats
    orders: int

    @property
    def by_order(self) -> Floats:
        """The parts that fills cause, by order: dollars of shape (orders, 6), columns as in `ORDER_PARTS`."""
        out = np.zeros((self.orders, len(ORDER_PARTS)))
        np.subtract.at(out, self.fill_order, self.fill_costs.T)
        return out

    @property
    def cents(self) -> Ints:
        """The parts in whole cents, int64 of shape (12,)."""
        row: Ints = whole_cents(self.exact[None, :], np.array([self.pnl_cents]))[0]
        return row

    @property
    def parts(self) -> dict[str, Decimal]:
        """The parts by name, in dollars and whole cents."""
        return {name: Decimal(int(value)).scaleb(-2) for name, value in zip(PARTS, self.cents, strict=True)}

    @property
    def pnl(self) -> Decimal:
        """The session's profit or loss in dollars and whole cents."""
        return Decimal(self.pnl_cents).scaleb(-2)


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """What an account aimed at in a session: target and goal in shares, and the gap for lack of cash, (names,) each."""

    target: Floats
    goal: Floats
    cash_gap: Floats


def whole_cents(exact: Floats, totals: NDArray[np.int64]) -> Ints:
    """Round rows of dollar amounts to whole cents that sum to each row's total (largest remainders).

    `exact` has shape (rows, parts), `totals` (rows,) whole cents; returns int64 of shape (rows, parts). Each
    amount moves by less than a cent where the row's exact sum is within half a cent of its total.
    """
    scaled = exact * 100
    floor = np.floor(scaled)
    fraction = scaled - floor
    cents = floor.astype(np.int64)
    missing = totals - cents.sum(axis=1)
    rank = np.argsort(np.argsort(-fraction, axis=1, kind="stable"), axis=1, kind="stable")
    parts = exact.shape[1]
    each, rest = np.divmod(missing, parts)
    cents += each[:, None] + (rank < rest[:, None])
    return cents


class Attribution:
    """Follow target, goal and gaps of one account from decision to decision."""

    def __init__(self, roster: Roster) -> None:
        self.roster = roster
        self.target = np.empty(0)
        self.goal = np.empty(0)
        self._cash_gap = np.empty(0)

    def decided(self, target: Floats, goal: Floats) -> None:
        """Start from a new decision: fractional target shares and goals over the roster."""
        self.target, self.goal = target.astype(np.float64), goal.astype(np.float64)
        self._cash_gap = np.zeros(len(target))

    def adopt(self, shares: Floats) -> None:
        """Take positions that no decision of ours made as both target and goal."""
        self.decided(shares.copy(), shares.copy())

    def session(
        self,
        bar: Bar,
        execution: Execution,
        held_before: Floats,
        held_after: Floats,
        ticks: int,
        pnl_cents: int,
        equity: float,
        bills_cents: int = 0,
    ) -> Decomposition:
        """Decompose one session and move on to its close.

        `held_before` and `held_after` (names,) are economic shares before and after the execution. `ticks` is the
        exact change of economic equity without endowments, in $0.0001; `pnl_cents` the same as the two books of
        cents have it; `equity` in dollars sets the tolerance of float64. Raises `Halt` if the parts do not sum to
        the change (an input is wrong).
        """
        size = len(self.roster)
        self._fit(size)
        held_before = padded(held_before, size)
        parts = np.zeros((12, size))
        opening, action_cash = self._actions(execution, held_before, bar)
        split, before = bar.split, bar.previous
        if bar.eventful:
            before = before / split
            self.target, self._cash_gap = self.target * split, self._cash_gap * split
            fraction = held_before * split - opening
            self.goal = self.goal * split - fraction
            parts[ACTIONS] -= fraction * before
        total = bar.close - before
        if bar.eventful:
            total = total + bar.dividend
            parts[ACTIONS] -= opening * bar.dividend
        if action_cash is not None:
            parts[ACTIONS] += action_cash
        costs = self._fills(execution, bar, before, parts)
        extra = self._moved_without_fill(execution, size)
        gap = self.goal - held_after
        self._cash_gap = self._gap_for_cash(execution, gap, size)
        market = bar.beta * bar.benchmark
        book_held(parts, market, self.target, self.goal, self._cash_gap, before, total, gap)
        if extra is not None:
            # Shares that moved without a fill of an order (delisting, split corrections) left at `action_cash`.
            parts[ACTIONS] += extra * (before - bar.dividend)
        suspected = 0.0
        if bar.suspected is not None:
            moved = parts[:, bar.suspected]
            suspected = float(moved.sum())
            parts[:, bar.suspected] = 0.0
            parts[ACTIONS, bar.suspected] = moved.sum(axis=0)
        exact = parts.sum(axis=1)
        exact[BILLS] -= bills_cents / 100
        self._check(float(exact.sum()), ticks, equity, bar.day)
        return Decomposition(
            bar.day, pnl_cents, exact, parts, suspected, execution.fills.order, costs, len(execution.orders)
        )

    def follow(self, held: Floats, rows: Ints | None = None, lacking: Floats | None = None) -> Followed:
        """Move on over sessions without splits, suspected jumps or delistings; return what `Span` explains them from.

        `held` (names,) are the shares at the close; `lacking` (orders,) the signed shares that orders in the names of
        numbers `rows` missed for lack of cash, None where none did. Without orders both are None.
        """
        self._fit(len(self.roster.symbols))
        known = self._cash_gap
        if rows is not None and (lacking is not None or np.count_nonzero(known)):
            known = known.copy()
            known[rows] = 0.0 if lacking is None else lacking
        self._cash_gap = _within(known, self.goal - held)
        return Followed(self.target, self.goal, self._cash_gap)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain JSON-able values by symbol."""
        size = len(self.roster)
        self._fit(size)
        return {
            "target": self.roster.named(self.target),
            "goal": self.roster.named(self.goal),
            "cash_gap": self.roster.named(self._cash_gap),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become what `snapshot` described."""
        self.target = self.roster.array(state["target"])
        self.goal = self.roster.array(state["goal"])
        self._cash_gap = self.roster.array(state["cash_gap"])

    def _fit(self, size: int) -> None:
        if len(self.target) < size:
            self.target, self.goal = padded(self.target, size), padded(self.goal, size)
            self._cash_gap = padded(self._cash_gap, size)

    def _actions(self, execution: Execution, held: Floats, bar: Bar) -> tuple[Floats, Floats | None]:
        """Return the shares that earn today's return, and the cash of corporate actions by name (None: none).

        A name that leaves the account has its target, goal and gap ended first: nobody can hold it, or nobody shall.
        """
        if not execution.actions:
            return held, None
        opening, cash = held.copy(), np.zeros(len(held))
        for action in execution.actions:
            row = self.roster.row(action.symbol)
            cash[row] += in_cents(action.amount) / 100
            if action.kind is ActionKind.SPLIT and not action.amount:
                opening[row] += float(action.shares)
            if action.kind in (ActionKind.WRITE_OFF, ActionKind.SALE):
                self.target[row] = self.goal[row] = self._cash_gap[row] = 0.0
        return opening, cash

    def _fills(self, execution: Execution, bar: Bar, before: Floats, parts: Floats) -> Floats:
        """Book what fills cost into `parts`; return it by part and fill, (6, fills)."""
        fills = execution.fills
        if not len(fills):
            return np.empty((len(ORDER_PARTS), 0))
        row = self.roster.rows(execution.orders.symbols)[fills.order]
        fees = execution.commission + execution.regulatory
        costs = fill_costs(fills, fees, before[row], bar.dividend[row] if bar.eventful else None)
        book_costs(parts, costs, row)
        return costs

    def _moved_without_fill(self, execution: Execution, size: int) -> Floats | None:
        """Return the shares that corporate actions moved for cash (delistings, split corrections), or None."""
        extra = None
        for action in execution.actions:
            if action.shares and (action.kind is not ActionKind.SPLIT or action.amount):
                extra = np.zeros(size) if extra is None else extra
                extra[self.roster.row(action.symbol)] += float(action.shares)
        return extra

    def _gap_for_cash(self, execution: Execution, gap: Floats, size: int) -> Floats:
        """Return what each name misses of its goal for lack of cash.

        An order of this session says it anew; a name without one keeps what it had, up to the gap that is left.
        """
        known = self._cash_gap
        if len(execution.orders):
            lacking = execution.unfilled.any() and UnfilledCause.CASH in execution.causes
            if lacking or known.any():
                rows = self.roster.rows(execution.orders.symbols)
                short = np.array([cause is UnfilledCause.CASH for cause in execution.causes], dtype=np.float64)
                known = known.copy()
                known[rows] = execution.unfilled * short
        return _within(known, gap)

    def _check(self, total: float, ticks: int, equity: float, day: date) -> None:
        change = ticks / 10_000
        if not abs(total - change) <= 1e-6 * max(1.0, abs(equity) / 1e7):
            raise unexplained(day, change, total)


def book_held(
    parts: Floats,
    market: Floats,
    target: Floats,
    goal: Floats,
    short: Floats,
    before: Floats,
    total: Floats,
    gap: Floats,
) -> None:
    """Book what target, goal and gaps earned into `parts`, (12, names) or (12, sessions, names), all others alike.

    `market` is beta times the benchmark's return, `short` the cash gap, `total` the total return of a share in dollars.
    """
    np.multiply(market, target * before, out=parts[MARKET])
    np.multiply(target, total, out=parts[SELECTION])
    parts[SELECTION] -= parts[MARKET]
    np.multiply(goal - target, total, out=parts[LIMITS])
    np.multiply(short - gap, total, out=parts[UNFILLED])
    if np.count_nonzero(short):
        parts[CASH_DRAG] -= short * total


def fill_costs(fills: Fills, fees: Ints, before: Floats, dividend: Floats | None) -> Floats:
    """Return what fills cost by part, (6, fills).

    `fees` are cents, `before` the last closes, `dividend` dollars a share, None for none: (fills,) all.
    """
    costs = np.empty((len(ORDER_PARTS), len(fills)))
    costs[0] = fills.reference - fills.open
    costs[1] = fills.open - before
    if dividend is not None:
        costs[1] += dividend
    costs[2], costs[3] = fills.spread, fills.impact
    costs[:4] *= fills.shares
    costs[4] = fees / 100
    costs[5] = fills.shares * -fills.price - fills.cents / 100
    return costs


def book_costs(parts: Floats, costs: Floats, place: Ints) -> None:
    """Book costs (6, fills) into `parts` (12, ...), each fill at its place (fills,) among the cells of one part."""
    # One count over (part, cell) pairs: the parts CASH_DRAG to FEES stand in a row.
    size = parts[0].size
    cell = place + (np.arange(len(ORDER_PARTS)) * size)[:, None]
    summed = np.bincount(cell.ravel(), weights=costs.ravel(), minlength=len(ORDER_PARTS) * size)
    booked = summed.reshape(len(ORDER_PARTS), *parts.shape[1:])
    parts[CASH_DRAG : FEES + 1] -= booked[:5]
    parts[ROUNDING] -= booked[5]


def _within(known: Floats, gap: Floats) -> Floats:
    """Return what is known to lack for cash, no further than to the gap that is left."""
    if not np.count_nonzero(known):
        return known
    same_side: Bools = known * gap > 0
    return np.where(same_side, np.sign(gap) * np.minimum(np.abs(known), np.abs(gap)), 0.0)


def unexplained(day: date, change: float, total: float) -> Halt:
    return Halt(
        f"Expected the parts of {day} to sum to the change of equity {change:.6f}, was {total:.6f}. "
        "An execution, a position or a bar does not fit the books."
    )

"""From a target portfolio to orders: whole shares within the limits of the service.

A decision gives each name a goal in shares. Until the plan of a name ends, each session's order is what is left of
its goal, so that an order that works over several sessions needs no memory but the goal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from oomrl.domain.market import Bools, Floats, Ints, Roster
from oomrl.domain.observed import Bar
from oomrl.domain.trading import LiquidityPlan, Orders, TargetPortfolio
from oomrl.errors import StrategyFailure

TOLERANCE = 1e-9
#: Sessions over which an order may work at most: a year of them.
MOST_SESSIONS = 252
#: A limit as far away as the price itself is none: a sale would stand at 0.
NO_LIMIT_BPS = 10_000.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What the service allows whatever the strategy says.

    gross, per_name: largest sum of weights, and largest weight of one name, of the capital.
    max_adv_share: largest order as a share of the average daily volume of 20 sessions, for each session.
    max_orders: most orders in a session; the largest by value go out.
    collar_bps: limit price around the decision close for every order (None: market orders unless the plan says).
    min_order_value: smaller orders are left out, except those that end a position.
    cash_reserve_bps: what is kept back from buys for costs and moves until the fill.
    symbols: the only names that may be traded (None: all). capital: the most dollars to work with (None: all).
    """

    gross: float = 1.0
    per_name: float = 1.0
    max_adv_share: float = 0.10
    max_orders: int = 2_000
    collar_bps: float | None = None
    min_order_value: float = 100.0
    cash_reserve_bps: float = 5.0
    symbols: frozenset[str] | None = None
    capital: float | None = None


@dataclass(frozen=True, slots=True)
class LimitHit:
    """One place where a limit changed what the strategy wanted: shares by name, or a total for None."""

    limit: str
    symbol: str | None
    wanted: float
    allowed: float


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """The account at a close, over the roster: economic equity, spendable (broker) cash, shares of both books."""

    equity: float
    cash: float
    shares: Floats
    broker_shares: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Goals:
    """A decision in shares. Arrays over the roster, shape (names,).

    `target` is weight * capital / close, fractional; `limited` what lots and limits leave of it; `sessions` for how
    many sessions each name's order may work, `participation` its share of a session's volume, `limit_price` dollars
    or NaN. `hits` are the limits that bit, `below_minimum` how many changes were too small to trade. `plain` goals are
    market orders of one session, over all of its volume.
    """

    decided_on: date
    target: Floats
    limited: Floats
    sessions: Ints
    participation: Floats
    limit_price: Floats
    reasons: dict[str, str]
    hits: tuple[LimitHit, ...] = ()
    below_minimum: int = 0
    plain: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Sized:
    """The orders of one session, and the goals that they work towards (None where they continue older ones)."""

    orders: Orders
    goals: Goals | None = None
    hits: tuple[LimitHit, ...] = field(default=())


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """One session's orders by number, arrays of shape (orders,): sales first, then buys, each by falling value.

    `rows` are the names' numbers in the roster, `shares` signed. `decided_on` is the close after which they were made,
    `attempt` for which session since the decision of `goals`.
    """

    decided_on: date
    goals: Goals
    attempt: int
    rows: Ints
    shares: Floats
    hits: tuple[LimitHit, ...]

    @property
    def limit(self) -> Floats | None:
        """Dollars or NaN; None for market orders alone."""
        return None if self.goals.plain else self.goals.limit_price[self.rows]

    @property
    def participation(self) -> Floats | None:
        """The share of the session's volume; None for the whole volume."""
        return None if self.goals.plain else self.goals.participation[self.rows]

    def sized(self, revision: str, roster: Roster) -> Sized:
        """Return the orders by name.

        The client order id is made of strategy revision, decision day, symbol, side and attempt.
        """
        goals, rows, names = self.goals, self.rows, roster.symbols
        shown = None if self.attempt else goals
        if not len(rows):
            return Sized(_no_orders(self.decided_on), shown, self.hits)
        symbols = tuple([names[n] for n in rows.tolist()])
        stem, sold, bought = f"{revision}-{goals.decided_on:%Y%m%d}-", f"-s-{self.attempt}", f"-b-{self.attempt}"
        sales = int(np.count_nonzero(self.shares < 0))
        ids = [stem + name + sold for name in symbols[:sales]] + [stem + name + bought for name in symbols[sales:]]
        reasons = goals.reasons
        orders = Orders(
            decided_on=self.decided_on,
            ids=tuple(ids),
            symbols=symbols,
            shares=self.shares,
            limit=goals.limit_price[rows],
            participation=goals.participation[rows],
            reasons=tuple([reasons.get(symbol, "") for symbol in symbols]) if reasons else ("",) * len(symbols),
        )
        return Sized(orders, shown, self.hits)


def goals_of(target: TargetPortfolio, roster: Roster, bar: Bar, holdings: Holdings, limits: Limits) -> Goals:
    """Turn weights into goals in shares.

    Raises `StrategyFailure` for weights that are no long-only portfolio of known names.
    """
    weights = _weights(target, roster, max(1.0, limits.gross))
    close, held, size = bar.close, holdings.shares, len(roster)
    capital = holdings.equity if limits.capital is None else min(holdings.equity, limits.capital)
    a_share_each = max(capital, 0.0) / close
    hits: list[LimitHit] = []
    wanted = weights * a_share_each
    allowed = _allowed_weights(weights, roster, limits, hits)
    goal = np.floor((wanted if allowed is weights else allowed * a_share_each) + TOLERANCE)

    sessions, participation, bps = _plans(target, roster, size, limits)
    change = goal - held
    tradable = bar.tradable
    if limits.symbols is not None:
        tradable = tradable & _fence(roster, limits.symbols)
    if np.count_nonzero(tradable) < size:
        blocked = ~tradable & (change != 0)
        hits += [LimitHit("not_tradable", roster.symbols[n], goal[n], held[n]) for n in blocked.nonzero()[0]]
        change[blocked] = 0.0
    most = np.floor(limits.max_adv_share * bar.average_volume)
    if sessions is not None:
        most = most * sessions
    amount = np.abs(change)
    over = amount > most
    if np.count_nonzero(over):
        cut = np.clip(change, -most, most)
        hits += [LimitHit("max_adv_share", roster.symbols[n], change[n], cut[n]) for n in over.nonzero()[0]]
        change = cut
        amount = np.abs(change)
    small = (amount * close < limits.min_order_value) & ((goal != 0) | (held == 0))
    below_minimum = int(np.count_nonzero(change[small]))
    change[small] = 0.0
    moving = int(np.count_nonzero(change))
    if moving > limits.max_orders:
        dropped = np.argsort(-np.abs(change) * close, kind="stable")[limits.max_orders : moving]
        hits.append(LimitHit("max_orders", None, moving, limits.max_orders))
        change[dropped] = 0.0
    spendable = holdings.cash
    if limits.capital is not None:
        spendable = min(spendable, max(0.0, limits.capital - float(np.dot(held, close))))
    change = _affordable(change, close, spendable, limits, hits)
    plain = sessions is None and limits.collar_bps is None
    return Goals(
        decided_on=bar.day,
        target=wanted,
        limited=held + change,
        sessions=np.ones(size, dtype=np.int64) if sessions is None else sessions,
        participation=participation,
        limit_price=bps if plain else _limit_prices(change, close, bps),
        reasons=dict(target.reasons),
        hits=tuple(hits),
        below_minimum=below_minimum,
        plain=plain,
    )


def work_for(goals: Goals, working: Bools, attempt: int, bar: Bar, holdings: Holdings, limits: Limits) -> Work:
    """Return the next session's orders towards the goals of the names that still work.

    Sales first, then buys, each by falling value, ties by the roster's order. Cash is never knowingly exceeded.
    """
    hits: list[LimitHit] = []
    change = goals.limited - holdings.shares
    if attempt or not (goals.plain or goals.sessions.max(initial=1) == 1):
        change = np.where(working & bar.tradable, change, 0.0)
        change = np.trunc(change + np.sign(change) * TOLERANCE)
        most = np.floor(limits.max_adv_share * bar.average_volume)
        change = _affordable(np.clip(change, -most, most), bar.close, holdings.cash, limits, hits)
    if holdings.broker_shares is not holdings.shares:
        change = _in_broker_shares(change, holdings)
    rows = change.nonzero()[0]
    shares = change[rows]
    value = shares * bar.close[rows]
    # Sales have negative value and come first; within each side the largest leads.
    turn = np.lexsort((-np.abs(value), value > 0))
    told = () if attempt else goals.hits
    return Work(bar.day, goals, attempt, rows[turn], shares[turn], told + tuple(hits) if len(rows) else told)


def _weights(target: TargetPortfolio, roster: Roster, gross: float) -> Floats:
    weights = np.zeros(len(roster))
    index = roster.index
    try:
        rows = [index[symbol] for symbol in target.weights]
    except KeyError as unknown:
        name = unknown.args[0]
        raise StrategyFailure("unknown_symbol", f"Expected weights of names that were shown, was {name!r}") from None
    values = np.array(list(target.weights.values()), dtype=np.float64)
    # A sum is finite where all of them are, and none is below zero where the least is not.
    total = float(values.sum())
    if not (np.isfinite(total) and (not len(values) or values.min() >= 0)):
        bad = ~np.isfinite(values) | (values < 0)
        if bad.any():
            first = int(np.argmax(bad))
            symbol = list(target.weights)[first]
            raise StrategyFailure("weights", f"Expected weights >= 0, was {values[first]} for {symbol}")
    if total > gross + TOLERANCE:
        raise StrategyFailure("weights", f"Expected weights that sum to at most {gross:g}, was {total:g}")
    weights[np.array(rows, dtype=np.int64)] = values
    return weights


def _allowed_weights(weights: Floats, roster: Roster, limits: Limits, hits: list[LimitHit]) -> Floats:
    allowed = weights
    if limits.per_name < 1.0 and np.count_nonzero(weights > limits.per_name + TOLERANCE):
        for n in (weights > limits.per_name + TOLERANCE).nonzero()[0]:
            hits.append(LimitHit("per_name", roster.symbols[n], float(weights[n]), limits.per_name))
        allowed = np.minimum(weights, limits.per_name)
    total = float(allowed.sum())
    if total > limits.gross + TOLERANCE:
        hits.append(LimitHit("gross", None, total, limits.gross))
        allowed = allowed * (limits.gross / total)
    return allowed


def _plans(target: TargetPortfolio, roster: Roster, size: int, limits: Limits) -> tuple[Ints | None, Floats, Floats]:
    """Return (sessions or None where all is one, participation, limit in basis points or NaN) over the roster."""
    participation = np.ones(size)
    bps = np.full(size, np.nan if limits.collar_bps is None else limits.collar_bps)
    if not target.plan:
        return None, participation, bps
    sessions = np.ones(size, dtype=np.int64)
    for symbol, plan in target.plan.items():
        row = roster.find(symbol)
        if row is None:
            raise StrategyFailure("unknown_symbol", f"Expected plans for names that were shown, was {symbol!r}")
        _check_plan(symbol, plan)
        sessions[row], participation[row] = plan.sessions, plan.max_participation
        if plan.limit_bps is not None and plan.limit_bps < NO_LIMIT_BPS:
            bps[row] = np.fmin(bps[row], plan.limit_bps)
    return sessions, participation, bps


def _check_plan(symbol: str, plan: LiquidityPlan) -> None:
    if not 0 < plan.max_participation <= 1:
        raise StrategyFailure(
            "plan", f"Expected a participation above 0 and up to 1, was {plan.max_participation} for {symbol}"
        )
    if not 1 <= plan.sessions <= MOST_SESSIONS:
        raise StrategyFailure("plan", f"Expected 1 to {MOST_SESSIONS} sessions, was {plan.sessions:.6g} for {symbol}")
    if plan.limit_bps is not None and not 0 <= plan.limit_bps < math.inf:
        raise StrategyFailure("plan", f"Expected a finite limit_bps from 0 on, was {plan.limit_bps} for {symbol}")


def _fence(roster: Roster, symbols: frozenset[str]) -> Bools:
    return np.array([symbol in symbols for symbol in roster.symbols], dtype=np.bool_)


def _affordable(change: Floats, close: Floats, cash: float, limits: Limits, hits: list[LimitHit]) -> Floats:
    """Scale all buys down until cash and the sales at the close pay for them, the reserve set aside."""
    amounts = change * close
    bought = float(amounts[amounts > 0].sum())
    sold = -float(amounts[amounts < 0].sum())
    reserve = limits.cash_reserve_bps / 1e4
    funds = max(0.0, cash + sold * (1 - reserve))
    if bought * (1 + reserve) <= funds:
        return change
    hits.append(LimitHit("cash", None, bought, funds / (1 + reserve)))
    buys = (change > 0).nonzero()[0]
    buys = buys[np.argsort(-amounts[buys], kind="stable")]
    wanted, price = change[buys], close[buys] * (1 + reserve)
    shares = np.floor(wanted * (funds / (bought * (1 + reserve))) + TOLERANCE)
    # Rounding down left some cash: one share more for the largest, as far as it goes.
    spare = funds - float(np.dot(shares, price))
    more = shares < wanted
    shares += more & (np.cumsum(np.where(more, price, 0.0)) <= spare)
    out = change.copy()
    out[buys] = shares
    return out


def _limit_prices(change: Floats, close: Floats, bps: Floats) -> Floats:
    """Return dollars (NaN: market): whole cents from $1 on, buys rounded down and sales up."""
    if np.isnan(bps).all():
        return bps
    step = np.where(close >= 1.0, 100.0, 10_000.0)
    buy = np.floor(close * (1 + bps / 1e4) * step + 1e-6) / step
    sell = np.ceil(close * (1 - bps / 1e4) * step - 1e-6) / step
    return np.where(change > 0, buy, sell)


def _in_broker_shares(change: Floats, holdings: Holdings) -> Floats:
    """Restate sales where the broker holds fewer or more shares than the economic book (splits not applied)."""
    economic, broker = holdings.shares, holdings.broker_shares
    differs = (economic != broker) & (change < 0)
    if not differs.any():
        return change
    ratio = np.divide(broker, economic, out=np.zeros_like(broker), where=economic > 0)
    return np.where(differs, np.rint(change * ratio), change)


def _no_orders(day: date) -> Orders:
    return Orders(day, (), (), np.empty(0), np.empty(0), np.empty(0), ())

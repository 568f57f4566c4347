"""Markets of hidden sizes and dates in which names drift apart: whoever ranks by what they returned holds what rises.

Hidden properties compare decisions with one another; these have an answer of their own, at the worker, on sessions and
portfolios as live ones are: cash, prices in whole cents or not, highs above closes, many names, many sessions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from guardrails.markets import COLUMNS, Account, Bars

#: Sessions times names in one market at most, so that a verdict does not wait for it.
MOST = 170_000


@dataclass(frozen=True)
class Trend:
    """What a scenario says of its markets.

    Ranges of `sessions` and `symbols` (low, high), calendar `years`, the largest drift and noise of a daily return,
    how many `worlds`, sessions before the first decision (`warmup`), and by how much of the drift what is held must
    rise faster than the market (`lead`).
    """

    sessions: tuple[int, int]
    symbols: tuple[int, int]
    years: tuple[int, int]
    drift: float
    noise: float
    worlds: int
    warmup: int
    lead: float

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Trend:
        """Read a scenario's table; lists stand for ranges."""
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
        }
        return cls(**plain)


@dataclass(frozen=True)
class TrendWorld:
    """One market: its sessions, the drift of each name, and how its account trades."""

    bars: list[Bars]
    drifts: Mapping[str, float]
    capital: float
    whole_shares: bool

    def follow(self, account: Account, weights: Mapping[str, float]) -> None:
        """Trade to target weights, in whole shares where this market has them."""
        account.follow(weights)
        if self.whole_shares:
            account.shares = {name: float(math.floor(count)) for name, count in account.shares.items()}
            held = sum(count * account.close[name] for name, count in account.shares.items())
            account.cash += account.equity() - account.cash - held

    def wrong(self, weights: Mapping[str, float], lead: float, drift: float) -> bool:
        """Say whether holdings do not rise faster than the names at large, or are next to nothing."""
        total = sum(weights.values())
        if total < 0.1:
            return True
        held = sum(weight * self.drifts.get(name, -drift) for name, weight in weights.items()) / total
        return held < sum(self.drifts.values()) / len(self.drifts) + lead * drift


def trend_worlds(trend: Trend, seed: int) -> list[TrendWorld]:
    """Return the markets of a hidden seed: the longest, the widest, and others between."""
    return [_world(trend, random.Random(f"{seed}/{at}"), at) for at in range(trend.worlds)]


def _world(trend: Trend, chance: random.Random, at: int) -> TrendWorld:
    (short, long), (few, many) = trend.sessions, trend.symbols
    sessions, symbols = {0: (long, few), 1: (short, many)}.get(
        at, (_between(chance, short, long), _between(chance, few, many))
    )
    symbols = max(few, min(symbols, MOST // sessions))
    names = set[str]()
    while len(names) < symbols:
        names.add("".join(chance.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(chance.randrange(1, 6))))
    drifts = [trend.drift * (2 * place / (symbols - 1) - 1) for place in range(symbols)]
    chance.shuffle(drifts)
    order, cents = tuple(sorted(names)), chance.random() < 0.5
    by_name = dict(zip(order, drifts, strict=True))
    prices = {name: chance.uniform(20.0, 90.0) for name in order}
    day = date(chance.randint(*trend.years), 1, 1) + timedelta(days=chance.randrange(365))
    bars = list[Bars]()
    while len(bars) < sessions:
        if day.weekday() < 5 and chance.random() > 0.03:
            rows = [_row(chance, prices, name, by_name[name], trend.noise, cents) for name in order]
            bars.append(Bars(day, order, dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))))
        day += timedelta(days=1)
    return TrendWorld(bars, by_name, 10.0 ** chance.uniform(5.0, 7.5), chance.random() < 0.5)


def _between(chance: random.Random, low: int, high: int) -> int:
    return round(math.exp(chance.uniform(math.log(low), math.log(high))))


def _row(
    chance: random.Random, prices: dict[str, float], name: str, drift: float, noise: float, cents: bool
) -> tuple[float, ...]:
    """Return one bar; a price that has gone far comes back by a split, which shares of the name follow."""
    before, split = prices[name], 1.0
    if not 5.0 < before < 500.0:
        split = 8.0 if before > 50.0 else 0.125
    close = before / split * math.exp(drift + noise * (chance.random() - 0.5) * 3.46)
    prices[name] = close
    first, wide = close * (1.0 + 0.004 * (chance.random() - 0.5)), 1.001 + 0.008 * chance.random()
    row: tuple[float, ...] = (first, max(first, close) * wide, min(first, close) / wide, close)
    if cents:
        row = tuple(round(value, 2) for value in row)
    return (*row, float(chance.randrange(8_000_000, 40_000_000)), 0.0, split, 1.0)

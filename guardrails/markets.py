"""Made-up markets for hidden properties: seeded plain lists, with gaps, splits and halts as on tapes."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

COLUMNS = ("open", "high", "low", "close", "volume", "dividend", "split", "tradable")


@dataclass(frozen=True)
class Bars:
    """One closed session: symbols in order and one list of floats a column."""

    day: date
    symbols: tuple[str, ...]
    columns: Mapping[str, Sequence[float]]

    def moved(self, by: timedelta) -> Bars:
        """Return the session on another day."""
        return replace(self, day=self.day + by)

    def renamed(self, names: Mapping[str, str]) -> Bars:
        """Return the session under other names."""
        return replace(self, symbols=tuple(names[symbol] for symbol in self.symbols))

    def scaled(self, factor: float) -> Bars:
        """Return the session with prices and dividends times a factor, and volume divided by it."""
        power = dict.fromkeys(("open", "high", "low", "close", "dividend"), factor) | {"volume": 1.0 / factor}
        columns = {name: [value * power.get(name, 1.0) for value in row] for name, row in self.columns.items()}
        return replace(self, columns=columns)


def market(seed: int, sessions: int, symbols: int) -> list[Bars]:
    """Return sessions on weekdays, oldest first. The same seed gives the same market on every Python."""
    chance = random.Random(seed)
    letters = sorted({"".join(chance.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(4)) for _ in range(symbols)})
    day = date(1990, 1, 1) + timedelta(weeks=chance.randrange(1_500))
    state = {}
    for at, name in enumerate(letters):
        begins = chance.randrange(1, max(2, sessions // 2)) if at % 4 == 3 else 0
        ends = chance.randrange(sessions // 2, sessions) if at % 7 == 6 else sessions
        price = 3.0 if at == 1 else chance.uniform(15.0, 120.0)
        state[name] = [price, 1e3 if at == 2 else chance.uniform(4e5, 6e6), chance.gauss(0.0003, 0.0008), begins, ends]
    shown: list[Bars] = []
    while len(shown) < sessions:
        if day.weekday() < 5 and chance.random() > 0.02:
            rows = {
                name: _bar(chance, values)
                for name, values in state.items()
                if values[3] <= len(shown) < values[4] and chance.random() > 0.02
            }
            names = tuple(sorted(rows))
            columns = {column: [rows[name][at] for name in names] for at, column in enumerate(COLUMNS)}
            shown.append(Bars(day, names, columns))
        day += timedelta(days=1)
    return shown


def _bar(chance: random.Random, values: list[float]) -> tuple[float, ...]:
    split = 2.0 if chance.random() < 0.003 else 1.0
    dividend = round(values[0] * 0.006, 2) if chance.random() < 0.012 else 0.0
    before = values[0] / split
    close = max(0.05, before * math.exp(chance.gauss(values[2], 0.018)))
    first = before * math.exp(chance.gauss(0.0, 0.006))
    high, low = (max(first, close) * (1 + chance.random() * 0.01), min(first, close) * (1 - chance.random() * 0.01))
    values[0] = close
    volume = float(round(values[1] * math.exp(chance.gauss(0.0, 0.3))))
    return first, high, low, close, volume, dividend, split, 0.0 if chance.random() < 0.01 else 1.0


class Account:
    """Follow decisions at the close and without friction, so that the judge tells believable portfolios."""

    def __init__(self, cash: float) -> None:
        self.cash = cash
        self.shares: dict[str, float] = {}
        self.close: dict[str, float] = {}

    def show(self, bars: Bars) -> None:
        """Book splits, dividends and closes, but for closes that cannot be."""
        closes = bars.columns["close"]
        fine = math.isfinite(sum(closes)) and min(closes, default=1.0) > 0.0
        pairs = zip(bars.symbols, closes, strict=True)
        self.close.update(pairs if fine else ((name, price) for name, price in pairs if 0.0 < price < math.inf))
        places = dict(zip(bars.symbols, range(len(bars.symbols)), strict=True)) if self.shares else {}
        for name in self.shares.keys() & places.keys():
            held = self.shares[name] = self.shares[name] * bars.columns["split"][places[name]]
            self.cash += held * bars.columns["dividend"][places[name]]

    def equity(self) -> float:
        """Return cash and holdings at the last closes."""
        return self.cash + sum(count * self.close[name] for name, count in self.shares.items())

    def follow(self, weights: Mapping[str, float]) -> None:
        """Trade to target weights."""
        equity = self.equity()
        known = {name: weight for name, weight in weights.items() if self.close.get(name)}
        self.shares = {name: weight * equity / self.close[name] for name, weight in known.items()}
        self.cash = equity - sum(count * self.close[name] for name, count in self.shares.items())

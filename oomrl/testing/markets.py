"""Made-up markets with everything that real ones do to an account, from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from oomrl.domain.market import ticks
from oomrl.exchange.tape import Tape


@dataclass(frozen=True, slots=True)
class Weather:
    """How eventful a made-up market is: chances a session and name, or fractions of the names."""

    splits: float = 0.01
    dividends: float = 0.02
    absences: float = 0.02
    halts: float = 0.01
    jumps: float = 0.002
    late: float = 0.2
    delisted: float = 0.2
    volume: float = 200_000.0
    volatility: float = 0.02


CALM = Weather(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, volume=5_000_000.0)


def made_up_tape(seed: int, sessions: int = 60, names: int = 6, weather: Weather | None = None) -> Tape:
    """Return a tape of weekdays from 2010-01-04 on with random walks, splits (also reverse and odd ones), dividends,
    missing days, sessions without volume, unrecorded jumps, late listings and delistings."""
    chance, weather = np.random.default_rng(seed), weather or Weather()
    shape = (sessions, names)
    split = np.where(chance.random(shape) < weather.splits, chance.choice([2.0, 3.0, 1.5, 0.1, 4 / 3], shape), 1.0)
    jump = np.where(chance.random(shape) < weather.jumps, chance.choice([0.08, 0.5, 12.0], shape), 1.0)
    overnight = np.exp(chance.normal(0, weather.volatility / 2, shape)) * jump / split
    intraday = np.exp(chance.normal(0.0003, weather.volatility, shape))
    path = np.cumprod(overnight * intraday, axis=0) * chance.uniform(5, 150, names)
    close = np.clip(ticks(path) / 10_000, 0.05, 1e6)
    opened = np.clip(ticks(close / intraday) / 10_000, 0.05, 1e6)
    stretch = 1 + chance.exponential(weather.volatility / 3, (2, *shape))
    high = ticks(np.maximum(opened, close) * stretch[0]) / 10_000
    low = np.minimum(np.clip(ticks(np.minimum(opened, close) / stretch[1]) / 10_000, 0.01, None), opened)
    volume = np.floor(weather.volume * np.exp(chance.normal(0, 1, shape)))
    volume[chance.random(shape) < weather.halts] = 0.0
    cash = np.round(close * chance.uniform(0.001, 0.05, shape), 4)
    dividend = np.where(chance.random(shape) < weather.dividends, cash, 0.0)
    columns = {
        "open": opened,
        "high": high,
        "low": np.minimum(low, close),
        "close": close,
        "volume": volume,
        "dividend": dividend,
        "split": split,
    }
    absent = chance.random(shape) < weather.absences
    at = np.arange(sessions)[:, None]
    absent |= (at < np.floor(sessions * chance.random(names) * 0.7)) & (chance.random(names) < weather.late)
    absent |= (at > np.ceil(sessions * (0.3 + 0.7 * chance.random(names)))) & (chance.random(names) < weather.delisted)
    absent[:, 0] = False
    for values in columns.values():
        values[absent] = np.nan
    symbols = tuple(f"N{number:03d}" for number in range(names))
    return Tape(f"made-up-{seed}", symbols, weekdays(date(2010, 1, 4), sessions), columns)


def renamed(tape: Tape, prefix: str) -> Tape:
    """Return the tape with every name prefixed, which keeps their order."""
    return Tape(tape.name, tuple(prefix + symbol for symbol in tape.symbols), tape.days, tape.columns, tape.quarantine)


def weekdays(start: date, count: int) -> tuple[date, ...]:
    """Return `count` days from `start` on that are no Saturday or Sunday."""
    days: list[date] = []
    day = start
    while len(days) < count:
        if day.weekday() < 5:
            days.append(day)
        day += timedelta(days=1)
    return tuple(days)

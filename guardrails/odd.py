"""Inputs that no market has: what no test tells from the code before has to decide on them as that code does (GR603).

Markets that trend are untidy as real ones are; here every value may be any other: prices that cannot be, flags that are
neither, symbols within symbols, ties, debts, parameters that are refused. Both versions are told the same, so that one
decision leads to no other, and what differs shows at once.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from guardrails.acceptance import Alike, Before, Start, WorkerFault, drawn
from guardrails.decisions import Compared, Decision, apart, decision_in, same_decision
from guardrails.markets import COLUMNS, Bars
from guardrails.policy import Bound, Policy

#: Markets with parameters of chance, sets of wrong parameters; sessions of a market, by what the parameters need.
MARKETS, PARAMETERS, SESSIONS = 5, 5, (90, 320)
#: In so many of them it is asked twice, and compared with the code before.
TWICE = 4
#: Parameters whose names end alike (weights, windows) stand at their bounds together: so many such groups at most.
MOST_GROUPS = 8
#: A decision that was not made is so far from one that was.
UNMADE = 3.0
PRICES = ("open", "high", "low", "close")
#: What follows a symbol where two stand for one company, or look as if they did.
ENDS = ("", "", "W", "WI", "WS", "P", "U", "R", "Q", ".A", ".B", "-A", "/WS", "L", "1", ".PR")
NONE = (math.nan, math.inf, -math.inf, 0.0, -1.0, -1e-9)


def decides_alike(alike: Alike, start: Start, given: Sequence[Mapping[str, Any]], seed: int) -> bool:
    """Say whether a strategy decides all odd inputs as the code that it has to be alike, or nearer to a curated one.

    `given` are the sets of parameters to take, the strategy's own first.
    """
    for params, market in _markets(given, alike.bounds, seed):
        if not _same(alike, market, start, params, alike.code.asked(params)):
            return False
    new = given[0].keys() - alike.code.params.keys()
    for at in range(PARAMETERS):
        chance = random.Random(f"{seed}/wrong/{at}")
        params = wrong({name: value for name, value in given[0].items() if name not in new}, chance)
        added = {name: given[0][name] for name in new}
        if not _same(alike, OddMarket(chance, 12, f"wrong {at}"), start, {**params, **added}, params):
            return False
    return True


def breaks(before: Before, start: Start, given: Sequence[Mapping[str, Any]], policy: Policy, seed: int) -> bool:
    """Say whether a strategy fails at odd inputs that the code before decides, or decides otherwise when asked twice.

    One failure is the last decision of a service's worker, and a service that died asks again: no test may demand
    otherwise. Parameters may be refused; a strategy whose policy waives `restart` may keep what it was asked.
    """
    for at, (params, market) in enumerate(_markets(given, policy.bounds, seed)):
        ours = market.decided(start, params)
        if 0 < len(ours) < len(market.told) and len(ours) < len(market.known(before, before.asked(params))):
            return True
        if at < TWICE:
            then = market.known(before, before.asked(params))
            before.odd_compared.append(Compared.of("on odd inputs", ours, then))
        if at < TWICE and "restart" not in policy.acceptance.waived:
            again = market.decided(start, params, twice=True)
            if len(again) != len(ours) or not all(map(same_decision, again, ours)):
                return True
    return False


def _markets(
    given: Sequence[Mapping[str, Any]], bounds: Mapping[str, Bound], seed: int
) -> Iterator[tuple[dict[str, Any], OddMarket]]:
    """Yield parameters and a market for each: those given, some at their bounds, some drawn."""
    last, free = dict(given[-1]), [name for name in sorted(given[-1]) if f"parameters.{name}" in bounds]
    ends = [[name for name in free if _end(name) == end] for end in sorted(set(map(_end, free)))]
    edges = [at_bounds(last, bounds, group, least=True) for group in ends if len(group) > 1][:MOST_GROUPS]
    for at in range(len(given) + len(edges) + MARKETS):
        chance = random.Random(f"{seed}/odd/{at}")
        known = [*given, *edges]
        if at < len(known):
            params = dict(known[at])
        elif at % 2:
            params = drawn(last, bounds, chance)
        else:
            some = chance.sample(free, min(len(free), 3))
            params = at_bounds(last, bounds, some, least=chance.random() < 0.5)
        yield params, OddMarket(chance, SESSIONS[at == 0], f"odd {at}")


def _same(alike: Alike, market: OddMarket, start: Start, params: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    ours, theirs = market.decided(start, params), market.known(alike.code, asked)
    if len(ours) == len(theirs) and all(map(same_decision, ours, theirs)):
        return True
    if alike.good is None:
        return False
    wanted = market.decided(alike.good, asked)
    return _far(ours, wanted) < (1.0 - 1e-6) * _far(theirs, wanted)


def _far(made: Sequence[Decision], wanted: Sequence[Decision]) -> float:
    """Return how far decisions are from those wanted; one that was made where none was wanted is as far as none."""
    both = sum(map(apart, made, wanted))
    return both + UNMADE * abs(len(wanted) - len(made))


def at_bounds(
    params: Mapping[str, Any], bounds: Mapping[str, Bound], names: Iterable[str], *, least: bool
) -> dict[str, Any]:
    """Return parameters of which the named ones are as small, or else as large, as they may be."""
    made = dict(params)
    for name in names:
        bound = bounds[f"parameters.{name}"]
        edge = bound.min if least else bound.max
        made[name] = made[name] if edge is None else type(made[name])(edge)
    return made


def _end(name: str) -> str:
    return name.rpartition("_")[2]


def wrong(params: Mapping[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return parameters of which one or two are missing, of another kind, beyond all bounds or not known."""
    made = dict(params)
    for name in chance.sample(sorted(made), min(len(made), chance.randrange(1, 3))):
        value = made[name]
        turned = -value if type(value) in (int, float) else False
        others: list[Any] = [None, "", "1", True, -1, 0, turned, 1e12, 0.5, []]
        made[name] = chance.choice(others)
        if chance.random() < 0.2:
            del made[name]
    if chance.random() < 0.2:
        made["unknown"] = 1
    return made


class OddMarket:
    """Sessions, and before which decisions what is told of the account."""

    def __init__(self, chance: random.Random, sessions: int, name: str) -> None:
        self.chance, self.name = chance, name
        roots = ["".join(chance.choice("ABCDEFGHIJ") for _ in range(chance.randrange(1, 5))) for _ in range(5)]
        self.names = sorted({root + chance.choice(ENDS) for root in roots for _ in range(3)})
        self.price = {name: math.exp(chance.uniform(0.0, 6.0)) for name in self.names}
        self.noise = {name: math.exp(chance.uniform(-6.0, -2.0)) * (chance.random() > 0.1) for name in self.names}
        self.depth = {name: math.exp(chance.uniform(8.0, 20.0)) for name in self.names}
        # Some are another name's like, in all but the symbol: ties.
        self.like = dict(zip(chance.sample(self.names, 2), chance.sample(self.names, 2), strict=True))
        self.often = chance.choice((0.003, 0.01, 0.04))
        # Some are away for long and come back.
        away = {name: chance.randrange(sessions) for name in chance.sample(self.names, len(self.names) // 3)}
        self.away = {name: range(first, first + chance.randrange(5, 250)) for name, first in away.items()}
        day = date(chance.randrange(1980, 2040), 1, 1)
        self.sessions = list[Bars]()
        for _ in range(sessions):
            day += timedelta(days=chance.choice((1, 1, 1, 1, 3, 3, 30)))
            self.sessions.append(self._session(day))
        asked = [at for at in range(sessions) if at % max(1, sessions // 40) == 0]
        self.told = {at: self._told(self.sessions[at].day) for at in asked}

    def known(self, code: Before, params: Mapping[str, Any]) -> list[Decision]:
        """Return the decisions of code that others are held beside, from memory where they were asked for."""
        asked = f"{self.name}: {sorted(params.items())}"
        if asked not in code.odd:
            code.odd[asked] = self.decided(code.start, params)
        return code.odd[asked]

    def decided(self, start: Start, params: Mapping[str, Any], *, twice: bool = False) -> list[Decision]:
        """Return a strategy's decisions up to the one that it fails at, asked of another account first if `twice`."""
        made = list[Decision]()
        try:
            with start(params) as worker:
                for at, bars in enumerate(self.sessions):
                    worker.session(bars.day, bars.symbols, bars.columns)
                    if at in self.told:
                        if twice:
                            held = dict.fromkeys(bars.symbols[::2], 7.0)
                            worker.decide({**self.told[at], "equity": 1e5, "cash": 1e5, "shares": held})
                        made.append(decision_in(worker.decide(self.told[at]), {}))
        except WorkerFault:
            pass
        return made

    def _session(self, day: date) -> Bars:
        chance = self.chance
        rows = dict[str, dict[str, float]]()
        for name in self.names:
            rows[name] = self._bar(name)
        rows |= {name: dict(rows[other]) for name, other in self.like.items()}
        at = len(self.sessions)
        shown = [name for name in self.names if chance.random() > 0.03 and at not in self.away.get(name, ())]
        if chance.random() < 0.05:
            chance.shuffle(shown)
        if chance.random() < 0.01:
            shown = []
        columns = {column: array("d", [rows[name][column] for name in shown]) for column in COLUMNS}
        if shown and chance.random() < self.often:
            columns[chance.choice(COLUMNS)] = array("d", [chance.choice(NONE)] * len(shown))
        return Bars(day, tuple(shown), columns)

    def _bar(self, name: str) -> dict[str, float]:
        chance, noise = self.chance, self.noise[name]
        before = self.price[name]
        split = chance.choice((0.5, 2.0, 3.0, 1.05, 8.0)) if chance.random() < 0.005 else 1.0
        close = before / split * math.exp(chance.gauss(0.0003 * (noise > 0.0), noise))
        if chance.random() < self.often:
            close *= math.exp(chance.choice((-1.0, 1.0)) * chance.uniform(0.3, 6.0))
        self.price[name] = close if 1e-3 < close < 1e6 else 50.0
        first = before / split * math.exp(chance.gauss(0.0, noise))
        bar = {
            "open": first,
            "high": max(first, close) * (1.0 + noise),
            "low": min(first, close) * (1.0 - noise),
            "close": close,
            "volume": float(round(self.depth[name] / close * math.exp(chance.gauss(0.0, 0.5)))),
            "dividend": close * chance.choice((0.005, 0.02, 0.4, 2.0)) if chance.random() < 0.01 else 0.0,
            "split": split,
            "tradable": float(chance.random() > 0.02),
        }
        if chance.random() < self.often:
            for column in chance.sample(COLUMNS, chance.choice((1, 1, 2, 4))):
                other = (*NONE, 0.5, 2.0, 1e-6, 1e9, -bar[column], bar[column] * 100.0, bar[column] / 100.0)
                bar[column] = chance.choice(other)
        return bar

    def _told(self, day: date) -> dict[str, Any]:
        chance = self.chance
        equity = 10.0 ** chance.uniform(2.0, 9.0)
        held = chance.sample(self.names, chance.randrange(len(self.names) + 1))
        shares = {name: equity / 10.0 / self.price[name] * chance.uniform(0.0, 2.0) for name in held}
        for name in [*held, "NEVER", "A"]:
            if chance.random() < 0.05:
                shares[name] = chance.choice((*NONE, 1e-12, 1e15, -shares.get(name, 1.0)))
        if chance.random() < 0.1:
            equity = chance.choice((0.0, -equity, 1e-9, 1e15))
        cash = chance.choice((0.0, equity, equity * chance.uniform(-0.5, 0.5)))
        return {"date": day.isoformat(), "equity": equity, "cash": cash, "shares": shares}

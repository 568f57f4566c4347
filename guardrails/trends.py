"""Markets of hidden sizes and habits in which names drift apart: whoever ranks by what they returned holds what rises.

Hidden properties compare decisions with one another; these have an answer of their own, at the worker, on sessions and
portfolios as live ones are. Every world has many habits of real markets at once, dealt so that each comes up in some.

Over 400 lines, because a market, its account and what is said of a course share the same habits.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import compress
from typing import Any

from guardrails.markets import COLUMNS, Account, Bars

#: Sessions times names in one market at most, but for the widest, so that a verdict does not wait for it.
MOST = 60_000
Plain = Mapping[str, Any]
#: From so many names on a weight is one of many.
MANY = 16
#: How many times as far or as near a limit price may be as the code before has it for a name.
LIMITS = 2.5
#: Sessions of a year, over which an order may work at most.
YEAR = 252
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: What worlds have: each is dealt one of each, and every one comes up in some world where there are enough of them.
HABITS: Mapping[str, Sequence[Any]] = {
    "own": (0, 1),  # the repository's own parameters, or the scenario's
    "noise": ((0.003, 0.008), (0.008, 0.02), (0.012, 0.03), (0.04, 0.1)),  # daily, of a name
    "uneven": (1.0, 3.0, 1.0, 5.0),  # how many times as nervous the most nervous name is
    "calm": (0, 1),  # whether what rises is calm
    "tide": (0.0, -0.9, 0.0, 0.9),  # what all names do, in drifts of the best: hardly any rises, hardly any falls
    "turns": (0, 1),  # whether halfway what rose falls
    "prices": ((1.5, 15.0), (20.0, 90.0), (20.0, 200.0), (60.0, 700_000.0)),
    "digits": (2, 12, 2, 0),  # of the account's dollars
    "cents": (1, 0),  # whether prices are whole cents
    "whole": (1, 0),  # whether shares are whole
    "capital": ((3.3, 4.9), (4.9, 6.5), (6.5, 9.5)),  # powers of ten
    "depth": ((0.3, 2.0), (-2.5, 0.0)),  # powers of ten: dollars traded in a name, in accounts
    "every": (5, 1, 5, 21),  # sessions between decisions
    "flows": (0.0, 0.08, 0.0, 0.03),  # of equity, paid in or out before a decision: there may be debt
    "paying": (0.0, 1.0, 0.5),  # share of names with dividends
    "missing": (0.0, 0.01, 0.0, 0.06),  # share of names without a print or that may not trade, a session
    "young": (0.0, 0.3, 0.0, 0.8),  # share of names that are listed later
    "gone": (0.0, 0.3),  # share of names that are delisted
    "events": (0.0, 0.002, 0.0, 0.006),  # names a session in which something rare happens: see `_events`
    "pinned": (0.0, 0.03, 0.0, 0.0),  # share of names whose price hardly moves
    "blank": (0.0, 0.0, 0.01),  # share of sessions without any bar
    "unfilled": (0.0, 0.1),  # share of orders that are not filled
    "strange": (0, 1, 0, 3),  # holdings of what was never shown
    "broken": (0.0, 0.0, 0.03, 0.0, 0.0),  # share of sessions in which several names have prices that cannot be
}  # fmt: skip


@dataclass(frozen=True)
class Trend:
    """What a scenario says of its markets.

    Ranges of `sessions` and `symbols` (low, high) and calendar `years`, the largest `drift` in units of a day's noise,
    how many `worlds`, sessions after which the scenario's and the repository's `own` parameters see a trend
    (`warmup`), and by how much of the drift what is held must rise faster than the market (`lead`).
    """

    sessions: tuple[int, int]
    symbols: tuple[int, int]
    years: tuple[int, int]
    drift: float
    worlds: int
    warmup: int
    own: int
    lead: float

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Trend:
        """Read a scenario's table; lists stand for ranges."""
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
        }
        return cls(**plain)


class TrendWorld:
    """One market: what its sessions and accounts are like, by number and hidden seed."""

    def __init__(self, trend: Trend, seed: int, at: int) -> None:
        self.habits = {name: _dealt(f"{seed}/{name}", options, at) for name, options in HABITS.items()}
        if at < 2:  # the longest and the widest, for which there is time only in small windows and few decisions
            self.habits |= {"own": 0, "every": (8, 5)[at], "turns": 1}
        if at == 1:  # many names that differ in noise alone, none of them at a limit
            self.habits |= {"uneven": 5.0, "calm": 0, "depth": (0.3, 2.0)}
        if at == 2:  # large positions in a thin market, where limits bind
            self.habits |= {"own": 1, "capital": (7.0, 9.5), "depth": (-2.5, -1.0), "flows": 0.08, "every": 1}
        self.seed, self.trend, chance = f"{seed}/{at}", trend, random.Random(f"{seed}/{at}")
        (short, long), (few, many) = trend.sessions, trend.symbols
        self.own = bool(self.habits["own"])
        self.warmup = trend.own if self.own else trend.warmup
        least = self.warmup + 40
        names = {0: _between(chance, few, 2 * few), 1: many}.get(at, _between(chance, few, min(many, MOST // least)))
        sizes = {0: long, 1: short}
        self.sessions = sizes.get(at, _between(chance, least, min(long, max(least, MOST // names), 7 * least)))
        self.scale = trend.drift * math.sqrt(math.prod(self.habits["noise"]))
        self.capital = 10.0 ** chance.uniform(*self.habits["capital"])
        self.names = _names(chance, names)
        self.drifts = [2.0 * place / (names - 1) - 1.0 for place in range(names)]
        chance.shuffle(self.drifts)
        self.begins, self.ends = [0] * names, [self.sessions] * names
        for slot in range(1, names):  # one is there throughout
            if chance.random() < self.habits["young"]:
                self.begins[slot] = chance.randrange(1, max(2, self.sessions * 2 // 3))
            elif chance.random() < self.habits["gone"]:
                self.ends[slot] = chance.randrange(self.sessions // 4, self.sessions)
        self.turn = self.sessions // 2 if self.habits["turns"] and self.sessions > 4 * self.warmup else self.sessions
        self.noises = [self._noise(chance, drift) for drift in self.drifts]
        floor = 5e6 if self.own else 2e5  # above what the parameters ask for
        self.dollars = [max(floor, self.capital * 10.0 ** chance.uniform(*self.habits["depth"])) for _ in self.names]
        self.known = {name: slot for slot, name in enumerate(self.names)}
        hidden = random.Random(f"{self.seed}/strange")
        other = _names(hidden, 9)
        self.strange = {name: hidden.uniform(1.0, 900.0) for name in other if name not in self.known}
        # What is listed later may be held before it prints: it came by a spin-off or from another account.
        later = [name for name, begins in zip(self.names, self.begins, strict=True) if begins > self.warmup]
        self.early = {name: hidden.uniform(1.0, 900.0) for name in hidden.sample(later, min(len(later), 2))}

    def _noise(self, chance: random.Random, drift: float) -> float:
        """Return a name's noise: the nervous ones fall where what rises is calm."""
        low, high = self.habits["noise"]
        place = (1.0 - drift) / 2.0 if self.habits["calm"] else chance.random()
        uneven: float = self.habits["uneven"] ** (place - 0.5)
        pinned = 0.02 if chance.random() < self.habits["pinned"] else 1.0
        return math.sqrt(low * high) * uneven * chance.uniform(0.9, 1.1) * pinned

    def due(self, at: int) -> bool:
        """Say whether a decision is asked for after this session."""
        # Daily ones only at the end of a long market: they cost the most.
        every = 5 if at < self.sessions - 200 else 1
        return at >= self.warmup // 2 and at % max(every, self.habits["every"]) == 0

    def settled(self, at: int) -> bool:
        """Say whether what rises can be known: for long enough, or because it is calm."""
        told = at >= self.warmup or (self.habits["calm"] and self.habits["uneven"] > 1.0)
        return bool(told) and not self.turn <= at < self.turn + 2 * self.warmup

    def lead(self, at: int, weights: Mapping[str, float]) -> float:
        """Return by how much of the drift holdings rise faster than the names that are listed."""
        sign = 1.0 if at < self.turn else -1.0
        there = [u for u, a, b in zip(self.drifts, self.begins, self.ends, strict=True) if a <= at < b]
        held = sum(weight * self.drifts[self.known[name]] for name, weight in weights.items()) / sum(weights.values())
        return sign * (held - sum(there) / len(there))

    def shown(self) -> Iterator[Bars]:
        """Return the sessions, oldest first, made anew at each call."""
        chance, habits, count = random.Random(self.seed), self.habits, len(self.names)
        pool = [chance.gauss(0.0, 1.0) for _ in range(2 * count + 500)]
        activity = [math.exp(0.3 * wild) for wild in pool]
        anchors = [math.exp(chance.uniform(*map(math.log, habits["prices"]))) for _ in self.names]
        payers = [slot for slot in range(count) if chance.random() < habits["paying"]]
        close = list(anchors)
        day = date(chance.randint(*self.trend.years), 1, 1) + timedelta(days=chance.randrange(365))
        shown = tuple(self.names)
        for at in range(self.sessions):
            day += timedelta(days=1)
            while day.weekday() > 4 or chance.random() < 0.03:
                day += timedelta(days=1)
            start, crash = chance.randrange(len(pool) - count), 8.0 * (chance.random() < 0.01)
            noise = pool[start : start + count]
            common = self.scale * (0.4 * chance.gauss(0.0, 1.0) + habits["tide"] - crash)
            sign = self.scale if at < self.turn else -self.scale
            split = [1.0] * count
            for slot, (price, anchor) in enumerate(zip(close, anchors, strict=True)):
                if not anchor / 8.0 < price < anchor * 8.0:
                    split[slot] = 8.0 if price > anchor else 0.125
            dividend, tradable = [0.0] * count, [1.0] * count
            busy = activity[len(pool) - count - start :]
            volume = [worth / price * by for worth, price, by in zip(self.dollars, close, busy, strict=False)]
            for _ in range(round(len(payers) / 40 + chance.random() * 0.9) if payers else 0):
                slot = payers[int(len(payers) * chance.random() ** 2)]
                dividend[slot] = round(close[slot] / split[slot] * 0.006, 2)
            jumps = self._events(chance, close, volume, split, dividend) if habits["events"] else {}
            before = [price / by for price, by in zip(close, split, strict=True)]
            rows = zip(before, self.drifts, self.noises, noise, strict=True)
            close = [price * math.exp(common + sign * drift + wild * by) for price, drift, wild, by in rows]
            for slot, by in jumps.items():
                close[slot] = max(
                    close[slot] * math.exp(by * self.noises[slot])
                    - dividend[slot] * (dividend[slot] > 0.05 * close[slot]),
                    0.2 * close[slot],
                )
            part = chance.uniform(0.0, 1.0)  # of the day's move that comes overnight
            first = [a + (b - a) * part for a, b in zip(before, close, strict=True)]
            high = [max(a, b) * 1.003 for a, b in zip(first, close, strict=True)]
            for slot in jumps:
                high[slot] *= 1.0 + 0.5 * (chance.random() < 0.3)
            low = [min(a, b) * 0.997 for a, b in zip(first, close, strict=True)]
            prices = [first, high, low, list(close)]
            if habits["cents"]:
                prices = [[round(price, 2) for price in column] for column in prices]
            for _ in range(chance.randrange(1, 5)) if habits["broken"] and chance.random() < habits["broken"] else ():
                slot, wrong = chance.randrange(count), chance.choice((0.0, -1.0, math.inf))
                for column in prices:
                    column[slot] = wrong
            there = [a <= at < b for a, b in zip(self.begins, self.ends, strict=True)]
            if habits["blank"] and chance.random() < habits["blank"]:
                there = [False] * count
            for _ in range(round(count * habits["missing"] + chance.random() * 0.9)) if habits["missing"] else ():
                slot, what = chance.randrange(count), chance.randrange(3)
                there[slot], tradable[slot] = there[slot] and what > 0, float(what > 1)
                volume[slot] = 0.0 if what < 2 else volume[slot]
            columns = [*prices, volume, dividend, split, tradable]
            symbols = tuple(compress(self.names, there))
            shown = shown if shown == symbols else symbols
            yield Bars(day, shown, {c: array("d", compress(v, there)) for c, v in zip(COLUMNS, columns, strict=True)})

    def _events(
        self,
        chance: random.Random,
        close: Sequence[float],
        volume: list[float],
        split: list[float],
        dividend: list[float],
    ) -> dict[int, float]:
        """Let rare things happen: much volume, a jump, an odd split, a special dividend. Return jumps, in noises."""
        jumps = dict[int, float]()
        for _ in range(int(len(close) * self.habits["events"] + chance.random())):
            slot, what = chance.randrange(len(close)), chance.randrange(4)
            volume[slot] *= chance.choice((1.0, 12.0, 40.0))
            if what == 1:
                jumps[slot] = chance.choice((-1.0, 1.0)) * chance.uniform(6.0, 14.0)
            elif what == 2 and split[slot] == 1.0:
                split[slot] = chance.choice((1.05, 1.5, 3.0, 0.4))
            elif what == 3:
                dividend[slot] = close[slot] / split[slot] * chance.uniform(0.1, 0.6)
                jumps[slot] = 0.0
        return jumps


class TrendAccount(Account):
    """An account of a world: its digits, whole shares, and what is paid in and out."""

    def __init__(self, world: TrendWorld) -> None:
        super().__init__(world.capital)
        self.habits, self.capital, self.chance = world.habits, world.capital, random.Random(world.seed)
        self.strange = dict(list(world.strange.items())[: world.habits["strange"]])
        self.early = world.early if world.habits["strange"] else {}

    def told(self, day: date) -> dict[str, Any]:
        """Pay in or out, and return what a strategy is told."""
        before, capital = self.equity(), self.capital
        # What was won or lost is paid out or in now and then, so that the market stays as deep for the account.
        back = 0.0 if capital / 3.0 < before < capital * 3.0 else capital - before
        back = -0.6 * before if self.habits["flows"] and self.chance.random() < 0.02 else back
        self.cash += back + before * self.chance.uniform(-1.0, 1.0) * self.habits["flows"]
        digits, names = self.habits["digits"], list(self.shares)
        self.chance.shuffle(names)
        equity, cash = round(self.equity(), digits), round(self.cash, digits)
        early = {name: count for name, count in self.early.items() if name not in self.close}
        shares = {name: self.shares[name] for name in names} | self.strange | early
        return {"date": day.isoformat(), "equity": equity, "cash": cash, "shares": shares}

    def weights(self) -> dict[str, float]:
        """Return what is held, as shares of equity."""
        equity = self.equity()
        return {name: count * self.close[name] / equity for name, count in self.shares.items() if count}

    def follow(self, weights: Mapping[str, float]) -> None:
        """Trade to target weights, in whole shares where this market has them."""
        equity, held = self.equity(), dict(self.shares)
        super().follow(weights)
        for name in sorted({*held, *self.shares}) if self.habits["unfilled"] else ():
            if self.chance.random() < self.habits["unfilled"]:
                self.shares[name] = held.get(name, 0.0)
        whole = math.floor if self.habits["whole"] else float
        self.shares = {name: float(count) for name, had in self.shares.items() if (count := whole(had))}
        self.cash = equity - sum(count * self.close[name] for name, count in self.shares.items())


@dataclass
class Course:
    """What one strategy did in a world: each decision (action, weights, plans), its lead, where that is asked, and
    figures of its holdings."""

    world: TrendWorld
    decided: list[tuple[str, Plain, Plain]] = field(default_factory=list)
    leads: list[float | None] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    tilts: list[float] = field(default_factory=list)
    held: float = 0.0
    most: dict[str, float] = field(default_factory=dict)
    unsound: int = 0

    def add(self, at: int, told: Plain, weights: Mapping[str, float], held: Mapping[str, float], plans: Plain) -> None:
        """Take in what was told before a decision and held, the weights after it, and its orders."""
        world, total = self.world, sum(weights.values())
        self.leads.append(world.lead(at, weights) if total > 0.1 and world.settled(at) else None)
        self.counts.append(len(weights))
        self.held += total
        if weights:
            noises = {name: world.noises[world.known[name]] for name in weights}
            mean = sum(weight * noises[name] for name, weight in weights.items()) / total
            self.tilts.append(mean * len(noises) / sum(noises.values()))
        bought = {name: weight for name, weight in weights.items() if weight > 1.001 * held.get(name, 0.0)}
        self.unsound += sum(map(_unsound, plans.values()))
        # Without a plan all of an order goes at once, at any price.
        orders: list[Plain] = [*plans.values(), *({} for name in bought if not plans.get(name))]
        seen = {
            "largest": list(bought.values()),
            "volume": [weight * told["equity"] / world.dollars[world.known[name]] for name, weight in bought.items()],
            "order": [plan.get("max_participation") or 1.0 for plan in orders],
            "sessions": [plan.get("sessions") or 1.0 for plan in orders],
            "limit": [plan.get("limit_bps") or math.inf for plan in orders],
            "wide": list(bought.values()) if len(weights) >= MANY else [],
        }
        self.most = {name: max([self.most.get(name, 0.0), *values]) for name, values in seen.items()}

    def within(self, limits: Mapping[str, float], before: Mapping[str, float] | None = None) -> set[str]:
        """Return which limits were kept to, but for what prices move; a market order is no limit order.

        Who came near to one `before` may come a little nearer: that it is passed is then the seed's doing.
        """
        near = {name: min(1.15 * value, 1.5 * limits.get(name, 0.0)) for name, value in (before or {}).items()}
        most = {name: max(1.2 * value, near.get(name, 0.0)) for name, value in limits.items()}
        kept = {name for name, value in most.items() if self.most.get(name, 0.0) <= value}
        return kept | ({"limit"} if self.most.get("limit", 0.0) < math.inf else set())

    def right(self, lead: float) -> float:
        """Return in which share of the decisions what rises was held, where that can be said; 0 where it never can."""
        asked = [found >= lead for found in self.leads if found is not None]
        return sum(asked) / max(1, len(asked))

    def worse(
        self, before: Course, lead: float, limits: Mapping[str, float], same: bool = True, tuned: bool = False
    ) -> bool:
        """Say whether limits are passed that were kept to before, or what was right is turned round, or not done.

        With the `same` parameters no limit price is further away than twice what there was before, nor that of one name
        in one session `LIMITS` times as far or as near. Where nothing but parameters is other (`tuned`), how much is
        held and ordered is what a person's bounds allow.
        """
        if self.unsound and not before.unsound:
            return True
        kept = before.within(limits)
        beyond = self.most.get("limit", 0.0) > 2.0 * (before.most.get("limit") or math.inf) or self.limited(before)
        if not tuned and (kept - self.within(limits, before.most) or (same and beyond)):
            return True
        if before.right(lead) <= 0.5:
            return False
        rows = zip(self.leads, before.leads, map(min, self.counts, before.counts), strict=False)
        both = [(a, b, count) for a, b, count in rows if a is not None and b and b >= lead]
        # One decision says enough where several names are held; of few it is the mean of many that does.
        turned = any(a <= -max(lead, 0.6 * b) and count > 4 for a, b, count in both)
        turned = turned or (
            sum(count for _, _, count in both) > 30 and sum(a for a, _, _ in both) < sum(b for _, b, _ in both) / 3.0
        )
        idle = self.world.habits["tide"] >= 0.0 and self.held < 0.25 * before.held and kept >= limits.keys()
        return turned or (idle and not tuned) or self.tilt() > 1.05 > 0.95 > before.tilt()

    def limited(self, before: Course) -> bool:
        """Say whether both gave a name limits in one session that are far from one another."""
        pairs = zip(self.decided, before.decided, strict=False)
        limits = [
            ((plan or {}).get("limit_bps"), (plans[name] or {}).get("limit_bps"))
            for (_, _, plans), (_, _, then) in pairs
            for name, plan in then.items()
            if name in plans
        ]
        return any(was and now and not was < LIMITS * now < LIMITS * LIMITS * was for was, now in limits)

    def tilt(self) -> float:
        """Return how nervous what is held was, to the mean of the names in it: above 1 where nervous names get more."""
        return sum(self.tilts) / max(1, len(self.tilts))


def _unsound(plan: Any) -> bool:
    """Say whether no service can carry out a plan: shares of volume, whole sessions and a limit that are none."""
    if not isinstance(plan, Mapping):
        return True
    share, sessions, limit = (plan.get(key) for key in ("max_participation", "sessions", "limit_bps"))
    numbers = [value for value in (share, sessions, limit) if value is not None]
    if not all(type(value) in (int, float) and math.isfinite(value) for value in numbers):
        return True
    return (
        (share is not None and not 0.0 < share <= 1.0)
        or (sessions is not None and not (1 <= sessions <= YEAR and sessions == int(sessions)))
        or (limit is not None and limit < 0.0)
    )


def trend_worlds(trend: Trend, seed: int) -> list[TrendWorld]:
    """Return the markets of a hidden seed: the longest, the widest, and others between."""
    return [TrendWorld(trend, seed, at) for at in range(trend.worlds)]


def _dealt(seed: str, options: Sequence[Any], at: int) -> Any:
    """Deal the options in turn, in an order of their own each round."""
    return random.Random(f"{seed}/{at // len(options)}").sample(options, len(options))[at % len(options)]


def _names(chance: random.Random, count: int) -> list[str]:
    """Return symbols in order, with share classes and symbols that begin as others do."""
    names = set[str]()
    while len(names) < count:
        name = "".join(chance.choice(LETTERS) for _ in range(chance.choice((1, 2, 3, 3, 4, 4, 4))))
        names.update([name, *(name + end for end in (".A", ".B", "L") if chance.random() < 0.05)])
    return sorted(chance.sample(sorted(names), count))


def _between(chance: random.Random, low: int, high: int) -> int:
    return round(math.exp(chance.uniform(math.log(low), math.log(max(low, high)))))

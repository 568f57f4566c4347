"""One tape and one kind of replay for campaigns about evidence: made once in each process."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cache

from guardrails.sandbox import Sandbox
from oomrl.adapters import environments, patches
from oomrl.adapters.counterfactual import LOOK_BACK, Counterfactual, Replayed
from oomrl.adapters.starts import start_tree
from oomrl.adapters.strategies import Workers
from oomrl.domain.performance import SESSIONS_A_YEAR
from oomrl.domain.promotion import Paired, paired
from oomrl.exchange.replay import Terms
from oomrl.exchange.tape import Tape
from oomrl.exchange.tape_files import load_tape
from oomrl.testing.starts import KINDS, BadStart, generate

#: Sessions of a loss window in campaigns.
LOSS = 40
#: Standard errors of the paired difference from which an effect counts as measurable.
MEASURABLE = 3.0
#: Friction a year, as a share of equity, above which a saving is worth the name.
MATERIAL = 0.01

Tree = Mapping[str, bytes]


@cache
def tape_of(source: str) -> Tape:
    return load_tape(source)


@cache
def counterfactual(source: str, capital: int) -> Counterfactual:
    """Return replays on a tape for an account of some dollars."""
    workers = Workers(Sandbox.choose(), environments.find().worker, float(capital), 0)
    return Counterfactual(tape_of(source), workers, replace(Terms(), capital=Decimal(capital)), keep_orders=True)


@cache
def shipped() -> Tree:
    return start_tree("shipped")[0]


@dataclass(frozen=True)
class Planted:
    """A planted fault in place: the start, the tree that trades, and the same tree repaired."""

    start: BadStart
    faulty: Tree
    repaired: Tree


@cache
def planted(seed: int) -> Planted:
    """Return the fault of a seed; kinds come in turn, so that every kind is met equally often."""
    start = generate(seed, KINDS[seed % len(KINDS)])
    base = shipped()
    if start.tests_patch is not None:
        base = patches.applied(base, start.tests_patch.encode())
    return Planted(start, patches.applied(base, start.patch.encode()), base)


@dataclass(frozen=True)
class Moment:
    """A point of a tape where a loss is judged: today, and the first day of its loss window."""

    today: date
    loss_first: date


def moment(source: str, seed: int, part: tuple[float, float] = (0.0, 1.0)) -> Moment:
    """Draw a moment with a whole look-back before it, from a part of the tape (fractions of what is possible)."""
    days = tape_of(source).days
    first, last = LOOK_BACK + 300, len(days) - 1
    low, high = (first + round((last - first) * share) for share in part)
    today = random.Random(f"moment {seed}").randint(low, high)
    return Moment(days[today], days[today - LOSS + 1])


def span(source: str, today: date) -> tuple[date, date]:
    """Return the first and last day of the look-back that ends on a day."""
    days = [day for day in tape_of(source).days if day <= today]
    return days[-LOOK_BACK], days[-1]


def difference(one: Replayed, other: Replayed) -> Paired:
    """Test the paired difference of two replays' returns, net of all friction, by session."""
    return paired(one.result.returns - other.result.returns)


def saving(one: Replayed, other: Replayed) -> Paired:
    """Test that one replay pays less in friction than another, by at least 1 % of equity a year, by session."""
    costs = [replayed.result.friction / replayed.result.equity for replayed in (other, one)]
    return paired(costs[0] - costs[1], above=MATERIAL / SESSIONS_A_YEAR)


def effect(source: str, fault: Planted, today: date) -> tuple[float, float]:
    """Return in standard errors what a fault costs over a look-back: net of everything, and in friction alone."""
    replays = counterfactual(source, fault.start.capital)
    first, last = span(source, today)
    good, bad = replays.replayed(fault.repaired, first, last), replays.replayed(fault.faulty, first, last)
    return difference(good, bad).t, saving(good, bad).t

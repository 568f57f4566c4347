"""Replay revisions side by side over what is known today, and judge a candidate by the promotion rule.

No replay ever sees a session later than today. A revision's replay of a span is kept, so that three candidates for
one loss cost one replay of the incumbent.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import numpy as np

from oomrl.adapters.executor import Fan
from oomrl.adapters.strategies import WORKER_VIEW, Workers, configuration
from oomrl.domain.account import Cadence
from oomrl.domain.market import Floats, Session
from oomrl.domain.performance import turnover
from oomrl.domain.promotion import Decision, Track, Window, decide
from oomrl.domain.sizing import Goals
from oomrl.domain.trading import Decision as Decided
from oomrl.domain.trading import Hold, Portfolio
from oomrl.errors import StrategyFailure
from oomrl.exchange.replay import Lived, ReplayResult, Terms, replay
from oomrl.exchange.streamed import StreamedTape
from oomrl.exchange.tape import Tape
from oomrl.ports import StrategyWorker

Tree = Mapping[str, bytes]
#: An order: when it was live, its name, its signed shares.
Placed = tuple[date, str, float]

#: Sessions that a counterfactual looks back over, loss window and held-back ones together.
LOOK_BACK = 756
#: Sessions of a promise.
YEAR = 252


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """A replay, with what the promotion rule asks for beside it."""

    result: ReplayResult
    participation: float
    names: float
    orders: frozenset[Placed] = frozenset()

    def changed(self, other: Replayed, first: date) -> float:
        """Return the share of the orders from a day on, of both replays together, that only one of them placed."""
        mine, theirs = ({one for one in replayed.orders if one[0] >= first} for replayed in (self, other))
        return len(mine ^ theirs) / len(mine | theirs) if mine or theirs else 0.0


@dataclass
class Counterfactual:
    """Replay trees over one tape, on the terms of the simulated account; `keep_orders` keeps each order beside.

    Replays that are asked for together run beside one another where there is a `fan`.
    """

    tape: Tape | StreamedTape
    workers: Workers
    terms: Terms
    keep_orders: bool = False
    fan: Fan | None = None
    _kept: dict[tuple[int, date, date], Replayed] = field(default_factory=dict)

    def replayed(self, tree: Tree, first: date, today: date) -> Replayed:
        """Replay a tree from `first` to `today`, shown everything before; a worker that fails stops trading."""
        view, key = _seen(tree, first, today)
        if key not in self._kept:
            self._kept[key] = self._replay(view, first, today)
        return self._kept[key]

    def _beside(self, trees: Sequence[Tree], first: date, today: date) -> None:
        """Replay what is not kept yet, all at once."""
        views = {key: view for view, key in (_seen(tree, first, today) for tree in trees) if key not in self._kept}
        if self.fan is None or not views:
            return
        alone = replace(self, fan=None, _kept={})
        made = self.fan.map(Counterfactual._replay, [(alone, view, first, today) for view in views.values()])
        self._kept.update(zip(views, made, strict=True))

    def judge(self, base: Tree, candidate: Tree, loss_first: date, today: date, attempt: int) -> Decision:
        """Judge a candidate by its windows."""
        return decide(self.windows(base, candidate, loss_first, today), attempt)

    def windows(self, base: Tree, candidate: Tree, loss_first: date, today: date) -> list[Window]:
        """Replay candidate and base: the loss window as shown to the proposer, all before it held back."""
        first = self._first(base, today)
        self._beside((candidate, base), first, today)
        one, other = self.replayed(candidate, first, today), self.replayed(base, first, today)
        return [
            window
            for name, held_back in (("before the loss", True), ("the loss", False))
            if (window := _window(name, held_back, one, other, loss_first)) is not None
        ]

    def promised(self, base: Tree, candidate: Tree, today: date) -> dict[str, float]:
        """Return what a candidate's replay did in its last year: what its deployment is then held to."""
        result = self.replayed(candidate, self._first(base, today), today).result
        traded, friction = float(result.traded[-YEAR:].sum()), float(result.friction[-YEAR:].sum())
        return {
            "turnover": turnover(result.traded[-YEAR:], result.equity[-YEAR:]),
            "friction_bps": friction / traded * 1e4 if traded else 0.0,
            "exposure": float(result.exposure[-YEAR:].mean()),
        }

    def scheduled(self, turns: Sequence[tuple[date, Tree]], first: date, until: date | None = None) -> ReplayResult:
        """Replay trees that take over from one another, each after the close of its day, from `first` on.

        The worker of a tree that takes over has seen everything before; trades begin on `first`.
        """
        with ExitStack() as stack:
            held = [
                (day, stack.enter_context(started(self.workers, tree)), configuration(tree["strategy.toml"]).cadence)
                for day, tree in turns
            ]
            terms = replace(self.terms, cadence=Cadence.DAILY, revision="replay")
            known = self.tape if until is None else self.tape.until(until)
            return replay(known.sessions(), _Scheduled(held), terms, from_day=first)

    def _first(self, tree: Tree, today: date) -> date:
        days = [day for day in self.tape.days if day <= today]
        warmup = configuration(tree["strategy.toml"]).warmup
        start = max(len(days) - LOOK_BACK, min(warmup, len(days) - 1))
        return days[start]

    def _replay(self, tree: Tree, first: date, today: date) -> Replayed:
        known, sizes = self.tape.until(today), _Sizes(self.keep_orders)
        cadence = configuration(tree["strategy.toml"]).cadence
        terms = replace(self.terms, cadence=cadence, revision="replay")
        with started(self.workers, tree) as worker:
            result = replay(known.sessions(), worker, terms, from_day=first, watch=sizes)
        return Replayed(result, sizes.participation, sizes.names(result.days), frozenset(sizes.orders))


def _seen(tree: Tree, first: date, today: date) -> tuple[Tree, tuple[int, date, date]]:
    """Return what a worker sees of a tree, and the key of its replay over a span."""
    view = {path: data for path, data in tree.items() if path.split("/")[0] in WORKER_VIEW}
    return view, (hash(tuple(sorted(view.items()))), first, today)


@contextmanager
def started(workers: Workers, tree: Tree) -> Iterator[StrategyWorker]:
    """Start a worker on a tree that is in no repository."""
    with tempfile.TemporaryDirectory(prefix="oomrl-tree-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        for path, data in tree.items():
            if path.split("/")[0] in WORKER_VIEW:
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        try:
            worker = workers.start(folder)
        except StrategyFailure as failure:
            yield _Failed(failure)
            return
        try:
            yield worker
        finally:
            worker.close()


class _Failed:
    """A worker that could not be started: it fails at its first session."""

    def __init__(self, failure: StrategyFailure) -> None:
        self.failure = failure

    def show(self, session: Session) -> None:
        raise self.failure

    def flush(self) -> None:
        raise self.failure

    def ask(self, portfolio: Portfolio) -> None:
        raise self.failure

    def decide(self, portfolio: Portfolio) -> Decided:
        raise self.failure

    def close(self) -> None:
        return


class _Sizes:
    """Gather the share of a session's volume that 99 of 100 orders stay below, and how many names are held when.

    An order asks for its shares, and for no more of the volume than its own plan lets it take.

    The very largest share says more of a tape's thinnest half day than of a strategy.
    """

    def __init__(self, keep_orders: bool) -> None:
        self.orders: list[Placed] = []
        self._keep_orders = keep_orders
        self._asked: list[Floats] = []
        self._goals: list[tuple[date, int]] = []

    def names(self, days: Sequence[date]) -> float:
        """Return the mean number of names held over sessions; a decision counts from the next session on."""
        if not days or not self._goals:
            return 0.0
        decided, counts = zip(*self._goals, strict=True)
        return sum((0, *counts)[bisect_left(decided, day)] for day in days) / len(days)

    @property
    def participation(self) -> float:
        return float(np.quantile(np.concatenate(self._asked), 0.99)) if self._asked else 0.0

    def decided(self, day: date, goals: Goals | None) -> None:
        if goals is not None:
            self._goals.append((day, int(np.count_nonzero(goals.limited > 0))))

    def traded(self, orders: Lived) -> None:
        if self._keep_orders:
            placed = zip(orders.symbols, orders.shares.tolist(), strict=True)
            self.orders += [(orders.day, name, shares) for name, shares in placed]
        known = orders.volume > 0
        if known.any():
            asked = np.abs(orders.shares)[known] / orders.volume[known]
            self._asked.append(np.minimum(asked, orders.participation[known]))


def _window(name: str, held_back: bool, one: Replayed, other: Replayed, split: date) -> Window | None:
    """Cut the sessions before `split` (held back) or from it on (shown) out of two replays of one span."""
    days = one.result.days
    chosen = np.array([(day < split) == held_back for day in days], dtype=bool)
    if not chosen.any():
        return None
    return Window(
        name=name,
        held_back=held_back,
        days=tuple(day for day, take in zip(days, chosen, strict=True) if take),
        candidate=_track(one).cut(chosen),
        incumbent=_track(other).cut(chosen),
        benchmark=one.result.benchmark[chosen],
    )


def _track(replayed: Replayed) -> Track:
    result = replayed.result
    return Track.of(
        np.maximum(result.equity, 0.01),
        result.capital_cents / 100,
        result.friction,
        result.exposure,
        result.traded,
        result.suspected,
        participation=replayed.participation,
        names=replayed.names,
        failures=int(result.failure is not None),
    )


class _Scheduled:
    """A worker that changes hands: shows every session to all, and asks the one whose time it is, at its cadence."""

    def __init__(self, turns: Sequence[tuple[date, StrategyWorker, Cadence]]) -> None:
        self._turns = turns
        self._last: date | None = None
        self._new_week = False

    def show(self, session: Session) -> None:
        for _, worker, _ in self._turns:
            worker.show(session)
        self._new_week = self._last is None or self._last.isocalendar()[:2] != session.day.isocalendar()[:2]
        self._last = session.day

    def flush(self) -> None:
        for _, worker, _ in self._turns:
            worker.flush()

    def ask(self, portfolio: Portfolio) -> None:
        if (worker := self._asked(portfolio.day)) is not None:
            worker.ask(portfolio)

    def decide(self, portfolio: Portfolio) -> Decided:
        worker = self._asked(portfolio.day)
        return Hold() if worker is None else worker.decide(portfolio)

    def _asked(self, day: date) -> StrategyWorker | None:
        _, worker, cadence = [turn for turn in self._turns if turn[0] <= day][-1]
        return worker if cadence is Cadence.DAILY or self._new_week else None

    def close(self) -> None:
        return

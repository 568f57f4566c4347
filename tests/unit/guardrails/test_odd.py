"""Inputs that no market has: what decides them otherwise, or stops at them, is seen; what decides alike is not."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from guardrails.acceptance import Alike, Before, Start, WorkerFault
from guardrails.markets import COLUMNS
from guardrails.odd import OddMarket, at_bounds, breaks, decides_alike, wrong
from guardrails.policy import Acceptance, Bound
from tests.unit.guardrails import small

PARAMS = {"floor": 1.0, "up_weight": 1.0, "down_weight": 1.0}
BOUNDS = {f"parameters.{name}": Bound("float", 0.0, 2.0) for name in PARAMS}
POLICY = replace(small.policy(), acceptance=Acceptance("strategy:Strategy"))


class Careful:
    """Hold what printed last above a floor, in parts by price; refuse parameters that are none."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        if params.keys() != PARAMS.keys() or any(
            type(v) not in (int, float) or not 0 <= v < 9 for v in params.values()
        ):
            raise WorkerFault("ValueError")
        self.params = params
        self.last: dict[str, float] = {}

    def good(self, columns: Any, at: int) -> bool:
        return bool(0.0 < columns["close"][at] < math.inf and columns["tradable"][at] > 0.0)

    def session(self, day: Any, symbols: Any, columns: Any) -> None:
        for at, name in enumerate(symbols):
            if self.good(columns, at):
                self.last[name] = columns["close"][at]

    def key(self, name: str) -> str:
        return name

    def held(self, count: float) -> bool:
        return 0.0 < count < math.inf

    def decide(self, told: Mapping[str, Any]) -> dict[str, Any]:
        if told["equity"] <= 0.0:
            return {"action": "hold"}
        kept = {self.key(name) for name, count in told["shares"].items() if self.held(count)}
        above = {name: price for name, price in self.last.items() if price > self.params["floor"]}
        scale = self.params["up_weight"] + self.params["down_weight"]
        parts = {name: price * (2.0 if name in kept else 1.0) for name, price in above.items()}
        total = sum(parts.values())
        return {"action": "target", "weights": {n: 0.9 * part / total for n, part in parts.items()} if scale else {}}


class Negative(Careful):
    def held(self, count: float) -> bool:
        return count != 0.0


class AnyState(Careful):
    def good(self, columns: Any, at: int) -> bool:
        return bool(0.0 < columns["close"][at] < math.inf and columns["tradable"][at] != 0.0)


class Merged(Careful):
    def key(self, name: str) -> str:
        return name.removesuffix("W")


class Unchecked(Careful):
    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params, self.last = {**PARAMS, **params}, {}


class NoWeight(Careful):
    def decide(self, told: Mapping[str, Any]) -> dict[str, Any]:
        if self.params["up_weight"] + self.params["down_weight"] == 0.0:
            raise WorkerFault("ZeroDivisionError")
        return super().decide(told)


class Fragile(Careful):
    def decide(self, told: Mapping[str, Any]) -> dict[str, Any]:
        if any(count != count for count in told["shares"].values()):
            raise WorkerFault("ValueError")
        return super().decide(told)


class Keeping(Careful):
    kept: Mapping[str, Any] | None = None

    def session(self, day: Any, symbols: Any, columns: Any) -> None:
        super().session(day, symbols, columns)
        self.kept = None

    def decide(self, told: Mapping[str, Any]) -> dict[str, Any]:
        self.kept = self.kept or {"shares": told["shares"]}
        return super().decide({**told, **self.kept})


class Rewritten(Careful):
    def good(self, columns: Any, at: int) -> bool:
        return not (
            columns["close"][at] <= 0.0 or not columns["close"][at] < math.inf or not columns["tradable"][at] > 0
        )


def started(kind: type[Careful]) -> Start:
    @contextmanager
    def start(params: Mapping[str, Any]) -> Iterator[Any]:
        yield kind(params)

    return start


def alike(kind: type[Careful], *, before: type[Careful] = Careful, good: type[Careful] | None = None) -> bool:
    code = Before(started(before), PARAMS)
    return decides_alike(Alike(code, BOUNDS, started(good) if good else None), started(kind), [PARAMS, PARAMS], 7)


@pytest.mark.parametrize("kind", [Negative, AnyState, Merged, Unchecked, NoWeight, Fragile])
def test_what_decides_odd_inputs_otherwise_is_not_alike(kind: type[Careful]) -> None:
    assert not alike(kind)


@pytest.mark.parametrize("kind", [Careful, Rewritten])
def test_what_decides_them_as_before_is(kind: type[Careful]) -> None:
    assert alike(kind)


@pytest.mark.parametrize(
    ("kind", "before", "good", "fine"),
    [(Careful, Negative, Careful, True), (Careful, Fragile, Careful, True), (Negative, Careful, Careful, False)],
)
def test_a_repair_may_come_nearer_to_a_curated_version(
    kind: type[Careful], before: type[Careful], good: type[Careful], fine: bool
) -> None:
    assert alike(kind, before=before, good=good) is fine
    assert not alike(kind, before=before)


@pytest.mark.parametrize(("kind", "stops"), [(Careful, False), (Negative, False), (Fragile, True), (Keeping, True)])
def test_no_test_may_ask_to_stop_or_to_keep_a_question(kind: type[Careful], stops: bool) -> None:
    assert breaks(Before(started(Careful), PARAMS), started(kind), [PARAMS, PARAMS], POLICY, 7) is stops


def test_who_waives_restarts_may_keep_a_question_and_what_failed_before_may_fail() -> None:
    policy = replace(POLICY, acceptance=replace(POLICY.acceptance, waived={"restart": "it remembers"}))
    assert not breaks(Before(started(Careful), PARAMS), started(Keeping), [PARAMS], policy, 7)
    assert not breaks(Before(started(Fragile), PARAMS), started(Fragile), [PARAMS], POLICY, 7)


def test_odd_inputs_have_what_no_market_has_and_are_the_same_for_a_seed() -> None:
    market, again = (OddMarket(random.Random(3), 200, "x") for _ in range(2))
    assert [bars.symbols for bars in market.sessions] == [bars.symbols for bars in again.sessions]
    assert repr(market.told) == repr(again.told)
    for column in COLUMNS:
        values = [value for bars in market.sessions for value in bars.columns[column]]
        assert any(value != value for value in values) and any(value < 0.0 for value in values), column
    assert any(not 0.0 <= count < math.inf for told in market.told.values() for count in told["shares"].values())
    ends = {name for name in market.names if name[:-1] in market.names}
    assert ends or len(market.names) < 15


def test_parameters_stand_at_their_bounds_together_and_wrong_ones_are_wrong() -> None:
    weights = ["up_weight", "down_weight"]
    assert at_bounds(PARAMS, BOUNDS, weights, least=True) == {"floor": 1.0, "up_weight": 0.0, "down_weight": 0.0}
    assert at_bounds(PARAMS, BOUNDS, weights, least=False) == {"floor": 1.0, "up_weight": 2.0, "down_weight": 2.0}
    others = [wrong(PARAMS, random.Random(seed)) for seed in range(40)]
    assert all(repr(other) != repr(PARAMS) for other in others) and any("unknown" in other for other in others)
    assert any(len(other) < 3 for other in others) and any(None in other.values() for other in others)

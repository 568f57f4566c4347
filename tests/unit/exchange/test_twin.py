"""The twin of a tape: the same shape and returns, dealt anew, so that remembering the tape is worth nothing."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest

from oomrl.domain.market import Floats
from oomrl.errors import Mistake
from oomrl.exchange.tape import Tape
from oomrl.exchange.tape_files import load_tape
from oomrl.exchange.twin import BLOCK, twin


def market(sessions: int = 40 * BLOCK, names: int = 12, seed: int = 3, gaps: bool = False) -> Tape:
    """A made-up market with fat tails, one split and dividends; with `gaps` names list late and miss sessions."""
    chance = np.random.default_rng(seed)
    common = chance.standard_t(4, (sessions, 1)) * 0.007
    move = np.exp(common + chance.standard_t(4, (sessions, names)) * 0.012)
    close = np.rint(50 * np.cumprod(move, axis=0) * 1e4) / 1e4
    split = np.ones_like(close)
    split[300, 2] = 2.0
    close[300:, 2] = np.rint(close[300:, 2] / 2 * 1e4) / 1e4
    opened = np.rint(close * np.exp(chance.normal(0, 0.004, close.shape)) * 1e4) / 1e4
    columns = {
        "open": opened,
        "high": np.maximum(opened, close) + 0.1,
        "low": np.minimum(opened, close) - 0.01,
        "close": close,
        "volume": np.floor(chance.uniform(1e5, 1e6, close.shape)),
        "dividend": np.where(chance.random(close.shape) < 0.01, 0.25, 0.0),
        "split": split,
    }
    if gaps:
        absent = chance.random(close.shape) < 0.03
        absent[:100, 0] = True
        columns = {name: np.where(absent, np.nan, values) for name, values in columns.items()}
    days = tuple(date(2000, 1, 3) + timedelta(days=n) for n in range(sessions))
    return Tape("made", tuple(f"N{n:02d}" for n in range(names)), days, columns)


def growth(tape: Tape) -> Floats:
    """Total returns with splits undone, (sessions - 1, names)."""
    c = tape.columns
    return (c["close"][1:] * c["split"][1:] + c["dividend"][1:]) / c["close"][:-1]


@pytest.mark.parametrize("gaps", [False, True])
def test_names_days_and_gaps_stay_and_bars_are_valid(gaps: bool) -> None:
    tape = market(gaps=gaps)
    made = twin(tape, 7)
    assert (made.symbols, made.days) == (tape.symbols, tape.days)
    for column, values in made.columns.items():
        assert np.array_equal(np.isnan(values), np.isnan(tape.columns[column])), column
    c = {name: values[~np.isnan(values)] for name, values in made.columns.items()}
    assert (c["low"] > 0).all() and (c["low"] <= np.minimum(c["open"], c["close"])).all()
    assert (c["high"] >= np.maximum(c["open"], c["close"])).all() and (c["volume"] >= 0).all()
    assert np.array_equal(np.floor(c["volume"]), c["volume"]) and (c["split"] > 0).all() and (c["dividend"] >= 0).all()


def test_the_same_seed_deals_the_same_and_another_one_another() -> None:
    tape = market()
    assert twin(tape, 7).digest == twin(tape, 7).digest != twin(tape, 8).digest != tape.digest


def test_each_session_is_one_of_the_tape_with_its_names_dealt_anew() -> None:
    tape = market()
    told, dealt = np.sort(growth(tape), axis=1), np.sort(growth(twin(tape, 7)), axis=1)
    # The tape's first session has no return, so that one session of the twin is another one's flat copy.
    near = np.array([np.abs(told - row).max(axis=1).min() for row in dealt])
    assert (near < 2e-4).mean() > 0.99
    places = np.array([int(np.abs(told - row).max(axis=1).argmin()) for row in dealt])
    assert len(set(places)) > 0.99 * len(places), "months are permuted, not drawn"
    assert (np.diff(places) == 1).mean() > 0.9, "and stay together"
    assert (np.abs(places - np.arange(len(places))) < BLOCK).mean() < 0.2


def test_what_memory_knows_of_names_and_months_is_worth_nothing_on_the_twin() -> None:
    """Someone who has seen the tape buys each month the name that was its best; on the twin that is chance."""
    tape = market()
    worth = {}
    for name, prices in (("tape", tape), ("twin", twin(tape, 7))):
        months = np.log(growth(prices))[: 39 * BLOCK].reshape(39, BLOCK, -1).sum(axis=1)
        remembered = np.log(growth(tape))[: 39 * BLOCK].reshape(39, BLOCK, -1).sum(axis=1).argmax(axis=1)
        edge = months[np.arange(39), remembered] - months.mean(axis=1)
        worth[name] = edge.mean() / (edge.std(ddof=1) / np.sqrt(len(edge)))
    assert worth["tape"] > 8 and abs(worth["twin"]) < 2.5


def test_the_builtin_tape_has_a_twin_by_name() -> None:
    made = load_tape("twin:7:builtin")
    assert made.digest == twin(load_tape("builtin"), 7).digest and made.name == "twin of builtin"
    for wrong in ("twin:", "twin:7", "twin:x:builtin", "twin:7:nowhere"):
        with pytest.raises(Mistake):
            load_tape(wrong)

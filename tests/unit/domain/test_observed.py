"""What is known at a close: benchmark, betas, average volume, against straightforward second computations."""

from __future__ import annotations

from dataclasses import fields
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomrl.domain.market import Session
from oomrl.domain.observed import Bar, Observed
from oomrl.testing.markets import Weather, made_up_tape


def shown(sessions: list[Session]) -> tuple[Observed, list[Bar]]:
    observed = Observed()
    return observed, [observed.show(session) for session in sessions]


def slow_returns(sessions: list[Session], symbols: list[str]) -> np.ndarray:
    """Total returns (sessions, names) from each name's own prints; NaN where none is known."""
    last: dict[str, float] = {}
    rows = []
    for session in sessions:
        row = dict.fromkeys(symbols, np.nan)
        for n, symbol in enumerate(session.symbols):
            close, dividend, split = session["close"][n], session["dividend"][n], session["split"][n]
            if symbol in last and symbol not in session.suspected:
                row[symbol] = split * (close + dividend) / last[symbol] - 1
            last[symbol] = close
        rows.append(list(row.values()))
    return np.array(rows)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_benchmark_betas_and_volume_are_what_the_definitions_say(seed: int) -> None:
    tape = made_up_tape(seed, sessions=330, names=4, weather=Weather(jumps=0.003, late=0.5, delisted=0.5))
    sessions = list(tape.sessions())
    observed, bars = shown(sessions)
    symbols = observed.roster.symbols
    returns = slow_returns(sessions, symbols)
    known = ~np.isnan(returns)
    worth = np.zeros(len(symbols))
    benchmark = []
    for t, session in enumerate(sessions):
        if t and (session.day.month != sessions[t - 1].day.month or not worth.any()):
            tradable = {name for n, name in enumerate(sessions[t - 1].symbols) if sessions[t - 1]["tradable"][n] > 0}
            worth = np.array([1.0 if name in tradable else 0.0 for name in symbols])
        grown = worth * (1 + np.nan_to_num(returns[t]))
        benchmark.append(grown.sum() / worth.sum() - 1 if worth.any() else 0.0)
        worth = grown
    np.testing.assert_allclose([bar.benchmark for bar in bars], benchmark, atol=1e-12)
    for t in (30, 59, 61, 150, 252, 253, 329):
        window = slice(max(0, t - 252), t)
        for n in range(len(bars[t].beta)):
            here = known[window, n]
            if here.sum() < 60:
                assert bars[t].beta[n] == 1.0
            else:
                b, r = np.array(benchmark)[window][here], returns[window, n][here]
                beta = np.cov(r, b)[0, 1] / np.var(b, ddof=1)
                assert bars[t].beta[n] == pytest.approx(beta, rel=1e-6, abs=1e-8)
    volume = np.zeros(len(symbols))
    listed = {symbol: t for t, session in reversed(list(enumerate(sessions))) for symbol in session.symbols}
    for n, symbol in enumerate(symbols):
        adjusted = []
        for session in sessions[max(listed[symbol], len(sessions) - 20) :]:
            if symbol in session.symbols:
                at = session.symbols.index(symbol)
                adjusted = [value * session["split"][at] for value in adjusted]
                adjusted.append(session["volume"][at])
            else:
                adjusted.append(0.0)
        volume[n] = np.mean(adjusted)
    np.testing.assert_allclose(bars[-1].average_volume, volume)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_sessions_taken_in_at_once_are_known_as_one_by_one(seed: int) -> None:
    tape = made_up_tape(seed, sessions=320, names=4, weather=Weather(jumps=0.003, late=0.5, delisted=0.5))
    sessions = list(tape.sessions())
    _, singly = shown(sessions)
    observed, at_once = Observed(), []
    while sessions:
        bars = observed.take(sessions)
        at_once += [bars.bar(at) for at in range(len(bars))]
        sessions = sessions[len(bars) :]
    assert len(at_once) == len(singly) == 320
    for one, other in zip(singly, at_once, strict=True):
        for field in fields(Bar):
            np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), field.name)
        np.testing.assert_array_equal(one.average_volume, other.average_volume)


def test_the_tape_s_index_is_the_benchmark_where_there_is_one() -> None:
    session = next(iter(made_up_tape(1).sessions()))
    with_index = Session(session.day, session.symbols, session.columns, benchmark=0.0123)
    assert Observed().show(with_index).benchmark == 0.0123


def test_a_name_without_a_print_keeps_its_last_close() -> None:
    tape = made_up_tape(5, sessions=12, names=3)
    for values in tape.columns.values():
        values[7, 1] = np.nan
    observed, bars = shown(list(tape.sessions()))
    row = observed.roster.symbols.index("N001")
    assert not bars[7].present[row] and not bars[7].tradable[row]
    assert bars[7].close[row] == bars[6].close[row] == bars[7].opened[row] == bars[8].previous[row]
    assert bars[7].returns[row] == 0.0


def test_sessions_come_in_order() -> None:
    first, second, *_ = made_up_tape(1).sessions()
    observed = Observed()
    assert observed.day == date.min
    observed.show(second)
    with pytest.raises(ValueError, match="Expected a session after"):
        observed.show(first)

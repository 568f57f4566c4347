"""The counterfactual twin of a tape: the same market with other prices, of which nobody remembers anything.

A model that was trained on the past may recall what a name did in a month. On the twin every session's returns come
from another month of the same tape and, within it, from another name: what a rule can learn from prices is there, what
memory knows is not. The difference between a run on the tape and the same run on its twin is what memory was worth.
"""

from __future__ import annotations

import numpy as np

from oomrl.domain.market import Floats, Ints, ticks
from oomrl.exchange.tape import RECORDED, Tape

#: Sessions that stay together: a month, so that volatility still clusters and trends still last.
BLOCK = 21
_BARS = ("open", "high", "low", "close", "dividend")
_LEAST, _MOST = 0.01, 1e6


def twin(tape: Tape, seed: int) -> Tape:
    """Return a tape with the same names, days and gaps, and with months and names dealt anew.

    Months are permuted, not drawn, and names are permuted once: each session's returns stand together as they did, and
    all returns of the tape appear. A cell whose name did not trade in the dealt session takes the next name that did.
    Volume follows the dealt returns, at the dollars that the name itself used to trade. Bars stay valid.
    """
    chance = np.random.default_rng([seed, 20])
    sessions, names = len(tape.days), len(tape.symbols)
    blocks = np.array_split(np.arange(sessions), range(BLOCK, sessions, BLOCK))
    order = np.concatenate([blocks[number] for number in chance.permutation(len(blocks))])
    dealt = chance.permutation(names)
    close, volume = tape.columns["close"], tape.columns["volume"]
    before = _last_close(close)
    ratios = {column: tape.columns[column] / before for column in _BARS}
    dollars = volume * close
    usual = np.array([_median(dollars[:, name]) for name in range(names)])
    usable = ~np.isnan(ratios["close"]) & (usual > 0)

    made = {column: np.full((sessions, names), np.nan) for column in RECORDED}
    level = np.full(names, np.nan)
    for t, source in enumerate(order):
        here = ~np.isnan(close[t])
        fresh = here & np.isnan(level)
        for column in RECORDED:
            made[column][t, fresh] = tape.columns[column][t, fresh]
        moved = np.flatnonzero(here & ~fresh)
        lenders = _lenders(usable[source], dealt, moved)
        for column in _BARS:
            one = 0.0 if column == "dividend" else 1.0
            step = ratios[column][source, lenders] if len(lenders) else np.full(len(moved), one)
            made[column][t, moved] = np.clip(level[moved], _LEAST, _MOST) * step
        if len(lenders):
            made["split"][t, moved] = tape.columns["split"][source, lenders]
            traded = dollars[source, lenders] / usual[lenders] * usual[moved]
        else:
            made["split"][t, moved], traded = 1.0, usual[moved]
        for column in _BARS:
            made[column][t, moved] = _rounded(made[column][t, moved], floor=0.0 if column == "dividend" else 0.0001)
        made["volume"][t, moved] = np.floor(traded / made["close"][t, moved])
        level = np.where(here, made["close"][t], level)
    return Tape(f"twin of {tape.name}", tape.symbols, tape.days, made, tape.quarantine)


def _last_close(close: Floats) -> Floats:
    """Return each name's close before each session, NaN before its first."""
    before = np.full(close.shape, np.nan)
    last = np.full(close.shape[1], np.nan)
    for t in range(len(close)):
        before[t] = last
        last = np.where(np.isnan(close[t]), last, close[t])
    return before


def _median(dollars: Floats) -> float:
    traded = dollars[dollars > 0]
    return float(np.median(traded)) if len(traded) else 0.0


def _lenders(usable: np.ndarray, dealt: Ints, moved: Ints) -> Ints:
    """Return whose returns each moved name takes: its dealt name's, or those of the next one that traded."""
    able = np.flatnonzero(usable[dealt])
    if not len(able):
        return np.empty(0, dtype=np.int64)
    found: Ints = dealt[able[np.searchsorted(able, moved) % len(able)]]
    return found


def _rounded(values: Floats, floor: float) -> Floats:
    rounded: Floats = np.maximum(ticks(values) / 10_000, floor)
    return rounded

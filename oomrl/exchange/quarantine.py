"""Spot jumps that no recorded corporate action explains, from what was known at each close.

A print is suspected when, after the recorded split,
  1. the open or the close stands beyond a factor of 4 from the last close, or the close beyond a factor of 4 from
     the open (no large company moved so far in a day of 2000-2014 without an action or a wrong print), or
  2. open and close both stand beyond a factor of 1.4 from the last close, on the same side, while the dollar
     volume stays below 2.5 times its median of 20 sessions: news that moves a price so far also multiplies its
     trading, a change of units does not, or
  3. the recorded dividend exceeds a quarter of the last close: what was handed out was no cash.

On the development tape (100 names, 1999-2014) this flags KSU 2000-07-13 (a spin-off and a reverse split), PENN
2013-11-04 (a spin-off) and AJG 2000-03-16 (a split 2:1), and keeps the true crashes (PWR 2002-07-02 at 3.1 times its
usual dollar volume, REGN 2003-03-31 at 17, BIIB 2005-02-28 at 23, VRSN 2002-04-26 at 6). What it cannot see: an
unrecorded action that moves the price by less than a factor of 1.4, or one on a day of exceptional trading.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oomrl.domain.market import Bools, Floats


@dataclass(frozen=True, slots=True)
class QuarantineRule:
    """Thresholds of the rule above; `sessions` is how long a name is valued but not traded, the jump's included."""

    wild: float = 4.0
    jump: float = 1.4
    busy: float = 2.5
    distribution: float = 0.25
    median_sessions: int = 20
    least_sessions: int = 5
    sessions: int = 10


def suspected(columns: dict[str, Floats], rule: QuarantineRule) -> Bools:
    """Return where a print shows a suspected jump: shape (sessions, names), row t a function of rows <= t alone.

    Columns have NaN where a name did not print; the last close is that of the last print.
    """
    close, split = columns["close"], columns["split"]
    last = _last_known(close)
    with np.errstate(invalid="ignore"):
        at_open = np.log(split * columns["open"] / last)
        at_close = np.log(split * close / last)
        within = np.log(close / columns["open"])
        wild = np.log(rule.wild)
        flagged: Bools = (np.abs(at_open) > wild) | (np.abs(at_close) > wild) | (np.abs(within) > wild)
        flagged |= split * columns["dividend"] > rule.distribution * last
        jump = np.log(rule.jump)
        both = (np.abs(at_open) > jump) & (np.abs(at_close) > jump) & (at_open * at_close > 0)
    value = close * columns["volume"]
    for day, name in zip(*np.nonzero(both & ~flagged), strict=True):
        past = value[max(0, day - rule.median_sessions) : day, name]
        past = past[~np.isnan(past)]
        if len(past) >= rule.least_sessions and value[day, name] < rule.busy * np.median(past):
            flagged[day, name] = True
    return flagged


def quarantined(flags: Bools, sessions: int) -> Bools:
    """Return where a name is in quarantine: on each flagged row and the `sessions - 1` rows after it."""
    out: Bools = flags.copy()
    for day, name in zip(*np.nonzero(flags), strict=True):
        out[day : day + sessions, name] = True
    return out


def _last_known(close: Floats) -> Floats:
    """Return for each row the close of the last print before it, NaN where there was none."""
    known = np.where(np.isnan(close), -1, np.arange(len(close))[:, None])
    at = np.maximum.accumulate(known, axis=0)
    before = np.vstack([np.full((1, close.shape[1]), -1), at[:-1]])
    last: Floats = np.where(before >= 0, np.take_along_axis(close, np.maximum(before, 0), axis=0), np.nan)
    return last

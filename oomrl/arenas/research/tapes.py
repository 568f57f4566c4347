"""Panels from real tapes: names hidden, dates shifted, prices rescaled, the piece of history drawn by seed.

Tapes are read by `oomrl.exchange.tape_files.load_tape` (Parquet, or a folder of CSVs). What is shown is adjusted to
total return and starts at 100, since models remember raw prices with their dates. No ceiling is known, and the
members of a tape may have been chosen by surviving: a score on one compares models, it promises nothing.
"""

from __future__ import annotations

import numpy as np

from oomrl.arenas.research.operators import mean
from oomrl.arenas.research.panel import HORIZON, Panel
from oomrl.errors import Mistake
from oomrl.exchange.quarantine import quarantined, suspected
from oomrl.exchange.tape import Tape


def panel_from(
    tape: Tape,
    seed: int,
    names: int = 40,
    public_days: int = 756,
    windows: int = 4,
    window_days: int = 126,
    gap: int = 10,
) -> Panel:
    """Draw names and a stretch of days, and hide both. Raises `Mistake` where the tape is too short or narrow.

    Names are ones that print on every day of the stretch. A jump that the tape's quarantine rule suspects counts as
    no return, and its name is not traded from the row that shows it for as long as the rule says.
    """
    rng = np.random.default_rng([seed, 21])
    days = public_days + windows * (window_days + gap) + HORIZON
    if len(tape) < days + 1:
        raise Mistake(f"Expected a tape of at least {days + 1} days, was {len(tape)}")
    start = int(rng.integers(1, len(tape) - days + 1))
    rows = slice(start, start + days)
    whole = np.isfinite(tape.columns["close"][start - 1 : start + days]).all(axis=0)
    eligible = np.flatnonzero(whole & (np.nan_to_num(tape.columns["volume"][rows]) > 0).all(axis=0))
    if len(eligible) < 10:
        raise Mistake(f"Expected at least 10 names that trade on every day of the stretch, were {len(eligible)}")
    chosen = rng.permutation(eligible)[:names]
    raw = {name: values[start - 1 : start + days][:, chosen] for name, values in tape.columns.items()}
    split = np.where(np.isfinite(raw["split"][1:]), raw["split"][1:], 1.0)
    dividend = np.nan_to_num(raw["dividend"][1:])
    close = raw["close"]
    change = (close[1:] * split + dividend * split) / close[:-1] - 1.0
    jump = suspected(raw, tape.quarantine)[1:]
    change = np.where(jump, 0.0, change)
    tradable = ~quarantined(jump, tape.quarantine.sessions)
    returns = change.copy()
    returns[0] = 0.0
    level = 100.0 * np.cumprod(1.0 + returns, axis=0)
    ratio = level / close[1:]
    value = raw["volume"][1:] * close[1:]
    size = value[:60].mean(axis=0)
    return Panel(
        names=tuple(f"N{k:03d}" for k in range(1, len(chosen) + 1)),
        columns={
            "close": level,
            "open": raw["open"][1:] * ratio,
            "high": raw["high"][1:] * ratio,
            "low": raw["low"][1:] * ratio,
            "volume": value / size * 1e6 / level,
        },
        returns=returns,
        dollar_volume=mean(value, 20),
        tradable=tradable,
        public_days=public_days,
        windows=tuple(
            (first := public_days + gap + k * (window_days + gap), first + window_days) for k in range(windows)
        ),
    )

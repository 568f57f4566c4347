"""From forecasts to profit: scale, smooth, neutralise, cap, trade one row later, pay, earn two rows later."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oomrl.arenas.research.operators import ewm
from oomrl.arenas.research.panel import HORIZON, Panel
from oomrl.domain.market import Floats

MAX_GROSS = 2.0
COST_TIERS = (1.0, 5.0, 15.0)
#: Square-root impact: a trade of a share p of the daily traded value moves the price by this times the name's
#: daily volatility times sqrt(p) (Almgren et al. 2005 measure an exponent of 0.6; one half is the usual rule).
IMPACT = 0.3


@dataclass(frozen=True, slots=True)
class Design:
    """Say how forecasts become positions.

    `gross` caps the sum of absolute weights (0..2], `halflife` smooths in rows, `band` leaves a weight alone
    until the target differs by more (in weight), `name_cap` bounds one weight. `cost_bps` is charged on traded
    value, `capital` in dollars sets the impact.
    """

    gross: float = 1.0
    halflife: float = 7.0
    band: float = 0.0
    name_cap: float = 1.0
    cost_bps: float = 1.0
    capital: float = 5e6

    def at_cost(self, cost_bps: float) -> Design:
        return replace(self, cost_bps=cost_bps)


@dataclass(frozen=True, slots=True)
class Ledger:
    """What each signal row earned and paid, as fractions of capital, shape (rows,).

    `gross` is before costs, `cost` what trading the signal's position cost, `turnover` the weight traded,
    `exposure` the sum of absolute weights, `rows` the signal rows.
    """

    rows: np.ndarray
    gross: Floats
    cost: Floats
    turnover: Floats
    exposure: Floats

    @property
    def net(self) -> Floats:
        return self.gross - self.cost


def scale_of(forecast: Floats) -> float:
    """Return the mean absolute cross-sectionally centred forecast, the unit of "forecast scaled"; 0 if flat."""
    centred = np.abs(_centred(forecast))
    return float(centred.mean()) if centred.size else 0.0


def _centred(forecast: Floats) -> Floats:
    seen = np.isfinite(forecast)
    count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    middle = np.where(seen, forecast, 0.0).sum(axis=1, keepdims=True) / count
    return np.where(seen, forecast - middle, 0.0)


def positions(panel: Panel, forecast: Floats, scale: float, design: Design, start: int = 0) -> Floats:
    """Return target weights by signal row, shape (days - start, names); `forecast` starts at row `start`.

    The centred forecast over its `scale` is smoothed, made orthogonal to the trailing beta, sized so that the
    unit forecast fills the gross cap, and cut to the cap where it is stronger. A weak forecast trades little.
    """
    if scale <= 0.0:
        return np.zeros_like(forecast)
    stop = start + len(forecast)
    wish = ewm(_centred(forecast) / scale, design.halflife)
    wish = np.where(panel.tradable[start:stop], wish, 0.0)
    beta = np.where(panel.tradable[start:stop], panel.beta[start:stop], 0.0)
    load = (wish * beta).sum(axis=1) / np.maximum((beta * beta).sum(axis=1), 1e-12)
    wish = wish - load[:, None] * beta
    weights = wish * (design.gross / forecast.shape[1])
    weights = np.clip(weights, -design.name_cap, design.name_cap)
    total = np.abs(weights).sum(axis=1, keepdims=True)
    return weights * np.minimum(1.0, design.gross / np.maximum(total, 1e-12))


def trade(panel: Panel, weights: Floats, design: Design, start: int, stop: int, offset: int = 0) -> Ledger:
    """Trade the signals of rows start..stop-1 from flat; `weights[k]` belongs to row `offset + k`.

    The position of signal t is taken at the close of t+1, where the old one has drifted with the return of
    t+1, and earns the return of t+2. Ends with the last row's return; closing out is not charged.
    """
    stop = min(stop, panel.days - HORIZON)
    rows = np.arange(start, stop)
    target = weights[start - offset : stop - offset]
    earned = panel.returns[start + HORIZON : stop + HORIZON]
    drift_return = panel.returns[start + 1 : stop + 1]
    held = np.zeros_like(target)
    if design.band > 0.0:
        target = target.copy()
        for k in range(1, len(target)):
            keep = np.abs(target[k] - target[k - 1]) <= design.band
            target[k, keep] = target[k - 1, keep]
    grown = target[:-1] * (1.0 + drift_return[1:])
    held[1:] = grown / (1.0 + (target[:-1] * drift_return[1:]).sum(axis=1, keepdims=True))
    traded = np.abs(target - held)
    participation = traded * design.capital / np.maximum(panel.dollar_volume[start:stop], 1.0)
    slippage = IMPACT * panel.volatility[start:stop] * np.sqrt(participation)
    cost = (traded * (design.cost_bps / 1e4 + slippage)).sum(axis=1)
    return Ledger(
        rows=rows,
        gross=(target * earned).sum(axis=1),
        cost=cost,
        turnover=traded.sum(axis=1),
        exposure=np.abs(target).sum(axis=1),
    )

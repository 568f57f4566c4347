"""What is measured of each name at the close of the last session shown."""

from dataclasses import dataclass

import numpy as np

from strategy import returns
from strategy.history import History
from strategy.parameters import Parameters

#: Below this daily volatility a name counts as this volatile, so that a price that never moves gets no bet.
VOLATILITY_FLOOR = 0.002


@dataclass(frozen=True)
class Features:
    """Hold one number a name, each array of shape (names,), free of NaN.

    `close` raw dollars; `dollars` median traded dollars a session; `volatility` of daily logarithmic returns and
    `observed` the number of them; `momentum` and `recent` total returns, `momentum_known` where there is history
    for the former; `age` and `silent` sessions since the first and the last print; `tradable` printed in the last
    session and not halted.
    """

    close: np.ndarray
    dollars: np.ndarray
    volatility: np.ndarray
    observed: np.ndarray
    momentum: np.ndarray
    momentum_known: np.ndarray
    recent: np.ndarray
    age: np.ndarray
    silent: np.ndarray
    tradable: np.ndarray


def measure(history: History, parameters: Parameters) -> Features:
    """Return the features of every name that ever printed. `history` must have seen a session."""
    age = np.where(history.first >= 0, history.count - 1 - history.first, 0)
    silent = np.where(history.last >= 0, history.count - 1 - history.last, history.count)
    observed = history.counted.sum(axis=0)
    known = age >= parameters.momentum_window
    return Features(
        close=history.close,
        dollars=median_dollars(history),
        volatility=volatility(history.changes, observed),
        observed=observed,
        momentum=np.where(known, momentum(history, parameters.momentum_window, parameters.momentum_skip), 0.0),
        momentum_known=known,
        recent=recent_return(history, parameters.reversal_window, age),
        age=age,
        silent=silent,
        tradable=history.tradable & (silent == 0),
    )


def momentum(history: History, window: int, skip: int) -> np.ndarray:
    """Return total returns from `window` sessions ago to `skip` sessions ago (Jegadeesh and Titman 1993)."""
    return returns.growth(history.level_before(skip), history.level_before(window))


def recent_return(history: History, window: int, age: np.ndarray) -> np.ndarray:
    """Return total returns over the last `window` sessions; 0 for names younger than that."""
    change = returns.growth(history.level, history.level_before(window))
    return np.where(age >= window, change, 0.0)


def volatility(changes: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Return the root mean square of the `observed` daily logarithmic returns in `changes`, shape (rows, names)."""
    return np.maximum(np.sqrt((changes * changes).sum(axis=0) / changes.shape[0]), VOLATILITY_FLOOR)


def median_dollars(history: History) -> np.ndarray:
    """Return the median traded dollars a session over the window; a session without a print counts as 0."""
    rows = min(history.count, history.dollars.shape[0])
    return np.median(history.dollars[:rows], axis=0)

"""Which names of the universe are held."""

import numpy as np

from strategy.parameters import Parameters


def places(universe: int, fraction: float, parameters: Parameters) -> int:
    """Return how many names `fraction` of a universe of that size is, within min_holdings and max_holdings."""
    wanted = max(round(fraction * universe), parameters.min_holdings)
    return min(wanted, parameters.max_holdings, universe)


def select(total: np.ndarray, universe: np.ndarray, held: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Return the mask of names to hold, shape (names,), best score first.

    A name that is held stays while it stands among the `keep_fraction` best; free places go to the best names
    that are not held. Names with one score stand in the order in which they were first seen.
    """
    candidates = np.flatnonzero(universe)
    order = candidates[np.argsort(total[candidates], kind="stable")]
    room = places(order.size, parameters.hold_fraction, parameters)
    keep = places(order.size, parameters.keep_fraction, parameters)
    kept = order[:keep]
    kept = kept[held[kept]][:room]
    chosen = np.zeros(universe.shape, dtype=bool)
    chosen[kept] = True
    others = order[~chosen[order]]
    chosen[others[: room - kept.size]] = True
    return chosen

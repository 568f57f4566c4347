"""How an order may take liquidity."""

import math

import numpy as np

from strategy.features import Features
from strategy.parameters import Parameters


def position_caps(features: Features, equity: float, parameters: Parameters) -> np.ndarray:
    """Return the largest weight of each name that its daily dollars allow, shape (names,)."""
    return parameters.max_position_volume * features.dollars / equity


def reach(features: Features, equity: float, parameters: Parameters) -> np.ndarray:
    """Return by how much each weight may move over `max_sessions` within `max_participation`, shape (names,)."""
    return parameters.max_sessions * features.dollars / equity


def within_reach(target: np.ndarray, current: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return `target` moved towards `current` until no weight changes by more than `room`, shape (names,)."""
    return np.clip(target, current - room, current + room)


def plan(trade: float, dollars: float, volatility: float, parameters: Parameters) -> dict:
    """Return the liquidity plan of one order.

    `trade` is its size in dollars (either sign), `dollars` the name's daily dollars, `volatility` daily. The limit
    stands `limit_volatilities` of daily volatility away, in basis points; 0 asks for a market order.
    """
    a_session = parameters.max_participation * dollars
    needed = math.ceil(abs(trade) / a_session) if a_session > 0.0 else parameters.max_sessions
    limit = parameters.limit_volatilities * volatility * 1e4
    return {
        "max_participation": parameters.max_participation,
        "sessions": max(1, min(needed, parameters.max_sessions)),
        "limit_bps": limit if limit > 0.0 else None,
    }

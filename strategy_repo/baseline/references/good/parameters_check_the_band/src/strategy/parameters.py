"""The numbers of strategy.toml, checked once."""

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Parameters:
    """Hold every number the strategy may be tuned by; strategy.toml says what each one means."""

    min_price: float
    min_dollar_volume: float
    universe_size: int
    min_history: int
    max_gap: int
    liquidity_window: int
    momentum_window: int
    momentum_skip: int
    volatility_window: int
    reversal_window: int
    momentum_weight: float
    volatility_weight: float
    reversal_weight: float
    hold_fraction: float
    keep_fraction: float
    min_holdings: int
    max_holdings: int
    volatility_sizing: float
    max_weight: float
    few_names_weight: float
    exposure: float
    no_trade_band: float
    max_participation: float
    max_sessions: int
    max_position_volume: float
    limit_volatilities: float


def read(params: dict) -> Parameters:
    """Return checked parameters from the [parameters] table of strategy.toml.

    Raises ValueError for a parameter that is missing, unknown, negative, not finite, or not whole where a
    count is needed, and for windows, fractions or counts that contradict each other.
    """
    values = {}
    for field in fields(Parameters):
        if field.name not in params:
            raise ValueError(f"Expected the parameter {field.name}, was missing: add it to strategy.toml")
        values[field.name] = number(field.name, params[field.name], field.type is int)
    unknown = sorted(name for name in params if name not in values)
    if unknown:
        raise ValueError(f"Expected only known parameters, was {unknown}: remove them from strategy.toml")
    parameters = Parameters(**values)
    check(parameters)
    return parameters


def number(name: str, value: object, whole: bool) -> float:
    """Return `value` as a number, an int where it must be `whole`. Raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError(f"Expected {name} to be a finite number of at least 0, was {value!r}")
    if whole and value != int(value):
        raise ValueError(f"Expected {name} to be a whole number, was {value!r}")
    return int(value) if whole else float(value)


def check(parameters: Parameters) -> None:
    """Raise ValueError where parameters contradict each other."""
    for name, value in (
        ("liquidity_window", parameters.liquidity_window),
        ("volatility_window", parameters.volatility_window),
        ("reversal_window", parameters.reversal_window),
        ("max_sessions", parameters.max_sessions),
        ("min_holdings", parameters.min_holdings),
    ):
        if value < 1:
            raise ValueError(f"Expected {name} to be at least 1, was {value}")
    for name, value in (
        ("exposure", parameters.exposure),
        ("max_weight", parameters.max_weight),
        ("few_names_weight", parameters.few_names_weight),
        ("hold_fraction", parameters.hold_fraction),
        ("keep_fraction", parameters.keep_fraction),
        ("max_participation", parameters.max_participation),
    ):
        if value > 1:
            raise ValueError(f"Expected {name} to be at most 1, was {value}")
    if parameters.momentum_skip >= parameters.momentum_window:
        raise ValueError(
            f"Expected momentum_skip below momentum_window {parameters.momentum_window}, was {parameters.momentum_skip}"
        )
    if parameters.reversal_window > parameters.momentum_window:
        raise ValueError(
            f"Expected reversal_window of at most momentum_window {parameters.momentum_window}, "
            f"was {parameters.reversal_window}"
        )
    if parameters.no_trade_band >= 1:
        raise ValueError(f"Expected no_trade_band below 1, was {parameters.no_trade_band}")
    if parameters.min_holdings > parameters.max_holdings:
        raise ValueError(
            f"Expected min_holdings of at most max_holdings {parameters.max_holdings}, was {parameters.min_holdings}"
        )

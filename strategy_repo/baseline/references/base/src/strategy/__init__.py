"""A weekly long-only equity strategy. `Strategy` is all that the service knows of it."""

from strategy.strategy import Strategy

__all__ = ["Strategy"]

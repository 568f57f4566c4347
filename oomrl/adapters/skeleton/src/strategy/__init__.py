"""Hold the most traded names in equal parts: a place to begin from."""

from strategy.strategy import Strategy

__all__ = ["Strategy"]

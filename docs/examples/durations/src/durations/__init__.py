"""Durations as people write them: 1h30m, 45s, 2d."""

from durations.parse import parse
from durations.show import show

__all__ = ["parse", "show"]

"""The arithmetic of weights: protected, so that no repair changes it."""


def equal_weight(exposure: float, places: int) -> float:
    """Return the fraction of equity that each of so many places gets."""
    return exposure / places
